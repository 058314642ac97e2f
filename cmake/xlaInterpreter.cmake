# SPDX-License-Identifier: Apache-2.0
# xla::interpreter: xla::xla with the engine "interpreter", for xla::set_engine() and XLA_ENGINE. The graphs of compiled
# functions, which an engine takes, are kept in programs that link one, so link it to every target of a program.

if(NOT TARGET xla::interpreter)
  add_library(xla::interpreter INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::interpreter INTERFACE xla::xla)
  target_compile_definitions(xla::interpreter INTERFACE XLA_INTERPRETER=1 XLA_ENGINE_GRAPHS=1)
endif()
