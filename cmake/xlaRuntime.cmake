# SPDX-License-Identifier: Apache-2.0
# xla::runtime: xla::xla for a program of several translation units. The run time's functions are made in one
# of them, a source that each target linked to this compiles with its own flags, and no longer in every other.

if(NOT TARGET xla::runtime)
  add_library(xla::runtime INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::runtime INTERFACE xla::xla)
  target_compile_definitions(xla::runtime INTERFACE XLA_EXTERN_RUNTIME)
  target_sources(xla::runtime INTERFACE "${CMAKE_CURRENT_LIST_DIR}/runtime.cpp")
endif()
