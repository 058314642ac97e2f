// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pointer with two strides: the operand of every product. It owns nothing.

#include <cstdint>
#include <type_traits>

namespace xla::kernel {

/// The location of a matrix: element (i, j) is data[i * row_stride + j * col_stride]. A stride that
/// the compiler knows is a type, which leaves out code for others.
template <class T, class RowStride = std::int64_t, class ColStride = std::int64_t>
struct matrix_view {
  using element = T;
  static constexpr bool is_plain = !std::is_same_v<ColStride, std::int64_t>;
  static constexpr bool is_transposed = !std::is_same_v<RowStride, std::int64_t>;
  const T* data;
  RowStride row_stride;
  ColStride col_stride;

  matrix_view from(std::int64_t row, std::int64_t column) const {
    return {data + row * row_stride + column * col_stride, row_stride, col_stride};
  }
};

using contiguous = std::integral_constant<std::int64_t, 1>;

/// A matrix with contiguous rows.
template <class T>
using plain_view = matrix_view<T, std::int64_t, contiguous>;

/// A matrix with contiguous columns.
template <class T>
using transposed_view = matrix_view<T, contiguous, std::int64_t>;

}  // namespace xla::kernel
