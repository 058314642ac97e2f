// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tiles for which Winograd's transforms are accurate. A transformed value is a sum over a whole
// tile, so that one NaN, infinity or very large number would affect pixels that do not depend on
// it: NaN and infinity as NaN, a large number by its rounding error. winograd.hpp sums such tiles
// directly.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "xla/kernel/convolution/patches.hpp"
#include "xla/kernel/convolution/winograd_transform.hpp"

namespace xla::kernel::detail {

/// Tiles whose C channels have a mean square below this are transformed without further tests. The
/// rounding error of one such number among ones is 1e-5 of a sum of 9 C ones.
template <class T>
constexpr T ordinary_square = T{1 << 20};

/// The bound on the largest sum of squares, as a multiple of the smallest that a result depends on.
template <class T>
constexpr T max_mixed = T{1 << 16};

/// Numbers up to the square root of this have finite products with weights that can be transformed.
template <class T>
constexpr T max_square = std::numeric_limits<T>::max() / T{1 << 28};

template <class Vector>
Vector sum_of_squares(const Vector& a, const Vector& b, const Vector& c) {
  return simd::pmadd(a, a, simd::pmadd(b, b, simd::pmul(c, c)));
}

/// Whether a tile of Size x Size pixels, of which each result uses Window x Window, is out of the
/// transforms' range: it has a number that is not finite, or some result's pixels are far smaller
/// than others of the tile.
template <int Size, int Window, class T, class Load>
[[gnu::noinline, gnu::cold]] bool is_mixed(const T* const* at, index_t channels, index_t rows,
                                           index_t columns, Load load) {
  T squares[Size * Size], all{0};
  for (index_t p = 0; p < Size * Size; ++p) {
    packet<T> sum = simd::pset1<packet<T>>(T{0});
    for (index_t k = 0; k < channels; k += lanes<T>) {
      const packet<T> x = load(at[p] + k);
      sum = simd::pmadd(x, x, sum);
    }
    all += squares[p] = simd::predux(sum);
  }
  if (!(all < max_square<T>)) return true;
  T least = all;
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      T seen{0};
      for (index_t t = 0; t < Window * Window; ++t)
        seen += squares[(i + t / Window) * Size + j + t % Window];
      least = std::min(least, seen);
    }
  return all > max_mixed<T> * least;
}

}  // namespace xla::kernel::detail
