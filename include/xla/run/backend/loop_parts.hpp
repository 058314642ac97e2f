// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides the rows of a loop's batch among threads: each runs all steps on its rows, so that they
// wait for each other once per loop and not in every step. loops.hpp holds it; loop_rows.hpp says
// which loops can be divided.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"
#include "xla/kernel/threads/pool.hpp"
#include "xla/run/backend/loop_program.hpp"
#include "xla/run/backend/loop_rows.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// The parts of a loop: the same loop with fewer rows, on operands that begin at its first row.
template <class Loop>
class basic_loop_parts {
 public:
  /// Divides a loop where that pays: its steps have some work, and the matrices by which they
  /// multiply fit in a core's cache, because each thread reads all of them. make(rows, n) makes the
  /// loop with n rows.
  template <class In, class Make>
  [[XLA_PLANS]] void divide(const basic_loop_program<In>& of, const basic_plan<In>& body,
                            std::int64_t trip, const step& s, const Make& make) {
    constexpr std::int64_t worth_dividing = 4 * kernel::parallel_work;
    using source = typename basic_loop_program<In>::slot_source;
    const std::int64_t threads = num_threads();
    if (threads == 1 || !of.draws.empty() || !of.yielded.empty() || !of.read_rows.empty() ||
        !of.saved_rows.empty())
      return;
    list<char> per_step(of.sources.size() + of.carries.size(), true);
    for (int i = 0; i < of.sources.size(); ++i)
      if (const auto is = of.sources[i].is; is == source::whole || is == source::number)
        per_step[i] = false;
    const basic_batch_rows<In> rows(body, per_step, of.carries.size());
    if (rows.count() == 0 || trip * rows.work() < worth_dividing ||
        rows.matrices() > kernel::own_memory<>)
      return;
    const std::int64_t parts = std::min(threads, rows.count() / rows.fewest());
    if (parts < 2 || !find_row_bytes(of, body.source, s, rows)) return;
    rows_ = rows.count();
    const as_part_of_loop alone;
    part_ = make(rows, rows_ / parts);
    if (rows_ % parts > 0) larger_ = make(rows, rows_ / parts + 1);
    parts_ = parts;
    if (!overwrites(*part_, body) || (larger_ && !overwrites(*larger_, body))) clear();
  }
  [[XLA_PLANS]] void clear() {
    parts_ = 0;
    part_.reset();
    larger_.reset();
  }
  bool empty() const { return parts_ == 0; }

  void run(void* const* table, const int* operands) const {
    const int n = row_bytes_.size();
    const std::int64_t rows = rows_ / parts_, larger = rows_ % parts_;
    kernel::parallel_for(parts_, [&](std::int64_t i) {
      const std::int64_t first = rows * i + std::min(i, larger);
      short_array<void*, kernel::max_operands> all(n);
      short_array<int, kernel::max_operands> numbers(n);
      for (int k = 0; k < n; ++k) {
        all.get()[k] = table[operands[k]];
        numbers.get()[k] = k;
        if (row_bytes_[k] > 0)
          all.get()[k] = static_cast<std::byte*>(all.get()[k]) + first * row_bytes_[k];
      }
      (i < larger ? *larger_ : *part_).run(all.get(), numbers.get(), nullptr);
    });
  }
  std::int64_t arena_bytes() const {
    const std::int64_t larger = larger_ ? rows_ % parts_ : 0;
    return part_ ? (parts_ - larger) * part_->arena_bytes() +
                       (larger > 0 ? larger * larger_->arena_bytes() : 0)
                 : 0;
  }
  std::int64_t bytes() const {
    return row_bytes_.bytes() + (part_ ? part_->bytes() : 0) + (larger_ ? larger_->bytes() : 0);
  }
  [[gnu::cold]] std::string print() const {
    if (empty()) return "";
    return "  in " + std::to_string(parts_) + " parts of its " + std::to_string(rows_) + " rows\n";
  }

 private:
  /// Plans are made for the thread that runs a part: it has no others.
  struct as_part_of_loop {
    bool outer = std::exchange(kernel::detail::in_loop, true);
    ~as_part_of_loop() { kernel::detail::in_loop = outer; }
  };
  /// Whether a part's steps overwrite every carry that those of the whole loop do: its last value
  /// may then be where the first one was.
  template <class In>
  [[XLA_PLANS]] static bool overwrites(const Loop& part, const basic_plan<In>& body) {
    bool all = true;
    for (int k = 0; k < body.in_place.size(); ++k)
      all &= part.body_plan()->in_place[k] || !body.in_place[k];
    return all;
  }
  /// False if an operand is read or written by rows and as a whole.
  template <class In>
  [[XLA_PLANS]] bool find_row_bytes(const basic_loop_program<In>& of, const program& body,
                                    const step& s, const basic_batch_rows<In>& rows) {
    using source = typename basic_loop_program<In>::slot_source;
    bool same = true;
    row_bytes_.assign(s.inputs + s.outputs, -1);
    const auto note = [&](int operand, int value) {
      if (operand < 0) return;
      std::int64_t& is = row_bytes_[operand];
      const std::int64_t bytes = rows.bytes(value);
      same &= is < 0 || is == bytes;
      is = bytes;
    };
    for (int i = 0; i < of.sources.size(); ++i) {
      const int leaf = body.slots[i].leaf;
      if (leaf < 0 || !rows.is_read(leaf)) continue;
      note(of.sources[i].operand, leaf);
      if (of.sources[i].is == source::before) note(of.sources[i].other, leaf);
    }
    for (int k = 0; k < of.carries.size(); ++k) {
      const int next = body.writes[k].value;
      note(of.carries[k].init, next);
      note(of.carries[k].last, next);
      note(of.carries[k].history.operand, next);
    }
    for (int k = 0; k < of.results.size(); ++k) note(of.results[k].operand, body.results[k]);
    for (const auto& [operand, carry] : of.same) note(operand, body.writes[carry].value);
    return same;
  }

  std::unique_ptr<Loop> part_, larger_;  // the first parts may have one row more
  std::int64_t parts_ = 0, rows_ = 0;
  list<std::int64_t> row_bytes_;  // per operand: of a row; 0: all parts read it, -1: none does
};

}  // namespace xla::detail
