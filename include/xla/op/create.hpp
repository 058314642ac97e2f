// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors without inputs: tensor(), zeros(), ones(), full(), arange(). Random ones are in
// random.hpp.

#include <cstring>
#include <span>

#include "xla/op/reshape.hpp"
#include "xla/op/scalar.hpp"

namespace xla::op {

/// start, start + 1, … along one axis; the sizes are those of the node.
struct arange {
  static constexpr auto name = "arange";
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    std::int64_t start = 0;
    XLA_ATTRIBUTES(start)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
};

}  // namespace xla::op

XLA_OP(xla::op::arange, numbers);

namespace xla {
namespace detail {

/// Applies an op without inputs. A symbolic size determines its graph.
template <class Op, class T, int R>
constexpr Tensor<T, R> create(node&& n, size_table* sizes) {
  n.op = &info_of<Op, T, T>;
  n.type = dtype_of<T>;
  Tensor<T, R> t;
  if (!__builtin_is_constant_evaluated()) machine_of<Op>::run(n, nullptr, 0, t);
  else if (sizes) t.name_node(sizes->owner, sizes->owner->add(n));
  else t.float_op(n);
  return t;
}

template <class T, int R>
constexpr Tensor<T, R> fill_shape(Tensor<T, 0> value, const shape& s, size_table* table) {
  if (__builtin_is_constant_evaluated() && table && !value.owner())
    value.name_node(table->owner, value.lift(table->owner));
  return with_shape<op::expand, R>(value, s);
}

}  // namespace detail

/// A tensor of the given sizes, every element the same number. A number that the integer type T
/// does not hold is refused. Negative sizes are a shape_error, a lack of memory an out_of_memory.
template <element T = float, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> full(const Size (&sizes)[N], detail::number_of<T> value,
                                              caller loc = here()) {
  return detail::fill_shape<T, static_cast<int>(N)>(value.element(detail::table_of(sizes)),
                                                    detail::to_shape(sizes, {"full", loc}, 0),
                                                    detail::table_of(sizes));
}
template <element T = float, std::size_t N>
constexpr auto zeros(const Size (&sizes)[N], caller loc = here()) {
  return full<T>(sizes, T{}, loc);
}
template <element T = float, std::size_t N>
constexpr auto ones(const Size (&sizes)[N], caller loc = here()) {
  return full<T>(sizes, T{1}, loc);
}
/// A tensor of x's sizes, every element the same number.
template <class T, int R>
constexpr Tensor<T, R> full_like(const Tensor<T, R>& x, detail::number_of<T> value) {
  return detail::fill_shape<T, R>(value.element(x.table()), x.dims(), x.table());
}
template <class T, int R>
constexpr Tensor<T, R> zeros_like(const Tensor<T, R>& x) {
  return full_like(x, T{});
}
template <class T, int R>
constexpr Tensor<T, R> ones_like(const Tensor<T, R>& x) {
  return full_like(x, T{1});
}

namespace detail {
template <class T>
constexpr Tensor<T, 1> arange_from(Size n, std::int64_t start, caller loc = unknown_caller) {
  const Size sizes[] = {n};
  const shape s = to_shape(sizes, {"arange", loc}, 0);
  return create<op::arange, T, 1>(with<op::arange>({start}, s), n.table());
}
}  // namespace detail

/// 0, 1, 2 … n - 1. A negative n is a shape_error, a lack of memory an out_of_memory.
template <element T = std::int64_t>
constexpr Tensor<T, 1> arange(Size n, caller loc = here()) {
  return detail::arange_from<T>(n, 0, loc);
}

/// A tensor without axes that holds one number.
template <element T>
constexpr Tensor<T, 0> tensor(T value) {
  return detail::constant(value);
}

/// Copies elements from memory in row-major order: from_blob(ptr, {n, 784}). Negative sizes are a
/// shape_error, a lack of memory an out_of_memory.
template <element T, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> from_blob(const T* data, const Size (&sizes)[N],
                                                   caller loc = here()) {
  Tensor<T, static_cast<int>(N)> t;
  const detail::call_site site{"from_blob", loc};
  const detail::shape s = detail::to_shape(sizes, site, 0);
  if (!__builtin_is_constant_evaluated()) {
    if (!data && detail::count(s) != 0) detail::size_scope{nullptr, site}.fail("data is nullptr");
    detail::machine_of<T>::upload(t, dtype_of<T>, s, data);
  } else {
    detail::node n;
    n.op = &detail::builtin<op::data>;
    n.type = dtype_of<T>;
    n.set_shape(s);
    t.float_op(n);
  }
  return t;
}

/// A tensor from nested braces: tensor<float>({{1, 2}, {3, 4}}).
template <element T, std::size_t A>
constexpr Tensor<T, 1> tensor(const T (&values)[A]) {
  return from_blob(values, {A});
}
template <element T, std::size_t A, std::size_t B>
constexpr Tensor<T, 2> tensor(const T (&values)[A][B]) {
  return from_blob(&values[0][0], {A, B});
}
template <element T, std::size_t A, std::size_t B, std::size_t C>
constexpr Tensor<T, 3> tensor(const T (&values)[A][B][C]) {
  return from_blob(&values[0][0][0], {A, B, C});
}
/// A tensor of one axis from a vector or span.
template <class V>
  requires requires(const V& v) { std::span(v); }
auto tensor(const V& values) {
  const std::span all(values);
  using T = std::remove_const_t<typename decltype(all)::element_type>;
  return from_blob(static_cast<const T*>(all.data()), {all.size()});
}

}  // namespace xla
