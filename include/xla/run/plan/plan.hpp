// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan: a program at given sizes with storage for every value and loops for every step.
// specialize.hpp makes it and run/execute/planned.hpp runs it; other backends have executables of
// their own.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "xla/base/later.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/run/plan/loop_steps.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// Where the elements of a value lie during a call.
enum class place : std::uint8_t {
  arena,   ///< at an offset of the frame's memory
  slot,    ///< an argument, parameter or buffer at entry
  grad,    ///< a gradient at entry
  result,  ///< a new tensor, made for each call
  write,   ///< the new value of a slot or gradient
  lent,    ///< at an offset of a new gradient's or result's memory, before that is written
  slice,   ///< one slice at a time at an offset of each thread's memory for a group, `index`
};

struct placement {
  place where = place::arena;
  int index = -1;           ///< of the slot, result or write; lent: of the output, writes first
  std::int64_t offset = 0;  ///< arena, lent
  std::int64_t bytes = 0;
};

/// A step with its sizes: ready to run on the pointers of a frame.
struct ready_step {
  step_kind kind = step_kind::library;
  const op_info* op = nullptr;
  region_kernel kernel;
  int first_operand = 0;  ///< in plan::operands: inputs, then outputs
  int inputs = 0, operands = 0;
  int first_shape = 0;  ///< in plan::shapes_of_operands
  int loops = -1;       ///< in plan::loops
  int ops = 1;
  int group = -1;        ///< of steps that run together; slice by slice, loops are those of a slice
  int sliced = -1;       ///< in plan::sliced
  int first_slice = -1;  ///< in plan::slice_shapes and slice_places: operands of a slice
  int random = -1;       ///< the number of the random op
  int keeper = -1;       ///< in a frame's table, the buffer that keeps what the op prepares
  int exchange = -1;     ///< of start and wait: its number; of a loop: 0
  const loop_steps* loop = nullptr;  ///< what runs the steps of a loop
  packed_attributes attr;            ///< with a known size
  std::source_location at;
  const step* source = nullptr;
};

/// Where the slices of an operand lie: one at a time in each thread's memory, or in the value's
/// own.
struct slice_place {
  std::int64_t offset = -1;             ///< in a thread's memory; -1: in the value's own
  std::int64_t strides[max_rank] = {};  ///< there, in bytes, along the axes that are sliced
};

template <class In>
struct basic_plan;

/// Steps that run together. Either for one slice of their leading axes after the other: what only
/// they read is there one slice at a time. Or whole, side by side, and none reads what another
/// writes. Or a map on the parts of what the step before it makes, as soon as each is there.
struct step_group {
  static constexpr std::int64_t whole = 0;
  int first = 0, last = 0;  ///< steps
  std::int64_t slices = 1;  ///< or whole
  int threads = 1;          ///< that have memory in the arena, or steps
  int borders = -1;         ///< whole: in plan::borders, of the first thread
  std::int64_t offset = 0;  ///< in the arena
  std::int64_t bytes = 0;   ///< for each thread
  /// Runs the second of two steps on the parts of what the first makes.
  void (*on_parts)(const basic_plan<void>& p, const step_group& g, void* const* table) = nullptr;

  bool by_slices() const { return slices != whole && !on_parts; }
};

template <class In>
class basic_planned;
template <class In>
struct basic_frame;

/// The exchanges of a plan. They bring along what runs them, so that other plans do without.
class plan_exchanges {
 public:
  virtual ~plan_exchanges() = default;
  virtual int count() const = 0;  ///< that are started and waited for
  /// Runs a start or a wait.
  virtual void run_step(const basic_plan<void>& p, const ready_step& s, void* const* table) = 0;
  /// Runs all steps, and ends what is under way if one fails.
  virtual void run_all(const basic_planned<void>& e, const basic_frame<void>& f,
                       const rng_state* random) = 0;
};

/// A program at given sizes: every value has its place, every step its loops.
template <class In>
struct basic_plan : basic_sized_program<In> {
  [[gnu::cold]] explicit basic_plan(basic_sized_program<In>&& p)
      : basic_sized_program<In>(std::move(p)) {}
  basic_plan(const basic_plan&) = delete;
  [[gnu::cold]] ~basic_plan() = default;

  list<int> base;          ///< per value: the value whose elements it shares
  list<placement> places;  ///< per value, of its base
  list<int> operands;
  list<shape> operand_shapes;
  kernel::loop_nests loops;
  list<int> order;  ///< per step: its number in the program
  list<ready_step> steps;
  list<int> group_of;  ///< per step: its group, or -1
  list<step_group> groups;
  list<shape> sliced;  ///< per step that runs slice by slice: the axes that slices are taken of
  list<shape> slice_shapes;
  list<slice_place> slice_places;
  list<int> borders;  ///< per thread of a group of whole steps where its own begin; where all end
  list<int> once;     ///< steps that depend on sizes alone
  list<int> copies;   ///< results and writes that are copied at the end: -1 or value
  list<int> scalars;  ///< values that a call writes as numbers
  list<int> over;     ///< per value: the one in whose memory it lies, or -1
  list<int> lent;     ///< values that lie in memory of outputs
  list<int> moving;   ///< values that share elements bound at each call
  list<int> keepers;  ///< slots whose buffers keep what ops prepare; in a table after the values
  std::unique_ptr<plan_exchanges> exchanges;  ///< none where there is one replica
  std::unique_ptr<loop_steps> bodies;         ///< of its loops; none where there are none
  std::int64_t arena_bytes = 0;
  std::int64_t unshared_bytes = 0;  ///< what the arena would take without reuse

  const step& step_at(int i) const { return this->source.steps[order[i]]; }
  /// What runs the steps of a loop; nullptr: it is none.
  const loop_steps* loop_of(const step& s) const {
    const loop_steps* l = bodies.get();
    while (l && l->of != &s) l = l->next.get();
    return l;
  }
  /// The first and the last step that run when step i does.
  int begin_of(int i) const {
    const int g = group_of[i];
    return g < 0 ? i : groups[g].first;
  }
  int end_of(int i) const {
    const int g = group_of[i];
    return g < 0 ? i : groups[g].last;
  }
  /// Whether step i runs slice by slice with others.
  bool in_slices(int i) const {
    const int g = group_of[i];
    return g >= 0 && groups[g].by_slices();
  }
  /// Whether step i, a map, runs on the parts of what the one before it makes.
  bool on_parts(int i) const {
    const int g = group_of[i];
    return g >= 0 && groups[g].on_parts && groups[g].last == i;
  }
  /// Whether it runs at the same time as others that read nothing of what it makes, or alone.
  bool waits_for_none(int i) const {
    const int g = group_of[i];
    return g < 0 || groups[g].slices == step_group::whole;
  }
};
using plan = basic_plan<void>;

/// A plan whose steps are put in order, or replaced. once: per step of the program, it does not run
/// in each call.
struct plan_steps {
  basic_plan<void>& of;
  list<char>& once;
  const region_kernel* kernels;  ///< of its regions
};

/// Whether output k of a step has been written before: an exchange goes on there.
template <class = void>
inline bool goes_on(const program& p, const step& s, int k) {
  return s.kind > step_kind::row && p.inputs[s.first_input + k] == p.outputs[s.first_output + k];
}

/// Whether step i may write an output over a value that it reads, if nothing else reads that later:
/// a map reads and writes the same element; of others the ops say.
template <class In = void>
[[gnu::cold, gnu::noinline]] bool may_overwrite(const later<In, plan>& p, int i, int value,
                                                int old) {
  const step& s = p.step_at(i);
  if (s.kind == step_kind::map) return true;
  if (s.kind != step_kind::library) return false;
  const plan_hooks* const hooks = p.source.values[s.value].op->plan;
  return hooks && hooks->overwrites && hooks->overwrites(p, i, value, old);
}

/// The algorithm of a step, where its kernel has several.
template <class In = void>
[[gnu::cold]] kernel_choice choice_of(const later<In, plan>& p, const ready_step& s) {
  kernel_choice c;
  if (!s.op || !s.op->choose) return c;
  kernel_call call;
  call.in_shapes = &p.operand_shapes[s.first_shape];
  call.out_shape = call.in_shapes + s.inputs;
  call.attr = s.attr;
  s.op->choose(call, c);
  if (s.keeper < 0) c.cached = 0;
  return c;
}

/// True when a region has read an element of its inputs for the last time before it writes that
/// element of its output number k: always in a map; in a row, which is walked once more after each
/// of its reductions, if the output is one of the last walk.
template <class = void>
[[gnu::cold]] inline bool reads_before_writing(const program& p, const step& s, int k) {
  if (s.kind == step_kind::map) return true;
  int walk[64] = {}, last = 0, output = 0, found = -1;
  bool whole_row[64] = {};
  for (int i = 0; i < s.words; ++i) {
    const auto word = [&](int o) { return kernel::micro_op::of(p.words[s.first_word + o]); };
    const auto m = word(i);
    const bool one = m.reduce || (!m.input && m.b != m.none && m.c == m.none && word(m.b).index);
    whole_row[i] = one || !m.input || m.invariant;
    if (!m.input)
      for (int o : {m.a, m.b, m.c}) {
        if (o == kernel::micro_op::none) continue;
        walk[i] = std::max(walk[i], walk[o] + (word(o).reduce ? 1 : 0));
        whole_row[i] &= one || whole_row[o];
      }
    last = std::max(last, walk[i]);
    if (m.output && output++ == k) {
      if (m.column) return false;
      found = i;
    }
  }
  return walk[found] == last && !whole_row[found];
}

}  // namespace xla::detail
