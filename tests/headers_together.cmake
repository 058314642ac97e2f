# SPDX-License-Identifier: Apache-2.0
# Public headers compile before and after each other: all of them in two orders, sorted and reverse, with a program after
# them that gives names of its own. -DROOT -DFLAGS_FILE -DCOMPILER -DWORK

cmake_minimum_required(VERSION 3.24)
include("${ROOT}/cmake/headers.cmake")
file(STRINGS "${FLAGS_FILE}" flags)
file(MAKE_DIRECTORY "${WORK}")

set(headers ${XLA_HEADERS} ${XLA_EXT_HEADERS})
list(SORT headers)
set(sources "")
foreach(order IN ITEMS sorted reverse)
  list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>\n" OUTPUT_VARIABLE includes)
  list(JOIN includes "" includes)
  file(WRITE "${WORK}/${order}.cpp" "${includes}#include \"${ROOT}/tests/support/names.hpp\"\n")
  list(APPEND sources "${WORK}/${order}.cpp")
  list(REVERSE headers)
endforeach()
execute_process(COMMAND "${COMPILER}" ${flags} -fsyntax-only ${sources} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "these headers do not compile in every order")
endif()
