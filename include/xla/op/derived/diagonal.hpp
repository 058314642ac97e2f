// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/einsum.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/slice.hpp"

namespace xla {
namespace detail {

/// The last two axes without what is beyond a diagonal that begins `offset` to the right of the
/// first element, or below it where that is negative; of sizes known only at run time both are
/// taken to be equal.
template <class T, int R>
constexpr Tensor<T, R> square_at(const Tensor<T, R>& x, std::int64_t offset, caller who) {
  Tensor<T, R> y = x;
  if (offset > 0) y = narrow(y, -1, offset, y.size(-1) - offset, who);
  if (offset < 0) y = narrow(y, -2, -offset, y.size(-2) + offset, who);
  const Size rows = y.size(-2), columns = y.size(-1);
  if (!rows.known() || !columns.known() || rows.extent() == columns.extent()) return y;
  return rows.extent() < columns.extent() ? narrow(y, -1, 0, rows, who)
                                          : narrow(y, -2, 0, columns, who);
}

}  // namespace detail

/// The diagonal of the last two axes (…, rows, columns) that begins `offset` columns to the right,
/// or -offset rows below, of the first element: (…, diagonal). In a compiled function sizes that
/// are known only at run time have to leave as many rows as columns. An offset beyond the matrix is
/// a shape_error.
template <class T, int R>
constexpr Tensor<T, R - 1> diagonal(const Tensor<T, R>& x, std::int64_t offset = 0,
                                    caller who = here()) {
  static_assert(R >= 2, "xla::diagonal: needs a tensor with two axes or more");
  if constexpr (std::is_same_v<T, bool>)
    return cast<bool>(diagonal(cast<std::uint8_t>(x), offset, who));
  else
    return detail::diagonal_of<R - 2, R - 1>(detail::square_at(x, offset, who), {"diagonal", who});
}

/// The sum of a matrix' diagonal.
template <class T>
constexpr auto trace(const Tensor<T, 2>& x, caller who = here()) {
  return sum(diagonal(x, 0, who));
}

/// Matrices (…, n, n) with the last axis of x (…, n) as their diagonals, and 0 elsewhere.
template <class T, int R>
constexpr Tensor<T, R + 1> diag_embed(const Tensor<T, R>& x) {
  static_assert(R >= 1, "xla::diag_embed: needs at least one axis");
  using P = detail::position_type<T>;
  const auto n = x.size(-1);
  const Tensor<bool, 2> on = detail::row_numbers<P>(n, 0) == arange<P>(n);
  const auto rows = unsqueeze(x, -1);
  if constexpr (std::is_same_v<T, bool>) return on && rows;
  else return where(on, rows, T{});
}

/// Of a vector the matrix with it as its diagonal, of a matrix its diagonal.
template <class T>
constexpr Tensor<T, 2> diag(const Tensor<T, 1>& x) {
  return diag_embed(x);
}
template <class T>
constexpr Tensor<T, 1> diag(const Tensor<T, 2>& x, std::int64_t offset = 0, caller who = here()) {
  return diagonal(x, offset, who);
}

/// The matrix with all elements of x as its diagonal.
template <class T, int R>
constexpr Tensor<T, 2> diagflat(const Tensor<T, R>& x) {
  return diag_embed(reshape(x, {-1}));
}

}  // namespace xla
