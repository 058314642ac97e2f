# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<file> -DSOURCE=<file> [-DEMULATOR=<program>] -P check.cmake: runs a page of the course; what its
# source promises after `//>` has to be printed, in that order, and the program has to end well.

cmake_minimum_required(VERSION 3.24)

execute_process(COMMAND ${EMULATOR} "${PROGRAM}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}\n${output}${errors}")
endif()

# Line by line, without lists: their separators may be part of the text.
file(READ "${SOURCE}" source)
set(rest "${output}")
set(count 0)
while(source MATCHES "//> ([^\n]*)\n")
  set(promise "${CMAKE_MATCH_1}")
  string(FIND "${source}" "//> ${promise}\n" at)
  string(LENGTH "//> ${promise}\n" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${source}" ${at} -1 source)
  string(FIND "${rest}" "${promise}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${SOURCE} promises\n  ${promise}\nwhich is not in what is left of the output:\n${rest}")
  endif()
  string(LENGTH "${promise}" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${rest}" ${at} -1 rest)
  math(EXPR count "${count} + 1")
endwhile()
if(count EQUAL 0)
  message(FATAL_ERROR "${SOURCE} promises nothing")
endif()
message("${count} promises kept")
