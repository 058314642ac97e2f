// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "xla/base/later.hpp"
#include "xla/shape/checked.hpp"

namespace xla::detail {

/// Gives offsets in blocks of memory to values by their lifetimes: the largest values first, each
/// at the lowest place that is free while it lives, in lent memory where that has room. That takes
/// a look at every pair of values; where these are too many, values take blocks in the order of
/// their lives, and leave them to later ones of about their size.
template <class In>
class basic_arena_planner {
 public:
  static constexpr std::int64_t alignment = 64;
  static constexpr int own = -1;  ///< the arena's own block
  static constexpr std::int64_t most_steps = 1 << 24;

  /// Where a value lies: at an offset of the arena, or of the block that was lent as number
  /// `block`.
  struct spot {
    int block = own;
    std::int64_t offset = 0;
  };

  /// Memory that nobody else uses in steps [first, last]. Blocks are numbered as they are lent.
  void lend(std::int64_t bytes, int first, int last) {
    blocks_.push_back({bytes / alignment * alignment, first, last, {}});
  }
  /// A value that is there in steps [first, last]. Values are numbered as they are added.
  void add(std::int64_t bytes, int first, int last, bool may_lie_in_lent = true) {
    values_.push_back({round(bytes), first, last, may_lie_in_lent});
    total_ = calculated<'+'>(total_, values_.back().bytes);
  }

  void run() {
    spots_.resize(values_.size());
    later<In, std::vector<int>> order(values_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::sort(order.data(), order.data() + order.size(), [this](int a, int b) {
      const std::int64_t x = values_[at(a)].bytes, y = values_[at(b)].bytes;
      return x > y || (x == y && a < b);
    });
    for (int v : order) {
      place(v);
      if (steps_ > most_steps) return run_in_order();
    }
  }

  const spot& where(int value) const { return spots_[at(value)]; }
  /// Of the arena's own block.
  std::int64_t size() const { return size_; }
  /// What all values together would take.
  std::int64_t total() const { return total_; }
  /// The values that were looked at.
  std::int64_t steps() const { return steps_; }

 private:
  struct lifetime {
    std::int64_t bytes;
    int first, last;
    bool anywhere;  ///< not in the arena's own block alone
    bool meets(const lifetime& o) const { return first <= o.last && o.first <= last; }
  };
  struct lent {
    std::int64_t bytes;
    int first, last;
    later<In, std::vector<int>> placed;  ///< by offset
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static std::int64_t round(std::int64_t n) {
    return std::max<std::int64_t>((n + alignment - 1) / alignment * alignment, alignment);
  }

  // Blocks of a size serve one value after the other. Linear in the values.
  [[gnu::cold, gnu::noinline]] void run_in_order() {
    int last = 0;
    for (const lifetime& x : values_) last = std::max(last, x.last);
    const std::size_t moments = at(last) + 3;  // lives may begin at -1, before all steps
    // Lists of values: by the moment where they begin, where they have ended, by free blocks.
    later<In, std::vector<int>> lists(2 * moments + at(classes) + 3 * values_.size(), own);
    int* const begins = lists.data();
    int* const ends = begins + moments;
    int* const free = ends + moments;
    int* const next = free + classes;
    for (std::size_t v = values_.size(); v-- > 0;) {
      next[3 * v] = std::exchange(begins[values_[v].first + 1], static_cast<int>(v));
      next[3 * v + 1] = std::exchange(ends[values_[v].last + 2], static_cast<int>(v));
    }
    size_ = 0;
    for (std::size_t m = 0; m < moments; ++m) {
      for (int v = ends[m]; v != own; v = next[3 * v + 1])
        next[3 * v + 2] = std::exchange(free[spots_[at(v)].block], v);
      for (int v = begins[m]; v != own; v = next[3 * v]) take(v, free, next + 2);
    }
    for (spot& s : spots_) s.block = own;
  }
  // While they are handed out, spots have the class of their block beside the offset.
  [[gnu::cold]] void take(int v, int* free, const int* next) {
    const int wanted = class_of(values_[at(v)].bytes);
    int c = wanted;
    while (c < std::min(wanted + 8, classes - 1) && free[c] == own) ++c;
    if (const int before = free[c]; before != own) {
      free[c] = next[3 * before];
      spots_[at(v)] = spots_[at(before)];
    } else {
      spots_[at(v)] = {wanted, size_};
      size_ += bytes_of_class(wanted);
    }
    steps_ += c - wanted + 1;
  }
  // Eight sizes between two powers of two.
  static constexpr int classes = 8 * 64;
  static std::int64_t bytes_of_class(int c) { return round((std::int64_t{8} + c % 8) << c / 8); }
  static int class_of(std::int64_t bytes) {
    const int power = std::bit_width(static_cast<std::uint64_t>(bytes - 1)) - 4;
    int c = 8 * std::max(power, 0);
    while (bytes_of_class(c) < bytes) ++c;
    return c;
  }

  // Of the lent blocks that have room, the one that goes back first: others serve longer lives.
  void place(int v) {
    const lifetime& x = values_[at(v)];
    int best = own;
    std::int64_t offset = 0;
    steps_ += x.anywhere ? static_cast<std::int64_t>(blocks_.size()) : 0;
    for (std::size_t b = 0; x.anywhere && b < blocks_.size(); ++b) {
      const lent& l = blocks_[b];
      if (x.bytes > l.bytes || x.first < l.first || x.last > l.last) continue;
      if (best != own && l.last >= blocks_[at(best)].last) continue;
      const std::int64_t gap = lowest(l.placed, x);
      if (gap + x.bytes > l.bytes) continue;
      best = static_cast<int>(b);
      offset = gap;
    }
    if (best == own) {
      offset = lowest(placed_, x);
      size_ = std::max(size_, offset + x.bytes);
    }
    spots_[at(v)] = {best, offset};
    later<In, std::vector<int>>& list = best == own ? placed_ : blocks_[at(best)].placed;
    const auto after =
        std::upper_bound(list.begin(), list.end(), offset,
                         [this](auto o, int other) { return o < spots_[at(other)].offset; });
    list.insert(after, v);
  }
  /// The lowest offset at which nothing lies during a life.
  std::int64_t lowest(const later<In, std::vector<int>>& placed, const lifetime& x) {
    std::int64_t offset = 0;
    steps_ += static_cast<std::int64_t>(placed.size());
    for (int other : placed) {
      const lifetime& y = values_[at(other)];
      if (!x.meets(y)) continue;
      if (spots_[at(other)].offset >= offset + x.bytes) break;
      offset = std::max(offset, spots_[at(other)].offset + y.bytes);
    }
    return offset;
  }

  later<In, std::vector<lifetime>> values_;
  later<In, std::vector<spot>> spots_;
  later<In, std::vector<lent>> blocks_;
  later<In, std::vector<int>> placed_;  // in the arena's own block, by offset
  std::int64_t size_ = 0, total_ = 0, steps_ = 0;
};
using arena_planner = basic_arena_planner<void>;

}  // namespace xla::detail
