// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops that draw uniform and normal numbers, and rand() and randn(). run/state/generator.hpp is
// the source of the numbers; integers and permutations are in integers.hpp.

#include "xla/op/cast.hpp"
#include "xla/op/create.hpp"

namespace xla::op {

/// Random numbers from the counter-based generator, with the node's own dims.
struct random_fill : drawing {
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool impure = true;
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
};

/// Uniform in [0, 1).
struct uniform : random_fill {
  static constexpr auto name = "uniform";
};

/// Normal with mean 0 and standard deviation 1.
struct normal : random_fill {
  static constexpr auto name = "normal";
};

}  // namespace xla::op

XLA_OP(xla::op::uniform, fractions);
XLA_OP(xla::op::normal, fractions);

namespace xla {
namespace detail {

/// A random tensor outside of any graph would be drawn again at each use.
constexpr void refuse_without_graph(const size_table* table) {
  if (__builtin_is_constant_evaluated() && !table)
    throw std::logic_error("xla: compiled bodies make random numbers from a tensor: rand_like(x)");
}

template <class Op, class T, int R>
constexpr Tensor<T, R> random(const shape& s, size_table* table) {
  static_assert(floating_type<T>, "xla: random numbers are float, double or bfloat16");
  refuse_without_graph(table);
  node n;
  n.set_shape(s);
  auto drawn = create<Op, computed<T>, R>(std::move(n), table);
  if constexpr (std::is_same_v<T, computed<T>>) return drawn;
  else return narrowed<T>(drawn);
}

}  // namespace detail

/// Uniform random numbers in [0, 1) of the given sizes; for bfloat16 float's, some of which round
/// to 1. Negative sizes are a shape_error, a lack of memory an out_of_memory.
template <element T = float, std::size_t N>
constexpr auto rand(const Size (&sizes)[N], caller loc = here()) {
  return detail::random<op::uniform, T, static_cast<int>(N)>(
      detail::to_shape(sizes, {"rand", loc}, 0), detail::table_of(sizes));
}
/// Normal random numbers with mean 0 and standard deviation 1 of the given sizes. Negative sizes
/// are a shape_error, a lack of memory an out_of_memory.
template <element T = float, std::size_t N>
constexpr auto randn(const Size (&sizes)[N], caller loc = here()) {
  return detail::random<op::normal, T, static_cast<int>(N)>(
      detail::to_shape(sizes, {"randn", loc}, 0), detail::table_of(sizes));
}
/// Random numbers of x's sizes; usable in compiled bodies.
template <class T, int R>
constexpr Tensor<T, R> rand_like(const Tensor<T, R>& x) {
  const detail::working_on<T> there(x);
  return detail::random<op::uniform, T, R>(x.dims(), x.table());
}
template <class T, int R>
constexpr Tensor<T, R> randn_like(const Tensor<T, R>& x) {
  const detail::working_on<T> there(x);
  return detail::random<op::normal, T, R>(x.dims(), x.table());
}

}  // namespace xla
