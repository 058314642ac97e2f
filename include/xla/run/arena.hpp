// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "xla/base/later.hpp"

namespace xla::detail {

/// Gives offsets in blocks of memory to values by their lifetimes: the largest values first, each
/// at the lowest place that is free while it lives, in lent memory where that has room.
template <class In>
class basic_arena_planner {
 public:
  static constexpr std::int64_t alignment = 64;
  static constexpr int own = -1;  ///< the arena's own block

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
    total_ += values_.back().bytes;
  }

  void run() {
    spots_.resize(values_.size());
    later<In, std::vector<int>> order(values_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::sort(order.data(), order.data() + order.size(), [this](int a, int b) {
      const std::int64_t x = values_[at(a)].bytes, y = values_[at(b)].bytes;
      return x > y || (x == y && a < b);
    });
    for (int v : order) place(v);
  }

  const spot& where(int value) const { return spots_[at(value)]; }
  /// Of the arena's own block.
  std::int64_t size() const { return size_; }
  /// What all values together would take.
  std::int64_t total() const { return total_; }

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

  // Of the lent blocks that have room, the one that goes back first: others serve longer lives.
  void place(int v) {
    const lifetime& x = values_[at(v)];
    int best = own;
    std::int64_t offset = 0;
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
  std::int64_t lowest(const later<In, std::vector<int>>& placed, const lifetime& x) const {
    std::int64_t offset = 0;
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
  std::int64_t size_ = 0, total_ = 0;
};
using arena_planner = basic_arena_planner<void>;

}  // namespace xla::detail
