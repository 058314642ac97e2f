// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "xla/base/later.hpp"

namespace xla::detail {

/// Gives offsets in one block of memory to values by their lifetimes: first fit among the holes.
template <class In>
class basic_arena_planner {
 public:
  static constexpr std::int64_t alignment = 64;

  std::int64_t take(std::int64_t bytes) {
    bytes = round(bytes);
    total_ += bytes;
    for (std::size_t i = 0; i < holes_.size(); ++i) {
      hole& h = holes_[i];
      if (h.size < bytes) continue;
      const std::int64_t offset = h.offset;
      h.offset += bytes;
      h.size -= bytes;
      if (h.size == 0) holes_.erase(holes_.begin() + static_cast<std::ptrdiff_t>(i));
      return offset;
    }
    const std::int64_t offset = size_;
    size_ += bytes;
    return offset;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    bytes = round(bytes);
    auto next = std::lower_bound(holes_.begin(), holes_.end(), offset,
                                 [](const hole& h, std::int64_t o) { return h.offset < o; });
    next = holes_.insert(next, {offset, bytes});
    if (next + 1 != holes_.end() && next->offset + next->size == (next + 1)->offset) {
      next->size += (next + 1)->size;
      holes_.erase(next + 1);
    }
    if (next != holes_.begin() && (next - 1)->offset + (next - 1)->size == next->offset) {
      (next - 1)->size += next->size;
      holes_.erase(next);
    }
  }

  std::int64_t size() const { return size_; }
  /// What all values together would take.
  std::int64_t total() const { return total_; }

 private:
  struct hole {
    std::int64_t offset, size;
  };
  static std::int64_t round(std::int64_t n) {
    return std::max<std::int64_t>((n + alignment - 1) / alignment * alignment, alignment);
  }
  later<In, std::vector<hole>> holes_;
  std::int64_t size_ = 0, total_ = 0;
};
using arena_planner = basic_arena_planner<void>;

}  // namespace xla::detail
