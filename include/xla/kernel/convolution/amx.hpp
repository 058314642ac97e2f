// SPDX-License-Identifier: Apache-2.0
#pragma once

// Direct convolutions by the tiles of AMX: operands that gather like those of dot.hpp and pack for
// gemm/amx.hpp. Each call packs the weights; they are not cached. rounded.hpp chooses it.

#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_AMX

#include <algorithm>

#include "xla/kernel/convolution/dot.hpp"
#include "xla/kernel/gemm/amx_pack.hpp"

namespace xla::kernel::detail {

/// Patches as a left operand, whose blocks of channels are whole tiles.
struct amx_patches {
  explicit amx_patches(const patches<float>& p) : of(p) {
    if (of.seen.block < of.seen.channels) of.seen.block = round_up(of.seen.block, 32);
  }
  dot_patches of;

  void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
            index_t pairs) const {
    of.each_strip(row, pair, rows, pairs,
                  [&](const float* lines, index_t i, index_t j, index_t count, index_t n) {
                    bfloat16_pair* const tiles = to + i / 32 * next + i % 32 / 16 * amx_words;
                    for (index_t q = 0; q < n; q += 32)
                      pack_amx_tile<false>(matrix_view<float>{lines + q, dot_patches::line, 1},
                                           count, n - q, tiles + (j + q) / 32 * 2 * amx_words);
                  });
  }
  upcoming<float> ahead(range rows, range ks, index_t shares) const {
    return of.ahead(rows, ks, shares);
  }
  index_t block() const { return of.seen.count * std::min(of.seen.block, of.seen.channels); }
  index_t grain() const { return round_up(pairs_of(block()), amx_pairs); }
};

/// Weights of taps as a right operand, in the same order.
struct amx_taps {
  tap_weights<float> taps;
  index_t k, block;  // the taps whose weights are packed one after the other

  void pack(bfloat16_pair* to, index_t pair, index_t column, index_t pairs, index_t columns) const {
    const index_t depth = std::min(2 * pairs, k - 2 * pair);
    const index_t step = round_up(columns, lanes<float>);
    float* const rows = static_cast<float*>(
        thread_scratch<amx_taps>(depth * step * static_cast<index_t>(sizeof(float))));
    for (index_t at = 0; at < depth; at += block)
      taps.pack(rows + at * step, 2 * pair + at, column, std::min(block, depth - at), columns);
    amx_right{amx_operand::of(rows, 1, step, depth)}.pack(to, 0, 0, pairs, columns);
  }
};

/// The pixels under the taps, transposed, as a left operand: rows are channels of taps, k is pixels
/// from `first` on.
struct amx_seen {
  patches<float> seen;
  index_t first, pixels;

  void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
            index_t pairs) const {
    constexpr index_t most = packed_micro_panels * 2 * amx_lines;
    const index_t begin = 2 * pair, end = std::min(begin + 2 * pairs, pixels);
    alignas(64) float lines[32][most + 16];
    patches<float>::position at = seen.position_of(first + begin);
    for (index_t i = begin; i < end; i += 32) {
      const index_t count = std::min<index_t>(32, end - i);
      for (index_t e = 0; e < count; ++e, seen.go_on(at)) gather(at, row, rows, lines[e]);
      for (index_t r = 0; r < rows; r += amx_lines)
        pack_amx_tile<false>(
            matrix_view<float>{&lines[0][r], 1, most + 16}, rows - r, count,
            to + r / 32 * next + ((i - begin) / 32 * 2 + r % 32 / amx_lines) * amx_words);
    }
  }
  upcoming<float> ahead(range, range, index_t) const { return {}; }
  static constexpr index_t grain() { return amx_pairs; }

 private:
  /// Some rows of one pixel.
  void gather(const patches<float>::position& at, index_t row, index_t rows, float* to) const {
    const seen_pixel pixel = seen_pixel::of(seen, at);
    index_t t = row / seen.channels, c = row % seen.channels;
    for (index_t done = 0; done < rows; ++t, c = 0) {
      const index_t count = std::min(seen.channels - c, rows - done);
      for_run(pixel, {seen.taps[t], c, count, done}, to);
      done += count;
    }
  }
  void for_run(const seen_pixel& pixel, const seen_run& run, float* to) const {
    if (const float* const from = pixel.inside(seen, run))
      std::copy_n(from, run.count, to + run.at);
    else pixel.copy(seen, run, to);
  }
};

/// Takes the place of dot_patch_products.
template <class Instructions = amx_instructions>
struct tile_patch_products {
  using tile = amx_tile<Instructions>;

  template <class Result>
  static void multiply(const patches<float>& a, const tap_weights<float>& b, index_t m, index_t n,
                       Result c, const epilogue* after) {
    const index_t k = a.count * a.channels;
    const amx_patches left(a);
    detail::multiply(product<tile, amx_patches, amx_taps, Result>{
        m, n, pairs_of(k), left, {b, k, left.block()}, c, after});
  }
  static void weight_gradient(const conv_sizes& s, const float* x, const float* dy, float* dw) {
    weight_gradient_of_pairs<tile, amx_seen>(s, x, dy, dw, [&](const float* from, index_t pixels) {
      return amx_right{amx_operand::of(from, 1, s.out, pixels)};
    });
  }
  static index_t size(const group_weights<float>&) { return 0; }
};

}  // namespace xla::kernel::detail

#endif
