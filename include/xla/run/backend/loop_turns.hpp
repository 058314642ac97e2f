// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of one run of a loop (loops.hpp); and what a plan adds to it: steps of its own that run
// between the loop's, and places for rows of stacks.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/execute/planned.hpp"

namespace xla::detail {

/// The state of one run of a loop.
struct loop_turns {
  std::unique_ptr<buffer[]> all;
  list<slot_value> slots;
  list<buffer*> outputs;
  list<rng_state> random;  ///< where the step's random numbers begin
  list<void*> to,
      other;          ///< per carry: where the last step writes, and where the step before it does
  list<void*> now;    ///< where the latest step has written
  list<void*> aside;  ///< per result: where steps write it if it is not saved
  list<void*> room;   ///< for the pointers of the bound steps
  void** pointers = nullptr;
  int count = 0;             ///< of pointers, and of unused ones after them
  list<pointer_move> moves;  ///< from the third step on
  list<std::int64_t> by;     ///< the same for chain_turns
  list<ref<buffer>> own;
  std::int64_t number = 0;
  std::int64_t steps = 0;  ///< that have run
  std::int64_t trip = 0;   ///< how many will run; unknown if the first carry is tested

  /// Pointers fill whole lines of the cache: a load of what was just stored across two lines is
  /// slow.
  [[XLA_PLANS]] void make_pointers(int n) {
    constexpr int line = 64 / sizeof(void*);
    count = (n + line - 1) / line * line;
    room.assign(count + line, nullptr);
    pointers = room.data();
    while (reinterpret_cast<std::uintptr_t>(pointers) % 64 != 0) ++pointers;
  }
  void spread_moves() {
    by.assign(2 * count, 0);
    for (const pointer_move& m : moves)
      for (int k = 0; k < 2; ++k) by[k * count + m.pointer] = m.by[k];
  }
};

/// Whether a step of a loop's body reads this value, or a result is a copy of it.
template <class In>
[[XLA_PLANS]] bool reads_value(const dependent<In, plan>& p, int v) {
  bool read = false;
  for (const ready_step& s : p.steps)
    for (int k = 0; k < s.inputs; ++k) read |= p.base[p.operands[s.first_operand + k]] == v;
  for (int c : p.copies) read |= c >= 0 && p.base[c] == v;
  return read;
}

/// The steps of a plan that run between those of a loop: run/backend/join_updates.hpp.
template <class In>
class steps_between {
 public:
  /// Those of a group that begins with the loop.
  [[XLA_PLANS]] void set(const dependent<In, plan>& p, const step_group& g, std::int64_t trip) {
    plan_ = &p;
    for (int turn = 0; turn <= trip; ++turn)
      ends_.push_back(g.first + 1 + p.borders[g.borders + turn]);
  }
  /// Those that follow the loop's step after so many others.
  void run_after(std::int64_t turn, void* const* table) const {
    if (!plan_) return;
    const int* const end = &ends_[static_cast<int>(turn)];
    for (int i = end[0]; i < end[1]; ++i) run_step<In>(*plan_, plan_->steps[i], table, nullptr);
  }

 private:
  const dependent<In, plan>* plan_ = nullptr;
  list<int> ends_;  // per step, and at the end: the step of the plan after all that have run before
};

/// Where a row of a stack is, if it is in the memory of another value of the plan.
struct place_of_row {
  int value = -1;
  std::int64_t offset = 0;
};

/// The operands of a loop whose rows are in such places: run/backend/stack_places.hpp.
class scattered_rows {
 public:
  [[XLA_PLANS]] void add(int operand, int operands, const list<place_of_row>& rows) {
    if (first_.empty()) first_.assign(operands, -1);
    first_[operand] = places_.size();
    for (const place_of_row& r : rows) places_.push_back(r);
  }
  /// Null if the operand is not one of them.
  std::byte* find(int operand, std::int64_t row, void* const* table) const {
    if (first_.empty() || first_[operand] < 0) return nullptr;
    const place_of_row& r = places_[first_[operand] + static_cast<int>(row)];
    return static_cast<std::byte*>(table[r.value]) + r.offset;
  }

 private:
  list<int> first_;  // per operand: its first place, or -1; may be empty
  list<place_of_row> places_;
};

}  // namespace xla::detail
