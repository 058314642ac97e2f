// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <xla/kernel/gemm_transpose.hpp>
#include <xla/kernel/loops.hpp>

namespace xla::kernel {
namespace detail {

/// Rows [first, last) of a matrix of so many columns, as columns of one that has `step` of them.
template <class T>
void transpose_rows(const T* from, std::int64_t first, std::int64_t last, std::int64_t columns,
                    T* to, std::int64_t step) {
  constexpr std::int64_t width = lanes<T>, deep = 64;  // both sides stay in cache
  std::int64_t i = first;
  if constexpr (is_vector<T>)
    for (; i + width <= last; i += width)
      for (std::int64_t k = 0; k < columns; k += deep)
        pack_columns<T>(to + k * step + i, step, from + i * columns + k, columns,
                        std::min(deep, columns - k), width);
  for (; i < last; ++i)
    for (std::int64_t k = 0; k < columns; ++k) to[k * step + i] = from[i * columns + k];
}

}  // namespace detail

/// Transposes `count` matrices (rows, columns), contiguous and one after the other.
template <class T>
void transpose_matrices(const T* from, std::int64_t count, std::int64_t rows, std::int64_t columns,
                        T* to) {
  constexpr std::int64_t some = 64;
  const std::int64_t parts = (rows + some - 1) / some;
  for_ranges(count * parts, std::min(some, rows) * columns,
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t matrix = i / parts * rows * columns, first = i % parts * some;
                 detail::transpose_rows(from + matrix, first, std::min(rows, first + some), columns,
                                        to + matrix, rows);
               }
             });
}

}  // namespace xla::kernel
