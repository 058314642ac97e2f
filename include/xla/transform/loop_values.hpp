// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small values in the gradient of a loop: zeros, numbers of blocks, joined blocks. They are
// templates behind loop_rules, so that programs without loops have no kernels for them.

#include "xla/graph/graph.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/create.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"

namespace xla::detail {

/// Rules that only gradients of loops need, in addition to loop_rules.
struct recorded_loop_rules : loop_rules {
  /// The matrices of all steps as one: below each other, or side by side where axis is 1.
  int (*join_matrices)(graph& g, int all, int axis);
  const op_info* (*reshape)(dtype type);
};

/// Calls f with a zero of the floating-point type of a dtype.
template <class In, class F>
constexpr auto visit_floating_type(dtype type, const F& f) {
  if (type == dtype::bfloat16) return f(dependent<In, bfloat16>());
  if (type == dtype::float32) return f(dependent<In, float>());
  return f(dependent<In, double>());
}

/// -0 in a shape: adding to it keeps all bits.
template <class In>
constexpr handle minus_zeros(dtype type, const shape& s, size_table* table) {
  return visit_floating_type<In>(type, [&]<class T>(T) -> handle {
    return fill_shape<T, dynamic_rank>(constant(T(-0.0f)), s, table);
  });
}

/// See loop_rules.
template <class In>
constexpr block_of_steps block_of(graph& g, int number, extent every, extent trip) {
  using whole = dependent<In, std::int64_t>;
  const auto size = detail::number<whole>(Size(every, &g.sizes)).tensor();
  const auto all = detail::number<whole>(Size(trip, &g.sizes)).tensor();
  Tensor<whole, 0> at;
  at.name_node(&g, number);
  const auto first = at * size;
  const auto count = minimum(size, all - first);
  return {first.lift(&g), count.lift(&g)};
}
template <class In>
constexpr int add_numbers(graph& g, int a, int b) {
  Tensor<dependent<In, std::int64_t>, 0> x, y;
  x.name_node(&g, a);
  y.name_node(&g, b);
  return (x + y).lift(&g);
}
template <class In>
constexpr int join_blocks(graph& g, int all, extent trip) {
  handle h;
  h.name_node(&g, all);
  const auto joined = [&]<class T>(T) {
    shape rows = h.dims(), part;
    const extent count = g.sizes.multiply(rows[0], rows[1]);
    part.push(trip);
    for (int i = 2; i < rows.rank; ++i) part.push(rows[i]);
    shape whole = part;
    whole[0] = count;
    const auto row = with_shape<op::reshape, dynamic_rank>(as_any<T>(h), whole);
    return take_part(row, {.axis = 0}, part).lift(&g);
  };
  return visit_floating_type<In>(h.element_type(), joined);
}
template <class In>
constexpr int join_matrices(graph& g, int all, int axis) {
  handle h;
  h.name_node(&g, all);
  const auto joined = [&]<class T>(T) {
    const auto x = as_any<T>(h);
    axis_order columns;
    for (int i : {1, 0, 2}) columns.push(i);
    const auto in_order = axis == 0 ? x : permute_by(x, columns);
    shape s;
    s.push(x.dims()[1]);
    s.push(x.dims()[2]);
    s[axis] = g.sizes.multiply(x.dims()[0], s[axis]);
    return with_shape<op::reshape, dynamic_rank>(in_order, s).lift(&g);
  };
  return visit_floating_type<In>(h.element_type(), joined);
}

template <class In>
constexpr const op_info* reshape_of(dtype type) {
  return visit_floating_type<In>(
      type, []<class T>(T) -> const op_info* { return &info_of<op::reshape, T, T>; });
}

}  // namespace xla::detail
