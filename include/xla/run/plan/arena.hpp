// SPDX-License-Identifier: Apache-2.0
#pragma once

// Assigns offsets in one block of memory to values by their lifetimes. memory_plan.hpp decides
// which values; run/execute/arena_store.hpp owns the memory.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/shape/checked.hpp"

namespace xla::detail {

/// Assigns offsets in blocks of memory to values by their lifetimes: the largest values first, each
/// at the lowest offset that is free during its lifetime, in donated memory if it fits there. That
/// compares all pairs of values. If there are too many, values take blocks in the order of their
/// lifetimes, and leave them to later ones of similar size.
template <class In>
class basic_arena_planner {
 public:
  static constexpr std::int64_t alignment = 64;
  static constexpr int own = -1;  ///< the arena's own block
  static constexpr std::int64_t max_steps = 1 << 24;

  /// The location of a value: an offset in the arena, or in the donated block number `block`.
  struct spot {
    int block = own;
    std::int64_t offset = 0;
  };

  /// Memory that is unused in steps [first, last]. Blocks are numbered as they are donated.
  void donate(std::int64_t bytes, int first, int last) {
    blocks_.push_back({bytes / alignment * alignment, first, last, {}});
  }
  /// A value that is alive in steps [first, last]. Values are numbered as they are added.
  void add(std::int64_t bytes, int first, int last, bool may_use_donated = true) {
    values_.push_back({round(bytes), first, last, may_use_donated});
    total_ = calculated<'+'>(total_, values_.back().bytes);
  }

  [[XLA_PLANS]] void run() {
    spots_.resize(values_.size());
    list<measured> order;
    for (const lifetime& x : values_) order.push_back({x.bytes, order.size()});
    largest_first(order);
    for (const measured& v : order) {
      place(v.number);
      if (steps_ > max_steps) return place_in_order();
    }
  }

  const spot& where(int value) const { return spots_[value]; }
  /// The size of the arena's own block.
  std::int64_t size() const { return size_; }
  /// The sum of the sizes of all values.
  std::int64_t total() const { return total_; }
  /// The number of values compared.
  std::int64_t steps() const { return steps_; }

 private:
  struct lifetime {
    std::int64_t bytes;
    int first, last;
    bool anywhere;  ///< not only those in the arena's own block
  };
  /// The location and lifetime of a value that has been placed.
  struct taken {
    int first, last;
    std::int64_t offset, end;
  };
  struct donated {
    std::int64_t bytes;
    int first, last;
    list<taken> placed;  ///< by offset
  };
  static std::int64_t round(std::int64_t n) {
    return std::max<std::int64_t>((n + alignment - 1) / alignment * alignment, alignment);
  }

  // Blocks of a size serve one value after the other. Linear in the values.
  [[XLA_PLANS, gnu::noinline]] void place_in_order() {
    int last = 0;
    for (const lifetime& x : values_) last = std::max(last, x.last);
    const int moments = last + 3;  // lifetimes may begin at -1, before all steps
    // Lists of values: by their first step, by their last step, of free blocks.
    list<int> lists(2 * moments + classes + 3 * values_.size(), own);
    int* const begins = lists.data();
    int* const ends = begins + moments;
    int* const free = ends + moments;
    int* const next = free + classes;
    for (int v = values_.size() - 1; v >= 0; --v) {
      next[3 * v] = std::exchange(begins[values_[v].first + 1], v);
      next[3 * v + 1] = std::exchange(ends[values_[v].last + 2], v);
    }
    size_ = 0;
    for (int m = 0; m < moments; ++m) {
      for (int v = ends[m]; v != own; v = next[3 * v + 1])
        next[3 * v + 2] = std::exchange(free[spots_[v].block], v);
      for (int v = begins[m]; v != own; v = next[3 * v]) take(v, free, next + 2);
    }
    for (spot& s : spots_) s.block = own;
  }
  // While they are handed out, offsets carry the class of their block.
  [[XLA_PLANS]] void take(int v, int* free, const int* next) {
    const int wanted = class_of(values_[v].bytes);
    int c = wanted;
    while (c < std::min(wanted + 8, classes - 1) && free[c] == own) ++c;
    if (const int before = free[c]; before != own) {
      free[c] = next[3 * before];
      spots_[v] = spots_[before];
    } else {
      spots_[v] = {wanted, size_};
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

  // Of the donated blocks with room, the one that is returned first: the others serve longer
  // lifetimes.
  [[XLA_PLANS]] void place(int v) {
    const lifetime& x = values_[v];
    int best = own;
    std::int64_t offset = 0;
    steps_ += x.anywhere ? blocks_.size() : 0;
    for (int b = 0; x.anywhere && b < blocks_.size(); ++b) {
      const donated& l = blocks_[b];
      if (x.bytes > l.bytes || x.first < l.first || x.last > l.last) continue;
      if (best != own && l.last >= blocks_[best].last) continue;
      const std::int64_t gap = lowest(l.placed, x);
      if (gap + x.bytes > l.bytes) continue;
      best = b;
      offset = gap;
    }
    if (best == own) {
      offset = lowest(placed_, x);
      size_ = std::max(size_, offset + x.bytes);
    }
    spots_[v] = {best, offset};
    list<taken>& placed = best == own ? placed_ : blocks_[best].placed;
    const auto after = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [](auto o, const taken& y) { return o < y.offset; });
    placed.insert(static_cast<int>(after - placed.begin()),
                  {x.first, x.last, offset, offset + x.bytes});
  }
  /// The lowest offset that is free during a lifetime.
  [[gnu::noinline]] std::int64_t lowest(const list<taken>& placed, const lifetime& x) {
    std::int64_t offset = 0;
    steps_ += placed.size();
    for (const taken& y : placed) {
      // Whether two lifetimes overlap is unpredictable, so there is no branch on it alone.
      const bool meets = (x.first <= y.last) & (y.first <= x.last);
      if (meets & (y.offset >= offset + x.bytes)) break;
      offset = meets ? std::max(offset, y.end) : offset;
    }
    return offset;
  }

  list<lifetime> values_;
  list<spot> spots_;
  list<donated> blocks_;
  list<taken> placed_;  // in the arena's own block, by offset
  std::int64_t size_ = 0, total_ = 0, steps_ = 0;
};
using arena_planner = basic_arena_planner<void>;

}  // namespace xla::detail
