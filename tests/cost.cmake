# SPDX-License-Identifier: Apache-2.0
# The code that the README's program has in its object file: -DFLAGS_FILE -DCOMPILER -DSOURCE -DWORK. What a build
# takes follows it, and it can be counted. Code and constants count against the limits; unwind tables, which the
# compiler derives from the code, are apart. With it, the modules that the code comes from, by the line tables.

cmake_minimum_required(VERSION 3.24)

# Form, kilobytes at most (.text* and .rodata*, g++ -O2), flags.
set(forms
  "linked to xla::runtime|22|-DXLA_EXTERN_RUNTIME"
  "of headers alone|235|"
  "of headers alone, without traced mode|190|-DXLA_NO_TRACED")

file(STRINGS "${FLAGS_FILE}" flags)
# Source lines of errors name files; the length of the checkout's path does not count.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
list(APPEND flags "-fmacro-prefix-map=${root}/=")
find_program(size size REQUIRED)
find_program(nm nm REQUIRED)

# xla_sections(<object> <regex> <out>): bytes of the sections whose names match.
function(xla_sections object regex out)
  execute_process(COMMAND "${size}" -A "${object}" OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\n${regex}[^ \n]* +[0-9]+" rows "${table}")
  set(sum 0)
  foreach(row IN LISTS rows)
    string(REGEX MATCH "[0-9]+$" bytes "${row}")
    math(EXPR sum "${sum} + ${bytes}")
  endforeach()
  set(${out} ${sum} PARENT_SCOPE)
endfunction()

# xla_modules(<object> <out>): kilobytes of functions and constants by the folder of the header that defines them, the
# largest first. Symbols without a line, mostly cold parts of functions and string literals, are left out.
function(xla_modules object out)
  execute_process(COMMAND "${nm}" -S -l --defined-only "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [tTwWrR] [^\t\n]+\t[^\n]*/include/xla/[^\n]*" rows "${symbols}")
  string(REGEX REPLACE "([CD])[12](E[^;\t]*)\t" "\\1\\2\t" rows "${rows}")  # both names of one constructor
  list(REMOVE_DUPLICATES rows)
  set(modules "")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "^([0-9a-f]+) .*/include/(xla/[^\t]*)/[^/]*$" _ "${row}")
    set(module "${CMAKE_MATCH_2}")
    math(EXPR bytes_${module} "${bytes_${module}} + 0x${CMAKE_MATCH_1}")
    list(APPEND modules "${module}")
  endforeach()
  list(REMOVE_DUPLICATES modules)
  set(ranked "")
  foreach(module IN LISTS modules)
    math(EXPR kilobytes "(${bytes_${module}} + 500) / 1000")
    if(kilobytes)
      list(APPEND ranked "${kilobytes} ${module}")
    endif()
  endforeach()
  list(SORT ranked COMPARE NATURAL ORDER DESCENDING)
  list(JOIN ranked ", " text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(failed OFF)
foreach(form IN LISTS forms)
  string(REGEX MATCH "^([^|]*)\\|([0-9]*)\\|(.*)$" _ "${form}")
  set(name "${CMAKE_MATCH_1}")
  set(most "${CMAKE_MATCH_2}")
  set(more "${CMAKE_MATCH_3}")
  execute_process(COMMAND "${COMPILER}" ${flags} -O2 -g1 ${more} -c "${SOURCE}" -o "${WORK}/object.o"
    COMMAND_ERROR_IS_FATAL ANY)
  if(NOT more MATCHES "EXTERN_RUNTIME")  # what links the library runs in tests/package
    execute_process(COMMAND "${COMPILER}" "${WORK}/object.o" -pthread -o "${WORK}/program" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND "${WORK}/program" OUTPUT_VARIABLE losses COMMAND_ERROR_IS_FATAL ANY)
    if(NOT losses MATCHES "^[0-9.]+\n[0-9.]+\n[0-9.]+\n$")
      message(FATAL_ERROR "${name}: three losses expected, not: ${losses}")
    endif()
  endif()
  xla_sections("${WORK}/object.o" "\\.text" code)
  xla_sections("${WORK}/object.o" "\\.rodata" constants)
  xla_sections("${WORK}/object.o" "\\.(eh_frame|gcc_except_table)" unwind)
  xla_modules("${WORK}/object.o" modules)
  math(EXPR bytes "${code} + ${constants}")
  math(EXPR kilobytes "(${bytes} + 999) / 1000")
  if(bytes LESS 10000 OR unwind EQUAL 0 OR NOT modules)
    message(FATAL_ERROR "${name}: ${code} + ${constants} bytes (unwind tables ${unwind}) from modules [${modules}] "
      "are too few to be the program")
  endif()
  message(STATUS "${name}: ${kilobytes} KB of ${most} (code ${code}, constants ${constants} bytes; unwind tables ${unwind})")
  message(STATUS "  KB by module: ${modules}")
  if(kilobytes GREATER most)
    message("${name}: ${kilobytes} KB of code and constants, ${most} are allowed")
    set(failed ON)
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "The README's program has got larger. `nm -S --size-sort -C` of the object says by what. With "
    "the runtime: something that does not depend on the program's types is made in place; declare it, and define it "
    "where XLA_RUNTIME_HERE is (base/instance.hpp). Alone: the program reaches something new; do not make it reach it.")
endif()
