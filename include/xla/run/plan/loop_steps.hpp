// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a plan knows of the loops in it: an interface to run their steps, and functions to make
// them. The implementation is run/backend/loops.hpp, which programs without loops do not have.

#include <cstdint>
#include <memory>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/node.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

class backend;
struct program;
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

/// What runs the steps of one loop of a program at its sizes: run/backend/loops.hpp.
class loop_steps {
 public:
  loop_steps() = default;
  loop_steps(const loop_steps&) = delete;
  virtual ~loop_steps() = default;

  /// Runs all of them. operands: the loop's inputs and outputs, by their numbers in the table;
  /// random: where the numbers of the program's random ops begin, in a loop in the first step.
  virtual void run(void* const* table, const int* operands, const rng_state* random) const = 0;
  virtual std::int64_t arena_bytes() const = 0;  ///< that a run takes for itself, and the next
  virtual std::int64_t bytes() const = 0;        ///< that it has taken
  /// The plan of its body, and what runs that; nullptr: another backend does.
  virtual const basic_plan<void>* body_plan() const = 0;
  /// Whether it may write its step's output k over the value old: a carry, which its steps update
  /// where it is and nothing else of it reads.
  virtual bool overwrites(const basic_plan<void>& p, int k, int old) const = 0;
  virtual basic_planned<void>* planned_body() const = 0;
  /// The loop's operands that a slot of its body is, or a result of it goes to: one, or one a step,
  /// where -1 is none.
  virtual list<int> operands_of_slot(int i) const = 0;
  virtual list<int> operands_of_result(int i) const = 0;

  std::unique_ptr<loop_steps> next;  ///< of the same plan
  const step* of = nullptr;          ///< the program's step
};

/// A loop of a compiled function that a backward() outside runs again: its node among the
/// function's, the values of those before its body, and then of what it made.
struct loop_of_call {
  const node* nodes;
  const int* lists;  ///< inputs of nodes that have many
  int count, loop;
  bool winograd;
  const list<std::int64_t>& symbols;
  list<ref<impl>>& values;
};

/// A signature among those of a function with loops.
struct position_in_family {
  bool full = false;         ///< there are as many as there may be
  int leaver = -1;           ///< where it is: the one that goes for this one; -1: none may
  std::uint64_t family = 0;  ///< not 0; the same for those that differ in numbers of steps alone
  bool other_steps = false;  ///< there is another one of its family
};

/// Of one kind of loops. Makes that, of a program with the loop's step, and puts it before others
/// of the program: of steps for plans, with the kernels of their regions, or where a backend is
/// given for that.
struct loop_maker {
  loop_steps* (*make)(const basic_sized_program<void>& p, const step& s,
                      const region_kernel* kernels, const backend* by,
                      std::unique_ptr<loop_steps>& others);
  /// Leaves out of a loop's step and its body what a call does not want: run/plan/loop_body.hpp.
  void (*prune)(basic_pruner<void>& by, step& loop);
  /// Of a program that is given its sizes, when all before this value, a loop, have them: its
  /// random ops take numbers for every step.
  void (*repeat_draws)(basic_sized_program<void>& p, int value);
  /// Finds the place of a signature among a function's executables. step_axes: what it has found of
  /// the program before.
  void (*find_family)(const program& p, list<char>& step_axes,
                      const list<basic_cached_executable<void>>& all, const list<shape>& slots,
                      const list<char>& absent, position_in_family& found);
  /// nullptr where no backward() outside is.
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
