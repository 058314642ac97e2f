// SPDX-License-Identifier: Apache-2.0
#pragma once

// The algorithm `direct`, forward and for the input's gradient: products of the pixels under the
// taps and the weights, by one of several operands. The weight's gradient is in
// weight_gradient.hpp. algorithms.hpp chooses it; rounded.hpp passes products in bfloat16.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/col2im.hpp"
#include "xla/kernel/convolution/few_channels.hpp"
#include "xla/kernel/convolution/groups.hpp"
#include "xla/kernel/convolution/patches.hpp"
#include "xla/kernel/convolution/sizes.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/half_vector.hpp"
#include "xla/kernel/gemm/long_k.hpp"
#include "xla/kernel/gemm/tall.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

/// Memory for the lists of taps, reused from call to call.
struct tap_list {
  explicit tap_list(index_t most)
      : taps(static_cast<tap*>(
            thread_scratch<tap_list>(most * static_cast<index_t>(sizeof(tap) + sizeof(index_t))))),
        offsets(reinterpret_cast<index_t*>(taps + most)) {}
  void add(tap t, index_t offset) {
    taps[count] = t;
    offsets[count++] = offset;
  }
  tap* taps;
  index_t* offsets;  // of their weights
  index_t count = 0;
};

/// The number of pixels of a kernel's row that form one piece of k: the whole row if images have
/// few channels.
template <class T>
index_t joined_pixels(const conv_sizes& s) {
  const index_t taps = s.kernel[0] * s.kernel[1];
  const bool few = s.in < 16 && s.groups == 1 && s.dilation[1] == 1 && s.kernel[1] > 1;
  return few && channel_block<T>(taps, s.in) == s.in ? s.kernel[1] : 1;
}

/// A kernel of one pixel with stride 1 and no padding is a matrix product.
inline bool is_product(const conv_sizes& s) {
  return s.kernel[0] * s.kernel[1] == 1 && s.stride[0] * s.stride[1] == 1 && s.padding[0] == 0 &&
         s.padding[1] == 0 && s.out_height == s.height && s.out_width == s.width;
}

/// Represents a left operand where only its unit along k matters: the right operand is packed in
/// multiples of it.
struct cut_at {
  index_t unit;
  index_t grain() const { return unit; }
};

/// The weights of one group for some taps, as a matrix: rows are input channels, columns are output
/// channels.
template <class T>
struct group_weights {
  tap_weights<T> taps;
  index_t channels, columns;
  index_t grain = taps.count * channel_block<T>(taps.count, channels);

  /// The number of elements of their packed form.
  index_t size() const { return cut().depths * block_size(); }
  /// Of one block of k in it, and the channels of such a block.
  index_t block_size() const { return packed_block(cut(), columns); }
  index_t block_channels() const { return cut().depth / taps.count; }
  void pack(T* to) const {
    const auto p = cut();
    pack_panels(p, {0, columns}, {0, p.depths}, to);
  }

 private:
  auto cut() const {
    product<conv_tile<T>, cut_at, tap_weights<T>> p{0,       columns, taps.count * channels,
                                                    {grain}, taps,    {}};
    p.cut();
    return p;
  }
};

/// Calls f(group, its weights of these taps) for all groups. Packed weights of groups follow one
/// another, then those of the next taps.
template <class Products = plain_patch_products, class T, class F>
void each_group(const conv_sizes& s, conv_direction d, conv_weights<T>& w, const index_t* offsets,
                index_t taps, F f) {
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  group_weights<T> g =
      d == conv_direction::forward
          ? group_weights<T>{{w.data, w.in_stride, w.out_stride, offsets, taps}, in, out}
          : group_weights<T>{{w.data, w.out_stride, w.in_stride, offsets, taps}, out, in};
  if (is_product(s)) g.grain = strided_left<conv_tile<T>, matrix_view<T>>::grain();
  const index_t size = w.packed ? Products::size(g) : 0;
  for (index_t i = 0; i < s.groups; ++i) {
    g.taps.packed = w.packed;
    f(i, g);
    g.taps.data += out * w.out_stride;
    if (w.packed) w.packed += size;
  }
}

/// The pieces of an image that the taps read at one pixel; `pixel` elements from pixel to pixel.
template <class T>
tap_list forward_taps(const conv_sizes& s, index_t tap_stride, index_t pixel) {
  const index_t joined = joined_pixels<T>(s);
  tap_list pieces(s.taps());
  for (index_t t = 0; t < s.taps(); ++t) {
    pieces.offsets[t] = t * tap_stride;
    const index_t row = t / s.kernel[1] * s.dilation[0] - s.padding[0];
    const index_t column = t % s.kernel[1] * s.dilation[1] - s.padding[1];
    if (t % joined == 0) pieces.taps[t / joined] = {row, column, (row * s.width + column) * pixel};
  }
  return pieces;
}

/// Multiplies for all groups; `a` is the left operand of the first.
template <class Products, class T, class Result>
void multiply_groups(const conv_sizes& s, conv_direction d, conv_weights<T>& w, const patches<T>& a,
                     const index_t* offsets, index_t taps, index_t m, Result c,
                     const epilogue* after) {
  const bool together = s.groups > 1 && a.block == a.channels;
  each_group<Products>(s, d, w, offsets, taps, [&](index_t i, const group_weights<T>& g) {
    if (together) {
      const index_t step = s.out / s.groups * w.out_stride;
      if (i == 0)
        group_products<T, Result>{a, g.taps, step, s.groups, m, g.columns, c, after}.run();
      return;
    }
    patches<T> own = a;
    own.images += i * a.channels;
    Products::multiply(own, g.taps, m, g.columns, c.from(0, i * g.columns), after);
  });
}

/// The distance between pixels in memory. Those whole pages apart map to the same sets of a cache,
/// which hold fewer than a tile reads, so they are copied further apart. With 64 taps of 1024
/// channels, 128 pixels take 0.76 to 0.89 of the time on one thread, 0.58 to 0.88 on two (a Zen 4,
/// 2026-11-30). Groups read few channels of a pixel, and were slower.
template <class T>
index_t spread_pixel(const conv_sizes& s) {
  constexpr index_t page = 4096 / element_size<T>;
  const bool spread = s.in % page == 0 && s.taps() > 1 && s.groups == 1;
  return s.in + (spread ? line_of<T> : 0);
}
template <class T>
void spread_pixels(const conv_sizes& s, const T* x, T* to) {
  const index_t pixel = spread_pixel<T>(s);
  for_ranges(s.batch * s.height * s.width, s.in, [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i) std::copy_n(x + i * s.in, s.in, to + i * pixel);
  });
}

/// These pieces at the pixels that contribute to the result.
template <class T>
patches<T> forward_patches(const conv_sizes& s, const T* x, const tap_list& pieces, index_t pixel) {
  const index_t joined = joined_pixels<T>(s);
  return {.images = x,
          .height = s.height,
          .width = s.width,
          .pixel = pixel,
          .rows = s.out_height,
          .columns = s.out_width,
          .step_y = s.stride[0],
          .step_x = s.stride[1],
          .taps = pieces.taps,
          .count = s.taps() / joined,
          .channels = joined * s.in / s.groups,
          .joined = joined};
}

template <class Products = plain_patch_products, class T>
void forward_directly(const conv_sizes& s, const T* x, conv_weights<T> w, T* y,
                      const epilogue* after) {
  const index_t pixel = spread_pixel<T>(s);
  ::xla::detail::working_memory memory;
  if (pixel != s.in) {
    const index_t bytes = s.batch * s.height * s.width * pixel * element_size<T>;
    T* const spread = static_cast<T*>(memory.take(static_cast<std::size_t>(bytes)));
    spread_pixels(s, x, spread);
    x = spread;
  }
  const tap_list pieces = forward_taps<T>(s, w.tap_stride, pixel);
  // While a tile of few channels is computed, the result of the next tile is prefetched, because
  // memory is slower than the product: 3x3, 3 -> 64, 224 x 224 is 15 % faster.
  const index_t ahead = joined_pixels<T>(s) > 1 ? conv_tile<T>::rows * s.out : 0;
  multiply_groups<Products>(s, conv_direction::forward, w, forward_patches(s, x, pieces, pixel),
                            pieces.offsets, s.taps(), s.batch * s.out_height * s.out_width,
                            strided_rows<T>{y, s.out, ahead}, after);
}

/// The gradient at those input pixels whose position has one remainder modulo the stride. For such
/// a phase the taps read neighbouring result pixels, so that it is a convolution of stride 1.
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

  /// The positions of the pixels.
  void find_pixels(T* dx, T** to) const {
    for (index_t line = 0; line < s.batch * rows; ++line) {
      const index_t row = line / rows * s.height + line % rows * s.stride[0] + y;
      T* at = dx + (row * s.width + x) * s.in;
      for (index_t i = 0; i < columns; ++i, at += s.stride[1] * s.in) *to++ = at;
    }
  }
};

/// Computes `columns` channels of dx, beginning with the first channel of w.
template <class Products, class T, class Result>
void input_gradient_directly(const phase<T>& p, const T* dy, conv_weights<T>& w, index_t columns,
                             Result dx, const epilogue* after) {
  conv_sizes s = p.s;
  s.in = columns;
  const patches<T> a{.images = dy,
                     .height = s.out_height,
                     .width = s.out_width,
                     .pixel = s.out,
                     .rows = p.rows,
                     .columns = p.columns,
                     .step_y = 1,
                     .step_x = 1,
                     .taps = p.seen.taps,
                     .count = p.seen.count,
                     .channels = s.out / s.groups,
                     .joined = 1};
  multiply_groups<Products>(s, conv_direction::input_gradient, w, a, p.seen.offsets, p.seen.count,
                            p.pixels(), dx, after);
}

/// Calls f(phase) for all phases with pixels.
template <class T, class F>
void each_phase(const conv_sizes& s, index_t tap_stride, F f) {
  for (index_t i = 0; i < s.stride[0] * s.stride[1]; ++i) {
    phase<T> p{s, i / s.stride[1], i % s.stride[1]};
    if (p.rows <= 0 || p.columns <= 0) continue;
    p.find_taps(tap_stride);
    f(p);
  }
}

inline constexpr index_t only_offset[] = {0};

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int rows_of_tall = 24;
#else
inline constexpr int rows_of_tall = 12;
#endif

/// Small products in gemm()'s order of summation, by tiles of their own. Measured on a Zen 5:
/// prefetching cached data takes a tenth of the time of a product of few channels; without
/// prefetching, data from memory takes 1.4 times as long. The result is prefetched one tile ahead.
template <class T, class Result = strided_rows<T>>
struct pixel_product {
  index_t m, n, k;
  matrix_view<T> a, b;
  Result c;
  const epilogue* after;
  bool far = m * (n + k) * element_size<T> > near_memory<>;

  template <class Tile>
  void by() const {
    // For so few channels, finding the next lines costs more than waiting for them.
    run<Tile>(strided_left<Tile, matrix_view<T>>{a, far && k > lanes<T>});
  }
  /// By a tile of many rows.
  template <class Tile>
  void by_tall() const {
    if (far && a.row_stride == k) run<Tile>(tall_left<T, true>{a.data, k});
    else run<Tile>(tall_left<T, false>{a.data, a.row_stride});
  }

 private:
  template <class Tile, class Left>
  void run(Left left) const {
    Result to = c;
    to.ahead = far ? Tile::rows * c.step : c.nothing;
    multiply(product<Tile, Left, strided_right<Tile, matrix_view<T>>, Result>{
        m, n, k, left, {b}, to, after});
  }
};

/// Whether such a product of a group is one of packed weights, or of few channels and many pixels.
template <class T>
bool has_few_channels(index_t m, const group_weights<T>& w) {
  return w.taps.packed || (m > 64 && w.columns > 1 && w.channels <= longest_piece<T>);
}
/// Then this is c(m, columns) of rows of a.
template <class T, class Result>
void multiply_few_channels(index_t m, matrix_view<T> a, const group_weights<T>& w, Result c,
                           const epilogue* after) {
  const tap_weights<T>& b = w.taps;
  const index_t n = w.columns, k = w.channels;
  constexpr index_t width = lanes<T>;
  using left = strided_left<conv_tile<T>, matrix_view<T>>;
  if (b.packed)
    return multiply(product<conv_tile<T>, left, tap_weights<T>, Result>{m, n, k, {a}, b, c, after});
  const pixel_product<T, Result> p{m, n, k, a, {b.data, b.step, b.column}, c, after};
  if constexpr (has_half_vectors<T>) {
    const bool split = splits_vectors<>;
    if (n == width + width / 2)
      return split ? p.template by_tall<half_tile<T, 12, 2, false>>()
                   : p.template by_tall<half_tile<T, 16, 2>>();
    if (n % width == width / 2 && n > width)
      return split ? p.template by_tall<half_tile<T, 8, 3, false>>()
                   : p.template by_tall<half_tile<T, 8, 3>>();
  }
  if (n <= width) return p.template by_tall<tall_tile<T, rows_of_tall>>();
  if ((n + width - 1) / width % 2 == 0) return p.template by<tile<T, tile_rows, 2>>();
  p.template by<tile<T>>();
}

/// The same in all cases.
template <class T>
void multiply_pixels(index_t m, matrix_view<T> a, const group_weights<T>& w, strided_rows<T> c,
                     const epilogue* after) {
  const tap_weights<T>& b = w.taps;
  if (has_few_channels(m, w)) return multiply_few_channels(m, a, w, c, after);
  gemm<T>(m, w.columns, w.channels, a, {b.data, b.step, b.column}, c.data, c.step, after);
}

/// Calls f(weights) for each product of a direction.
template <class Products, class T, class F>
void each_weights(const conv_sizes& s, conv_direction d, conv_weights<T> w, F f) {
  const auto one = [&](index_t, const group_weights<T>& g) { f(g); };
  if (is_product(s)) {
    each_group<Products>(s, d, w, only_offset, 1, one);
  } else if (d == conv_direction::forward) {
    const tap_list pieces = forward_taps<T>(s, w.tap_stride, s.in);
    each_group<Products>(s, d, w, pieces.offsets, s.taps(), one);
  } else {
    each_phase<T>(s, w.tap_stride, [&](const phase<T>& p) {
      if (p.seen.count > 0) each_group<Products>(s, d, w, p.seen.offsets, p.seen.count, one);
    });
  }
}

template <class T>
void direct_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y,
                    const epilogue* after) {
  const auto d = conv_direction::forward;
  if (is_product(s))
    return each_group(s, d, w, only_offset, 1, [&](index_t i, const group_weights<T>& g) {
      multiply_pixels<T>(s.batch * s.height * s.width, {x + i * g.channels, s.in, 1}, g,
                         {y + i * g.columns, s.out}, after);
    });
  if (!few_channels<T>::take(s, joined_pixels<T>(s))) return forward_directly(s, x, w, y, after);
  each_weights<plain_patch_products, T>(s, d, w, [&](const group_weights<T>& g) {
    ::xla::detail::working_memory memory;
    const T* packed = g.taps.packed;
    if (packed == nullptr) {
      const auto bytes = static_cast<std::size_t>(g.size()) * sizeof(T);
      T* const to = static_cast<T*>(memory.take(bytes));
      g.pack(to);
      packed = to;
    }
    few_channels<T>{s, x, packed, y}.write(after);
  });
}

/// The number of channels of x that all phases compute before the next ones. With few pixels there
/// are enough for the weights to be read from memory once: 512 -> 512, 14 x 14, batch 1 takes 4.4
/// instead of 5.3 ms; batch 8 takes 5 % longer.
template <class T>
index_t channels_of_phases(const conv_sizes& s, bool packed) {
  constexpr index_t bytes = 1 << 20, wide = conv_tile<T>::columns, pixels = 512;
  if (s.groups > 1 || packed || s.batch * s.height * s.width > pixels) return s.in;
  const index_t column = s.out * s.taps() * element_size<T>;
  return std::max(bytes / column / wide, index_t{1}) * wide;
}

/// This many channels of dx, beginning with the first one that it and w have.
template <class Products, class T>
void gradient_by_phases(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx,
                        index_t columns) {
  each_phase<T>(s, w.tap_stride, [&](const phase<T>& p) {
    ::xla::detail::working_memory memory;
    T** const to = static_cast<T**>(memory.take(static_cast<std::size_t>(p.pixels()) * sizeof(T*)));
    p.find_pixels(dx, to);
    if (p.seen.count == 0)  // no tap reaches these pixels
      for (index_t j = 0; j < p.pixels(); ++j) std::fill_n(to[j], columns, T{0});
    else input_gradient_directly<Products>(p, dy, w, columns, pointer_rows<T>{to, 0}, nullptr);
  });
}

// A product of few pixels is too short to share, so each thread computes channels of its own.
template <class Products, class T>
void gradient_by_phases(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx) {
  const index_t some = channels_of_phases<T>(s, w.packed != nullptr);
  parallel_for((s.in + some - 1) / some, [&](index_t part) {
    const index_t first = part * some;
    conv_weights<T> own = w;
    own.data += first * w.in_stride;
    gradient_by_phases<Products>(s, dy, own, dx + first, std::min(some, s.in - first));
  });
}

/// By products of patches.
template <class Products = plain_patch_products, class T>
void input_gradient_directly(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx,
                             const epilogue* after) {
  if (s.stride[0] * s.stride[1] > 1) return gradient_by_phases<Products>(s, dy, w, dx);
  each_phase<T>(s, w.tap_stride, [&](const phase<T>& p) {
    input_gradient_directly<Products>(p, dy, w, s.in, strided_rows<T>{dx, s.in}, after);
  });
}

template <class T>
void direct_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx,
                           const epilogue* after) {
  const auto d = conv_direction::input_gradient;
  if (is_product(s))
    return each_group(s, d, w, only_offset, 1, [&](index_t i, const group_weights<T>& g) {
      multiply_pixels<T>(s.batch * s.height * s.width, {dy + i * g.channels, s.out, 1}, g,
                         {dx + i * g.columns, s.in}, after);
    });
  if (col2im_pays<T>(s)) return col2im<T>(s).write(dy, w.data, dx, &gemm<T>);
  input_gradient_directly(s, dy, w, dx, after);
}

/// With more pixels, packing takes a small part of the time, and caching the packed form is not
/// worth its memory.
constexpr index_t max_pixels = 256;

/// See conv_packs(). Products of small m or of one column read the weights in place, in their own
/// order of summation.
template <class T>
bool packs_directly(const conv_sizes& s, conv_direction d) {
  const bool forward = d == conv_direction::forward;
  const index_t pixels = s.batch * (forward ? s.out_height * s.out_width : s.height * s.width);
  const index_t columns = (forward ? s.out : s.in) / s.groups;
  const index_t channels = (forward ? s.in : s.out) / s.groups;
  if (is_product(s))
    return pixels <= max_pixels && pixels > small_m<T>::rows && columns > 1 &&
           channels <= longest_piece<T>;
  return pixels <= max_pixels && (forward || !col2im_pays<T>(s));
}

/// See conv_pack().
template <class T, class Products = plain_patch_products>
index_t direct_packed_size(const conv_sizes& s, conv_direction d) {
  index_t sum = 0;
  each_weights<Products, T>(s, d, {}, [&](const group_weights<T>& g) { sum += Products::size(g); });
  return sum;
}
template <class Products = plain_patch_products, class T>
void direct_pack(const conv_sizes& s, conv_direction d, conv_weights<T> w, T* to) {
  each_weights<Products, T>(s, d, w, [&](const group_weights<T>& g) {
    Products::pack(g, to);
    to += Products::size(g);
  });
}

}  // namespace xla::kernel::detail
