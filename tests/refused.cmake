# SPDX-License-Identifier: Apache-2.0
# Compiles one file, which says what must come of it:
#   // error: <regex>   the compiler fails, and the first line that says "error:" matches, with the
#                       lines of a sentence joined. Several such lines: every line that says "error:"
#                       matches one of them, and none is missed.
#   // then: <regex>    with one error: further down the output matches
#   // accepted         the compiler succeeds: the control of each refusal
#   // flags: <flags>   it is compiled with these as well
# -DFORM: more flags

cmake_minimum_required(VERSION 3.24)

# Of a list's separators none is left.
file(READ "${FILE}" program)
string(REPLACE ";" "." program "${program}")
string(REGEX MATCHALL "// error: [^\n]+" expected "${program}")
list(TRANSFORM expected REPLACE "// error: " "")
string(REGEX MATCH "// then: ([^\n]+)" then "${program}")
set(then "${CMAKE_MATCH_1}")
file(STRINGS "${FILE}" first LIMIT_COUNT 1)
file(STRINGS "${FLAGS_FILE}" flags)
if(program MATCHES "// flags: ([^\n]+)")
  separate_arguments(more NATIVE_COMMAND "${CMAKE_MATCH_1}")
  list(APPEND flags ${more})
endif()
execute_process(COMMAND "${COMPILER}" ${flags} ${FORM} -fsyntax-only "${FILE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)

list(LENGTH expected count)
if(first STREQUAL "// accepted")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "must compile:\n${output}")
  endif()
  return()
elseif(count EQUAL 0)
  message(FATAL_ERROR "there must be '// error: <regex>', or '// accepted' first, not: ${first}")
elseif(result EQUAL 0)
  message(FATAL_ERROR "must not compile; expected: ${expected}")
elseif(NOT result EQUAL 1)
  message(FATAL_ERROR "the compiler broke (${result}):\n${output}")
endif()

string(REPLACE ";" "." plain "${output}")
string(REPLACE "[" "(" plain "${plain}")
string(REPLACE "]" ")" plain "${plain}")
string(REPLACE "\n" ";" plain "${plain}")
list(FILTER plain INCLUDE REGEX "error: ")
# A sentence of clang is in lines of whole words; a line that ends in no space cut one.
list(TRANSFORM plain REPLACE " +\", \"" " ")
list(TRANSFORM plain REPLACE "\", \"" "")
if(count EQUAL 1)
  list(GET plain 0 plain)
endif()
set(missed ${expected})
foreach(line IN LISTS plain)
  set(known OFF)
  foreach(sentence IN LISTS expected)
    if(line MATCHES "${sentence}")
      set(known ON)
      list(REMOVE_ITEM missed "${sentence}")
    endif()
  endforeach()
  if(NOT known)
    message(FATAL_ERROR "refused without the sentence: ${expected}\nby: ${line}\n${output}")
  endif()
endforeach()
if(NOT output MATCHES "${then}")
  message(FATAL_ERROR "nothing says: ${then}\n${output}")
elseif(missed)
  message(FATAL_ERROR "no error says: ${missed}\n${output}")
endif()
