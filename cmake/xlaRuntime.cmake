# SPDX-License-Identifier: Apache-2.0
# xla::runtime: xla::xla with its run time in a library. What does not depend on a program's own types (kernels of
# every op, planner, tracer, reports) is then made once, and no longer in each translation unit that uses it.
#
# xla_add_runtime(<name> [<library>...]): the same for targets with flags of their own. The library is compiled with
# the flags of the directory that this is called in, and with those that the libraries named bring:
#   add_library(native INTERFACE)
#   target_compile_options(native INTERFACE -march=native)
#   xla_add_runtime(runtime_native native)
#   target_link_libraries(program PRIVATE native runtime_native)

set(XLA_RUNTIME_SOURCES "${CMAKE_CURRENT_LIST_DIR}/runtime" CACHE INTERNAL "Where xla's run time is")

function(xla_add_runtime name)
  file(GLOB sources CONFIGURE_DEPENDS "${XLA_RUNTIME_SOURCES}/*.cpp")
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources})
  set_source_files_properties("${XLA_RUNTIME_SOURCES}/known_regions.cpp" "${XLA_RUNTIME_SOURCES}/register_epilogue.cpp"
    PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  target_link_libraries(${name} PUBLIC xla::xla PRIVATE ${ARGN})
  target_compile_definitions(${name} PUBLIC XLA_EXTERN_RUNTIME)
  # For ARM g++ moves loads to the front before it has chosen registers, and then spills the sums of kernels.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    target_compile_options(${name} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>")
  endif()
  set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON EXPORT_COMPILE_COMMANDS OFF)
  if(NOT XLA_WERROR)
    target_compile_options(${name} PRIVATE -w)  # what a project wants to be warned of is its own code
  endif()
  # A program takes of it what it uses: the library has the kernels of all ops.
  target_link_options(${name} INTERFACE
    "$<$<PLATFORM_ID:Linux>:LINKER:--gc-sections>" "$<$<PLATFORM_ID:Darwin>:LINKER:-dead_strip>")
endfunction()

if(NOT TARGET xla::runtime)
  xla_add_runtime(xla_runtime)
  add_library(xla::runtime ALIAS xla_runtime)
endif()
