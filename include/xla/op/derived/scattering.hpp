// SPDX-License-Identifier: Apache-2.0
#pragma once

// index_fill(), put(), masked_scatter() and diagonal_scatter(), composed of other ops.

#include "xla/op/clip.hpp"
#include "xla/op/derived/diagonal.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/derived/stacking.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/scan.hpp"

namespace xla {

/// x with a number in the slices at an index (n) along an axis. An index that does not exist is an
/// index_error.
template <class T, int R>
constexpr Tensor<T, R> index_fill(const Tensor<T, R>& x, int axis,
                                  const Tensor<std::int64_t, 1>& index, detail::number_of<T> value,
                                  caller loc = here()) {
  static_assert(R >= 1, "xla::index_fill: needs at least one axis");
  detail::shape s = x.dims();
  s[detail::axis_of(x, R, axis, {"index_fill", loc})] = index.dims()[0];
  auto* const table = x.table() ? x.table() : index.table();
  return index_copy(x, axis, index, detail::fill_shape<T, R>(value.element(table), s, table), loc);
}

/// x with elements, given by their numbers in row-major order, replaced by the source's or
/// increased by them. Of several for one index the last counts. A number outside [0, elements) is
/// an index_error.
template <class T, int R, int I>
constexpr Tensor<T, R> put(const Tensor<T, R>& x, const Tensor<std::int64_t, I>& index,
                           const Tensor<T, I>& source, bool accumulate = false,
                           caller loc = here()) {
  const auto all = reshape(x, {-1}), values = reshape(source, {-1});
  const auto indices = reshape(index, {-1});
  return view_as(accumulate ? index_add(all, 0, indices, values, loc)
                            : index_copy(all, 0, indices, values, loc),
                 x);
}

/// x with the elements under a mask, which broadcasts to x, replaced by the source's in order. A
/// source with fewer elements is an index_error.
template <class T, int R, int M, int S>
constexpr Tensor<T, R> masked_scatter(const Tensor<T, R>& x, const Tensor<bool, M>& mask,
                                      const Tensor<T, S>& source, caller loc = here()) {
  static_assert(M <= R, "xla::masked_scatter: the mask has no more axes than x");
  detail::check_broadcast({"masked_scatter", loc}, x, mask);
  const Tensor<bool, R> all = expand_as(mask, x);
  const auto number = cumsum(reshape(cast<std::int64_t>(all), {-1}), 0, loc) - 1;
  return where(all, view_as(take(source, clamp_min(number, 0), loc), x), x);
}

/// A matrix with a vector on a diagonal, as in diagonal(). Another size is a shape_error.
template <class T>
constexpr Tensor<T, 2> diagonal_scatter(const Tensor<T, 2>& x, const Tensor<T, 1>& source,
                                        std::int64_t offset = 0, caller loc = here()) {
  detail::check_same_sizes(diagonal(x, offset, loc), source, {"diagonal_scatter", loc});
  using P = detail::position_type<T>;
  const auto on = detail::row_numbers<P>(x.size(0), offset) == arange<P>(x.size(1));
  const bool above = offset >= 0;  // the source counts rows, below columns
  const auto number = minimum(arange(x.size(above ? 0 : 1)), source.size(0) - 1);
  const auto spread = index_select(source, 0, number, loc);
  return where(on, unsqueeze(spread, above ? 1 : 0), x);
}

}  // namespace xla
