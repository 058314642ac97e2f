# SPDX-License-Identifier: Apache-2.0
# Compiles one file. Its first line says what must come of it:
#   // error: <regex>   the compiler fails, and its output, with runs of space made one and the lines
#                       of xla::refused<...> joined, matches
#   // accepted         the compiler succeeds: the control, beside each refusal
# -DFORM: more flags

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${FILE}" first LIMIT_COUNT 1)
file(STRINGS "${FLAGS_FILE}" flags)
execute_process(COMMAND "${COMPILER}" ${flags} ${FORM} -fsyntax-only "${FILE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \t\r\n]+" " " flat "${output}")
string(REGEX REPLACE "\"}, (xla::)?line{\"" "" flat "${flat}")

if(first STREQUAL "// accepted")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "must compile:\n${output}")
  endif()
elseif(first MATCHES "^// error: (.+)$")
  set(expected "${CMAKE_MATCH_1}")
  if(result EQUAL 0)
    message(FATAL_ERROR "must not compile; expected: ${expected}")
  elseif(NOT result EQUAL 1)
    message(FATAL_ERROR "the compiler broke (${result}):\n${output}")
  elseif(NOT flat MATCHES "${expected}")
    message(FATAL_ERROR "refused without the sentence: ${expected}\n${output}")
  endif()
else()
  message(FATAL_ERROR "the first line must be '// error: <regex>' or '// accepted', not: ${first}")
endif()
