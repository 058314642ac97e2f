# SPDX-License-Identifier: Apache-2.0
# xla::pjrt: xla::xla with XLA itself as a backend, for xla::pjrt("CPU") and PJRT_DEVICE; nothing is needed to build.
# The graphs of compiled functions, which a backend takes, are kept in programs that link it, so link it to every
# target of a program.

if(NOT TARGET xla::pjrt)
  add_library(xla::pjrt INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::pjrt INTERFACE xla::xla ${CMAKE_DL_LIBS})
  target_compile_definitions(xla::pjrt INTERFACE XLA_EXTERN_PJRT=1 XLA_BACKEND_GRAPHS=1)
  target_sources(xla::pjrt INTERFACE "${CMAKE_CURRENT_LIST_DIR}/pjrt/backend.cpp")
endif()
