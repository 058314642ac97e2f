# SPDX-License-Identifier: Apache-2.0
# Tests with XLA beside, by the engine of ext/referee.cpp: -DPROGRAMS -DWORK=<folder>, where each leaves what it has seen. What
# differs is told, and a test that fails.

cmake_minimum_required(VERSION 3.24)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(ENV{XLA_ENGINE} referee)
set(ENV{TMPDIR} "${WORK}")
set(failed "")
foreach(program IN LISTS PROGRAMS)
  cmake_path(GET program FILENAME name)
  set(ENV{XLA_TEST_REFEREE} "${WORK}/${name}.txt")
  execute_process(COMMAND "${program}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(output MATCHES "skipped: [^\n]*")
    message("${CMAKE_MATCH_0}")
    return()
  elseif(NOT result EQUAL 0)
    list(APPEND failed "${name}")
    message("${name} ended with ${result}:\n${output}")
  endif()
endforeach()
if(failed)
  list(JOIN failed ", " names)
  message(FATAL_ERROR "these differ with XLA beside: ${names}")
endif()
