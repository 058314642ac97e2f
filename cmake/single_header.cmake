# SPDX-License-Identifier: Apache-2.0
# The library as one header, which includes Eigen, Boost.Hana and the standard library:
#   cmake -P cmake/single_header.cmake                        build/single_header/xla.hpp
#   -DOUTPUT=file                                             elsewhere
#   -DHEADERS="xla/xla.hpp;xla/loop.hpp"                      more than xla.hpp
#
# Headers are in the order in which the preprocessor reads them. One that is read under a condition gets a guard, and
# is repeated where it is needed without that condition. Those of which that would be much are read before all others,
# as headers of the library may be included in any order (checks/headers_together).

cmake_minimum_required(VERSION 3.24)
get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
if(NOT OUTPUT)
  set(OUTPUT "${root}/build/single_header/xla.hpp")
endif()
if(NOT HEADERS)
  set(HEADERS xla/xla.hpp)
endif()
set(early xla/kernel/memory/cache_sizes.hpp xla/kernel/gemm/gemm.hpp)
file(STRINGS "${root}/CMakeLists.txt" version REGEX "^project[(]xla VERSION ")
string(REGEX MATCH "[0-9]+[.][0-9.]+" version "${version}")

# Conditions that headers alone always meet (base/instance.hpp), and one that a single header never does.
set(always "if XLA_RUNTIME_HERE" "if XLA_KERNELS_HERE" "if XLA_RUNTIME_HERE && XLA_KERNELS_HERE" "if XLA_PASSES_HERE")
set(never "if defined(XLA_INTERPRETER)")

# is_read(<out> <file> <condition>...): whether it has been read wherever these hold. If not, it is from here on.
function(is_read out file)
  set(${out} ON PARENT_SCOPE)
  get_property(reads GLOBAL PROPERTY "reads of ${file}")
  set(read 0)
  while(read LESS "0${reads}")
    math(EXPR read "${read} + 1")
    get_property(then GLOBAL PROPERTY "read ${read} of ${file}")
    list(LENGTH then length)
    list(SUBLIST ARGN 0 ${length} outer)
    if(outer STREQUAL then)
      return()
    endif()
  endwhile()
  math(EXPR read "${read} + 1")
  set_property(GLOBAL PROPERTY "reads of ${file}" ${read})
  set_property(GLOBAL PROPERTY "read ${read} of ${file}" "${ARGN}")
  set(${out} OFF PARENT_SCOPE)
endfunction()

# text_of(<out> <header>): without its first lines and the comments that explain the code, and with those that document
# a declaration.
function(text_of out header)
  file(READ "${root}/include/${header}" text)
  string(REGEX REPLACE "^// SPDX[^\n]*\n#pragma once\n" "" text "${text}")
  if(text MATCHES "\n#pragma once")
    message(FATAL_ERROR "${header} does not begin with its licence and #pragma once")
  endif()
  set(text "\n${text}")
  if(NOT text MATCHES "R\"")
    string(REGEX REPLACE "\n *//[^/\n][^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n *//\n" "\n" text "${text}")
    string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# put(<header> <condition>...): its text and that of what it includes, unless it has been read.
function(put header)
  is_read(read "${header}" ${ARGN})
  if(read)
    return()
  endif()
  set(guard "")
  file(APPEND "${OUTPUT}" "\n// ---- ${header}")
  get_property(reads GLOBAL PROPERTY "reads of ${header}")
  if(ARGN OR reads GREATER 1)
    string(MAKE_C_IDENTIFIER "XLA_SINGLE_HEADER_${header}" guard)
    file(APPEND "${OUTPUT}" "\n#ifndef ${guard}\n#define ${guard}")
  endif()
  text_of(rest "${header}")
  set(conditions ${ARGN})
  set(unknown ${ARGN})  # those of them that may hold or not
  string(REGEX MATCHALL "\n#(if|elif|else|endif|include [\"<])[^\n\\]*" directives "${rest}")
  foreach(directive IN LISTS directives)
    string(FIND "${rest}" "${directive}" at)
    string(LENGTH "${directive}" length)
    string(SUBSTRING "${rest}" 0 ${at} before)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    file(APPEND "${OUTPUT}" "${before}")
    if(directive MATCHES "\n#include \"([^\"]+)\"")
      if(NOT never IN_LIST conditions)
        put("${CMAKE_MATCH_1}" ${unknown})
      endif()
      continue()
    elseif(directive MATCHES "\n#include (<.*>)")
      is_read(read "${CMAKE_MATCH_1}" ${unknown})
      if(read)
        continue()
      endif()
    elseif(directive MATCHES "\n#if")
      string(REGEX REPLACE "\n#| *//.*" "" condition "${directive}")
      if(rest MATCHES "^\\\\")  # it goes on in the next line: equal to no other
        string(APPEND condition " in ${header}")
      endif()
      list(APPEND conditions "${condition}")
    else()
      list(POP_BACK conditions condition)
      if(NOT directive MATCHES "\n#endif")
        list(APPEND conditions "${condition}, ${directive} in ${header}")
      endif()
    endif()
    set(unknown "${conditions}")
    list(REMOVE_ITEM unknown ${always})
    file(APPEND "${OUTPUT}" "${directive}")
  endforeach()
  file(APPEND "${OUTPUT}" "${rest}")
  if(guard)
    file(APPEND "${OUTPUT}" "\n#endif")
  endif()
endfunction()

file(WRITE "${OUTPUT}" "// SPDX-License-Identifier: Apache-2.0
// xla ${version} as one header, of headers alone, made by cmake/single_header.cmake: not to be edited.
// It needs C++20, Eigen 3.4 or 5, and Boost.Hana.
#ifndef XLA_SINGLE_HEADER
#define XLA_SINGLE_HEADER
#if defined(XLA_EXTERN_RUNTIME) || defined(XLA_INTERPRETER)
#error \"xla as one header has no run time in a library and no interpreter: link none of its CMake targets\"
#endif")
foreach(header IN LISTS early HEADERS)
  put("${header}")
endforeach()
file(APPEND "${OUTPUT}" "\n#endif\n")
file(SIZE "${OUTPUT}" size)
message(STATUS "${OUTPUT}: ${size} bytes")
