// SPDX-License-Identifier: Apache-2.0
#pragma once

// apply(): the single function by which ops are applied, in every mode. It calls the op's shape
// rule, then records a node or calls the run time. Each header with an op includes it.

#include <tuple>

#include "xla/base/owned_array.hpp"
#include "xla/op/info.hpp"
#include "xla/op/register.hpp"

namespace xla::detail {

/// The inputs after the third.
struct other_shapes {
  shape* shapes = nullptr;
  constexpr other_shapes(const handle* const* inputs, int count, size_table* sizes) {
    if (count <= 3) return;
    shapes = new shape[static_cast<std::size_t>(count - 3)];
    for (int i = 3; i < count; ++i) shapes[i - 3] = inputs[i]->dims_for(sizes);
  }
  other_shapes(const other_shapes&) = delete;
  constexpr ~other_shapes() { delete[] shapes; }
};

/// The slot of a parameter from which a value is made without other values, counted from 1, or 0.
constexpr int parameter_behind(const graph& g, int at) {
  while (g.nodes[at].arity == 1) at = g.nodes[at].in[0];
  const int slot = is<op::input>(g.nodes[at]) ? slot_of_value(g.nodes[at]) : -1;
  return slot >= 0 && g.slots[slot].kind == slot_kind::cell ? slot + 1 : 0;
}
/// Notes the first parameter among the inputs of an op that has been refused. In a loop over blocks
/// it is a slice of a stack of all blocks' parameters.
[[gnu::cold]] constexpr void note_parameter(const handle* const* inputs, int count, refusal& to) {
  for (int i = 0; i < count && to.slot == 0; ++i) {
    if (!inputs[i]->owner()) continue;
    const graph& g = *inputs[i]->owner();
    int at = inputs[i]->node_index();
    to.slot = to.last_slot = parameter_behind(g, at);
    bool sliced = false;
    for (; g.nodes[at].arity == 1; at = g.nodes[at].in[0]) sliced |= g.nodes[at].loop != 0;
    const node& all = g.nodes[at];
    if (!sliced || all.arity == 0 || all.loop != 0) continue;
    to.slot = parameter_behind(g, g.inputs(all)[0]);
    to.last_slot = parameter_behind(g, g.inputs(all)[all.arity - 1]);
  }
}

/// Gives the node its op, and the shape that the op's rule computes from the inputs; and shapes of
/// other results to the following nodes.
constexpr void no_more_results(const shape_rule&) {}
template <class More = decltype(&no_more_results)>
constexpr void complete(caller loc, node& n, const op_info& op, const handle* const* inputs,
                        int count, const More& more = &no_more_results) {
  n.op = &op;
  n.type = op.result;
  n.arity = count;
  shape_rule rule{{nullptr, {op.name, loc}}, n, {}, count};
  for (int i = 0; i < count && !rule.sizes.table; ++i) rule.sizes.table = inputs[i]->table();
  size_table* const sizes = rule.sizes.table;
  for (int i = 0; i < count && i < 3; ++i) rule.in[i] = inputs[i]->dims_for(sizes);
  const other_shapes others(inputs, count, sizes);
  rule.others = others.shapes;
  const bool failed = sizes && sizes->refused.failed();
  const shape s = op.shape_of(rule);
  if (!__builtin_is_constant_evaluated())
    rule.sizes.countable(s);  // otherwise when sizes are known
  else if (sizes && !failed && sizes->refused.failed())
    note_parameter(inputs, count, sizes->refused);
  n.set_shape(s);
  more(rule);
}

/// Adds the op to the graph of its inputs; without one it floats until it meets a graph.
constexpr void record(node& n, const handle* const* inputs, int count, handle& result) {
  graph* g = nullptr;
  for (int i = 0; i < count && !g; ++i) g = inputs[i]->owner();
  if (!g) return result.float_op(n, inputs, count);
  if (count > few_inputs) g->lists.open(n, count);
  for (int i = 0; i < count; ++i) {
    const int in = inputs[i]->lift(g);
    g->inputs(n)[i] = in;
    n.needs_grad |= g->nodes[in].needs_grad;
    n.input_grad |= g->nodes[in].input_grad;
  }
  if (!n.op->differentiable || !g->recording) n.needs_grad = n.input_grad = false;
  result.name_node(g, g->add(n));
}

/// An op with n's type and shape: recorded, or executed at run time in the current mode.
template <class In = void>
constexpr void add_op(node n, const handle* const* inputs, int count, handle& result) {
  n.arity = count;
  if (!__builtin_is_constant_evaluated())
    dependent<In, basic_machine<void>>::run(n, inputs, count, result);
  else record(n, inputs, count, result);
}
/// An op with several results: n has a node for each.
template <class In = void>
constexpr void add_op(node* n, const handle* const* inputs, int count, handle* const* results,
                      int result_count) {
  if (!__builtin_is_constant_evaluated())
    return dependent<In, basic_machine<void>>::run_several(n, inputs, count, results, result_count);
  record(n[0], inputs, count, *results[0]);
  for (int k = 1; k < result_count; ++k) record(n[k], results, 1, *results[k]);
}

/// The type in which elements are computed.
template <class T>
using computed = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

/// True for ops that compute with their elements, which for bfloat16 is done in float; the others
/// move, compare or convert them.
template <class Op>
inline constexpr bool computes = [] {
  if constexpr (requires { Op::converts; }) return false;
  else if constexpr (requires { Op::computes; }) return Op::computes;
  else return Op::kind == op_kind::map || Op::kind == op_kind::reduce;
}();

/// A node without attributes.
inline constexpr node plain;

/// A node with an op's attributes; for ops that read it, with the result's dims.
template <class Op>
constexpr node with(const typename Op::attributes& a, const shape& dims = {}) {
  node n;
  n.set<Op>(a);
  n.set_shape(dims);
  return n;
}
/// The same; attributes that do not fit are refused.
template <class Op>
constexpr node with(const typename Op::attributes& a, const size_scope& scope,
                    const shape& dims = {}) {
  node n;
  n.attr = pack(a, scope);
  n.set_shape(dims);
  return n;
}

/// The one point where an op becomes eager, traced or captured. spec carries attributes; the shape
/// is the op's rule applied to the inputs; errors name the line of loc.
template <class Op, class Out, class In, int R, class... H>
[[gnu::noinline]] constexpr Tensor<Out, R> apply_at(caller loc, const node& spec,
                                                    const H&... inputs) {
  const op_info& op = info_of<Op, Out, In>;
  const handle* const in[] = {&inputs..., nullptr};
  constexpr int count = sizeof...(H);
  Tensor<Out, R> result;
  if (!__builtin_is_constant_evaluated()) {
    machine_of<Op>::apply(loc, spec, op, in, count, result);
  } else {
    node n = spec;
    complete(loc, n, op, in, count);
    record(n, in, count, result);
  }
  return result;
}
/// The same for any number of tensors, for an op that does not compute with elements.
template <class Op, class Out, class In, int R, class H>
constexpr Tensor<Out, R> apply_to_all(caller loc, const node& spec, const H* inputs, int count) {
  static_assert(!computes<Op> && sizeof(H) == sizeof(handle));
  const op_info& op = info_of<Op, Out, In>;
  Tensor<Out, R> result;
  if (!__builtin_is_constant_evaluated()) {
    machine_of<Op>::apply_list(loc, spec, op, inputs, count, result);
  } else {
    const owned_array<const handle*> in(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) in.get()[i] = &inputs[i];
    node n = spec;
    complete(loc, n, op, in.get(), count);
    record(n, in.get(), count, result);
  }
  return result;
}
template <class Op, class Out, std::same_as<bfloat16> In, int R, class... H>
  requires computes<Op>
constexpr Tensor<Out, R> apply_at(caller loc, const node& spec, const H&... inputs) {
  return narrowed<Out>(apply_at<Op, computed<Out>, float, R>(loc, spec, widened(inputs)...));
}
/// The same for an op with several results, of these types. In addition to shape_of() the op says
/// how many results it has, and shape_of_result(rule, k) is the shape of those after the first. Its
/// kernel writes to call.outs, except to null ones.
template <class Op, class In, class First, class... Rest, class... H>
constexpr std::tuple<First, Rest...> apply_several(caller loc, const node& spec,
                                                   const H&... inputs) {
  constexpr int count = sizeof...(H), results = 1 + sizeof...(Rest);
  static_assert(Op::results == results && results <= max_results);
  const handle* const in[] = {&inputs...};
  const dtype types[] = {dtype_of<typename First::value_type>,
                         dtype_of<typename Rest::value_type>...};
  node n[results];
  n[0] = spec;
  complete(loc, n[0], info_of<Op, typename First::value_type, In>, in, count,
           [&](const shape_rule& rule) {
             for (int k = 1; k < results; ++k) {
               n[k].op = &builtin<op::output>;
               n[k].type = types[k];
               n[k].arity = 1;
               n[k].template set<op::output>({k});
               n[k].set_shape(Op::shape_of_result(rule, k));
             }
           });
  std::tuple<First, Rest...> made;
  std::apply(
      [&](auto&... r) {
        handle* const to[] = {&r...};
        add_op<Op>(n, in, count, to, results);
      },
      made);
  return made;
}
/// The same for calls without a line.
template <class Op, class Out, class In, int R, class... H>
constexpr Tensor<Out, R> apply(const node& n, const H&... inputs) {
  return apply_at<Op, Out, In, R>(unknown_caller, n, inputs...);
}

}  // namespace xla::detail

namespace xla::op {

using detail::op_kind;
using detail::shape;
using detail::shape_rule;

/// The base of elementwise ops, whose inputs broadcast as in NumPy.
struct map {
  static constexpr op_kind kind = op_kind::map;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    for (int i = 1; i < r.count; ++i) s = r.sizes.broadcast(s, r.in[i]);
    return s;
  }
};

}  // namespace xla::op
