# SPDX-License-Identifier: Apache-2.0
# The sources of the benchmarks pass the compiler's front end, with the run time in a library as they are built; no
# test builds them whole.

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${FLAGS_FILE}" flags)
file(GLOB sources "${FOLDER}/*.cpp")
list(FILTER sources EXCLUDE REGEX "/decoder_(char|seed)[.]cpp$")  # decoder.cpp with other numbers
if(NOT sources)
  message(FATAL_ERROR "no sources in ${FOLDER}")
endif()
set(failed "")
foreach(source IN LISTS sources)
  execute_process(COMMAND "${COMPILER}" ${flags} -DXLA_EXTERN_RUNTIME -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${source}"
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(APPEND failed "${source}")
  endif()
endforeach()
if(failed)
  list(JOIN failed ", " names)
  message(FATAL_ERROR "these do not compile: ${names}")
endif()
