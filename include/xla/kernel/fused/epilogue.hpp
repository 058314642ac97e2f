// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work on a result while it is in the cache. The kernel that computes the result notifies the
// epilogue; the plan makes it and says what runs. The pass `epilogues` decides which maps may run
// this way.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "xla/kernel/fused/loops.hpp"

namespace xla::kernel {

/// Runs a function, such as the maps that follow a product, on parts of a result while they are in
/// the cache. A part is some rows of its last axis. The kernel reports finished elements; the
/// thread that completes a part runs the function on it. rest() then runs the parts that no kernel
/// has reported, shared among threads.
template <class In>
class basic_epilogue {
 public:
  /// For rows [first, last).
  using function = void (*)(const void* self, std::int64_t first, std::int64_t last);

  /// row_bytes: the size of a row in the cache.
  basic_epilogue(std::int64_t rows, std::int64_t columns, std::int64_t row_bytes, function run,
                 const void* self)
      : rows_(rows), columns_(columns), run_(run), self_(self) {
    constexpr std::int64_t cached = 1 << 15, max_parts = 1 << 13;
    part_ = std::max(
        {cached / std::max<std::int64_t>(row_bytes, 1), rows / max_parts + 1, std::int64_t{1}});
    const std::int64_t bytes = parts() * static_cast<std::int64_t>(sizeof(counter));
    made_ = static_cast<counter*>(thread_scratch<basic_epilogue>(bytes));
    for (std::int64_t i = 0; i < parts(); ++i) new (made_ + i) counter(0);
  }
  /// The same for a kernel that computes the rows from `first` on and counts them from 0.
  basic_epilogue(const basic_epilogue& all, std::int64_t first)
      : rows_(all.rows_),
        columns_(all.columns_),
        part_(all.part_),
        first_(all.first_ + first),
        run_(all.run_),
        self_(all.self_),
        shared_(all.shared_),
        made_(all.made_) {}
  basic_epilogue(const basic_epilogue&) = delete;
  basic_epilogue& operator=(const basic_epilogue&) = delete;

  /// Reports that the kernel has written `columns` columns of rows [first, last); once for each
  /// element.
  [[gnu::noinline]] void made(std::int64_t first, std::int64_t last, std::int64_t columns) const {
    first += first_;
    last += first_;
    for (std::int64_t i = first / part_; i * part_ < last; ++i) {
      const std::int64_t rows = std::min(last, end_of(i)) - std::max(first, i * part_);
      if (add(made_[i], rows * columns) == elements(i)) run_(self_, i * part_, end_of(i));
    }
  }
  /// Runs the function on the parts that no kernel has reported. The kernel has returned.
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
  // An atomic read-modify-write waits until earlier stores are visible in the cache.
  std::int64_t add(counter& to, std::int64_t n) const {
    if (shared_) return to.fetch_add(n, std::memory_order_acq_rel) + n;
    n += to.load(std::memory_order_relaxed);
    to.store(n, std::memory_order_relaxed);
    return n;
  }
  std::int64_t parts() const { return (rows_ + part_ - 1) / part_; }
  std::int64_t end_of(std::int64_t part) const { return std::min(rows_, (part + 1) * part_); }
  std::int64_t elements(std::int64_t part) const {
    return (end_of(part) - part * part_) * columns_;
  }

  std::int64_t rows_, columns_, part_, first_ = 0;
  function run_;
  const void* self_;
  bool shared_ = num_threads() > 1;
  counter* made_;  // per part: how many of its elements are finished
};
using epilogue = basic_epilogue<void>;

/// A map region that runs on rows of its loops, whose last axis is not merged.
class map_rows {
 public:
  map_rows(const loop_nest& l, tile_kernel kernel, void* const* base)
      : loops_(l), kernel_(kernel), columns_(l.inner()) {
    if (columns_ > 0) rows_ = l.elements / columns_;
    together_ = even_ = l.axes <= 2;
    for (int k = 0; k < l.operands; ++k) {
      base_[k] = static_cast<char*>(base[k]);
      steps_[k] = l.strides[k][l.axes - 1];
      const std::int64_t on = l.axes > 1 ? l.strides[k][l.axes - 2] : 0;
      move_[k] = on * l.bytes[k];
      together_ &= rows_ <= 1 || on == steps_[k] * columns_;
      if (on != 0 && std::find(base, base + k, base[k]) == base + k)
        row_bytes_ += columns_ * l.bytes[k];
    }
    joined_ = rows_to_join(l);
    if (joined_ == 1) return;
    void* p[max_operands];
    std::copy_n(base, l.operands, p);
    repeat_rows(l, joined_, p);
    for (int k = 0; k < l.operands; ++k) base_[k] = static_cast<char*>(p[k]);
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  /// The size of a row in the cache.
  std::int64_t row_bytes() const { return row_bytes_; }

  void run(std::int64_t first, std::int64_t last) const {
    if (!even_)
      return for_each_row(loops_, reinterpret_cast<void* const*>(base_), first, last,
                          [&](void* const* p) {
                            kernel_({p, steps_, columns_});
                          });
    void* p[max_operands];
    for (int k = 0; k < loops_.operands; ++k) p[k] = base_[k] + first * move_[k];
    if (together_) return kernel_({p, steps_, (last - first) * columns_});
    for (std::int64_t row = first; row < last; row += joined_) {
      kernel_({p, steps_, std::min(joined_, last - row) * columns_});
      for (int k = 0; k < loops_.operands; ++k)
        p[k] = static_cast<char*>(p[k]) + joined_ * move_[k];
    }
  }

 private:
  const loop_nest& loops_;
  tile_kernel kernel_;
  std::int64_t rows_ = 0, columns_, row_bytes_ = 0;
  std::int64_t joined_ = 1;  // rows that run as one
  char* base_[max_operands];
  std::int64_t steps_[max_operands],
      move_[max_operands];  // the strides of elements, and those of rows in bytes
  bool even_;                                              // rows are equal distances apart
  bool together_;  // and follow one another in every operand
};

}  // namespace xla::kernel
