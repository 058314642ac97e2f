// SPDX-License-Identifier: Apache-2.0
#pragma once

// Direct convolutions by `dot`: operands that round the pixels under the taps, and the
// weights, while they pack them as pairs along k. rounded.hpp chooses it where bfloat16_products()
// says `dot`.

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/bfloat16.hpp"
#if XLA_HAS_DOT

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "xla/kernel/convolution/weight_gradient.hpp"

namespace xla::kernel::detail {

/// Copies n elements of a line to `to`, reading those from `begin` to below `end` and writing 0 for
/// the others. `to` has room for whole vectors.
XLA_DOT_CODE inline void copy_seen(const float* from, index_t begin, index_t end, index_t n,
                                   float* to) {
  index_t j = 0;
  if (begin <= 0)
    for (; j + 16 <= std::min(n, end); j += 16) bf16::store(to + j, bf16::load(from + j));
  for (; j < n; j += 16) {
    const auto lanes =
        static_cast<bf16::mask16>(bf16::first_16(end - j) & ~bf16::first_16(begin - j));
    bf16::store(to + j, bf16::load(from + j, lanes));
  }
}

/// A run of a pixel's row: channels from `channel` on under one tap, `at` elements after the begin
/// of the row.
struct seen_run {
  tap where;
  index_t channel, count, at;
};

/// A pixel of the grid and its position in an image.
struct seen_pixel {
  patches<float>::position position;
  const float* data;

  static seen_pixel of(const patches<float>& p, const patches<float>::position& at) {
    return {at, p.images + p.index_of(at)};
  }
  /// The address of a run if all of it is inside the image, else nullptr.
  const float* inside(const patches<float>& p, const seen_run& run) const {
    const index_t y = position.y + run.where.y, x = position.x + run.where.x;
    const bool all = y >= 0 && y < p.height && x >= 0 && x + p.joined <= p.width;
    return all ? data + run.where.offset + run.channel : nullptr;
  }
  void copy(const patches<float>& p, const seen_run& run, float* to) const {
    const index_t y = position.y + run.where.y, x = position.x + run.where.x;
    const bool line = y >= 0 && y < p.height;
    const index_t begin = line ? -x * p.pixel - run.channel : 0;
    const index_t end = line ? (p.width - x) * p.pixel - run.channel : 0;
    copy_seen(data + run.where.offset + run.channel, begin, end, run.count, to + run.at);
  }
};

/// Patches as a left operand. k counts pairs of channels within a block, tap by tap.
struct dot_patches {
  explicit dot_patches(const patches<float>& p) : seen(p) {
    if (seen.block < seen.channels) seen.block = round_up(seen.block, 2);
  }
  patches<float> seen;
  index_t k() const { return seen.count * seen.channels; }

  static constexpr index_t some = 16;    // rows whose elements are gathered together
  static constexpr index_t strip = 256;  // elements of k that are contiguous before they are packed
  static constexpr index_t line = strip + 16;

  void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
            index_t pairs) const {
    constexpr index_t unit = bfloat16_tile::rows;
    if (long_runs()) return pack_runs(to, next, row, pair, rows, pairs);
    each_strip(row, pair, rows, pairs,
               [&](const float* lines, index_t i, index_t j, index_t count, index_t n) {
                 pack_long_lines(stepped_lines<float>{lines, line}, count, n,
                                 to + i / unit * next + j / 2 * unit, next, unit, rows - i > unit);
               });
  }
  /// Calls f(lines, i, j, count, n) for all strips: n elements of k from j on, of `count` rows from
  /// i on.
  template <class F>
  void each_strip(index_t row, index_t pair, index_t rows, index_t pairs, F f) const {
    alignas(64) float lines[some][line];
    const index_t first = 2 * pair, end = std::min(first + 2 * pairs, k());
    each_rows(row, rows, [&](const seen_pixel* pixels, index_t i, index_t count) {
      for (index_t j = first; j < end; j += strip) {
        const index_t n = std::min(strip, end - j);
        each_run(j, n, [&](const seen_run& run) {
          for (index_t q = 0; q < count; ++q) pixels[q].copy(seen, run, lines[q]);
        });
        f(&lines[0][0], i, j - first, count, n);
      }
    });
  }
  upcoming<float> ahead(range rows, range ks, index_t shares) const {
    return seen.ahead(rows, {2 * ks.begin, std::min(2 * ks.end, k())}, shares);
  }
  index_t grain() const { return pairs_of(seen.count * std::min(seen.block, seen.channels)); }

 private:
  /// Whether runs consist of whole vectors of pairs, which are packed in place.
  bool long_runs() const {
    return seen.joined == 1 && seen.channels % 32 == 0 && seen.block % 32 == 0;
  }
  void pack_runs(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
                 index_t pairs) const {
    constexpr index_t unit = bfloat16_tile::rows;
    const index_t first = 2 * pair, n = std::min(2 * pairs, k() - first);
    each_rows(row, rows, [&](const seen_pixel* pixels, index_t i, index_t count) {
      each_run(first, n, [&](const seen_run& run) {
        const float* from[some];
        for (index_t q = 0; q < count; ++q) {
          const float* const p = pixels[q].inside(seen, run);
          from[q] = p ? p : zero_row<float>;
        }
        pack_long_lines(from, count, run.count, to + i / unit * next + run.at / 2 * unit, next,
                        unit, rows - i > unit);
      });
    });
  }
  /// Calls f(pixels, i, count) for groups of rows, from i on.
  template <class F>
  void each_rows(index_t row, index_t rows, F f) const {
    patches<float>::position at = seen.position_of(row);
    for (index_t i = 0; i < rows; i += some) {
      const index_t count = std::min(some, rows - i);
      seen_pixel pixels[some];
      for (index_t q = 0; q < count; ++q, seen.go_on(at)) pixels[q] = seen_pixel::of(seen, at);
      f(pixels, i, count);
    }
  }
  /// Calls f for the runs of n elements of k.
  template <class F>
  void each_run(index_t begin, index_t n, F f) const {
    const index_t block = begin / (seen.count * seen.block);
    index_t channel = block * seen.block;
    index_t wide = std::min(seen.block, seen.channels - channel);
    const index_t within = begin - seen.count * channel;
    index_t t = within / wide, c = within % wide;
    for (index_t at = 0; at < n;) {
      const index_t count = std::min(wide - c, n - at);
      f(seen_run{seen.taps[t], channel + c, count, at});
      at += count;
      c = 0;
      if (++t < seen.count) continue;
      t = 0;
      channel += wide;
      wide = std::min(seen.block, seen.channels - channel);
    }
  }
};

/// Weights of taps as a right operand, in the same order.
struct dot_taps {
  tap_weights<float> taps;
  index_t k;

  void pack(bfloat16_pair* to, index_t pair, index_t column, index_t pairs, index_t columns) const {
    const index_t depth = std::min(2 * pairs, k - 2 * pair), wide = round_up(columns, 16);
    const index_t step = round_up(columns, lanes<float>);
    float* const rows = static_cast<float*>(
        thread_scratch<dot_taps>(depth * step * static_cast<index_t>(sizeof(float))));
    taps.pack(rows, 2 * pair, column, depth, columns);
    pack_near_lines(rows, step, columns, depth, {to, 8, wide, wide / 8});
  }
};

/// Takes the place of plain_patch_products.
struct dot_patch_products {
  template <class Result>
  static void multiply(const patches<float>& a, const tap_weights<float>& b, index_t m, index_t n,
                       Result c, const epilogue* after) {
    const index_t k = a.count * a.channels;
    product<bfloat16_tile, dot_patches, dot_taps, Result> p{m,      n, pairs_of(k), dot_patches(a),
                                                            {b, k}, c, after};
    if (!b.packed) return detail::multiply(std::move(p));
    p.cut();
    p.micro_panels = pack_micro_panels(p);
    const index_t chunks = std::clamp<index_t>(m * n * p.k / chunk_work, 1, 16 * num_threads());
    multiply_packed(p, {0, n}, {0, p.depths}, reinterpret_cast<const bfloat16_pair*>(b.packed),
                    num_threads() == 1 ? 1 : chunks);
  }

  static void weight_gradient(const conv_sizes& s, const float* x, const float* dy, float* dw);

  static index_t size(const group_weights<float>& w) {
    const auto p = product_of(w);
    return p.depths * packed_block(p, w.columns);
  }
  static void pack(const group_weights<float>& w, float* to) {
    const auto p = product_of(w);
    pack_panels(p, {0, w.columns}, {0, p.depths}, reinterpret_cast<bfloat16_pair*>(to));
  }

 private:
  using weights_product = product<bfloat16_tile, cut_at, dot_taps>;
  static weights_product product_of(const group_weights<float>& w) {
    const index_t taps = w.taps.count, k = taps * w.channels;
    const index_t block = channel_block<float>(taps, w.channels);
    const index_t even = block < w.channels ? round_up(block, 2) : block;
    weights_product p{0, w.columns, pairs_of(k), {pairs_of(taps * even)}, {w.taps, k}, {}};
    p.cut();
    return p;
  }
};

/// The pixels under the taps, transposed, as a left operand: rows are channels of taps, k is pixels
/// from `first` on.
struct dot_seen {
  patches<float> seen;
  index_t first, pixels;

  XLA_DOT_CODE void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
                         index_t pairs) const {
    constexpr index_t unit = bfloat16_tile::rows, most = max_packed<bfloat16_tile>;
    const index_t begin = 2 * pair, end = std::min(begin + 2 * pairs, pixels);
    alignas(64) float lines[2][most + 16];
    seen_run runs[most];
    index_t count = 0, t = row / seen.channels, c = row % seen.channels;
    for (index_t at = 0; at < rows; at += runs[count++].count) {
      runs[count] = {seen.taps[t], c, std::min(seen.channels - c, rows - at), at};
      c = (c + runs[count].count) % seen.channels;
      t += c == 0;
    }
    // Prefetches the pixels of the next rows, of which there is too little at a time for the
    // hardware prefetcher.
    const index_t next_row = t < seen.count ? seen.taps[t].offset + c : 0;
    patches<float>::position at = seen.position_of(first + begin);
    for (index_t i = begin; i < end; i += 2, to += unit) {
      const float* p[2];
      const bool second = i + 1 < end;
      for (index_t e = 0; e < 1 + second; ++e, seen.go_on(at)) {
        const seen_pixel pixel = seen_pixel::of(seen, at);
        XLA_PREFETCH(pixel.data + next_row, 0, 2);
        XLA_PREFETCH(pixel.data + next_row + 16, 0, 2);
        p[e] = count == 1 ? pixel.inside(seen, runs[0]) : nullptr;
        if (p[e]) continue;
        for (index_t r = 0; r < count; ++r) pixel.copy(seen, runs[r], lines[e]);
        p[e] = lines[e];
      }
      if (!second) p[1] = p[0];
      for (index_t h = 0; unit * h < rows; h += 2)
        bf16::store_halves(
            to + h * next, next, unit * (h + 1) < rows,
            bf16::zip_pairs(p[0] + unit * h, p[1] + unit * h, rows - unit * h, second));
    }
  }
  upcoming<float> ahead(range, range, index_t) const { return {}; }
  static constexpr index_t grain() { return 16; }
};

/// The weight's gradient of one group as such products: (tap, channel) by channels of dy, for which
/// right(from, pixels) is the operand.
template <class Tile, class Seen, class Right>
void weight_gradient_of_pairs(const conv_sizes& s, const float* x, const float* dy, float* dw,
                              Right right) {
  if (is_large_tap(s)) return weight_gradient_of_pixels(s, x, dy, dw, &gemm_bfloat16<float, float>);
  const tap_list pieces = forward_taps<float>(s, 1, s.in);
  const index_t run = s.taps() * s.in, wide = round_up(s.out, Tile::width);
  const index_t pixels = s.batch * s.out_height * s.out_width, most = longest_piece<float>;
  ::xla::detail::working_memory memory;
  const index_t size = run * wide;
  float* const sums = static_cast<float*>(
      memory.take(static_cast<std::size_t>(pixels > most ? 3 * size : size) * sizeof(float)));
  const auto some = [&](index_t at, float* to) {
    const index_t count = std::min(most, pixels - at);
    const auto b = right(dy + at * s.out, count);
    multiply(product<Tile, Seen, std::remove_const_t<decltype(b)>>{
        run,
        s.out,
        pairs_of(count),
        {forward_patches(s, x, pieces, s.in), at, count},
        b,
        {to, wide}});
  };
  some(0, sums);
  if (pixels > most) {
    float *const lost = sums + size, *const piece = lost + size;
    std::fill_n(lost, size, 0.f);
    for (index_t at = most; at < pixels; at += most) {
      some(at, piece);
      column_sums<float>{sums, lost}.add({piece, nullptr}, size, false);
    }
    column_sums<float>{sums, lost}.total(sums, size);
  }
  constexpr index_t width = lanes<float>;
  parallel_for((s.out + width - 1) / width, [&](index_t i) {
    const index_t j = i * width;
    transpose_rows(dw + j * run, run, std::min(width, s.out - j), run,
                   panel_cursor<float>{sums + j, s.taps(), s.in, wide});
  });
}

inline void dot_patch_products::weight_gradient(const conv_sizes& s, const float* x,
                                                const float* dy, float* dw) {
  weight_gradient_of_pairs<bfloat16_tile, dot_seen>(
      s, x, dy, dw, [&](const float* from, index_t pixels) {
        return dot_right<matrix_view<float>>{{from, s.out, 1}, pixels};
      });
}

}  // namespace xla::kernel::detail

#endif
