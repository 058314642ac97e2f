// SPDX-License-Identifier: Apache-2.0
#pragma once

// embedding(): rows of a table, and the op that is its gradient.

#include "xla/op/check_index.hpp"

namespace xla::op {

/// Rows of a table (rows, width): the result has the index's axes, then width.
struct embedding {
  static constexpr auto name = "embedding";
  static constexpr bool picks = true;
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    std::int64_t padding_idx = -1;  ///< the row without gradient; -1: none
    XLA_ATTRIBUTES(padding_idx)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[1];
    s.push(r.in[0][1]);
    return s;
  }
  static constexpr void gradient(auto& g) {
    g.to(0, scatter_rows(g.grad(), g.template in<std::int64_t>(1), g.in(0).dims(), g.attributes()));
  }
};

/// The transpose of embedding: rows added up at their indices, with the node's own dims, except the
/// row padding_idx.
struct embedding_backward {
  static constexpr auto name = "embedding_backward";
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  using attributes = embedding::attributes;
  static constexpr shape shape_of(const shape_rule& r) { return r.op.dims_shape(); }
};

}  // namespace xla::op

XLA_OP(xla::op::embedding, fractions);
XLA_OP(xla::op::embedding_backward, fractions);

namespace xla {
namespace detail {
template <class T>
constexpr any_tensor<T> scatter_rows(const any_tensor<T>& rows,
                                     const any_tensor<std::int64_t>& index, const shape& table,
                                     const op::embedding::attributes& a) {
  return apply<op::embedding_backward, T, T, dynamic_rank>(with<op::embedding_backward>(a, table),
                                                           rows, index);
}
}  // namespace detail

/// Rows of weight (count, width) by index: the index's axes, then width. An index outside [0,
/// count) is an index_error. The gradient adds up at the rows that were used.
template <class T, int R>
constexpr Tensor<T, R + 1> embedding(const Tensor<std::int64_t, R>& index,
                                     const Tensor<T, 2>& weight, caller loc = here()) {
  return detail::apply<op::embedding, T, T, R + 1>(
      detail::with<op::embedding>({}), weight,
      check_index<op::embedding>(index, weight.size(0), loc));
}
/// The same, where the row padding_idx (negative: from the end) gets no gradient.
template <class T, int R>
constexpr Tensor<T, R + 1> embedding(const Tensor<std::int64_t, R>& index,
                                     const Tensor<T, 2>& weight, std::int64_t padding_idx,
                                     caller loc = here()) {
  const detail::call_site site{"embedding", loc};
  const detail::size_scope scope{weight.table() ? weight.table() : index.table(), site};
  const detail::extent rows = scope.find(weight.dims()[0]);
  const std::int64_t row = padding_idx + (padding_idx < 0 && detail::is_known(rows) ? rows : 0);
  if (row < 0 || !scope.at_least(rows, row + 1))
    scope.fail(detail::text("padding_idx ")
               << padding_idx << " is no row of a table " << weight.dims());
  return detail::apply<op::embedding, T, T, R + 1>(
      detail::with<op::embedding>({row}), weight,
      check_index<op::embedding>(index, weight.size(0), loc));
}

}  // namespace xla
