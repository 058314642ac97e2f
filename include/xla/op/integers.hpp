// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random integers: randint(), randperm(), bernoulli(). random.hpp has floating-point numbers.

#include "xla/op/cast.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/random.hpp"

namespace xla::op {

/// Integers from the first input up to, and not including, the second.
struct integers : random_fill {
  static constexpr auto name = "integers";
};

/// 0 … n - 1 in random order. A negative n is a shape_error.
struct permutation : random_fill {
  static constexpr auto name = "permutation";
};

}  // namespace xla::op

XLA_OP(xla::op::integers, indices);
XLA_OP(xla::op::permutation, indices);

namespace xla {
namespace detail {

// The bounds are inputs, because the node's attributes are the generator's state. T is an alias of
// std::int64_t; otherwise clang would instantiate the kernel where it reads this.
template <class T, int R>
[[gnu::cold]] constexpr Tensor<T, R> random_integers(std::int64_t low, std::int64_t high,
                                                     const shape& s, size_table* table,
                                                     caller loc) {
  refuse_without_graph(table);
  if (low >= high)
    size_scope{table, {"randint", loc}}.fail(text("there is no number from ")
                                             << low << " up to, and not including, " << high);
  Tensor<T, 0> from = low, to = high;
  if (__builtin_is_constant_evaluated()) {
    from.name_node(table->owner, from.lift(table->owner));
    to.name_node(table->owner, to.lift(table->owner));
  }
  node n;
  n.set_shape(s);
  return apply<op::integers, T, T, R>(n, from, to);
}

}  // namespace detail

/// Random integers in [low, high) of the given sizes. An empty range and negative sizes are a
/// shape_error.
template <std::size_t N>
constexpr Tensor<std::int64_t, static_cast<int>(N)> randint(std::int64_t low, std::int64_t high,
                                                            const Size (&sizes)[N],
                                                            caller loc = here()) {
  return detail::random_integers<std::int64_t, static_cast<int>(N)>(
      low, high, detail::to_shape(sizes, {"randint", loc}, 0), detail::table_of(sizes), loc);
}
/// The same in [0, high).
template <std::size_t N>
constexpr Tensor<std::int64_t, static_cast<int>(N)> randint(std::int64_t high,
                                                            const Size (&sizes)[N],
                                                            caller loc = here()) {
  return randint(0, high, sizes, loc);
}
/// Random integers in [low, high) of x's sizes and element type; usable in compiled bodies. An
/// empty range is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> randint_like(const Tensor<T, R>& x, std::int64_t low, std::int64_t high,
                                    caller loc = here()) {
  const detail::working_on<T> there(x);
  return cast<T>(detail::random_integers<std::int64_t, R>(low, high, x.dims(), x.table(), loc));
}

/// 0 … n - 1 in random order. In a compiled body n is a tensor's size: randperm(x.size(0)). A
/// negative n is a shape_error.
template <element T = std::int64_t>
constexpr Tensor<T, 1> randperm(Size n, caller loc = here()) {
  using index = std::conditional_t<std::is_void_v<T>, T, std::int64_t>;  // dependent, for clang
  detail::refuse_without_graph(n.table());
  const Size sizes[] = {n};
  detail::node spec;
  spec.set_shape(detail::to_shape(sizes, {"randperm", loc}, 0));
  return cast<T>(detail::create<op::permutation, index, 1>(std::move(spec), n.table()));
}

/// 1 with the probability given by each element, else 0.
template <class T, int R>
constexpr Tensor<T, R> bernoulli(const Tensor<T, R>& p) {
  return cast<T>(rand_like(p) < p);
}
/// 1 with probability p, else 0, of x's sizes.
template <class T, int R>
constexpr Tensor<T, R> bernoulli_like(const Tensor<T, R>& x, detail::number_of<T> p) {
  return cast<T>(rand_like(x) < p);
}

}  // namespace xla
