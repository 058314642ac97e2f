// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan: a program at given sizes with storage for every value and loops for every step.
// specialize.hpp makes it and run/execute/planned.hpp runs it; other backends have executables of
// their own.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/run/plan/loop_steps.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// Where the elements of a value are stored during a call. The frame is the memory of one call.
enum class storage : std::uint8_t {
  arena,    ///< at an offset in the frame's arena, the memory for intermediate values
  slot,     ///< the value of an argument, parameter or buffer when the call begins
  grad,     ///< a gradient when the call begins
  result,   ///< a new tensor that the call returns
  write,    ///< the new value of a slot or gradient
  donated,  ///< at an offset in the memory of a gradient or result that is written later in the
            ///< call
  slice,    ///< one slice at a time, at an offset in each thread's memory for the group `index`
};

struct placement {
  storage where = storage::arena;
  int index = -1;           ///< of the slot, result or write; donated: of the output, writes first
  std::int64_t offset = 0;  ///< arena, donated
  std::int64_t bytes = 0;
};

/// A step with its sizes and loops, which can run on the pointers of a frame.
struct ready_step {
  step_kind kind = step_kind::library;
  const op_info* op = nullptr;
  region_kernel kernel;
  int first_operand = 0;  ///< in plan::operands: inputs, then outputs
  int inputs = 0, operands = 0;
  int first_shape = 0;  ///< in plan::operand_shapes, if an op's kernel runs it
  int loops = -1;       ///< in plan::loops
  int ops = 1;
  int group = -1;  ///< of steps that run together; slice by slice, the loops are those of one slice
  int sliced = -1;       ///< in plan::sliced
  int first_slice = -1;  ///< in plan::slice_shapes and slice_placements: operands of a slice
  int random = -1;       ///< the number of the random op
  /// The entry of the frame's table for the buffer that caches the op's packed input.
  int cache_owner = -1;
  int exchange = -1;                 ///< of start and wait: its number; of a loop: 0
  const loop_steps* loop = nullptr;  ///< runs the steps of a loop
  packed_attributes attr;            ///< with a known size
  std::source_location at;
  const step* source = nullptr;
};

/// Where the slices of an operand are: one at a time in each thread's memory, or in the memory of
/// the whole value.
struct slice_placement {
  std::int64_t offset = -1;             ///< in a thread's memory; -1: in the value's own
  std::int64_t strides[max_rank] = {};  ///< there, in bytes, along the axes that are sliced
};

template <class In>
struct basic_plan;

/// Steps that run together, in one of four ways. Slice by slice of their leading axes: values that
/// only they read are stored one slice at a time. Image by image: the same for convolutions and
/// maps. Side by side on several threads: none reads what another writes. A map on parts of the
/// result of the step before it, as soon as each part is complete (an epilogue).
struct step_group {
  // threads and bytes are for slices and images; cut gives these their shapes.
  static constexpr std::int64_t whole = 0, parts = 1;
  int first = 0, last = 0;      ///< the number of steps
  std::int64_t slices = parts;  ///< how many; or 0: whole steps; or 1: an epilogue
  int threads = 1;          ///< threads with memory in the arena, or with steps of their own; 0:
                            ///< the first is a loop that runs the others between its steps
  int borders = -1;         ///< whole steps: in plan::borders, of the first thread; of a loop: per
                            ///< step, how many others have run before those that follow it; of
                            ///< images: per step, whether it runs on parts of the one before it
  std::int64_t offset = 0;  ///< in the arena
  std::int64_t bytes = 0;   ///< for each thread
  /// Runs an epilogue or images.
  void (*run)(const basic_plan<void>& p, const step_group& g, void* const* table,
              std::byte* arena) = nullptr;
  /// Gives a step the shapes of one slice or image, and the addresses of its operands there. space
  /// becomes that of one slice.
  void (*cut)(basic_plan<void>& p, ready_step& s, shape& space) = nullptr;

  bool by_slices() const { return slices > parts; }
  bool by_images() const { return by_slices() && run; }
};

template <class In>
class basic_planned;
template <class In>
struct basic_frame;

/// The exchanges of a plan, with the code that runs them, which other plans do not contain.
class plan_exchanges {
 public:
  virtual ~plan_exchanges() = default;
  virtual int count() const = 0;  ///< that are started and waited for
  /// Runs a start or a wait.
  virtual void run_step(const basic_plan<void>& p, const ready_step& s, void* const* table) = 0;
  /// Runs all steps; if one fails, ends the exchanges in flight.
  virtual void run_all(const basic_planned<void>& e, const basic_frame<void>& f,
                       const rng_state* random) = 0;
};

/// A program at given sizes, with storage for every value and loops for every step.
template <class In>
struct basic_plan : basic_sized_program<In> {
  [[XLA_PLANS]] explicit basic_plan(basic_sized_program<In>&& p)
      : basic_sized_program<In>(std::move(p)) {}
  basic_plan(const basic_plan&) = delete;
  [[XLA_PLANS]] ~basic_plan() = default;

  /// Per value: the one whose elements it shares, as an alias; else itself.
  list<int> base;
  list<placement> placements;  ///< per value, of its base
  list<int> operands;
  list<shape> operand_shapes;  ///< of the steps that kernels of ops run
  kernel::loop_nests loops;
  list<int> order;  ///< per step: its number in the program
  list<ready_step> steps;
  list<int> group_of;  ///< per step: its group, or -1
  list<step_group> groups;
  list<shape> sliced;  ///< per step that runs slice by slice: the axes that slices are taken of
  list<shape> slice_shapes;
  list<slice_placement> slice_placements;
  list<int> borders;  ///< per thread of a group of whole steps where its own begin; where all end
  /// Steps that depend on sizes alone; they run when memory is made, not in each call.
  list<int> once;
  list<int> copies;        ///< results and writes that are copied at the end: -1 or value
  list<int> scalars;       ///< values that are numbers written by each call
  list<int> over;          ///< per value: the one whose memory it overwrites, or -1
  list<int> donated;       ///< values that are in memory of outputs
  list<int> moving;        ///< per value: shares elements that are bound in each call
  list<int> cache_owners;  ///< slots whose buffers cache packed inputs; in a table after the values
  std::unique_ptr<plan_exchanges> exchanges;  ///< null if there is one replica
  std::unique_ptr<loop_steps> bodies;         ///< null if there are none
  std::int64_t arena_bytes = 0;
  std::int64_t unshared_bytes = 0;  ///< the arena's size without reuse

  /// The shape of an operand of a step.
  const shape& shape_of(const ready_step& s, int operand) const {
    return this->shapes[operands[s.first_operand + operand]];
  }
  const step& step_at(int i) const { return this->source.steps[order[i]]; }
  /// The runner of a loop's steps; nullptr if the step is no loop.
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
  /// Whether step i runs slice by slice, with others.
  bool in_slices(int i) const {
    const int g = group_of[i];
    return g >= 0 && groups[g].by_slices();
  }
  /// Whether step i is a map that runs on parts of the result of the step before it.
  [[XLA_PLANS, gnu::noinline]] bool on_parts(int i) const {
    if (group_of[i] < 0) return false;
    const step_group& g = groups[group_of[i]];
    if (!g.run) return false;
    return g.by_slices() ? borders[g.borders + i - g.first] != 0 : g.last == i;
  }
  /// Whether it runs at the same time as steps that do not read its result, or by itself.
  bool waits_for_none(int i) const {
    const int g = group_of[i];
    return g < 0 || groups[g].slices == step_group::whole;
  }
};
using plan = basic_plan<void>;

/// A plan while passes reorder or replace its steps. once: per step of the program, whether it runs
/// only when memory is made.
struct plan_steps {
  basic_plan<void>& of;
  list<char>& once;
  const region_kernel* kernels;  ///< of its regions
};

/// Whether output k of a step was begun by an earlier one: a wait completes it.
template <class = void>
inline bool goes_on(const program& p, const step& s, int k) {
  return s.kind > step_kind::row && p.inputs[s.first_input + k] == p.outputs[s.first_output + k];
}

/// Whether step i may write an output over one of its inputs, if nothing reads that later. A map
/// may, because it reads and writes the same element; other ops declare it.
template <class In = void>
[[XLA_PLANS, gnu::noinline]] bool may_overwrite(const dependent<In, plan>& p, int i, int value,
                                                int old) {
  const step& s = p.step_at(i);
  if (s.kind == step_kind::map) return true;
  if (s.kind != step_kind::library) return false;
  const plan_hooks* const hooks = p.source.values[s.value].op->plan;
  return hooks && hooks->overwrites && hooks->overwrites(p, i, value, old);
}

/// The algorithm of a step, if its kernel has several.
template <class In = void>
[[XLA_PLANS]] kernel_choice choice_of(const dependent<In, plan>& p, const ready_step& s) {
  kernel_choice c;
  if (!s.op || !s.op->choose) return c;
  kernel_call call;
  call.in_shapes = p.operand_shapes.begin() + s.first_shape;
  call.out_shape = call.in_shapes + s.inputs;
  call.attr = s.attr;
  s.op->choose(call, c);
  if (s.cache_owner < 0) c.cached = 0;
  return c;
}

/// Whether a region no longer reads an element of its inputs when it writes that element of output
/// k. A map never does. A row region traverses the row again after each reduction; there the output
/// must be one of the last pass.
template <class = void>
[[XLA_PLANS]] inline bool reads_before_writing(const program& p, const step& s, int k) {
  if (s.kind == step_kind::map) return true;
  int phase[64] = {}, last = 0, output = 0, found = -1;
  bool whole_row[64] = {};
  for (int i = 0; i < s.words; ++i) {
    const auto word = [&](int o) { return kernel::micro_op::of(p.words[s.first_word + o]); };
    const auto m = word(i);
    const bool one = m.reduce || (!m.input && m.b != m.none && m.c == m.none && word(m.b).index);
    whole_row[i] = one || !m.input || m.invariant;
    if (!m.input)
      for (int o : {m.a, m.b, m.c}) {
        if (o == kernel::micro_op::none) continue;
        phase[i] = std::max(phase[i], phase[o] + (word(o).reduce ? 1 : 0));
        whole_row[i] &= one || whole_row[o];
      }
    last = std::max(last, phase[i]);
    if (m.output && output++ == k) {
      if (m.column) return false;
      found = i;
    }
  }
  return phase[found] == last && !whole_row[found];
}

}  // namespace xla::detail
