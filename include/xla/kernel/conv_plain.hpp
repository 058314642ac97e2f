// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <xla/kernel/conv_sizes.hpp>
#include <xla/kernel/gemm_long.hpp>
#include <xla/kernel/loops.hpp>
#include <xla/tensor/working_memory.hpp>

// Convolutions of all sizes: products whose left operand is what taps see, through pointers.

namespace xla::kernel {
namespace detail {

/// A weight as the right operand of a product for some columns: k goes over the taps, and within
/// each over the channels of a group.
template <class T>
struct conv_right {
  const T* data;
  index_t channels, k_stride, column_stride, tap_stride;

  void pack(T* to, index_t k, index_t column, index_t depth, index_t columns) const {
    const index_t wide = round_up(columns, lanes<T>);
    for (index_t q = k; q < k + depth; ++q) {
      const T* from = data + q / channels * tap_stride + q % channels * k_stride;
      for (index_t j = 0; j < wide; ++j)
        *to++ = j < columns ? from[(column + j) * column_stride] : T{0};
    }
  }
};

/// Pixels of an image, channels innermost.
template <class T>
struct conv_image {
  T* data;
  index_t height, width, channels;
};

/// The place of x that a tap sees at a place of y, along one axis; -1: none.
template <class = void>
inline index_t place_in_x(const conv_sizes& s, int axis, index_t y, index_t tap) {
  const index_t at = y * s.stride[axis] - s.padding[axis] + tap * s.dilation[axis];
  return at < (axis == 0 ? s.height : s.width) ? std::max<index_t>(at, -1) : -1;
}
/// The place of y at which a tap sees a place of x, along one axis; -1: none.
template <class = void>
inline index_t place_in_y(const conv_sizes& s, int axis, index_t x, index_t tap) {
  const index_t at = x + s.padding[axis] - tap * s.dilation[axis];
  if (at < 0 || at % s.stride[axis] != 0) return -1;
  const index_t place = at / s.stride[axis];
  return place < (axis == 0 ? s.out_height : s.out_width) ? place : -1;
}

/// For each tap, where the pixels [first, first + count) of one image find what they see in
/// another: place(axis, coordinate, tap) says where that is.
template <class T, class Place>
void find_taps(const conv_sizes& s, conv_image<const T> from, conv_image<T> to, index_t first,
               index_t count, const T* zeros, const T** rows, const Place& place) {
  for (index_t t = 0; t < s.taps(); ++t)
    for (index_t i = first; i < first + count; ++i) {
      const index_t y = place(0, i / to.width % to.height, t / s.kernel[1]);
      const index_t x = place(1, i % to.width, t % s.kernel[1]);
      const index_t image = i / to.width / to.height;
      *rows++ = y < 0 || x < 0
                    ? zeros
                    : from.data + ((image * from.height + y) * from.width + x) * from.channels;
    }
}

/// Each pixel of `to` from the pixels of `from` that place() names, by the weight's right operand
/// for the first group.
template <class T, class Place>
void multiply_taps(const conv_sizes& s, conv_image<const T> from, conv_image<T> to,
                   conv_right<T> weight, index_t group_stride, const Place& place) {
  const index_t pixels = s.batch * to.height * to.width, taps = s.taps();
  const index_t columns = to.channels / s.groups;
  if (pixels * columns == 0) return;
  if (taps * weight.channels == 0) return void(std::fill_n(to.data, pixels * to.channels, T{0}));
  const index_t chunk = std::clamp<index_t>((1 << 15) / taps, 64, 1024);
  parallel_for((pixels + chunk - 1) / chunk * s.groups, [&](index_t i) {
    const index_t group = i % s.groups, first = i / s.groups * chunk;
    const index_t count = std::min(chunk, pixels - first);
    struct tap_pointers;
    const index_t pointers = taps * count * static_cast<index_t>(sizeof(const T*));
    void* const memory =
        thread_scratch<tap_pointers>(pointers + weight.channels * static_cast<index_t>(sizeof(T)));
    const T** const rows = static_cast<const T**>(memory);
    T* const zeros = reinterpret_cast<T*>(static_cast<char*>(memory) + pointers);
    std::fill_n(zeros, weight.channels, T{0});
    auto image = from;
    image.data += group * weight.channels;
    find_taps(s, image, to, first, count, zeros, rows, place);
    auto right = weight;
    right.data += group * group_stride;
    multiply(product<tile<T>, pointer_left<T>, conv_right<T>>{
        count,
        columns,
        taps * weight.channels,
        {rows, count, weight.channels},
        right,
        {to.data + first * to.channels + group * columns, to.channels}});
  });
}

/// What a tap sees of some channels at every pixel of y, side by side.
template <class T>
void gather_tap(const conv_sizes& s, const T* x, index_t channels, index_t tap, T* to) {
  for (index_t i = 0; i < s.batch * s.out_height * s.out_width; ++i, to += channels) {
    const index_t row = place_in_x(s, 0, i / s.out_width % s.out_height, tap / s.kernel[1]);
    const index_t column = place_in_x(s, 1, i % s.out_width, tap % s.kernel[1]);
    if (row < 0 || column < 0) {
      std::fill_n(to, channels, T{0});
      continue;
    }
    const index_t image = i / s.out_width / s.out_height;
    std::copy_n(x + ((image * s.height + row) * s.width + column) * s.in, channels, to);
  }
}

template <class T>
void plain_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y) {
  multiply_taps<T>(s, {x, s.height, s.width, s.in}, {y, s.out_height, s.out_width, s.out},
                   {w.data, s.in / s.groups, w.in_stride, w.out_stride, w.tap_stride},
                   s.out / s.groups * w.out_stride,
                   [&](int axis, index_t at, index_t tap) { return place_in_x(s, axis, at, tap); });
}

template <class T>
void plain_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx) {
  multiply_taps<T>(s, {dy, s.out_height, s.out_width, s.out}, {dx, s.height, s.width, s.in},
                   {w.data, s.out / s.groups, w.out_stride, w.in_stride, w.tap_stride},
                   s.out / s.groups * w.out_stride,
                   [&](int axis, index_t at, index_t tap) { return place_in_y(s, axis, at, tap); });
}

template <class T>
void plain_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw) {
  const index_t pixels = s.batch * s.out_height * s.out_width, taps = s.taps();
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  parallel_for(s.groups * taps, [&](index_t i) {
    const index_t group = i / taps, tap = i % taps;
    ::xla::detail::working_memory memory;
    T* const seen =
        static_cast<T*>(memory.take(static_cast<std::size_t>((pixels + out) * in) * sizeof(T)));
    T* const sums = seen + pixels * in;
    gather_tap(s, x + group * in, in, tap, seen);
    gemm<T>(out, in, pixels, {dy + group * out, 1, s.out}, {seen, in, 1}, sums, in);
    T* const to = dw + group * out * in * taps + tap;
    for (index_t k = 0; k < out * in; ++k) to[k * taps] = sums[k];
  });
}

}  // namespace detail
}  // namespace xla::kernel
