// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <xla/kernel/gemm_micro.hpp>
#include <xla/kernel/matrix_view.hpp>
#include <xla/tensor/heap.hpp>

namespace xla::kernel {

namespace detail {

template <class T>
matrix_view<T> from(matrix_view<T> m, index_t row, index_t column) {
  return {m.data + row * m.row_stride + column * m.col_stride, m.row_stride, m.col_stride};
}

constexpr index_t round_up(index_t n, index_t unit) { return (n + unit - 1) / unit * unit; }

/// Memory that is kept for the next call and grows only. Its contents do not survive `get`.
class scratch {
 public:
  scratch() = default;
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { reset(); }

  template <class T>
  T* get(index_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes > size_) grow(bytes);
    return static_cast<T*>(data_);
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{1} << 21;

  void grow(std::size_t bytes) {
    reset();
    // From half a huge page on, whole ones: fewer TLB misses while panels are streamed.
    const std::size_t unit = bytes >= huge_page / 2 ? huge_page : 4096;
    const std::size_t size = (bytes + unit - 1) / unit * unit;
    data_ = xla::detail::heap_take(size, unit);
    size_ = size;
    align_ = unit;
#if defined(__linux__)
    if (unit == huge_page) madvise(data_, size, MADV_HUGEPAGE);
#endif
  }

  void reset() {
    if (size_ != 0) xla::detail::heap_give(data_, align_);
    size_ = 0;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0, align_ = 0;
};

/// This thread's buffers: rows of a for one sliver, panels of b.
template <class = void>
inline scratch& left_scratch() {
  static thread_local scratch buffer;
  return buffer;
}
template <class = void>
inline scratch& right_scratch() {
  static thread_local scratch buffer;
  return buffer;
}

/// Packs (depth, rows) of a so that a step along k lies together: to[k * tile::rows + i].
template <class T>
void pack_left(T* to, matrix_view<T> a, index_t rows, index_t depth) {
  constexpr index_t unit = tile<T>::rows;
  if (a.row_stride == 1 && rows == unit) {
    for (index_t k = 0; k < depth; ++k)
      std::memcpy(to + k * unit, a.data + k * a.col_stride, unit * sizeof(T));
    return;
  }
  for (index_t k = 0; k < depth; ++k)
    for (index_t i = 0; i < rows; ++i)
      to[k * unit + i] = a.data[i * a.row_stride + k * a.col_stride];
}

/// Packs several slivers, `next` apart, of (rows, depth) of a: whole cache lines are read at a
/// time.
template <class T>
void pack_left_group(T* to, index_t next, matrix_view<T> a, index_t rows, index_t depth) {
  constexpr index_t unit = tile<T>::rows;
  const index_t whole = a.row_stride == 1 ? rows / unit * unit : 0;
  for (index_t k = 0; k < depth && whole != 0; ++k) {
    const T* const line = a.data + k * a.col_stride;
    for (index_t i = 0; i < whole; i += unit)
      std::memcpy(to + i / unit * next + k * unit, line + i, unit * sizeof(T));
  }
  for (index_t i = whole; i < rows; i += unit)
    pack_left(to + i / unit * next, from(a, i, 0), std::min(unit, rows - i), depth);
}

#if defined(__GNUC__) && !defined(__clang__)
// A packet as a template argument loses attributes that nothing here relies on.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

/// As many vectors as each has elements.
template <class T>
using square = simd::PacketBlock<packet<T>, tile<T>::width>;

template <class T>
inline void transpose(square<T>& block) {
  simd::ptranspose(block);
}
#if defined(EIGEN_VECTORIZE_AVX512)
/// In 64 shuffles: pairs, then quadruples within each quarter, then the quarters.
template <>
inline void transpose<float>(square<float>& block) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 4) {
    const __m512* from = block.packet + i;
    const auto low = _mm512_castps_pd(_mm512_unpacklo_ps(from[0], from[1]));
    const auto high = _mm512_castps_pd(_mm512_unpackhi_ps(from[0], from[1]));
    const auto low2 = _mm512_castps_pd(_mm512_unpacklo_ps(from[2], from[3]));
    const auto high2 = _mm512_castps_pd(_mm512_unpackhi_ps(from[2], from[3]));
    t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low2));
    t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low2));
    t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high2));
    t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high2));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 even = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const __m512 odd = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const __m512 even2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const __m512 odd2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    block.packet[i] = _mm512_shuffle_f32x4(even, even2, 0x88);
    block.packet[i + 4] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
    block.packet[i + 8] = _mm512_shuffle_f32x4(even, even2, 0xdd);
    block.packet[i + 12] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
  }
}
#endif

/// Transposes `count` columns of b, each contiguous along k, into one vector of a panel.
template <class T>
void pack_columns(T* to, index_t step, matrix_view<T> b, index_t depth, index_t count) {
  using vector = packet<T>;
  constexpr int width = tile<T>::width;
  index_t k = 0;
  for (; k + width <= depth; k += width) {
    square<T> block;
#pragma GCC unroll 16
    for (int q = 0; q < width; ++q)
      block.packet[q] = q < count ? simd::ploadu<vector>(b.data + q * b.col_stride + k)
                                  : simd::pset1<vector>(T{0});
    transpose<T>(block);
#pragma GCC unroll 16
    for (int q = 0; q < width; ++q) simd::pstoreu(to + (k + q) * step, block.packet[q]);
  }
  for (; k < depth; ++k)
    for (int q = 0; q < width; ++q)
      to[k * step + q] = q < count ? b.data[q * b.col_stride + k] : T{0};
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Packs (depth, columns) of b into one panel: rows of whole vectors, filled up with zeros.
template <class T>
void pack_panel(T* to, matrix_view<T> b, index_t depth, index_t columns) {
  constexpr int width = tile<T>::width;
  const index_t step = round_up(columns, width);
  if (b.row_stride == 1 && b.col_stride != 1) {
    for (index_t j = 0; j < columns; j += width)
      pack_columns(to + j, step, from(b, 0, j), depth, std::min<index_t>(width, columns - j));
  } else if (b.col_stride == 1 && columns == step) {
    for (index_t k = 0; k < depth; ++k)
      for (index_t j = 0; j < step; j += width)
        simd::pstoreu(to + k * step + j, simd::ploadu<packet<T>>(b.data + k * b.row_stride + j));
  } else {
    for (index_t k = 0; k < depth; ++k)
      for (index_t j = 0; j < step; ++j)
        to[k * step + j] = j < columns ? b.data[k * b.row_stride + j * b.col_stride] : T{0};
  }
}

}  // namespace detail
}  // namespace xla::kernel
