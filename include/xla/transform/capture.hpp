// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a function's body in the C++ compiler on symbolic arguments, and takes the graph through the
// passes to a program. run/call/static_program.hpp stores the result; recorded graphs go through
// the same passes at run time.

#include <type_traits>

#include "xla/transform/backward.hpp"
#include "xla/transform/forward.hpp"
#include "xla/transform/lower.hpp"
#include "xla/transform/passes.hpp"
#include "xla/transform/symbolic_arguments.hpp"

namespace xla::detail {

/// Modules are captured for evaluation, everything else for training.
template <class F>
inline constexpr bool captured_for_training = true;
template <class F>
  requires(F::evaluates)
inline constexpr bool captured_for_training<F> = false;

/// F, compiled without some of the passes.
template <class F, Passes Wanted>
struct compiled_with : F {
  static constexpr Passes passes = Wanted;
};
template <class F>
inline constexpr Passes passes_of{};
template <class F, Passes Wanted>
inline constexpr Passes passes_of<compiled_with<F, Wanted>> = Wanted;

/// Assigns a slot of the graph to every tensor, cell and hyper-parameter among the arguments. Plain
/// numbers and flags become facts (see the glossary in README.md).
struct slot_binder {
  graph& g;
  double* facts;
  int capacity;
  bool training;  ///< the value of training flags in the captured body
  int fact_count = 0;

  template <class T, int R>
  constexpr void tensor(Tensor<T, R>& t, const tree_path&) {
    shape dims;
    dims.rank = R;
    for (int i = 0; i < R; ++i) dims[i] = -1;
    slot given;
    given.requires_grad = floating_type<T>;
    t.name_node(&g, g.slots[add(dtype_of<T>, dims, given)].leaf);
  }
  template <class T, int R, bool Trainable>
  constexpr void cell(State<T, R, Trainable>& s, const tree_path&) {
    slot kept;
    kept.kind = slot_kind::cell;
    kept.requires_grad = Trainable;
    s.name_slot(&g, add(dtype_of<T>, s.shape(), kept));
  }
  template <class T, int R>
  constexpr void kept(Buffer<T, R>& s, const handle& owner, const state_path& path) {
    slot kept;
    kept.kind = slot_kind::cell;
    kept.owner = owner.slot_index();
    shape dims = R == dynamic_rank ? g.nodes[g.slots[kept.owner].leaf].dims_shape() : s.shape();
    for (int i = 0; path.one_along && i < dims.rank; ++i)
      if (path.one_along(i, dims.rank, static_cast<int>(path.index))) dims[i] = 1;
    s.name_slot(&g, add(dtype_of<T>, dims, kept));
  }
  constexpr void scalar(Scalar& s, const tree_path&) {
    slot kept;
    kept.kind = slot_kind::scalar;
    s.name_slot(&g, g.add_slot(kept));
  }
  constexpr void flag(TrainingFlag& f, const tree_path&) {
    f.name_fact(fact_count < capacity ? &facts[fact_count] : nullptr, training);
    ++fact_count;
  }
  constexpr void fact(double value, const tree_path&) {
    if (fact_count < capacity) facts[fact_count] = value;
    ++fact_count;
  }

 private:
  constexpr int add(dtype type, shape dims, const slot& s) {
    const int index = g.add_slot(s);
    for (int i = 0; i < dims.rank; ++i)
      if (dims[i] < 0) dims[i] = g.sizes.variable(index, i);
    const int leaf = g.add_leaf(index, false, type, dims);
    g.slots[index].leaf = g.slots[index].current = leaf;
    return index;
  }
};

/// Finds the changes that the body has made to its arguments, so that a call can repeat them:
/// tensors that it rebound (data += 1) or whose gradient it wrote, and training flags that it set.
/// Cells that it wrote are found by their slots.
template <class Body>
struct change_finder {
  Body& body;
  int slots = 0, facts = 0;  // visited so far

  template <class T, int R>
  constexpr void tensor(Tensor<T, R>& t, const tree_path&) {
    const int now = t.lift(&body.g), leaf = t.collecting_slot();
    if (leaf >= 0 && leaf != slots) leave(now, leaf);
    else if (now != body.g.slots[slots].leaf) body.add_write({slots, false, now});
    ++slots;
  }
  constexpr void cell(const handle&, const tree_path&) { ++slots; }
  constexpr void kept(const handle&, const handle&, const tree_path&) { ++slots; }
  constexpr void scalar(const Scalar&, const tree_path&) { ++slots; }
  constexpr void flag(const TrainingFlag& f, const tree_path&) {
    if (facts < body.capacity && f.chosen()) body.flags[facts] = f ? 1 : -1;
    ++facts;
  }
  constexpr void fact(double, const tree_path&) { ++facts; }

 private:
  // The tensor has become a leaf with a slot of its own. If two arguments have become the same
  // leaf, each gets a slot of its own.
  constexpr void leave(int now, int leaf) {
    graph& g = body.g;
    if (g.slots[leaf].kind == slot_kind::tensor || g.slots[leaf].left_in >= 0)
      now = g.bind_leaf(leaf = g.split(leaf), now);
    slot& s = g.slots[leaf];
    s.left_in = slots;
    s.current = now;
    if (s.given) s.requires_grad_set = s.requires_grad;
    s.sharded_as = g.slots[slots].sharded_as;
    if (g.value_of(leaf) != g.slots[slots].leaf) body.add_write({leaf, false, now});
    const int began = s.origin < 0 ? -1 : g.slots[s.origin].grad_leaf;
    if (s.state == grad_state::present && s.grad != began) body.add_write({leaf, true, s.grad});
  }
};

/// Room for the program of a graph in a graph_storage<Capacity>.
template <int Capacity>
inline constexpr program_sizes captured_room = [] {
  program_sizes n = room_for(Capacity, 0, Capacity / 2 + 8, Capacity / 2 + 32, Capacity / 2 + 32,
                             Capacity, Capacity + 16);
  n.rows = 2 * Capacity;
  return n;
}();

/// Whether compiled functions keep the unfused program that other backends need, in addition to the
/// native one. CMake's targets of backends define it for all units of a program.
#if defined(XLA_BACKEND_GRAPHS)
inline constexpr bool keeps_backend_graphs = true;
template <program_sizes Size>
struct backend_storage : program_storage<Size> {};
#else
inline constexpr bool keeps_backend_graphs = false;
template <program_sizes Size>
struct backend_storage {};
#endif

/// The result of constant evaluation for one step function and one set of argument types.
template <int Capacity>
struct captured {
  program_storage<captured_room<Capacity>> arrays;
  backend_storage<captured_room<Capacity>> ops;  ///< the same for other backends, one op per step
  double facts[Capacity] = {};       ///< plain numbers among the members, in the order of binding
  std::int8_t flags[Capacity] = {};  ///< per fact: 1 or -1 if the body set a training flag
  int fact_count = 0;
  int forward_count = 0;   ///< nodes for a backward() outside, at the end of the program's values
  int forward_listed = 0;  ///< and inputs of these in lists, at the end of its inputs
  program_sizes count, ops_count;
  int needed = 0;  ///< if greater than Capacity: capture again with this much
  refusal refused;
};

/// Runs the body once on symbolic arguments and collects its results and writes.
template <class F, class... A>
struct capture_body {
  graph& g;
  symbolic_arguments<A...> arguments;
  int* results;
  write* writes;
  double* facts;
  std::int8_t* flags;
  /// The capacity of the arrays, plus twice 8 for writes; if it does not suffice, the capture is
  /// repeated.
  int capacity;
  int result_count = 0, write_count = 0, fact_count = 0;

  constexpr capture_body(graph& graph, int* r, write* w, double* f, std::int8_t* l, int n)
      : g(graph), results(r), writes(w), facts(f), flags(l), capacity(n) {}

  constexpr void run() { run(std::index_sequence_for<A...>{}); }

  /// The capacity needed for the collected values.
  constexpr int needed() const {
    int n = result_count > fact_count ? result_count : fact_count;
    return write_count - 16 > n ? write_count - 16 : n;
  }

 private:
  friend change_finder<capture_body>;

  template <std::size_t... I>
  constexpr void run(std::index_sequence<I...>) {
    slot_binder bind{g, facts, capacity, captured_for_training<F>};
    visit_arguments(bind, arguments.template get<I>()...);
    g.leaves = g.count;
    fact_count = bind.fact_count;
    const F f = make_callable<F>();
    using R = decltype(f(static_cast<A&&>(arguments.template get<I>())...));
    if constexpr (std::is_void_v<R>) {
      f(static_cast<A&&>(arguments.template get<I>())...);
    } else {
      using result_type = typename result_of<bare<R>>::type;
      result_type result = f(static_cast<A&&>(arguments.template get<I>())...);
      if constexpr (mismatch_in_result<result_type>.empty()) collect(result);
      else g.sizes.refused.set(mismatch_in_result<result_type>);
    }
    change_finder<capture_body> changes{*this};
    visit_arguments(changes, arguments.template get<I>()...);
    for (int s = 0; s < g.slot_count; ++s) own_writes(s);
  }

  template <class R>
  constexpr void collect(R& result) {
    visit_tree(result,
               [&](auto& leaf, const tree_path&) {
                 using L = bare<decltype(leaf)>;
                 if constexpr (is_tensor<L> || is_state<L>) add_result(leaf.lift(&g));
               },
               {});
  }

  constexpr void add_result(int node) {
    if (result_count < capacity) results[result_count] = node;
    ++result_count;
  }
  constexpr void add_write(const write& w) {
    if (write_count < capacity + 16) writes[write_count] = w;
    ++write_count;
  }
  constexpr void own_writes(int index) {
    const slot& s = g.slots[index];
    if (s.kind != slot_kind::cell && s.kind != slot_kind::tensor) return;
    if (s.kind == slot_kind::cell) {
      if (s.current < 0) add_write({index, false, s.repeated});
      else if (g.value_of(index) != s.leaf) add_write({index, false, s.current});
    }
    const int grad = s.grad < 0 ? s.repeated_grad : s.grad;
    if (s.state == grad_state::present && grad != s.grad_leaf) add_write({index, true, grad});
  }
};

/// Lowers the graph in its state between two passes, one op per step, for other backends. Returns
/// how much of the arrays is used.
template <class Arrays>
constexpr program_sizes lower_alone(pass_state& s, Arrays& to) {
  auto b = pointers_into<program_builder>(to, {});
  lowering(s, b).run();
  s.forget_places();
  return b.count;
}

template <int Capacity, class F, class... A>
constexpr captured<Capacity> capture() {
  captured<Capacity> out;
  graph_storage<Capacity> g;
  int results[Capacity] = {};
  write writes[Capacity + 16] = {};
  capture_body<F, A...> body(g, results, writes, out.facts, out.flags, Capacity);
  body.run();
  out.fact_count = body.fact_count;
  out.needed = g.needed() > body.needed() ? g.needed() : body.needed();
  if (g.loop_count != 0 && out.needed <= Capacity)
    g.rules_of_loops->refuse_leaks(g, {results, body.result_count, writes, body.write_count});
  if (g.loop_count != 0)
    if (const int all = g.rules_of_loops->count_repeated(g); all > out.needed) out.needed = all;
  if (g.lists.count > 0 && out.needed < g.count + g.lists.count)
    out.needed = g.count + g.lists.count;
  out.refused = g.sizes.refused;
  if (out.needed > Capacity || out.refused.failed()) return out;
  if constexpr (keeps_forward) {
    forward_finder forward(g, results, body.result_count);
    out.forward_count = forward.find();
    if (g.count + out.forward_count > Capacity) out.needed = g.count + out.forward_count;
    if (out.needed > Capacity) return out;
    if (out.forward_count > 0) {
      out.forward_listed = forward.listed();
      forward.copy(out.arrays.values + (Capacity - out.forward_count),
                   out.arrays.inputs + (few_inputs * Capacity - out.forward_listed));
    }
  }
  pass_state s(g, {results, body.result_count, writes, body.write_count}, true);
  bool for_backends = false;  // after dead, and the passes that a program has added there
  run_passes(s, passes_of<F>, [&](std::string_view after, pass_state& now) {
    for_backends = after == "dead" || (for_backends && !is_stage(after));
    if constexpr (keeps_backend_graphs)
      if (for_backends) out.ops_count = lower_alone(now, out.ops);
  });
  out.refused.set(s.wrong);
  if (const int live = s.live_count(); live > Capacity) out.needed = live;  // some passes add nodes
  if (g.lists.count > 0 && out.needed <= Capacity) {
    const int inputs = few_inputs * s.live_count() + out.forward_listed + s.listed();
    if (inputs > few_inputs * Capacity) out.needed = inputs / few_inputs + 1;
  }
  if (out.needed > Capacity || out.refused.failed()) return out;
  auto b = pointers_into<program_builder>(out.arrays, {});
  lowering(s, b).run();
  out.count = b.count;
  if (b.count.values + out.forward_count > Capacity)
    out.needed = b.count.values + out.forward_count;
  return out;
}

/// A graph as a body made it, before any pass. A view of a captured_graph.
struct graph_view {
  const node* nodes;
  const slot* slots;
  const symbol* symbols;
  const equality* equalities;
  const int* results;
  const write* writes;
  const int* lists;
  const loop_range* loops;
  const loop_rules* rules_of_loops;
  int count, slot_count, symbol_count, equality_count, result_count, write_count, listed,
      loop_count;
};

/// The arrays of a graph_view; instantiated only if a program prints it.
template <int Capacity>
struct captured_graph {
  node nodes[Capacity];
  slot slots[Capacity / 2 + 8];
  symbol symbols[Capacity / 2 + 32];
  equality equalities[Capacity / 2 + 32];
  int results[Capacity] = {};
  write writes[Capacity + 16];
  int lists[few_inputs * Capacity] = {};
  loop_range loops[Capacity / 2 + 1];
  const loop_rules* rules_of_loops = nullptr;
  int count = 0, slot_count = 0, symbol_count = 0, equality_count = 0;
  int result_count = 0, write_count = 0, listed = 0, loop_count = 0;

  constexpr graph_view view() const {
    return {nodes,          slots,        symbols,        equalities, results,    writes,
            lists,          loops,        rules_of_loops, count,      slot_count, symbol_count,
            equality_count, result_count, write_count,    listed,     loop_count};
  }
};

template <int Capacity, class F, class... A>
constexpr captured_graph<Capacity> capture_graph() {
  captured_graph<Capacity> out;
  graph_storage<Capacity> g;
  double facts[Capacity] = {};
  std::int8_t flags[Capacity] = {};
  capture_body<F, A...> body(g, out.results, out.writes, facts, flags, Capacity);
  body.run();
  out.count = g.count;
  out.slot_count = g.slot_count;
  out.symbol_count = g.sizes.symbol_count;
  out.equality_count = g.sizes.equality_count;
  out.result_count = body.result_count;
  out.write_count = body.write_count;
  out.listed = g.lists.count;
  out.loop_count = g.loop_count;
  out.rules_of_loops = g.rules_of_loops;
  for (int i = 0; i < out.loop_count; ++i) out.loops[i] = g.loops[i];
  for (int i = 0; i < out.count; ++i) out.nodes[i] = g.nodes[i];
  for (int i = 0; i < out.listed; ++i) out.lists[i] = g.lists.all[i];
  for (int i = 0; i < out.slot_count; ++i) out.slots[i] = g.slots[i];
  for (int i = 0; i < out.symbol_count; ++i) out.symbols[i] = g.sizes.symbols[i];
  for (int i = 0; i < out.equality_count; ++i) out.equalities[i] = g.sizes.equalities[i];
  return out;
}

/// A first guess of how many nodes a body with these arguments needs; capture retries with more. An
/// optimizer's rule takes about as many nodes as the layer around a parameter.
template <class... A>
constexpr int first_capacity() {
  int parameters = 0;
  auto one = [&]<class X>(std::type_identity<X>) {
    if constexpr (!optimizer_like<X>) parameters += count_parameters<X>();
    else if constexpr (requires { X::parameters; }) parameters += X::parameters;
  };
  (one(std::type_identity<bare<A>>{}), ...);
  return 256 + 32 * parameters;
}

}  // namespace xla::detail
