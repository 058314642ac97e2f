# SPDX-License-Identifier: Apache-2.0
# The code that the README's program has in its object file: -DFLAGS_FILE -DCOMPILER -DSOURCE -DWORK. What a build
# takes follows it, and it can be counted.

cmake_minimum_required(VERSION 3.24)

# Form, kilobytes at most (code and constants, g++ -O2), flags.
set(forms
  "linked to xla::runtime|30|-DXLA_EXTERN_RUNTIME"
  "of headers alone|300|"
  "of headers alone, without traced mode|240|-DXLA_NO_TRACED")

file(STRINGS "${FLAGS_FILE}" flags)
find_program(size size REQUIRED)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(failed OFF)
foreach(form IN LISTS forms)
  string(REGEX MATCH "^([^|]*)\\|([0-9]*)\\|(.*)$" _ "${form}")
  set(name "${CMAKE_MATCH_1}")
  set(most "${CMAKE_MATCH_2}")
  set(more "${CMAKE_MATCH_3}")
  execute_process(COMMAND "${COMPILER}" ${flags} -O2 ${more} -c "${SOURCE}" -o "${WORK}/object.o"
    COMMAND_ERROR_IS_FATAL ANY)
  if(NOT more MATCHES "EXTERN_RUNTIME")  # what links the library runs in tests/package
    execute_process(COMMAND "${COMPILER}" "${WORK}/object.o" -pthread -o "${WORK}/program" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${WORK}/program" OUTPUT_VARIABLE losses COMMAND_ERROR_IS_FATAL ANY)
    if(NOT losses MATCHES "^[0-9.]+\n[0-9.]+\n[0-9.]+\n$")
      message(FATAL_ERROR "${name}: three losses expected, not: ${losses}")
    endif()
  endif()
  execute_process(COMMAND "${size}" "${WORK}/object.o" OUTPUT_VARIABLE sizes COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "\n *([0-9]+)" _ "${sizes}")
  math(EXPR kilobytes "(${CMAKE_MATCH_1} + 999) / 1000")
  if(CMAKE_MATCH_1 LESS 10000)
    message(FATAL_ERROR "${name}: ${CMAKE_MATCH_1} bytes are too few to be the program")
  elseif(kilobytes GREATER most)
    message("${name}: ${kilobytes} KB of code, ${most} are allowed")
    set(failed ON)
  else()
    message(STATUS "${name}: ${kilobytes} KB of code, ${most} are allowed")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "The README's program has got larger. `nm -S --size-sort -C` of the object says by what. With "
    "the runtime: something that does not depend on the program's types is made in place; declare it, and define it "
    "where XLA_RUNTIME_HERE is (base/instance.hpp). Alone: the program reaches something new; do not make it reach it.")
endif()
