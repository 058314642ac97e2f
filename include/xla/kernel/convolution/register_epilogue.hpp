// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions whose epilogue runs on sums in registers (kernel/fused/register_epilogue.hpp): those
// of one pixel, and depthwise ones. xla::runtime instantiates them in register_epilogue.cpp; in
// programs of headers alone maps run on parts of the result instead, to save code.

#include <cstdint>
#include <type_traits>

#include "xla/kernel/convolution/algorithms.hpp"
#include "xla/kernel/fused/register_epilogue.hpp"

namespace xla::kernel {
namespace detail {

/// Rows of c whose elements pass through the maps, after the last block of k.
template <class T>
struct epilogue_rows : strided_rows<T> {
  const register_epilogue<T>* maps;
  index_t k, channel = 0;

  // A constructor, so that kernels that know strided rows alone do not take these for them.
  epilogue_rows(strided_rows<T> rows, const register_epilogue<T>& all, index_t depth,
                index_t first = 0)
      : strided_rows<T>(rows), maps(&all), k(depth), channel(first) {}
  epilogue_rows from(index_t row, index_t column) const {
    return {strided_rows<T>::from(row, column), *maps, k, channel + column};
  }

  /// While a tile is computed, what the maps read of it is prefetched, too: it is in short runs,
  /// which the hardware prefetcher does not anticipate.
  bool fetches() const { return strided_rows<T>::fetches() || maps->shortcut != nullptr; }
  void fetch(index_t i, index_t column) const {
    if (strided_rows<T>::fetches()) strided_rows<T>::fetch(i, column);
    if (const T* const other = maps->shortcut)
      XLA_PREFETCH(other + (this->row(i) + column - maps->result), 0, 3);
  }
  /// Stores a tile's sums, as micro_kernel() would, and runs the maps on them after the last block:
  /// k has at most two, so this is the second, or the first of all of k.
  template <int Rows, int Vectors>
  XLA_INLINE void finish(packet<T> (&sum)[Rows][Vectors], index_t depth, bool first) const {
    const epilogue_rows to = *this;
    const auto each = [&](auto f) XLA_INLINE_LAMBDA {
#pragma GCC unroll 24
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) f(sum[i][j], to.row(i) + j * lanes<T>);
    };
    if (!first)
      each([](packet<T>& s, const T* c)
               XLA_INLINE_LAMBDA { s = simd::padd(simd::ploadu<packet<T>>(c), s); });
    if (!first || depth == k)
      maps->template run<Rows, Vectors>(
          channel, [&](int i, int j) XLA_INLINE_LAMBDA -> packet<T>& { return sum[i][j]; },
          [&](int i) XLA_INLINE_LAMBDA { return to.row(i); });
    each([](const packet<T>& s, T* c) XLA_INLINE_LAMBDA { simd::pstoreu(c, s); });
  }
};

/// Columns of a depthwise result that pass through the maps.
template <class T>
struct epilogue_strip : column_strip<T> {
  const register_epilogue<T>* maps;

  template <int N>
  XLA_INLINE void write_columns(T* to, std::int64_t q, packet<T> (&sum)[N]) const {
    maps->template run<N, 1>(
        q, [&](int i, int) XLA_INLINE_LAMBDA -> packet<T>& { return sum[i]; },
        [&](int i) XLA_INLINE_LAMBDA { return to + i * this->channels; });
    column_strip<T>::write_columns(to, q, sum);
  }
};
template <class T>
struct epilogue_pass : small_groups_pass<T> {
  const register_epilogue<T>& maps;

  epilogue_strip<T> strip(const kernel_rows<T>& rows, std::int64_t first, std::int64_t next) const {
    return {small_groups_pass<T>::strip(rows, first, next), &maps};
  }
};

}  // namespace detail

/// Whether there is a kernel for such a convolution and these maps. It depends on sizes alone, not
/// on packed weights, which there are from the second call on.
template <class T>
bool conv_takes_maps(const conv_sizes& s, const register_epilogue<T>& maps) {
  using detail::index_t;
  constexpr index_t two_blocks = 2 * 2048 / element_size<T>;
  const index_t pixels = s.batch * s.out_height * s.out_width, results = pixels * s.out;
  if (results == 0 || s.out % lanes<T> != 0) return false;
  if (maps.shortcut && results * element_size<T> > own_memory<>) return false;
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups:
      return s.in == s.out && s.in == s.groups &&
             detail::with_strips<T, 1>(s, [](auto, auto) { return true; });
    case conv_algorithm::direct:
      return detail::is_product(s) && s.groups == 1 && s.in > 0 && s.in <= two_blocks &&
             pixels > detail::small_m<T>::rows && s.out > 1;
    default: return false;
  }
}

/// Writes all of y, the convolution of x after maps that it takes. The bits are those of
/// conv_forward() and the maps.
template <class T>
void conv_with_maps(const conv_sizes& s, const T* x, conv_weights<T> w, T* y,
                    const register_epilogue<T>& maps) {
  using namespace detail;
  if (algorithm_of<T>(s) == conv_algorithm::small_groups) {
    with_strips<T, 1>(s, [&](auto kernel, auto stride) {
      epilogue_pass<T> p{{s, false, x, nullptr, y}, maps};
      p.weights = packed_small_groups<1>(s, conv_direction::forward, w);
      by_strips<kernel, stride, 1>(p, s.padding[1]);
      return true;
    });
    return;
  }
  each_group(s, conv_direction::forward, w, only_offset, 1,
             [&](index_t, const group_weights<T>& g) {
               const epilogue_rows<T> to{strided_rows<T>{y, s.out}, maps, s.in};
               multiply_few_channels(s.batch * s.height * s.width, {x, s.in, 1}, g, to, nullptr);
             });
}

}  // namespace xla::kernel
