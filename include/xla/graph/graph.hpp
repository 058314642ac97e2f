// SPDX-License-Identifier: Apache-2.0
#pragma once

// The graph of a step: nodes, slots, loops. Capture, recording at run time and passes fill and read
// it; it computes nothing. Ops, passes and programs have headers of their own.

#include "xla/base/owned_array.hpp"
#include "xla/graph/builtin.hpp"
#include "xla/graph/slot.hpp"

namespace xla::detail {

struct laid_out;

/// The interface of loops to the rest of the graph, as functions: a graph that has loops points to
/// it (transform/lower_loops.hpp), so that programs without loops do not contain that code.
struct loop_rules {
  /// The innermost loop in which a node's value differs from step to step.
  int (*level)(const graph& g, const node& n);
  /// The range of a loop, given its node.
  const loop_range& (*range)(const graph& g, const node& loop);
  /// Gives a node that is in no region its stage.
  void (*set_stage)(fuser& of, int index);
  /// A sentence about the first node whose loop level, or that of its inputs, is wrong; else empty.
  text (*verify)(const graph& g);
  /// Refuses results and writes that use a value of a step outside of its loop.
  void (*refuse_leaks)(graph& g, const graph_roots& of);
  /// Makes the program, with the steps of loops after those that belong to none.
  void (*lower)(lowering& of);
  /// For a backward pass: pushes the nodes that a node of loops waits for; true if the node is one.
  bool (*order)(graph_backward& of, int index, int* stack, int& top);
  /// For a backward pass from some nodes: finds the loops that all gradients pass through.
  void (*homes)(graph_backward& of, const int* from, int count);
  /// Whether the node of this number is outside of a loop although it was recorded in its body.
  bool (*outside)(const graph_backward& of, int index, int number);
  /// Continues gradients through a loop; true if the node belongs to one.
  bool (*step)(graph_backward& of, int index);
  /// In a loop's steps: the gradient of a value so far, to read or to add to.
  int& (*sum)(graph_backward& of, int index, bool adds);
  /// Adds the first gradient of a value to zeros.
  void (*replaced)(graph_backward& of, int index);
  /// The node to use, in a loop's steps or outside, for a value that a gradient rule reads.
  int (*read)(graph_backward& of, int index, int gradient);
  /// In a loop's steps: the saved results that a gradient rule of their function reads.
  void (*read_results)(graph_backward& of, int index, gradient_scope& rule);
  /// A backward() in a loop's body ends at argument tensors: marks those that it has reached.
  void (*end_at_arguments)(graph& g, int root);
  void (*batch_products)(pass_state& s);
  /// For the pass `layouts`: the orders in which a loop, or a node that hands values into its steps
  /// or out of them, reads its inputs and makes its result. first: the node that the pass has made
  /// of the first input; made: the order of each node that it has made.
  void (*layouts)(const graph& g, const node& n, const laid_out* in, const node& first,
                  const layout* made, layout* order);
  /// The node whose gradient a value of loops carries; true if it is such a node or stands for a
  /// slot.
  bool (*gradient_use)(gradient_user& of, int index, int& from);
  handle (*minus_zeros)(dtype type, const shape& s, size_table* table);
  /// For blocks of `every` steps: the first step of a block, and how many steps it has.
  block_of_steps (*block)(graph& g, int number, extent every, extent trip);
  int (*add_numbers)(graph& g, int a, int b);
  /// Joins the stacks of all blocks, the last of which may be shorter, into one of all steps.
  int (*join_blocks)(graph& g, int all, extent trip);
  /// Finds the parameters whose optimizer rules may be recorded once: transform/repeats.hpp.
  void (*find_repeats)(graph& g, repeated_parameter* all, int count);
  /// The value in such a rule that stands for the slot of each row, or for its gradient.
  int (*repeat_input)(graph& g, int rows, int stride, const int* slots, bool gradient);
  /// The value that the rule has computed for a row.
  int (*repeat_result)(graph& g, int made, int row);
  /// A number, or -1, plus those that rules have computed for each row in turn, added by that op.
  int (*repeat_sum)(graph& g, const op_info& add, int number, const int* made, int count);
  /// Binds a slot to that value, which gets no node of its own until one is needed.
  void (*write_row)(graph& g, int slot, int made, int row);
  void (*name_row)(graph& g, int slot, bool gradient);
  /// Whether a write is of such a row; if so, assigns its owner.
  bool (*row_use)(gradient_user& of, write& w);
  /// The number of nodes that there would be if all rows were recorded as well.
  int (*count_repeated)(const graph& g);
  const loop_info* of[2][2]
                     [2];  ///< the op of a loop, by whether its steps draw, check, and exchange
};

/// The slot that a node stands for; -1 if it stands for the slot's gradient.
constexpr int slot_of_value(const node& n) {
  const auto a = n.attributes<op::of_slot>();
  return a.gradient ? -1 : int{a.slot};
}

/// At run time: the tensors that stand for the nodes of a graph while the gradient rules of its ops
/// run.
struct graph_tensors {
  void (*name)(graph_tensors& self, int node, handle& result);
  int (*node_of)(graph_tensors& self, const handle& h);
};

/// Whether a node draws new random numbers rather than those of an earlier node again.
constexpr bool draws_again(const node& n) {
  return n.op->impure && n.attributes<op::drawing>().again < 0;
}

/// The same, also for a loop whose steps draw.
constexpr bool takes_numbers(const node& n) {
  return n.op->loops_steps ? static_cast<const loop_info*>(n.op)->draws : draws_again(n);
}

/// Nodes that run even if nothing reads their result, as in eager mode: draws, which advance the
/// generator, and exchanges, for which other replicas wait. Exchanges of gradients that nothing
/// reads do not run.
constexpr bool runs_anyway(const node& n) {
  return takes_numbers(n) || (n.op->exchanges && !n.gradient);
}

/// A program as a flat list of nodes; every input is an earlier node. The arrays belong to a
/// graph_storage, so that handles can point at graphs of any capacity.
struct graph {
  node* nodes = nullptr;
  slot* slots = nullptr;
  int capacity = 0, slot_capacity = 0;
  int count = 0, slot_count = 0;
  int leaves = 0;  ///< while captured: how many of the first nodes are inputs
  segment_range* segments = nullptr;
  int segment_count = 0, segment_capacity = 0;
  int segment = 0;  ///< the checkpoint segment that is being recorded
  loop_range* loops = nullptr;
  int loop_count = 0, loop_capacity = 0;
  int loop = 0;  ///< the loop that is being recorded; 0: none
  const loop_rules* rules_of_loops = nullptr;
  graph_tensors* tensors = nullptr;           ///< recorded at run time
  bool own_nodes = false, own_slots = false;  ///< moved out of the initial storage
  bool own_segments = false, own_loops = false;
  bool recording = true;     ///< new nodes may need gradients
  bool in_backward = false;  ///< new nodes are gradients
  precision products{};      ///< the rounding of products in new nodes: see xla::autocast
  void (*store_bfloat16)(pass_state&) = nullptr;  ///< if set, does the pass of that name
  size_table sizes;
  input_lists lists;

  /// The first node that passes look at, if they treat no input.
  constexpr int after_leaves() const { return __builtin_is_constant_evaluated() ? leaves : 0; }

  /// The inputs of a node in order.
  constexpr const int* inputs(const node& n) const { return lists.of(n); }
  constexpr int* inputs(node& n) { return lists.of(n); }

  constexpr int add(const node& n) {
    if (count == capacity) grow(nodes, capacity, own_nodes);
    node& to = nodes[count] = n;
    // Exchanged values are kept for backward: not all replicas might compute them again.
    if (to.segment != segment && !n.op->exchanges) to.segment = segment;
    if (in_backward) to.gradient = true;
    if (loop_count != 0) to.loop = rules_of_loops->level(*this, to);
    return count++;
  }

  constexpr void open_segment() {
    if (segment_count == segment_capacity) grow(segments, segment_capacity, own_segments);
    segments[segment_count] = {count, count, segment};
    if (loop != 0) loops[loop - 1].checkpoints = true;
    segment = ++segment_count;
  }
  constexpr void close_segment() {
    segment_range& s = segments[segment - 1];
    s.end = count;
    segment = s.parent;
  }
  /// True if segment s is `outer` or inside it.
  constexpr bool within(int s, int outer) const {
    while (s != 0 && s != outer) s = segments[s - 1].parent;
    return s == outer;
  }

  constexpr int add_slot(const slot& s) {
    if (slot_count == slot_capacity) grow(slots, slot_capacity, own_slots);
    slots[slot_count] = s;
    return slot_count++;
  }

  /// A leaf for a slot's value (or its gradient) of the given shape.
  constexpr int add_leaf(int slot_index, bool gradient, dtype type, const shape& dims) {
    node n;
    n.op = &builtin<op::input>;
    n.type = type;
    n.set_shape(dims);
    n.set<op::input>({.slot = slot_index, .gradient = gradient});
    const slot& s = slots[slot_index];
    const bool tensor = s.kind == slot_kind::tensor;
    n.needs_grad = !gradient && !tensor && s.requires_grad;
    n.input_grad = !gradient && tensor && s.requires_grad;
    return add(n);
  }

  /// The gradient of a slot, or -1 if the body knows that there is none.
  constexpr int gradient_of(int slot_index) {
    slot& s = slots[slot_index];
    if (s.state == grad_state::untouched) {
      slot& outside = slots[s.origin < 0 ? slot_index : s.origin];
      if (outside.grad_leaf < 0) {
        const node& value = nodes[outside.leaf];
        const int at = s.origin < 0 ? slot_index : s.origin;
        outside.grad_leaf = add_leaf(at, true, value.type, value.dims_shape());
      }
      outside.reads |= !s.given;
      s.grad = outside.grad_leaf;
      s.state = grad_state::present;
    }
    if (s.state != grad_state::present) return -1;
    if (s.grad < 0) rules_of_loops->name_row(*this, slot_index, true);
    return s.grad;
  }
  /// The node of a slot's value.
  constexpr int current_of(int slot_index) {
    const slot& s = slots[slot_index];
    if (s.current < 0 && s.repeated >= 0) rules_of_loops->name_row(*this, slot_index, false);
    return s.current;
  }

  /// A node with the same value, through which no gradients pass.
  constexpr node detached(int value, const op::detach::attributes& as, bool needs_grad) const {
    node n = nodes[value];
    n.op = &builtin<op::detach>;
    n.arity = 1;
    n.in[0] = value;
    n.set<op::detach>(as);
    n.after[0] = n.after[1] = -1;
    n.needs_grad = needs_grad;
    n.input_grad = n.scanned = false;
    return n;
  }

  /// The effect of requires_grad_() on a parameter.
  constexpr void require_grad(int slot_index, bool on) {
    slot& s = slots[slot_index];
    s.requires_grad_set = on;
    if (on && !s.collected) s.given = true;
    if (s.requires_grad == on) return;
    const int now = current_of(slot_index);
    s.requires_grad = on;
    write(slot_index, now);
  }

  /// A detached value that collects gradients itself.
  constexpr int add_collector(int value) {
    slot s;
    s.kind = slot_kind::inner;
    s.state = grad_state::absent;
    s.requires_grad = s.given = true;
    const int index = add_slot(s);
    return slots[index].current = add(detached(value, {.slot = index}, true));
  }

  /// The slot in which a tensor collects gradients, even while it requires none; or -1.
  constexpr int leaf_slot(int index) const {
    const node& n = nodes[index];
    if (!is<op::input>(n) && !is<op::detach>(n)) return -1;
    const int at = slot_of_value(n);
    return at >= 0 && (slots[at].kind == slot_kind::inner || slots[at].requires_grad) ? at : -1;
  }

  /// The slot that decides in a call whether this one requires a gradient: itself, or the argument
  /// that it was split from.
  constexpr int decider(int slot_index) const {
    const slot& s = slots[slot_index];
    return s.kind == slot_kind::inner && !s.given && s.origin >= 0 ? s.origin : slot_index;
  }

  /// Called when a tensor that collects gradients is written: makes a slot for the new value, a
  /// leaf of its own, which begins with the same gradient. Copies of the tensor keep the old slot.
  constexpr int split(int from) {
    if (slots[from].repeated_grad >= 0) gradient_of(from);
    const slot old = slots[from];
    slot s;
    s.kind = slot_kind::inner;
    s.state = old.state;
    s.grad = old.grad;
    s.requires_grad = old.requires_grad;
    s.given = old.given || old.kind == slot_kind::cell || old.kind == slot_kind::local;
    const bool outside = old.kind == slot_kind::tensor || old.kind == slot_kind::cell;
    s.origin = outside ? from : old.origin;
    s.from_entry = outside || old.from_entry;
    return add_slot(s);
  }
  /// The value of a slot that was split from another.
  constexpr int bind_leaf(int slot_index, int value) {
    const slot& s = slots[slot_index];
    node n = detached(value, {.slot = slot_index}, s.given && s.requires_grad);
    n.input_grad = !s.given && s.requires_grad;
    return slots[slot_index].current = add(n);
  }

  constexpr bool outside(int slot_index) const {
    const slot_kind kind = slots[slot_index].kind;
    return kind != slot_kind::local && kind != slot_kind::inner;
  }
  /// A slot's number in programs: slots of arguments come first, then those that argument tensors
  /// have become; -1 if it is in none.
  constexpr int number_in_program(int slot_index) const {
    if (outside(slot_index)) return slot_index;
    if (slots[slot_index].left_in < 0) return -1;
    int number = 0;
    for (int i = 0; i < slot_index; ++i) number += outside(i) || slots[i].left_in >= 0;
    return number;
  }

  /// The effect of requires_grad_() on a tensor that collects gradients.
  constexpr int require_grad_of(int index, int slot_index, bool on) {
    const int own = split(slot_index), decides = decider(slot_index);
    const slot& old = slots[slot_index];
    if (!old.given && old.state == grad_state::present && old.grad != slots[decides].grad_leaf)
      slots[decides].mixed = true;  // some of it may be absent
    slots[own].requires_grad = on;
    slots[own].given = true;
    return bind_leaf(own, index);
  }
  /// The effect of zero_grad() on it.
  constexpr int drop_gradient(int index, int slot_index) {
    const int own = split(slot_index);
    slots[own].state = grad_state::absent;
    slots[own].from_entry = false;
    return bind_leaf(own, index);
  }
  /// The effect of set_grad() on it. An argument that requires no gradient refuses one.
  constexpr int replace_gradient(int index, int slot_index, int gradient) {
    const int own = split(slot_index), decides = decider(own);
    if (decides != own) slots[decides].collected = slots[decides].mixed = true;
    const int as =
        add(detached(gradient, {.slot = decides, .gradient = true, .replaces = true}, false));
    slots[own].grad = as;
    slots[own].state = grad_state::present;
    slots[own].from_entry = false;
    return bind_leaf(own, index);
  }

  /// Changes a tensor that collects gradients in place. If it requires a gradient, the new value is
  /// a leaf; else gradients pass through. For an argument both are the same unless gradients could
  /// pass to another tensor.
  constexpr int change(int slot_index, int value) {
    const int decides = decider(slot_index);
    const bool wanted = slots[slot_index].requires_grad, given = slots[slot_index].given;
    if (wanted && !given && made_of_others(value, decides)) slots[decides].entangled = true;
    if (slots[decides].entangled) return value;
    if (!wanted && (nodes[value].needs_grad || nodes[value].input_grad)) return value;
    return bind_leaf(split(slot_index), value);
  }

  /// The node of a slot's value, past nodes that only mark where gradients end.
  constexpr int value_of(int slot_index) {
    int i = current_of(slot_index);
    while (is<op::detach>(nodes[i]) && slot_of_value(nodes[i]) == slot_index) i = nodes[i].in[0];
    return i;
  }

  /// Binds a slot to a new value, at which gradients stop.
  constexpr void write(int slot_index, int value) {
    slot& s = slots[slot_index];
    if (s.functional) s.current = value;
    else s.current = add(detached(value, {.slot = slot_index}, s.requires_grad));
  }

  /// A local slot with another slot's value: it collects gradients separately, or is functional.
  constexpr int copy_slot(int from, bool functional = false) {
    slot s;
    s.kind = slot_kind::local;
    s.state = grad_state::absent;
    s.requires_grad = slots[from].requires_grad;
    s.functional = functional;
    const int index = add_slot(s);
    write(index, current_of(from));
    return index;
  }

 private:
  /// Whether gradients of a value reach anything but one slot.
  constexpr bool made_of_others(int value, int slot_index) const;
};

/// Whether gradients stop at a node: the value of a slot, or a value that requires_grad_() was
/// called on.
constexpr bool ends_gradients(const node& n) {
  return is<op::input>(n) || (is<op::detach>(n) && (n.needs_grad || n.input_grad));
}

/// The slot whose value a node is, as seen by gradients; -1 for every other node.
constexpr int slot_of(const node& n) { return ends_gradients(n) ? slot_of_value(n) : -1; }

constexpr bool graph::made_of_others(int value, int slot_index) const {
  if (nodes[value].needs_grad) return true;
  const owned_array<bool> reached(static_cast<std::size_t>(value) + 1);
  for (int i = 0; i <= value; ++i) reached.get()[i] = i == value;
  for (int i = value; i >= 0; --i) {
    const node& n = nodes[i];
    if (!reached.get()[i] || !n.input_grad) continue;
    if (ends_gradients(n)) {
      if (const int at = slot_of_value(n); at < 0 || decider(at) != slot_index) return true;
      continue;
    }
    const int* const in = inputs(n);
    for (int k = 0; k < n.arity; ++k) reached.get()[in[k]] = true;
  }
  return false;
}

/// Turns an exchange in a world of one into an alias of its input.
constexpr void stand_for_input(node& n) {
  n.op = &builtin<op::detach>;
  n.arity = 1;
  n.attr = {};
}

/// A graph that owns, and frees, the arrays that it has grown.
struct owned_graph : graph {
  constexpr owned_graph() = default;
  constexpr ~owned_graph() {
    if (own_nodes) delete[] nodes;
    if (own_slots) delete[] slots;
    if (own_segments) delete[] segments;
    if (__builtin_is_constant_evaluated() && own_loops) delete[] loops;  // where loops are recorded
    delete[] lists.all;
    if (sizes.own_symbols) delete[] sizes.symbols;
    if (sizes.own_equalities) delete[] sizes.equalities;
  }
  owned_graph(const owned_graph&) = delete;
  owned_graph& operator=(const owned_graph&) = delete;
};

/// The arrays of a graph as members, which constant evaluation handles fastest. A larger graph
/// moves to arrays of twice the size.
template <int Capacity>
struct graph_storage : owned_graph {
  node node_store[Capacity];
  slot slot_store[Capacity / 2 + 8];
  symbol symbol_store[Capacity / 2 + 32];
  equality equality_store[Capacity / 2 + 32];
  segment_range segment_store[16];

  constexpr graph_storage() {
    nodes = node_store;
    slots = slot_store;
    segments = segment_store;
    segment_capacity = 16;
    capacity = Capacity;
    slot_capacity = Capacity / 2 + 8;
    sizes.symbols = symbol_store;
    sizes.equalities = equality_store;
    sizes.symbol_capacity = sizes.equality_capacity = Capacity / 2 + 32;
    sizes.owner = this;
  }
  /// The capacity that would have sufficed; capture is repeated with it.
  constexpr int needed() const {
    int n = count;
    for (int half : {slot_count - 8, sizes.symbol_count - 32, sizes.equality_count - 32})
      if (2 * half > n) n = 2 * half;
    return n;
  }
};

}  // namespace xla::detail
