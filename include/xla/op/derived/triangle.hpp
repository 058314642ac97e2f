// SPDX-License-Identifier: Apache-2.0
#pragma once

// tril(), triu() and eye(), by comparing numbers of rows and columns.

#include <type_traits>

#include "xla/op/cast.hpp"
#include "xla/op/create.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

// Positions in the element type itself, so that comparing them fuses with the selection.
template <class T>
using position_type = std::conditional_t<(sizeof(T) > 2), T, std::int32_t>;

/// The row's number + shift, and the column's, to compare: (rows, 1) and (columns). A shift beyond
/// 2^30 is beyond all columns, and its sums with rows fit into T.
template <class T>
constexpr Tensor<T, 2> row_numbers(Size rows, std::int64_t shift) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  return unsqueeze(arange_from<T>(rows, shift > most ? most : shift < -most ? -most : shift), 1);
}

template <class T, int R, int M>
constexpr Tensor<T, R> keep_where(const Tensor<bool, M>& mask, const Tensor<T, R>& x) {
  if constexpr (std::is_same_v<T, bool>) return mask && x;
  else return where(mask, x, T{});
}

}  // namespace detail

/// The lower triangle of the last two axes: elements right of diagonal (0: the main one, above it
/// when positive) are 0.
template <class T, int R>
constexpr Tensor<T, R> tril(const Tensor<T, R>& x, std::int64_t diagonal = 0) {
  static_assert(R >= 2, "xla::tril: needs a tensor with two axes or more");
  using P = detail::position_type<T>;
  return detail::keep_where(detail::row_numbers<P>(x.size(-2), diagonal) >= arange<P>(x.size(-1)),
                            x);
}

/// The upper triangle of the last two axes: elements left of diagonal (0: the main one, above it
/// when positive) are 0.
template <class T, int R>
constexpr Tensor<T, R> triu(const Tensor<T, R>& x, std::int64_t diagonal = 0) {
  static_assert(R >= 2, "xla::triu: needs a tensor with two axes or more");
  using P = detail::position_type<T>;
  return detail::keep_where(detail::row_numbers<P>(x.size(-2), diagonal) <= arange<P>(x.size(-1)),
                            x);
}

/// The identity matrix: 1 on the main diagonal of (rows, columns), 0 elsewhere.
template <element T = float>
constexpr Tensor<T, 2> eye(Size rows, Size columns) {
  using P = detail::position_type<T>;
  const Tensor<bool, 2> hit = detail::row_numbers<P>(rows, 0) == arange<P>(columns);
  if constexpr (std::is_same_v<T, bool>) return hit;
  else return cast<T>(hit);
}
template <element T = float>
constexpr Tensor<T, 2> eye(Size n) {
  return eye<T>(n, n);
}

}  // namespace xla
