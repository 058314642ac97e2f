// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops of loops. A loop's nodes are among all others of the graph, before the node of the loop
// itself; node::loop says which they are.

#include <cstdint>
#include <string_view>

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// The function that made a loop, for errors and profiles.
enum class loop_function : std::uint8_t {
  unknown,
  scan,
  fori_loop,
  while_loop,
  cond,
  associative_scan,
  gradient_accumulation,
  scan_layers
};
/// The phrase that locates an error in a loop's body, appended to a sentence.
constexpr std::string_view place_in(loop_function f) {
  constexpr std::string_view all[] = {", in the body of a loop",
                                      ", in the body of scan",
                                      ", in the body of fori_loop",
                                      ", in the body of while_loop",
                                      ", in a branch of cond",
                                      ", in the body of associative_scan",
                                      ", in the body of gradient_accumulation",
                                      ", in the body of scan_layers"};
  return all[static_cast<int>(f)];
}
constexpr std::string_view name_of(loop_function f) {
  constexpr std::string_view of = " of ";
  return place_in(f).substr(place_in(f).find(of) + of.size());
}
constexpr loop_function loop_function_named(std::string_view name) {
  constexpr loop_function last = loop_function::scan_layers;
  for (int f = static_cast<int>(last); f > 0; --f)
    if (name_of(static_cast<loop_function>(f)) == name) return static_cast<loop_function>(f);
  return loop_function::unknown;
}

template <>
struct field_type<loop_function> : choice_field<loop_function> {};

}  // namespace xla::detail

namespace xla::op {

/// The base of ops that belong to one loop; loops are numbered from 1.
struct of_loop {
  struct attributes {
    int loop = 0;
    int number = 0;
    XLA_ATTRIBUTES(loop, number)
  };
};

/// The base of ops of a carry, which may carry the value or gradient of a slot. In a call in which
/// the parameter `owner` is frozen and has no gradient, each step passes the carry on unchanged.
struct of_carry : of_loop {
  struct attributes {
    int loop = 0;
    int number = 0;
    int of = 0;          ///< the slot, counted from 1; below 0 its gradient; 0: none
    int owned_from = 0;  ///< the owner, counted from 1; 0: none
    XLA_ATTRIBUTES(loop, number, of, owned_from)

    constexpr bool gradient() const { return of < 0; }
    constexpr int slot() const { return (of < 0 ? -of : of) - 1; }
    constexpr int owner() const { return owned_from - 1; }
  };
  static constexpr int of_value(int slot) { return slot + 1; }
  static constexpr int of_gradient(int slot) { return -slot - 1; }
};

/// The carry of that number inside a step: the loop's input in the first step, else the carry that
/// the previous step passed on.
struct carry : of_carry {
  static constexpr auto name = "carry";
  static constexpr auto kind = detail::op_kind::output;
  static constexpr bool differentiable = true;
};

/// The slice of the first input along its first axis at the step's index. If there is a second
/// input, a number, indices start there.
struct step_slice : of_loop {
  static constexpr auto name = "step_slice";
  static constexpr auto kind = detail::op_kind::output;
  static constexpr bool differentiable = true;
};

/// In a backward loop: the carry that the forward step of the same index received. The first input
/// stacks the carries that the forward steps passed on, so this reads one index earlier; the first
/// forward step received the second input. number is 1 if the forward loop ran in reverse. No
/// gradients.
struct step_before : of_loop {
  static constexpr auto name = "step_before";
  static constexpr auto kind = detail::op_kind::output;
};

/// The index of the step, from 0; in a reversed loop it counts down to 0.
struct step_number : of_loop {
  static constexpr auto name = "step_number";
  static constexpr auto kind = detail::op_kind::output;
};

/// A loop. Its inputs are, for each carry, the value that a step passes on, and then each carry's
/// initial value. A branch adds its predicate, a counted loop the number of steps. Nothing reads
/// the node's own elements; last_step and steps read its results. Its source line is that of the
/// call.
struct loop {
  struct attributes {
    int number = 0;
    int carries = 0;
    bool reverse = false;  ///< steps run from the last index to the first
    bool when = false;     ///< a branch of cond(): its one step runs where the predicate is true
    bool unless = false;   ///< the other branch: its step runs where the predicate is false
    bool tested = false;   ///< while_loop(): steps run as long as the first carry, a bool, is true
    bool bounded = false;  ///< tested like those, and at most `trip` steps
    bool counted = false;  ///< its last input is the number of steps, at most `trip`
    bool checkpoints = false;  ///< see detail::loop_range
    detail::loop_function function{};
    detail::size_value trip{};
    XLA_ATTRIBUTES(number, carries, reverse, when, unless, tested, bounded, counted, checkpoints,
                   function, trip)
  };
  static constexpr auto name = "loop";
  static constexpr auto kind = detail::op_kind::library;
};

/// Reads the final value of the carry of that number. Its input is the loop.
struct last_step : of_carry {
  static constexpr auto name = "last_step";
  static constexpr auto kind = detail::op_kind::output;
  static constexpr bool differentiable = true;
};

/// Stacks a value of all steps along a new first axis. Its first input is the loop, its second the
/// value. With `every`, keeps the last step of each group of that many.
struct steps {
  struct attributes {
    int loop = 0;
    int number = 0;
    detail::size_value every{};  ///< 0: every step
    XLA_ATTRIBUTES(loop, number, every)
  };
  static constexpr auto name = "steps";
  static constexpr auto kind = detail::op_kind::output;
  static constexpr bool differentiable = true;
};

/// In a repeat, whose nodes are recorded once for several rows: an input that differs by row.
struct repeat_input : of_loop {
  static constexpr auto name = "repeat_input";
  static constexpr auto kind = detail::op_kind::output;
};
/// The result of a repeat for the row of that number.
struct repeat_result : of_loop {
  static constexpr auto name = "repeat_result";
  static constexpr auto kind = detail::op_kind::output;
};
/// Adds up the numbers of a repeat that its inputs are: those of the first row in their order, then
/// those of the next. number is 1 if the first input is a number from outside, with which the sum
/// begins. A program has steps that each add some of them.
struct repeat_sum : of_loop {
  static constexpr auto name = "repeat_sum";
  static constexpr auto kind = detail::op_kind::library;
};

}  // namespace xla::op

XLA_BUILTIN_OP(xla::op::repeat_input);
XLA_BUILTIN_OP(xla::op::repeat_result);
XLA_BUILTIN_OP(xla::op::repeat_sum);
XLA_BUILTIN_OP(xla::op::carry);
XLA_BUILTIN_OP(xla::op::step_slice);
XLA_BUILTIN_OP(xla::op::step_before);
XLA_BUILTIN_OP(xla::op::step_number);
XLA_BUILTIN_OP(xla::op::loop);
XLA_BUILTIN_OP(xla::op::last_step);
XLA_BUILTIN_OP(xla::op::steps);

namespace xla::detail {

constexpr int open_loop(graph& g, extent trip, const loop_rules& rules, bool branch = false) {
  g.rules_of_loops = &rules;
  if (g.loop_count == g.loop_capacity) grow(g.loops, g.loop_capacity, g.own_loops);
  g.loops[g.loop_count] = {trip, g.loop, g.count, branch, 0};
  return g.loop = ++g.loop_count;
}
constexpr void close_loop(graph& g) { g.loop = g.loops[g.loop - 1].parent; }
/// Whether the loop `inner` is `outer` or is nested in it; 0 contains all loops.
constexpr bool in_loop(const graph& g, int inner, int outer) {
  while (inner != 0 && inner != outer) inner = g.loops[inner - 1].parent;
  return inner == outer;
}

/// The loop whose step provides a node's value (a carry, slice or index); 0: none.
constexpr int given_by_loop(const node& n) {
  if (n.op->kind != op_kind::output) return 0;  // called for every node
  const bool given = is<op::carry>(n) || is<op::step_slice>(n) || is<op::step_before>(n) ||
                     is<op::step_number>(n) || is<op::repeat_input>(n);
  return given ? n.attributes<op::of_loop>().loop : 0;
}
/// The loop from which a node outside of it reads its value; 0: none.
constexpr int made_by_loop(const node& n) {
  const bool library = n.op->kind == op_kind::library;
  if (library && is<op::loop>(n)) return n.attributes<op::loop>().number;
  if (!library && n.op->kind != op_kind::output) return 0;
  const bool made = library ? is<op::repeat_sum>(n)
                            : is<op::last_step>(n) || is<op::steps>(n) || is<op::repeat_result>(n);
  return made ? n.attributes<op::of_loop>().loop : 0;
}

/// The repeat of that number; nullptr if the number is 0 or that of a loop.
constexpr const loop_range* repeat_of(const graph& g, int loop) {
  if (loop == 0 || g.loops[loop - 1].stride == 0) return nullptr;
  return &g.loops[loop - 1];
}

constexpr const loop_range& range_of_loop(const graph& g, const node& loop) {
  return g.loops[loop.attributes<op::loop>().number - 1];
}

/// Whether a node belongs to an enclosing loop or a sibling of the loop `number`, even if it was
/// recorded inside `number`. A backward pass records such nodes, which read another loop's steps;
/// other loops may read them too.
constexpr bool of_other_loop(const graph& g, int index, int number) {
  const node& n = g.nodes[index];
  const int of = is<op::loop>(n) ? 0 : given_by_loop(n) + made_by_loop(n);
  return of != 0 && !in_loop(g, of, number);
}

/// Constants and sizes, of which each loop's step has its own copy.
constexpr bool is_number(const node& n) { return is<op::constant>(n) || is<op::size>(n); }

/// The innermost branch of cond() that contains a loop, or the loop itself if it is one; 0: none.
constexpr int branch_around(const graph& g, int loop) {
  while (loop != 0 && !g.loops[loop - 1].branch) loop = g.loops[loop - 1].parent;
  return loop;
}

/// The innermost loop in which a node's value differs from step to step. Invariant nodes are
/// outside of loops, but stay in the branch that they were recorded in. Checks, draws and exchanges
/// stay in their body.
constexpr int level_in_loops(const graph& g, const node& n) {
  if (n.op->kind == op_kind::leaf) return 0;
  if (const int loop = given_by_loop(n); loop != 0) return loop;
  if (const int loop = made_by_loop(n); loop != 0) return g.loops[loop - 1].parent;
  const int recorded = n.loop > g.loop ? n.loop : g.loop;
  const bool there = n.op->check || n.op->impure || n.op->exchanges;
  int level = there ? recorded : n.arity > 0 ? branch_around(g, recorded) : 0;
  const int* const in = g.inputs(n);
  for (int k = 0; k < n.arity; ++k)
    if (g.nodes[in[k]].loop > level) level = g.nodes[in[k]].loop;
  return level;
}

/// Describes an error in the loop level of a node or of its inputs; nullptr if there is none.
constexpr const char* wrong_in_loops(const graph& g, int index) {
  const node& n = g.nodes[index];
  if (n.loop < 0 || n.loop > g.loop_count) return "belongs to a loop that does not exist";
  if (n.arity == 0) return nullptr;
  const int* const in = g.inputs(n);
  for (int k = 0; k < n.arity; ++k) {
    const int inner = g.nodes[in[k]].loop;
    if (inner == 0) continue;
    const int made = made_by_loop(n);
    if (!in_loop(g, made != 0 ? made : n.loop, inner))
      return "reads a value of another loop's steps";
  }
  return nullptr;
}
/// A sentence about the first such error; empty if there is none.
constexpr text verify_loops(const graph& g) {
  for (int i = 0; i < g.count; ++i)
    if (const char* why = wrong_in_loops(g, i)) return text("node ") << i << " " << why;
  return {};
}

/// Marks the argument tensors that gradients of a step's value would reach without passing through
/// the step's own inputs.
constexpr void end_at_arguments(graph& g, int root) {
  const owned_array<bool> reached(static_cast<std::size_t>(root) + 1);
  for (int i = 0; i <= root; ++i) reached.get()[i] = i == root;
  for (int i = root; i >= 0; --i) {
    const node& n = g.nodes[i];
    if (!reached.get()[i] || !n.input_grad || given_by_loop(n) != 0) continue;
    if (ends_gradients(n)) {
      if (const int at = slot_of_value(n); at >= 0) g.slots[g.decider(at)].entangled = true;
      continue;
    }
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) reached.get()[in[k]] = true;
  }
}

}  // namespace xla::detail
