# SPDX-License-Identifier: Apache-2.0
# Flags of this repository's own programs; users of xla::xla inherit none of them.

# The KB of memory that g++ fills before it looks for garbage: a fifth of the machine's, as two sources are compiled at a
# time. After a collection its passes are slower, `tree operand scan` above all: tests_loop_2 took 172 s of user
# time and 3.2 GB with 1.5 GB, 70 s and 4.2 GB with more than it needs.
cmake_host_system_information(RESULT heap QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
math(EXPR heap "${heap} * 1024 / 5")
if(heap GREATER 5000000)
  set(heap 5000000)
endif()
set(xla_heap "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(xla_heap --param=ggc-min-heapsize=${heap})
endif()

add_library(xla_warnings INTERFACE)
target_link_libraries(xla_warnings INTERFACE xla::xla)
target_compile_options(xla_warnings INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${XLA_WERROR}>:-Werror> ${xla_heap})

# Without contraction the three modes agree bit for bit.
add_library(xla_dev INTERFACE)
target_link_libraries(xla_dev INTERFACE xla_warnings)
target_compile_options(xla_dev INTERFACE -ffp-contract=off)

# Hundreds of tests are linked: by a faster linker, where one is there.
find_program(XLA_GOLD ld.gold)
find_program(XLA_LLD NAMES ld.lld-16 ld.lld)
mark_as_advanced(XLA_GOLD XLA_LLD)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND XLA_GOLD)
  target_link_options(xla_dev INTERFACE -fuse-ld=gold)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND XLA_LLD AND NOT CMAKE_CROSSCOMPILING)
  target_link_options(xla_dev INTERFACE "--ld-path=${XLA_LLD}")
endif()

# The run time of the tests, without contraction as they are; where they are built, examples share it.
if(XLA_BUILD_TESTS)
  xla_add_runtime(xla_dev_runtime xla_dev)
  # Not with the address sanitizer: its -O1 takes 165 s of user time more to compile, and its tests run as long.
  if(CMAKE_CXX_FLAGS MATCHES "-O0" AND NOT CMAKE_CXX_FLAGS MATCHES "sanitize=address")
    target_compile_options(xla_dev_runtime PRIVATE -O1)  # it computes much
    foreach(unit IN ITEMS products_double draws)  # not so these
      set_source_files_properties("${XLA_RUNTIME_SOURCES}/ops_${unit}.cpp" PROPERTIES COMPILE_OPTIONS -O0)
    endforeach()
  endif()
else()
  add_library(xla_dev_runtime ALIAS xla_runtime)
endif()
