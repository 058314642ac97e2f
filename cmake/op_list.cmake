# SPDX-License-Identifier: Apache-2.0
# Makes include/xla/op/list.hpp, the list of all ops, from their definitions: cmake -P cmake/op_list.cmake
#   -DCHECK=ON   fails where the file is not what it would make, or an op is not registered

cmake_minimum_required(VERSION 3.24)
get_filename_component(include "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/xla/op/*.hpp")
list(SORT headers)
list(PREPEND headers xla/graph/builtin.hpp)
set(includes "")
set(ops "")
set(builtin "")
foreach(header IN LISTS headers)
  file(STRINGS "${include}/${header}" lines REGEX "^XLA_(BUILTIN_)?OP\\(")
  if(lines)
    string(APPEND includes "#include \"${header}\"\n")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[A-Z_]+(\\([^)]*\\)).*" " \\\\\n  X\\1" entry "${line}")
      if(line MATCHES "^XLA_OP")
        string(APPEND ops "${entry}")
      else()
        string(APPEND builtin "${entry}")
      endif()
    endforeach()
  endif()
endforeach()
set(made "// SPDX-License-Identifier: Apache-2.0
#pragma once

// clang-format off: made from the ops' definitions by cmake -P cmake/op_list.cmake, which a test
// compares.
${includes}
/// X(op, group of element types) for every op that computes.
#define XLA_ALL_OPS(X)${ops}

/// X(op) for every other that a graph may hold: values from outside, and what binds them.
#define XLA_BUILTIN_OPS(X)${builtin}
")
if(NOT CHECK)
  file(WRITE "${include}/xla/op/list.hpp" "${made}")
  return()
endif()

file(READ "${include}/xla/op/list.hpp" now)
if(NOT now STREQUAL made)
  message(FATAL_ERROR "op/list.hpp is not what the ops' definitions say: cmake -P cmake/op_list.cmake")
endif()
foreach(header IN LISTS headers)
  file(READ "${include}/${header}" text)
  string(FIND "${text}" "namespace xla::op {" begin)
  string(FIND "${text}" "}  // namespace xla::op" end REVERSE)
  if(begin LESS 0)
    continue()
  endif()
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${text}" ${begin} ${length} defined)
  string(REGEX MATCHALL "struct [a-z_]+( : [a-z:_]+)? {\n  static constexpr auto name = " structs "${defined}")
  foreach(struct IN LISTS structs)
    string(REGEX REPLACE "^struct ([a-z_]+).*" "\\1" name "${struct}")
    if(NOT text MATCHES "XLA_OP\\(xla::op::${name}, |XLA_BUILTIN_OP\\(xla::op::${name}\\)")
      message(FATAL_ERROR "${header}: the op ${name} is not registered: XLA_OP(xla::op::${name}, <types>);")
    endif()
  endforeach()
endforeach()
