// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies matrices transposed, by squares of vectors, on the threads. `permute` and images between
// layouts use it; products transpose in registers (gemm/transposing_pack.hpp).

#include <algorithm>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/simd/transpose.hpp"

namespace xla::kernel {
namespace detail {

/// Copies rows [row, rows_end) and columns [column, columns_end) of a matrix with this many columns
/// to their positions in the transposed one, whose rows are `step` apart.
template <class T>
void transpose_part(const T* from, index_t columns, T* to, index_t step, index_t row,
                    index_t rows_end, index_t column, index_t columns_end) {
  constexpr index_t width = lanes<T>;
  if constexpr (is_vector<T>)
    for (; row + width <= rows_end; row += width)
      pack_columns<T>(to + column * step + row, step, from + row * columns + column, columns,
                      columns_end - column, width);
  for (index_t k = column; k < columns_end; ++k)
    for (index_t i = row; i < rows_end; ++i) to[k * step + i] = from[i * columns + k];
}

/// Elements of three rows, `step` apart, side by side: an image's three colours pixel by pixel.
template <class T>
void interleave(const T* __restrict from, index_t step, T* __restrict to, index_t n) {
  for (index_t k = 0; k < n; ++k) {
    to[3 * k] = from[k];
    to[3 * k + 1] = from[step + k];
    to[3 * k + 2] = from[2 * step + k];
  }
}

}  // namespace detail

/// Transposes `count` matrices (rows, columns), contiguous and one after the other.
template <class T>
void transpose_matrices(const T* from, std::int64_t count, std::int64_t rows, std::int64_t columns,
                        T* to) {
  constexpr std::int64_t edge = 64;  // of the squares for which both sides stay in cache
  if (rows == 3)
    return for_ranges(count * columns, rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin, last; i < end; i = last) {
        const std::int64_t matrix = i / columns;
        last = std::min(end, (matrix + 1) * columns);
        detail::interleave(from + 2 * matrix * columns + i, columns, to + 3 * i, last - i);
      }
    });
  const std::int64_t down = (rows + edge - 1) / edge, across = (columns + edge - 1) / edge;
  for_ranges(count * down * across, std::min(edge, rows) * std::min(edge, columns),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t matrix = i / across / down * rows * columns;
                 const std::int64_t row = i / across % down * edge, column = i % across * edge;
                 detail::transpose_part(from + matrix, columns, to + matrix, rows, row,
                                        std::min(rows, row + edge), column,
                                        std::min(columns, column + edge));
               }
             });
}

}  // namespace xla::kernel
