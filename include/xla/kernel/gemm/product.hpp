// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of matrix products in float, double and integers. long_k.hpp defines it where the
// run time is compiled. Ops, convolutions and attention call gemm().

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/kernel/simd/lane.hpp"

namespace xla::kernel {

namespace detail {

/// Float and double with no size 0; kernel/gemm/long_k.hpp defines it.
template <class T>
void multiply_fractions(index_t m, index_t n, index_t k, matrix_view<T> a, matrix_view<T> b, T* c,
                        index_t ldc, const epilogue* after, bool some_rows);

template <class T>
void multiply_integers(index_t m, index_t n, index_t k, matrix_view<T> a, matrix_view<T> b, T* c,
                       index_t ldc) {
  for_ranges(m, n * k, [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i) {
      T* const row = c + i * ldc;
      std::fill_n(row, n, T{});
      for (index_t p = 0; p < k; ++p) {
        const T factor = a.data[i * a.row_stride + p * a.col_stride];
        const T* const from = b.data + p * b.row_stride;
        for (index_t j = 0; j < n; ++j)
          row[j] = add_wrapping(row[j], multiply_wrapping(factor, from[j * b.col_stride]));
      }
    }
  });
}

}  // namespace detail

/// The product of gemm(). With some_rows its rows are part of a larger product, and have its order.
template <class T>
void gemm_rows(std::int64_t m, std::int64_t n, std::int64_t k, matrix_view<T> a, matrix_view<T> b,
               T* c, std::int64_t ldc, const epilogue* after, bool some_rows) {
  if (m <= 0 || n <= 0) return;
  if constexpr (std::is_integral_v<T>) {
    detail::multiply_integers(m, n, k, a, b, c, ldc);
  } else if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T{0});
  } else {
    detail::multiply_fractions(m, n, k, a, b, c, ldc, after, some_rows);
  }
}
/// c(m, n), row-major with leading dimension ldc, = a(m, k) · b(k, n); k = 0 gives zeros. The order
/// of each sum over k depends on k and T alone, not on strides or threads. It does not depend on m
/// and n either, except that products with up to 4 rows or with one column have an order of their
/// own. Integers wrap. The kernel may notify `after` of finished parts of c. Throws std::bad_alloc.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, matrix_view<T> a, matrix_view<T> b, T* c,
          std::int64_t ldc, const epilogue* after = nullptr) {
  gemm_rows(m, n, k, a, b, c, ldc, after, false);
}

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/gemm/long_k.hpp"
#endif
