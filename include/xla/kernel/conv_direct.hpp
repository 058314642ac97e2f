// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <xla/kernel/conv_patches.hpp>
#include <xla/kernel/conv_sizes.hpp>
#include <xla/kernel/gemm_long.hpp>
#include <xla/kernel/loops.hpp>
#include <xla/tensor/working_memory.hpp>

namespace xla::kernel::detail {

/// Memory for what lists of taps hold, kept from call to call.
struct tap_list {
  explicit tap_list(index_t most)
      : taps(static_cast<tap*>(
            thread_scratch<tap_list>(most * static_cast<index_t>(sizeof(tap) + sizeof(index_t))))),
        places(reinterpret_cast<index_t*>(taps + most)) {}
  void add(tap t, index_t place) {
    taps[count] = t;
    places[count++] = place;
  }
  tap* taps;
  index_t* places;  // of their weights
  index_t count = 0;
};

/// How many pixels of a kernel's row are seen as one piece: all where they have few channels.
template <class T>
index_t joined_pixels(const conv_sizes& s) {
  const index_t taps = s.kernel[0] * s.kernel[1];
  const bool few = s.in < 16 && s.groups == 1 && s.dilation[1] == 1 && s.kernel[1] > 1;
  return few && channel_block<T>(taps, s.in) == s.in ? s.kernel[1] : 1;
}

template <class T, class Result>
void multiply_patches(const patches<T>& a, const tap_weights<T>& b, index_t m, index_t n,
                      Result c) {
  multiply(product<conv_tile<T>, patches<T>, tap_weights<T>, Result>{m, n, a.count * a.channels, a,
                                                                     b, c});
}

/// The forward product of one group.
template <class T>
void forward_directly(const conv_sizes& s, const T* x, conv_weights<T> w, T* y, index_t group) {
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  const index_t joined = joined_pixels<T>(s), taps = s.kernel[0] * s.kernel[1];
  tap_list pieces(taps);
  index_t* const places = pieces.places;
  for (index_t t = 0; t < taps; ++t) {
    places[t] = t * w.tap_stride;
    const index_t row = t / s.kernel[1] * s.dilation[0] - s.padding[0];
    const index_t column = t % s.kernel[1] * s.dilation[1] - s.padding[1];
    if (t % joined == 0) pieces.taps[t / joined] = {row, column, (row * s.width + column) * s.in};
  }
  multiply_patches<T>(
      {.images = x + group * in,
       .height = s.height,
       .width = s.width,
       .pixel = s.in,
       .rows = s.out_height,
       .columns = s.out_width,
       .step_y = s.stride[0],
       .step_x = s.stride[1],
       .taps = pieces.taps,
       .count = taps / joined,
       .channels = joined * in,
       .joined = joined},
      {w.data + group * out * w.out_stride, w.in_stride, w.out_stride, places, taps},
      s.batch * s.out_height * s.out_width, out, strided_rows<T>{y + group * out, s.out});
}

/// The input's gradient at the pixels whose places have one remainder, a phase, divided by the
/// stride: what a tap sees then lies on the grid of the results.
template <class T>
struct phase {
  const conv_sizes& s;
  index_t y, x;
  tap_list seen{s.kernel[0] * s.kernel[1]};
  index_t rows = (s.height - y + s.stride[0] - 1) / s.stride[0];
  index_t columns = (s.width - x + s.stride[1] - 1) / s.stride[1];

  void find_taps(index_t tap_stride) {
    for (index_t ky = 0; ky < s.kernel[0]; ++ky)
      for (index_t kx = 0; kx < s.kernel[1]; ++kx) {
        const index_t up = y + s.padding[0] - ky * s.dilation[0];
        const index_t left = x + s.padding[1] - kx * s.dilation[1];
        if (up % s.stride[0] != 0 || left % s.stride[1] != 0) continue;
        const index_t row = up / s.stride[0], column = left / s.stride[1];
        seen.add({row, column, (row * s.out_width + column) * s.out},
                 (ky * s.kernel[1] + kx) * tap_stride);
      }
  }
  index_t pixels() const { return s.batch * rows * columns; }
  bool whole() const { return s.stride[0] == 1 && s.stride[1] == 1; }

  /// Where the pixels are.
  void find_pixels(T* dx, T** to) const {
    for (index_t line = 0; line < s.batch * rows; ++line) {
      const index_t row = line / rows * s.height + line % rows * s.stride[0] + y;
      T* at = dx + (row * s.width + x) * s.in;
      for (index_t i = 0; i < columns; ++i, at += s.stride[1] * s.in) *to++ = at;
    }
  }
};

template <class T>
void input_gradient_directly(const phase<T>& p, const T* dy, conv_weights<T> w, T* dx,
                             T* const* pixels, index_t group) {
  const conv_sizes& s = p.s;
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  const patches<T> a{.images = dy + group * out,
                     .height = s.out_height,
                     .width = s.out_width,
                     .pixel = s.out,
                     .rows = p.rows,
                     .columns = p.columns,
                     .step_y = 1,
                     .step_x = 1,
                     .taps = p.seen.taps,
                     .count = p.seen.count,
                     .channels = out,
                     .joined = 1};
  const tap_weights<T> b{w.data + group * out * w.out_stride, w.out_stride, w.in_stride,
                         p.seen.places, p.seen.count};
  if (p.whole()) multiply_patches<T>(a, b, p.pixels(), in, strided_rows<T>{dx + group * in, s.in});
  else multiply_patches<T>(a, b, p.pixels(), in, pointer_rows<T>{pixels, group * in});
}

/// A kernel of one pixel that looks at every pixel is a product of matrices.
inline bool is_product(const conv_sizes& s) {
  return s.kernel[0] * s.kernel[1] == 1 && s.stride[0] * s.stride[1] == 1 && s.padding[0] == 0 &&
         s.padding[1] == 0 && s.out_height == s.height && s.out_width == s.width;
}

template <class T>
void direct_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y) {
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  const index_t pixels = s.batch * s.out_height * s.out_width;
  for (index_t g = 0; g < s.groups; ++g)
    if (is_product(s))
      gemm<T>(pixels, out, in, {x + g * in, s.in, 1},
              {w.data + g * out * w.out_stride, w.in_stride, w.out_stride}, y + g * out, s.out);
    else forward_directly(s, x, w, y, g);
}

template <class T>
void direct_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx) {
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  if (is_product(s)) {
    for (index_t g = 0; g < s.groups; ++g)
      gemm<T>(s.batch * s.height * s.width, in, out, {dy + g * out, s.out, 1},
              {w.data + g * out * w.out_stride, w.out_stride, w.in_stride}, dx + g * in, s.in);
    return;
  }
  for (index_t i = 0; i < s.stride[0] * s.stride[1]; ++i) {
    phase<T> p{s, i / s.stride[1], i % s.stride[1]};
    if (p.rows <= 0 || p.columns <= 0) continue;
    p.find_taps(w.tap_stride);
    ::xla::detail::working_memory memory;
    T** to = nullptr;
    if (!p.whole() || p.seen.count == 0) {
      to = static_cast<T**>(memory.take(static_cast<std::size_t>(p.pixels()) * sizeof(T*)));
      p.find_pixels(dx, to);
    }
    if (p.seen.count == 0)  // no tap falls there
      for (index_t j = 0; j < p.pixels(); ++j) std::fill_n(to[j], s.in, T{0});
    else
      for (index_t g = 0; g < s.groups; ++g) input_gradient_directly(p, dy, w, dx, to, g);
  }
}

}  // namespace xla::kernel::detail
