# SPDX-License-Identifier: Apache-2.0
# xla::interpreter: xla::xla with the backend "interpreter", for xla::set_backend() and XLA_BACKEND. The graphs of compiled
# functions, which a backend takes, are kept in programs that link one, so link it to every target of a program.

if(NOT TARGET xla::interpreter)
  add_library(xla::interpreter INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::interpreter INTERFACE xla::xla)
  target_compile_definitions(xla::interpreter INTERFACE XLA_INTERPRETER=1 XLA_BACKEND_GRAPHS=1)
endif()
