// SPDX-License-Identifier: Apache-2.0
#pragma once

// A product and how k is cut into blocks, and the loop over micro-panels of a for some panels of b.
// It does not pack b: partition.hpp does, and calls multiply_block().

#include <algorithm>
#include <type_traits>
#include <utility>

#include "xla/kernel/fused/epilogue.hpp"
#include "xla/kernel/gemm/left_operand.hpp"
#include "xla/kernel/gemm/right_operand.hpp"
#include "xla/kernel/memory/thread_scratch.hpp"

namespace xla::kernel::detail {

/// One product c = a·b and its division. k is divided by its length alone, so that the order of
/// every sum is fixed: into blocks of at most 2 KiB of a row, or as deep as the tile says, of
/// nearly equal length.
template <class Tile, class Left, class Right, class Result = strided_rows<typename Tile::sum>>
struct product {
  using tile = Tile;
  using element = typename Tile::element;
  using result = Result;

  index_t m, n, k;
  Left a;
  Right b;
  Result c;
  const epilogue* after = nullptr;        // notified of c, row by row
  const element* micro_panels = nullptr;  // a, if it is packed as a whole
  index_t depth = 1, depths = 1;

  static constexpr bool reads_left = requires(const Left& a, range r) { a.read(r, r); };
  static constexpr bool packs_left = requires { &Left::pack; };
  static constexpr bool reads_right = requires(const Right& b, index_t i) { b.read(i, i, i); };
  /// Whether the kernels of transposing_pack.hpp can take both operands.
  static constexpr bool transposes = std::is_same_v<Tile, detail::tile<element>> &&
                                     requires(const Left& a, const Right& b, range r, index_t i,
                                              micro_panel<element> s, element* to) {
                                       s = a.read(r, r);
                                       b.column(i, i);
                                       Result{to, i};
                                     };

  /// Whether maps follow, in registers or as an epilogue.
  bool has_maps() const {
    return requires(const Result& c) { c.maps; } || after != nullptr;
  }

  bool in_place() const {
    if constexpr (reads_left && packs_left) return a.in_place(k);
    else return reads_left;
  }

  static constexpr index_t deepest() {
    if constexpr (requires { Tile::deepest; }) return Tile::deepest;
    else return 2048 / sizeof(element);
  }
  void cut() {
    constexpr index_t most = deepest();
    depths = (k + most - 1) / most;
    depth = round_up((k + depths - 1) / depths, a.grain());
    depths = (k + depth - 1) / depth;
  }

  /// Notifies the epilogue after the last block of k.
  void made(range rows, range columns, range ks) const {
    if (after != nullptr && ks.end == k) after->made(rows.begin, rows.end, columns.size());
  }

  range block(index_t i) const { return {i * depth, std::min(k, (i + 1) * depth)}; }
  /// The number of steps along k in packed micro-panels and panels.
  static index_t padded(index_t steps) { return round_up(steps, Tile::step); }

  /// The micro-panel of these rows, from a packed as a whole or read in place.
  auto left(range rows, range ks) const {
    const auto packed = [&] {
      return Tile::packed(micro_panels + rows.begin * padded(k) + ks.begin * Tile::rows);
    };
    if constexpr (!packs_left) return a.read(rows, ks);
    else if constexpr (!reads_left) return packed();
    else return micro_panels != nullptr ? packed() : a.read(rows, ks);
  }
};

/// c(rows, j …) (+)= a(rows, ks)·b(ks, j …) for one micro-panel and the panel that begins at column
/// j; a share of `next` is prefetched.
template <class P, class MicroPanel, class Next>
[[gnu::always_inline]] inline void multiply_tile(const P& p, const MicroPanel& a, range rows,
                                                 range columns, range ks, index_t j,
                                                 panels<typename P::element> b, Next& next) {
  using call = micro_call<typename P::element, MicroPanel, typename P::result>;
  const index_t width = std::min(b.wide, columns.end - j);
  next.fetch();
  P::tile::multiply(call{.depth = ks.size(),
                         .a = a,
                         .b = b.data + (j - b.begin) * (b.step != 0 ? 1 : p.padded(ks.size())),
                         .b_step = b.step != 0 ? b.step : round_up(width, P::tile::width),
                         .c = p.c.from(rows.begin, j),
                         .first = ks.begin == 0},
                    rows.size(), width);
}

/// c(rows, columns) (+)= a(rows, ks)·b(ks, columns) for all rows of an a of which some micro-panels
/// are packed at a time. Long runs of memory are read, and these micro-panels use a panel one after
/// the other, so that b may have so many packed columns that they come from a farther cache.
template <class P>
void multiply_packing(const P& p, range rows, range columns, range ks,
                      panels<typename P::element> b) {
  using tile = typename P::tile;
  constexpr index_t unit = tile::rows, group = max_packed<tile>;
  const index_t shares = packed_micro_panels * ((columns.size() + b.wide - 1) / b.wide);
  const index_t depth = p.padded(ks.size());
  auto* const packed = left_scratch().template get<typename P::element>(group * p.depth);
  const auto group_at = [&](index_t i) { return range{i, std::min(rows.end, i + group)}; };
  for (range some = group_at(rows.begin); some.size() > 0; some = group_at(some.end)) {
    p.a.pack(packed, unit * depth, some.begin, ks.begin, some.size(), ks.size());
    auto next = p.a.ahead(group_at(some.end), ks, shares);
    for (index_t j = columns.begin; j < columns.end; j += b.wide)
      for (index_t i = some.begin; i < some.end; i += unit)
        multiply_tile(p, tile::packed(packed + (i - some.begin) * depth),
                      {i, std::min(some.end, i + unit)}, columns, ks, j, b, next);
    p.made(some, columns, ks);
  }
}

/// c(rows, columns) (+)= a(rows, ks)·b(ks, columns). `columns` begins at the begin of a panel.
template <class P>
void multiply_block(const P& p, range rows, range columns, range ks,
                    panels<typename P::element> b) {
  constexpr index_t unit = P::tile::rows;
  if (columns.size() == 0) return;
  [[maybe_unused]] const typename P::tile::session open;
  const bool packed = p.micro_panels != nullptr;
  if constexpr (P::packs_left)
    if (!packed && !p.in_place()) return multiply_packing(p, rows, columns, ks, b);
  const index_t shares = (columns.size() + b.wide - 1) / b.wide;
  index_t notified = rows.begin;
  for (index_t i = rows.begin; i < rows.end; i += unit) {
    const range some{i, std::min(rows.end, i + unit)};
    decltype(p.a.ahead(some, ks, shares)) next;
    if (!packed) next = p.a.ahead({some.end, std::min(rows.end, some.end + unit)}, ks, shares);
    const auto a = p.left(some, ks);
    for (index_t j = columns.begin; j < columns.end; j += b.wide)
      multiply_tile(p, a, some, columns, ks, j, b, next);
    if (some.end - notified >= 4 * unit || some.end == rows.end)
      p.made({std::exchange(notified, some.end), some.end}, columns, ks);
  }
}

}  // namespace xla::kernel::detail
