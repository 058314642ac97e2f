// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <xla/kernel/part.hpp>

namespace xla::kernel::detail {

using index_t = std::int64_t;

/// The block of c that a micro-kernel keeps in registers.
template <class T>
struct tile {
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int rows = 8, vectors = 3;
#elif defined(__AVX2__)
  static constexpr int rows = 6, vectors = 2;
#else
  static constexpr int rows = 4, vectors = 2;
#endif
  static constexpr int width = lanes<T>;
  static constexpr int columns = vectors * width;
};

/// One call of a micro-kernel: c (+)= a·b for a few rows of a and one panel of b. `tail` counts
/// the columns of the last vector, `first` says to store instead of adding to c.
template <class T>
struct micro_call {
  index_t depth;
  const T* a;
  index_t a_row, a_step;
  const T* b;
  index_t b_step;
  T* c;
  index_t c_row;
  int tail;
  bool first;
};

/// Stores a tile whose last vector is not full.
template <class T>
[[gnu::noinline]] void store_edge(const micro_call<T>& call, const T* sum, int rows, int vectors) {
  const int stride = vectors * tile<T>::width, columns = stride - tile<T>::width + call.tail;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      T& c = call.c[i * call.c_row + j];
      c = static_cast<T>(call.first ? sum[i * stride + j] : c + sum[i * stride + j]);
    }
}

/// Every element is one chain of `pmadd` over k, whatever the tile: that fixes its bits.
template <class T, int Rows, int Vectors>
void micro_kernel(const micro_call<T>& call) {
  using vector = packet<T>;
  constexpr int width = tile<T>::width;
  const T* __restrict a = call.a;
  const T* __restrict b = call.b;
  const index_t a_row = call.a_row, a_step = call.a_step, b_step = call.b_step;
  vector sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      sum[i][j] = simd::pset1<vector>(T{0});
      simd::prefetch(call.c + i * call.c_row + j * width);
    }
  for (index_t k = call.depth; k > 0; --k, a += a_step, b += b_step) {
    vector row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) row[j] = simd::ploadu<vector>(b + j * width);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const vector left = simd::pset1<vector>(a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[i][j] = simd::pmadd(left, row[j], sum[i][j]);
    }
  }
  if (call.tail != width) {
    alignas(64) T block[Rows][Vectors * width];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) simd::pstoreu(&block[i][j * width], sum[i][j]);
    return store_edge(call, &block[0][0], Rows, Vectors);
  }
  T* c = call.c;
  const index_t c_row = call.c_row;
  const bool first = call.first;
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      T* to = c + i * c_row + j * width;
      simd::pstoreu(to, first ? sum[i][j] : simd::padd(simd::ploadu<vector>(to), sum[i][j]));
    }
}

template <class T>
using micro_pointer = void (*)(const micro_call<T>&);

template <class T, int Rows>
constexpr std::array<micro_pointer<T>, 3> micro_row = {
    &micro_kernel<T, Rows, 1>, &micro_kernel<T, Rows, 2>, &micro_kernel<T, Rows, tile<T>::vectors>};

/// Computes up to tile::rows rows and tile::columns columns, by the largest kernels that fit.
template <class T>
void multiply_tile(micro_call<T> call, index_t rows, index_t columns) {
  constexpr int width = tile<T>::width;
  const auto last = static_cast<std::size_t>((columns - 1) / width);
  call.tail = static_cast<int>(columns - static_cast<index_t>(last) * width);
  while (rows > 0) {
    const index_t step = rows >= tile<T>::rows ? tile<T>::rows : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    const auto& kernels = step == tile<T>::rows ? micro_row<T, tile<T>::rows>
                          : step == 4           ? micro_row<T, 4>
                          : step == 2           ? micro_row<T, 2>
                                                : micro_row<T, 1>;
    kernels[last](call);
    call.a += step * call.a_row;
    call.c += step * call.c_row;
    rows -= step;
  }
}

}  // namespace xla::kernel::detail
