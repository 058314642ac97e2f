# SPDX-License-Identifier: Apache-2.0
# Flags of this repository's own programs; users of xla::xla inherit none of them.

add_library(xla_warnings INTERFACE)
target_link_libraries(xla_warnings INTERFACE xla::xla)
target_compile_options(xla_warnings INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${XLA_WERROR}>:-Werror>)

# Without contraction the three modes agree bit for bit.
add_library(xla_dev INTERFACE)
target_link_libraries(xla_dev INTERFACE xla_warnings)
target_compile_options(xla_dev INTERFACE -ffp-contract=off)

# The run time of the tests, without contraction as they are; where they are built, examples share it.
if(XLA_BUILD_TESTS)
  xla_add_runtime(xla_dev_runtime xla_dev)
  if(CMAKE_CXX_FLAGS MATCHES "-O0")
    target_compile_options(xla_dev_runtime PRIVATE -O1)  # it computes much
    set_source_files_properties("${XLA_RUNTIME_SOURCES}/ops_double.cpp" PROPERTIES COMPILE_OPTIONS -O0)  # not so this
  endif()
else()
  add_library(xla_dev_runtime ALIAS xla_runtime)
endif()
