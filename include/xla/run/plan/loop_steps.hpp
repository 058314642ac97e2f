// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between a plan and its loops: running their steps, and functions that make them.
// The implementation is run/backend/loops.hpp, which programs without loops do not contain.

#include <cstdint>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/node.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

class backend;
struct program;
struct ready_step;
struct step;
template <class In>
struct basic_sized_program;
template <class In>
struct basic_plan;
template <class In>
class basic_planned;
template <class In>
class basic_pruner;
template <class In>
struct basic_cached_executable;

/// Runs the steps of one loop of a program at its sizes: run/backend/loops.hpp.
class loop_steps {
 public:
  loop_steps() = default;
  loop_steps(const loop_steps&) = delete;
  virtual ~loop_steps() = default;

  /// Runs all of them. operands: the loop's inputs and outputs, by their numbers in the table;
  /// random: the positions of the program's random ops, for loops in the first step.
  virtual void run(void* const* table, const int* operands, const rng_state* random) const = 0;
  virtual std::int64_t arena_bytes()
      const = 0;                           ///< bytes that a run takes for itself, and the next one
  virtual std::int64_t bytes() const = 0;  ///< bytes that it has taken
  /// The plan of its body, and its runner; nullptr: another backend runs it.
  virtual const basic_plan<void>* body_plan() const = 0;
  /// Whether it may write its step's output k over the value `old`: a carry that its steps update
  /// in place and that nothing else in the loop reads.
  virtual bool overwrites(const basic_plan<void>& p, int k, int old) const = 0;
  virtual basic_planned<void>* planned_body() const = 0;
  /// The loop's operands for a slot or result of its body: one, or one per step, where -1 is none.
  virtual list<int> operands_of_slot(int i) const = 0;
  virtual list<int> operands_of_result(int i) const = 0;
  /// This step of a plan as text: a table of what each of its steps has of its own, and the body.
  virtual std::string print(const basic_plan<void>& p, const ready_step& s,
                            const list<std::string>& slots, const std::string& before) const = 0;

  std::unique_ptr<loop_steps> next;  ///< of the same plan
  const step* of = nullptr;          ///< the program's step
};

/// A loop of a compiled function that a backward() outside runs again: its node in the function's
/// graph, the values before its body, and then its results.
struct loop_of_call {
  const node* nodes;
  const int* lists;  ///< inputs of nodes that have many
  int count, loop;
  bool winograd;
  const list<std::int64_t>& symbols;
  list<ref<impl>>& values;
};

/// A signature of a function with loops.
struct position_in_family {
  bool full = false;  ///< the number is at its limit
  int leaver = -1;    ///< its index: that of the one to be evicted for it; -1: none may be
  std::uint64_t family =
      0;  ///< nonzero; equal for signatures that differ in numbers of steps alone
  bool other_steps = false;  ///< there is another member of its family
};

/// Makes one kind of loops from a program with a loop's step, and adds them to the program's: as
/// steps of plans with the kernels of their regions, or for a given backend.
struct loop_maker {
  loop_steps* (*make)(const basic_sized_program<void>& p, const step& s,
                      const region_kernel* kernels, const backend* by,
                      std::unique_ptr<loop_steps>& others);
  /// Removes the parts of a loop's step and body that a call does not need: run/plan/loop_body.hpp.
  void (*prune)(basic_pruner<void>& by, step& loop);
  /// While a program gets its sizes, and all values before this one, a loop, have them: makes its
  /// random ops consume numbers for every step.
  void (*repeat_draws)(basic_sized_program<void>& p, int value);
  /// Finds the index of a signature among a function's executables. step_axes: the axes found for
  /// the program before.
  void (*find_family)(const program& p, list<char>& step_axes,
                      const list<basic_cached_executable<void>>& all, const list<shape>& slots,
                      const list<char>& absent, position_in_family& found);
  /// Finds these axes and makes the rows that a captured program, and the same for other backends,
  /// do not store. The rows are in the same list: run/backend/whole_program.hpp.
  void (*make_rows)(program& p, const program*& ops, list<char>& step_axes);
  /// nullptr if there is no backward() outside.
  void (*replay)(const loop_of_call& of);
};

inline loop_steps* make_steps(const op_info& of, const basic_sized_program<void>& p, const step& s,
                              const region_kernel* kernels, const backend* by,
                              std::unique_ptr<loop_steps>& others) {
  return static_cast<const loop_info&>(of).maker->make(p, s, kernels, by, others);
}
inline void prune_loop(const op_info& of, basic_pruner<void>& by, step& s) {
  static_cast<const loop_info&>(of).maker->prune(by, s);
}

}  // namespace xla::detail
