// SPDX-License-Identifier: Apache-2.0
#pragma once

// vstack(), hstack(), dstack() and take(), composed of cat() and reshapes.

#include <array>

#include "xla/op/concat.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/reshape.hpp"

namespace xla {

/// x with at least one axis: a number becomes a vector.
template <class T, int R>
constexpr Tensor<T, (R < 1 ? 1 : R)> atleast_1d(const Tensor<T, R>& x) {
  if constexpr (R == 0) return unsqueeze(x, 0);
  else return x;
}
/// x with at least two axes: a vector becomes a row.
template <class T, int R>
constexpr Tensor<T, (R < 2 ? 2 : R)> atleast_2d(const Tensor<T, R>& x) {
  if constexpr (R < 2) return unsqueeze(atleast_1d(x), 0);
  else return x;
}
/// x with at least three axes: a vector becomes (1, n, 1), a matrix (n, m, 1).
template <class T, int R>
constexpr Tensor<T, (R < 3 ? 3 : R)> atleast_3d(const Tensor<T, R>& x) {
  if constexpr (R < 3) return unsqueeze(atleast_2d(x), 2);
  else return x;
}

/// Tensors one after the other along the first axis; vectors and numbers are rows. Other sizes
/// along another axis are a shape_error.
template <class T, int R, std::convertible_to<Tensor<T, R>>... More>
constexpr auto vstack(const Tensor<T, R>& first, const More&... more) {
  return cat(std::array{atleast_2d(first), atleast_2d(more)...}, 0);
}
/// Another name of vstack.
template <class T, int R, std::convertible_to<Tensor<T, R>>... More>
constexpr auto row_stack(const Tensor<T, R>& first, const More&... more) {
  return vstack(first, more...);
}
/// Tensors side by side along the second axis, vectors one after the other.
template <class T, int R, std::convertible_to<Tensor<T, R>>... More>
constexpr auto hstack(const Tensor<T, R>& first, const More&... more) {
  return cat(std::array{atleast_1d(first), atleast_1d(more)...}, R < 2 ? 0 : 1);
}
/// Tensors one after the other along the third axis.
template <class T, int R, std::convertible_to<Tensor<T, R>>... More>
constexpr auto dstack(const Tensor<T, R>& first, const More&... more) {
  return cat(std::array{atleast_3d(first), atleast_3d(more)...}, 2);
}
/// Tensors side by side along the second axis; vectors are columns.
template <class T, int R, std::convertible_to<Tensor<T, R>>... More>
constexpr auto column_stack(const Tensor<T, R>& first, const More&... more) {
  if constexpr (R < 2) {
    return cat(std::array{unsqueeze(atleast_1d(first), 1), unsqueeze(atleast_1d(more), 1)...}, 1);
  } else {
    return cat(std::array{first, Tensor<T, R>(more)...}, 1);
  }
}

/// The elements of x with these numbers in row-major order, in the sizes of index. A number outside
/// [0, elements) is an index_error.
template <class T, int R, int I>
constexpr Tensor<T, I> take(const Tensor<T, R>& x, const Tensor<std::int64_t, I>& index,
                            caller loc = here()) {
  const auto taken = index_select(reshape(x, {-1}), 0, reshape(index, {-1}), loc);
  return view_as(taken, index);
}

}  // namespace xla
