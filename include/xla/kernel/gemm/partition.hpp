// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread's part of a product: packs panels of b for blocks of k, or reads b in place, and runs
// block.hpp over them. gemm.hpp chooses the number of threads.

#include <algorithm>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/block.hpp"
#include "xla/kernel/gemm/transposing_pack.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"

namespace xla::kernel::detail {

/// The i-th of `parts` ranges over [0, n) whose borders are multiples of `unit`.
template <class = void>
[[gnu::noinline]] inline range part(index_t n, index_t unit, index_t parts, index_t i) {
  const index_t units = (n + unit - 1) / unit;
  return {units * i / parts * unit, std::min(n, units * (i + 1) / parts * unit)};
}

/// The width of panels: a tile's width, or nearly equal widths if the columns do not divide.
template <class Tile>
index_t panel_width(index_t columns) {
  constexpr index_t width = Tile::width;
  const index_t vectors = std::max<index_t>((columns + width - 1) / width, 1);
  const index_t count = (vectors + Tile::vectors - 1) / Tile::vectors;
  return (vectors + count - 1) / count * width;
}

/// The number of equal ranges into which one thread divides its columns; it keeps one range packed
/// at a time. A block of k should fit the L2 cache. There are fewer ranges if the cost that each
/// range repeats outweighs that: c is read and written again, and a is packed again. Panels that
/// are read `once`, by one micro-panel of a, are ranges, and take the memory of the one before.
template <class P>
[[gnu::noinline]] index_t resident_parts(const P& p, range columns, bool once = false) {
  constexpr bool wide = P::tile::vectors == 3;
  constexpr index_t some = wide ? 7 : 10, all = wide ? 11 : 10;
  bool packs = false;
  if constexpr (P::packs_left) packs = p.micro_panels == nullptr && !p.in_place();
  const index_t panels = (columns.size() + P::tile::columns - 1) / P::tile::columns;
  const index_t most = once ? 1 : packs ? 2 * all : panels <= all ? all : some;
  return (panels + most - 1) / most;
}

/// The i-th of `parts` ranges of whole panels.
template <class Tile>
range panel_part(range columns, index_t parts, index_t i) {
  const range within = part(columns.size(), Tile::columns, parts, i);
  return {columns.begin + within.begin, columns.begin + within.end};
}

/// Packs columns of b for one block of k into panels that are `wide` columns each.
template <class P>
[[gnu::noinline]] void pack_range(const P& p, typename P::element* to, range columns, range ks,
                                  index_t wide) {
  if constexpr (requires { p.b.pack_rows(to, columns, ks, wide); })
    if (p.b.by_rows(columns)) return p.b.pack_rows(to, columns, ks, wide);
  for (index_t j = columns.begin; j < columns.end; j += wide)
    p.b.pack(to + (j - columns.begin) * p.padded(ks.size()), ks.begin, j, ks.size(),
             std::min(wide, columns.end - j));
}

/// Some rows of some columns, by one thread that packs for itself.
template <class P>
void multiply_part(const P& p, range rows, range columns) {
  using tile = typename P::tile;
  constexpr index_t width = tile::width;
  bool in_place = false, transposed = false;
  if constexpr (P::reads_right)
    in_place = p.b.in_place((rows.size() + tile::rows - 1) / tile::rows, p.depth, p.n);
  if constexpr (P::transposes) transposed = transposes_with(p, rows.size());
  const index_t parts = resident_parts(p, columns, rows.size() <= tile::rows);
  auto* const packed = right_scratch().template get<typename P::element>(
      round_up((columns.size() + parts - 1) / std::max<index_t>(parts, 1), tile::columns) *
      p.depth);
  for (index_t i = 0; i < parts; ++i) {
    range some = panel_part<tile>(columns, parts, i);
    const range whole{some.begin, some.begin + (in_place ? some.size() / width * width : 0)};
    some.begin = whole.end;
    const index_t wide = panel_width<tile>(some.size());
    for (index_t block = 0; block < p.depths; ++block) {
      const range ks = p.block(block);
      if constexpr (P::reads_right)
        multiply_block(p, rows, whole, ks,
                       p.b.read(ks.begin, whole.begin, panel_width<tile>(whole.size())));
      range rest = rows;
      if constexpr (P::transposes)
        if (transposed) rest.begin += transpose_block(p, packed, rows, some, ks, wide);
      if (!transposed) pack_range(p, packed, some, ks, wide);
      multiply_block(p, rest, some, ks, {packed, some.begin, wide});
    }
  }
}

/// The number of elements of packed panels for this many columns and one block of k.
template <class P>
index_t packed_block(const P& p, index_t columns) {
  return round_up(columns, P::tile::width) * p.depth;
}

/// Packs these columns and blocks, block after block, by all threads.
template <class P>
void pack_panels(const P& p, range columns, range blocks, typename P::element* packed) {
  constexpr index_t wide = P::tile::columns;
  const index_t stride = packed_block(p, columns.size());
  const index_t panels = (columns.size() + wide - 1) / wide, all = panels * blocks.size();
  const index_t together = std::clamp<index_t>(all / (4 * num_threads()), 1, 8) * wide;
  const index_t count = (columns.size() + together - 1) / together;
  parallel_for(count * blocks.size(), [&](index_t i) {
    const index_t block = i / count, j = columns.begin + i % count * together;
    const range ks = p.block(blocks.begin + block);
    pack_range(p, packed + block * stride + (j - columns.begin) * p.padded(ks.size()),
               {j, std::min(columns.end, j + together)}, ks, wide);
  });
}

/// Tiles of c, in about this many chunks, of columns and blocks that pack_panels() has packed.
template <class P>
void multiply_packed(const P& p, range columns, range blocks, const typename P::element* packed,
                     index_t chunks) {
  using tile = typename P::tile;
  const index_t stride = packed_block(p, columns.size());
  const index_t across = resident_parts(p, columns);
  const index_t micro_panels = (p.m + tile::rows - 1) / tile::rows;
  // Whether m is so small that its rows are still in the cache when the next columns or steps along
  // k use them.
  const index_t near = p.m * p.depth / (1 << 18);
  const index_t down =
      std::clamp(std::max((chunks + across - 1) / across, near), index_t{1}, micro_panels);
  const auto chunk = [&](index_t i) {
    // All columns of some rows in turn, so that a is read from memory once.
    const range rows = part(p.m, tile::rows, down, i / across);
    const range some = panel_part<tile>(columns, across, i % across);
    for (index_t block = 0; block < blocks.size(); ++block)
      multiply_block(p, rows, some, p.block(blocks.begin + block),
                     {packed + block * stride, columns.begin, tile::columns});
  };
  if (chunks > 1) return parallel_for(across * down, chunk);
  for (index_t i = 0; i < across * down; ++i) chunk(i);
}

/// The same for some rows and columns, with small m: panel by panel of b, which is read from memory
/// once, the next panel while all rows use this one.
template <class P>
void multiply_panels(const P& p, range rows, range columns, const typename P::element* packed) {
  using tile = typename P::tile;
  using element = typename P::element;
  const index_t micro_panels = std::max<index_t>(rows.size() / tile::rows, 1);
  for (index_t block = 0; block < p.depths; ++block) {
    const range ks = p.block(block);
    const auto a = p.left(rows, ks);
    using micro_panel = fetching<element, std::remove_const_t<decltype(a)>>;
    const element* b = packed + block * packed_block(p, p.n) + columns.begin * ks.size();
    for (index_t j = columns.begin; j < columns.end; j += tile::columns) {
      const index_t wide = std::min<index_t>(tile::columns, columns.end - j);
      const index_t step = round_up(wide, tile::width);
      const index_t some = std::min(line_of<element>, (step + micro_panels - 1) / micro_panels);
      const element* next = b + step * ks.size();
      for (index_t i = 0, count; i < rows.size(); i += count, next += some * ks.size()) {
        count = tile::next_rows(rows.size() - i);
        tile::multiply(
            micro_call<element, micro_panel, typename P::result>{.depth = ks.size(),
                                                                 .a = {a.below(i), next, some},
                                                                 .b = b,
                                                                 .b_step = step,
                                                                 .c = p.c.from(rows.begin + i, j),
                                                                 .first = block == 0},
            count, wide);
      }
      b += step * ks.size();
    }
  }
  p.made(rows, columns, p.block(p.depths - 1));
}

/// All of c, by all threads: each takes panels, and where there are fewer of these than threads,
/// some of the rows. Where maps follow and a core's cache holds b, each takes rows.
template <class P>
void multiply_panels(const P& p, const typename P::element* packed, index_t chunks) {
  using tile = typename P::tile;
  const index_t panels = (p.n + tile::columns - 1) / tile::columns;
  const index_t parts = std::min<index_t>(chunks, num_threads());
  const index_t most_down = p.m / (2 * tile::rows) + 1;
  const bool by_rows = p.has_maps() && parts <= most_down &&
                       p.n * p.k * static_cast<index_t>(sizeof(*packed)) <= own_memory<>;
  const index_t across = by_rows ? 1 : std::min(chunks, panels);
  const index_t down = std::clamp<index_t>(parts / across, 1, most_down);
  parallel_for(across * down, [&](index_t i) {
    multiply_panels(p, part(p.m, tile::rows, down, i / across),
                    part(p.n, tile::columns, across, i % across), packed);
  });
}

/// Packs the columns and blocks once, by all threads, then shares the tiles of c among them.
template <class P>
void multiply_shared(const P& p, range columns, range blocks, index_t chunks) {
  auto* const packed = right_scratch().template get<typename P::element>(
      packed_block(p, columns.size()) * blocks.size());
  pack_panels(p, columns, blocks, packed);
  multiply_packed(p, columns, blocks, packed, chunks);
}

}  // namespace xla::kernel::detail
