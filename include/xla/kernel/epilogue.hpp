// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/kernel/loops.hpp"

namespace xla::kernel {

/// What runs on a result, seen as rows of its last axis, while that is in the cache: on a part of
/// the rows at a time, as soon as the kernel that makes them has told that all of it is there. It
/// runs on the thread that told so last.
template <class In>
class basic_epilogue {
 public:
  /// For rows [first, last).
  using function = void (*)(const void* self, std::int64_t first, std::int64_t last);

  /// row_bytes: what a row takes of the cache.
  basic_epilogue(std::int64_t rows, std::int64_t columns, std::int64_t row_bytes, function run,
                 const void* self)
      : rows_(rows), columns_(columns), run_(run), self_(self) {
    constexpr std::int64_t cached = 1 << 15, most_parts = 1 << 13;
    part_ = std::max(
        {cached / std::max<std::int64_t>(row_bytes, 1), rows / most_parts + 1, std::int64_t{1}});
    const std::int64_t bytes = parts() * static_cast<std::int64_t>(sizeof(counter));
    made_ = static_cast<counter*>(thread_scratch<basic_epilogue>(bytes));
    for (std::int64_t i = 0; i < parts(); ++i) new (made_ + i) counter(0);
  }
  basic_epilogue(const basic_epilogue&) = delete;
  basic_epilogue& operator=(const basic_epilogue&) = delete;

  /// So many columns of rows [first, last) are there; of each element a kernel tells once.
  [[gnu::noinline]] void made(std::int64_t first, std::int64_t last, std::int64_t columns) const {
    for (std::int64_t i = first / part_; i * part_ < last; ++i) {
      const std::int64_t rows = std::min(last, end_of(i)) - std::max(first, i * part_);
      const std::int64_t before = made_[i].fetch_add(rows * columns, std::memory_order_acq_rel);
      if (before + rows * columns == elements(i)) run_(self_, i * part_, end_of(i));
    }
  }
  /// Runs on the parts that no kernel has told of, when there are no more to be told of.
  void rest(std::int64_t row_work) const {
    const auto left = [this](std::int64_t i) {
      return made_[i].load(std::memory_order_relaxed) != elements(i);
    };
    std::int64_t next = 0;
    while (next < parts() && !left(next)) ++next;
    if (next == parts()) return;
    for_ranges(parts() - next, part_ * row_work, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = next + first; i < next + last; ++i)
        if (left(i)) run_(self_, i * part_, end_of(i));
    });
  }

 private:
  using counter = std::atomic<std::int64_t>;
  std::int64_t parts() const { return (rows_ + part_ - 1) / part_; }
  std::int64_t end_of(std::int64_t part) const { return std::min(rows_, (part + 1) * part_); }
  std::int64_t elements(std::int64_t part) const {
    return (end_of(part) - part * part_) * columns_;
  }

  std::int64_t rows_, columns_, part_;
  function run_;
  const void* self_;
  counter* made_;  // per part: how many of its elements are there
};
using epilogue = basic_epilogue<void>;

/// Runs a map region on rows [first, last) of a nest whose last axis was kept as it is.
template <class = void>
void run_map_rows(const loop_nest& l, tile_kernel kernel, void* const* base, std::int64_t first,
                  std::int64_t last) {
  const std::int64_t inner = l.inner();
  std::int64_t steps[max_operands] = {};
  bool together = l.axes <= 2;  // rows follow one another in every operand
  for (int k = 0; k < l.operands; ++k) {
    steps[k] = l.strides[k][l.axes - 1];
    if (l.axes == 2) together &= l.strides[k][0] == steps[k] * inner;
  }
  const std::int64_t rows = together ? last - first : 1;
  for_each_row(l, base, first, together ? first + 1 : last, [&](void* const* p) {
    kernel(tile_call{p, steps, rows * inner});
  });
}
XLA_INSTANCE(void run_map_rows<void>(const loop_nest&, tile_kernel, void* const*, std::int64_t,
                                     std::int64_t));

}  // namespace xla::kernel
