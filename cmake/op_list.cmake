# SPDX-License-Identifier: Apache-2.0
# Makes, from the ops' definitions, include/xla/op/list.hpp, the list of all ops, and cmake/runtime/ops_*.cpp, the
# sources of xla::runtime that compile them: cmake -P cmake/op_list.cmake
#   -DCHECK=ON   fails where a file is not what it would make, or an op is not registered

cmake_minimum_required(VERSION 3.24)
get_filename_component(include "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)

# xla_ops_source(<name> <types> KERNELS <header>... [RULES <header>...] OPS <header>...): a source has the ops of some
# headers in xla/op, so that a changed op compiles little again. Types of the inputs: F float, D double, I others. KERNELS
# are headers in xla/kernel; RULES those in xla that define what these ops' descriptions point to.
set(sources "")
macro(xla_ops_source name types)
  cmake_parse_arguments(arg "" "" "KERNELS;RULES;OPS" ${ARGN})
  list(APPEND sources ${name})
  set(${name}_types ${types})
  set(${name}_includes ${arg_RULES})
  list(TRANSFORM arg_KERNELS PREPEND kernel/)
  list(PREPEND ${name}_includes ${arg_KERNELS})
  set(${name}_headers ${arg_OPS})
  list(APPEND placed ${arg_OPS})
endmacro()
set(products attention convolution matmul)
set(kernels op/attention op/convolution op/image_sum op/matmul op/movement)
set(rules op/derived/attention_gradient op/methods transform/layouts)
xla_ops_source(products_float F KERNELS gemm/rounded_kernels op/matmul_packed ${kernels} simd/bfloat16_support RULES ${rules} OPS ${products})
xla_ops_source(products_double D KERNELS ${kernels} RULES ${rules} OPS ${products})
xla_ops_source(rows FDI KERNELS op/cummax op/gather op/reduce op/scan op/sort
  OPS argmax cummax logcumsumexp median prod reduce scan search sort)
xla_ops_source(images FDI KERNELS op/max_pool_index op/pooling op/pooling_gradient op/resample op/unfold
  OPS avg_pool max_pool resample unfold)
xla_ops_source(indices FDI
  KERNELS op/check_between op/collectives op/embedding op/gather op/image_sum op/movement op/scatter_reduce
    op/slice
  OPS check_between check_index collectives concat create embedding gather index_select local_shard permute reshape
    scatter_reduce slice)
xla_ops_source(draws FDI KERNELS op/random OPS integers multinomial random)
xla_ops_source(functions FDI KERNELS op/map RULES op/reduce
  OPS erf erfinv exponential gamma inverse_trigonometric pow root rounding sigmoid special tanh trigonometric)
# And every op that no other source has: others that work element by element.
xla_ops_source(maps FDI KERNELS op/map)

# xla_made(<file> <text>): what the file has to hold.
function(xla_made file text)
  if(NOT CHECK)
    file(WRITE "${file}" "${text}")
    return()
  endif()
  set(now "")
  if(EXISTS "${file}")
    file(READ "${file}" now)
  endif()
  if(NOT now STREQUAL text)
    message(FATAL_ERROR "${file} is not what the ops' definitions say: cmake -P cmake/op_list.cmake")
  endif()
endfunction()

file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/xla/op/*.hpp")
list(SORT headers)
list(PREPEND headers xla/graph/builtin.hpp)
set(includes "")
set(ops "")
set(builtin "")
foreach(header IN LISTS headers)
  file(STRINGS "${include}/${header}" lines REGEX "^XLA_(BUILTIN_)?OP\\(")
  if(NOT lines)
    continue()
  endif()
  string(APPEND includes "#include \"${header}\"\n")
  string(REGEX REPLACE "^xla/op/(.*)\\.hpp$" "\\1" name "${header}")
  set(${name}_ops "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[A-Z_]+(\\([^)]*\\)).*" "\\1" entry "${line}")
    if(line MATCHES "^XLA_OP")
      string(APPEND ops " \\\n  X${entry}")
      string(APPEND ${name}_ops "OP${entry}\n")
    else()
      string(APPEND builtin " \\\n  X${entry}")
    endif()
  endforeach()
  if(${name}_ops AND NOT name IN_LIST placed)
    list(APPEND maps_headers ${name})
  endif()
endforeach()
xla_made("${include}/xla/op/list.hpp" "// SPDX-License-Identifier: Apache-2.0
#pragma once

// clang-format off: made from the ops' definitions by cmake -P cmake/op_list.cmake, which a test
// compares.
${includes}
/// X(op, group of element types) for every op that computes.
#define XLA_ALL_OPS(X)${ops}

/// X(op) for every other that a graph may hold: values from outside, and what binds them.
#define XLA_BUILTIN_OPS(X)${builtin}
")

foreach(source IN LISTS sources)
  set(text "// SPDX-License-Identifier: Apache-2.0
// Kernels and gradients of some ops, for all translation units of a program: made by cmake -P cmake/op_list.cmake.
#define XLA_RUNTIME_SOURCE
#define XLA_RUNTIME_OPS
")
  if(source STREQUAL "products_float")
    string(APPEND text "#define XLA_RUNTIME_PRODUCTS\n")
  endif()
  foreach(header IN LISTS ${source}_includes)
    string(APPEND text "#include <xla/${header}.hpp>\n")
  endforeach()
  set(made "")
  foreach(header IN LISTS ${source}_headers)
    string(APPEND text "#include <xla/op/${header}.hpp>\n")
    string(APPEND made "${${header}_ops}")
  endforeach()
  set(all "")
  foreach(type IN ITEMS F D I)
    if(${source}_types MATCHES "${type}")
      string(APPEND all "XLA_MAKE_OP, ")
    else()
      string(APPEND all "XLA_SKIP_OP, ")
    endif()
  endforeach()
  string(APPEND text "\n#define OP(type, group) XLA_TYPES_##group(${all}type);\n${made}")
  xla_made("${CMAKE_CURRENT_LIST_DIR}/runtime/ops_${source}.cpp" "${text}")
endforeach()
if(NOT CHECK)
  return()
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
