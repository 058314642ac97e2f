// SPDX-License-Identifier: Apache-2.0
#pragma once

// diagonal(), diag(), diag_embed() and trace(), composed of other ops.

#include "xla/op/derived/einsum.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/slice.hpp"

namespace xla {
namespace detail {

/// Crops axes p and q to a diagonal that begins at `offset` along q, or -offset along p. Both then
/// have one size; if sizes are known only at run time, the matrix must be square.
template <int P, int Q, class T, int R>
constexpr Tensor<T, R> square_at(const Tensor<T, R>& x, std::int64_t offset, caller loc) {
  const Size rows = x.size(P), columns = x.size(Q);
  const auto cut = [&](const Tensor<T, R>& y, int axis, const Size& from, const Size& n) {
    return narrow(y, axis, from, n, loc);
  };
  const std::int64_t right = offset > 0 ? offset : 0, down = offset < 0 ? -offset : 0;
  if (rows.known() && columns.known()) {
    const std::int64_t wide = columns.extent() - right, tall = rows.extent() - down;
    const std::int64_t n = wide < tall ? wide : tall;
    return cut(cut(x, Q, right, n), P, down, n);
  }
  if (offset == 0) return x;
  if (offset > 0) return cut(cut(x, Q, right, columns - right), P, 0, columns - right);
  return cut(cut(x, P, down, rows - down), Q, 0, rows - down);
}

/// Whether row and column numbers are on the diagonal that begins this far to the right.
template <class P>
constexpr Tensor<bool, 2> on_diagonal(const Size& n, std::int64_t offset) {
  return row_numbers<P>(n, offset) == arange<P>(n);
}

}  // namespace detail

/// The diagonal of two axes, on which the second index is `offset` larger than the first, or the
/// first -offset larger: the other axes, then the diagonal. In a compiled function two sizes that
/// are known only at run time must be equal. An offset beyond the matrix is a shape_error.
template <int Axis1 = 0, int Axis2 = 1, class T, int R>
constexpr Tensor<T, R - 1> diagonal(const Tensor<T, R>& x, std::int64_t offset = 0,
                                    caller loc = here()) {
  constexpr int p = Axis1 < 0 ? Axis1 + R : Axis1, q = Axis2 < 0 ? Axis2 + R : Axis2;
  static_assert(R >= 2, "xla::diagonal: needs a tensor with two axes or more");
  static_assert(p >= 0 && q >= 0 && p < R && q < R && p != q,
                "xla::diagonal: name two different axes of the tensor: diagonal<0, 1>(x)");
  if constexpr (std::is_same_v<T, bool>) {
    return cast<bool>(diagonal<p, q>(cast<std::uint8_t>(x), offset, loc));
  } else {
    const auto square = detail::square_at<p, q>(x, offset, loc);
    const auto y = detail::diagonal_of<p, q>(square, {"diagonal", loc});
    constexpr int at = p < q ? p : p - 1;  // the diagonal's axis, as axis q is removed
    if constexpr (at == R - 2) return y;
    else return movedim(y, at, -1);
  }
}

/// The sum of a matrix' diagonal.
template <class T>
constexpr auto trace(const Tensor<T, 2>& x, caller loc = here()) {
  return sum(diagonal(x, 0, loc));
}

/// Matrices (…, n, n) with the last axis of x as a diagonal that begins `offset` columns to the
/// right of the first element, or -offset rows below, and 0 elsewhere. n is its size plus the
/// offset's magnitude.
template <class T, int R>
constexpr Tensor<T, R + 1> diag_embed(const Tensor<T, R>& x, std::int64_t offset = 0) {
  static_assert(R >= 1, "xla::diag_embed: needs at least one axis");
  using P = detail::position_type<T>;
  const detail::number_of<T> zero = T{};
  const std::int64_t before = offset > 0 ? offset : 0, after = offset < 0 ? -offset : 0;
  Tensor<T, R> columns = x;
  if (offset != 0)
    columns = detail::pad_axis(x, R - 1, Padding{before, after}, zero.tensor(), here());
  const Tensor<bool, 2> on = detail::on_diagonal<P>(columns.size(-1), offset);
  const auto rows = unsqueeze(columns, -2);
  if constexpr (std::is_same_v<T, bool>) return on && rows;
  else return where(on, rows, T{});
}

/// For a vector the matrix with it as its diagonal, for a matrix its diagonal, both at an offset.
template <class T>
constexpr Tensor<T, 2> diag(const Tensor<T, 1>& x, std::int64_t offset = 0) {
  return diag_embed(x, offset);
}
template <class T>
constexpr Tensor<T, 1> diag(const Tensor<T, 2>& x, std::int64_t offset = 0, caller loc = here()) {
  return diagonal(x, offset, loc);
}

/// The matrix with all elements of x as its diagonal.
template <class T, int R>
constexpr Tensor<T, 2> diagflat(const Tensor<T, R>& x, std::int64_t offset = 0) {
  return diag_embed(reshape(x, {-1}), offset);
}

}  // namespace xla
