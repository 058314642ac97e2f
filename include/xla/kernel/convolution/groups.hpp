// SPDX-License-Identifier: Apache-2.0
#pragma once

// Direct convolutions of several groups: the products of all groups of some pixels, one after
// another. A group's channels are a short piece of each pixel, so images come from memory once.
// direct.hpp chooses it.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "xla/kernel/convolution/patches.hpp"
#include "xla/kernel/convolution/three_by_three.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

/// The products of all groups. Their channels follow one another in a and in c; their weights in b
/// are `step` elements apart.
template <class T, class Result>
struct group_products {
  using tile = conv_tile<T>;
  const patches<T>& a;      // of the first group
  const tap_weights<T>& b;  // of the first group
  index_t step, groups, m, n;
  Result c;
  const epilogue* after;

  index_t depth() const { return a.count * a.channels; }
  index_t wide() const { return round_up(n, tile::width); }

  void run() const {
    if (b.packed) return run(b.packed);
    ::xla::detail::working_memory memory;
    T* const packed = static_cast<T*>(
        memory.take(static_cast<std::size_t>(groups * depth() * wide()) * sizeof(T)));
    for_ranges(groups, depth() * n, [&](index_t first, index_t last) {
      for (index_t g = first; g < last; ++g) pack(g, packed + g * depth() * wide());
    });
    run(packed);
  }

 private:
  void run(const T* packed) const {
    if constexpr (std::is_same_v<Result, strided_rows<T>>)
      if (n == lanes<T> && sees_threes(a))
        return for_ranges(m / a.columns, a.columns * n * depth() * groups,
                          [&](index_t first, index_t last) {
                            for (index_t i = first; i < last; ++i) make_line(i, packed);
                          });
    // With few tiles, threads share the groups of a tile, too.
    const index_t tiles = (m + tile::rows - 1) / tile::rows;
    const index_t threads = num_threads();
    const index_t parts = threads > 1 && tiles < 8 * threads ? std::min<index_t>(groups, 4) : 1;
    for_ranges(tiles * parts, tile::rows * n * depth() * groups / parts,
               [&](index_t first, index_t last) {
                 for (index_t i = first; i < last; ++i) {
                   const index_t row = i / parts * tile::rows, p = i % parts;
                   multiply({row, std::min(m, row + tile::rows)}, packed,
                            {groups * p / parts, groups * (p + 1) / parts});
                 }
               });
  }

  void pack(index_t group, T* to) const {
    const tap_weights<T> own{b.data + group * step, b.step, b.column, b.offsets, b.count};
    for (index_t j = 0; j < n; j += tile::columns)
      own.pack(to + j * depth(), 0, j, depth(), std::min<index_t>(tile::columns, n - j));
  }

  /// A line of the result, by sums that share the pixels of neighbouring results.
  void make_line(index_t line, const T* packed) const {
    const threes<T> seen{a, line, n};
    const index_t first = line * a.columns;
    for (index_t g = 0; g < groups; ++g, packed += depth() * n)
      seen.sum(g * a.channels, packed, c.data + first * c.step + g * n, c.step);
    if (after) after->made(first, first + a.columns, groups * n);
  }

  void multiply(range rows, const T* packed, range some) const {
    // Pointers to pixels outside of an image move with the others, within zeros.
    const index_t together = std::max<index_t>(longest_piece / a.channels, 1);
    const range next{rows.end, std::min(m, rows.end + tile::rows)};
    packed += some.begin * depth() * wide();
    for (index_t g = some.begin; g < some.end; ++g, packed += depth() * wide()) {
      const range ks{g * depth(), (g + 1) * depth()};
      const auto left =
          (g - some.begin) % together == 0 ? a.read(rows, ks) : a.further(rows.size());
      a.ahead(next, ks, 1).fetch();
      for (index_t j = 0; j < n; j += tile::columns) {
        const index_t columns = std::min<index_t>(tile::columns, n - j);
        tile::multiply(
            micro_call<T, pointer_micro_panel<T>, Result>{.depth = depth(),
                                                          .a = left,
                                                          .b = packed + j * depth(),
                                                          .b_step = round_up(columns, tile::width),
                                                          .c = c.from(rows.begin, g * n + j),
                                                          .first = true},
            rows.size(), columns);
      }
    }
    if (after) after->made(rows.begin, rows.end, some.size() * n);
  }

  static constexpr index_t longest_piece = max_block<T>;
};

}  // namespace xla::kernel::detail
