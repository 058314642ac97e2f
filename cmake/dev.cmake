# SPDX-License-Identifier: Apache-2.0
# Flags of this repository's own programs; users of xla::xla inherit none of them.

add_library(xla_warnings INTERFACE)
target_link_libraries(xla_warnings INTERFACE xla::xla)
target_compile_options(xla_warnings INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${XLA_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1500000>)  # in KB: before that it need not look for garbage

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
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND XLA_LLD)
  target_link_options(xla_dev INTERFACE "--ld-path=${XLA_LLD}")
endif()

# The run time of the tests, without contraction as they are; where they are built, examples share it.
if(XLA_BUILD_TESTS)
  xla_add_runtime(xla_dev_runtime xla_dev)
  if(CMAKE_CXX_FLAGS MATCHES "-O0")
    target_compile_options(xla_dev_runtime PRIVATE -O1)  # it computes much
    foreach(unit IN ITEMS products_double draws)  # not so these
      set_source_files_properties("${XLA_RUNTIME_SOURCES}/ops_${unit}.cpp" PROPERTIES COMPILE_OPTIONS -O0)
    endforeach()
  endif()
else()
  add_library(xla_dev_runtime ALIAS xla_runtime)
endif()
