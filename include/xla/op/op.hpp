// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/info.hpp"
#include "xla/op/register.hpp"

namespace xla::detail {

/// Gives the node its op, and the shape that the op's rule makes of the inputs'.
constexpr void complete(caller who, node& n, const op_info& op, const handle* const* inputs,
                        int count) {
  n.op = &op;
  n.type = op.result;
  n.arity = static_cast<std::int8_t>(count);
  shape_rule rule{{nullptr, {op.name, who}}, n, {}, count};
  for (int i = 0; i < count; ++i) {
    rule.in[i] = inputs[i]->dims();
    if (!rule.sizes.table) rule.sizes.table = inputs[i]->table();
  }
  const shape s = op.shape_of(rule);
  if (!__builtin_is_constant_evaluated()) rule.sizes.countable(s);  // else when sizes are known
  n.set_shape(s);
}

/// Adds the op to the graph of its inputs; without one it floats until it meets one.
constexpr void record(node& n, const handle* const* inputs, int count, handle& result) {
  graph* g = nullptr;
  for (int i = 0; i < count && !g; ++i) g = inputs[i]->owner();
  if (!g) return result.float_op(n, inputs, count);
  for (int i = 0; i < count; ++i) {
    n.in[i] = inputs[i]->lift(g);
    n.needs_grad |= g->nodes[n.in[i]].needs_grad;
  }
  n.needs_grad = n.needs_grad && n.op->differentiable && g->recording;
  result.name_node(g, g->add(n));
}

/// An op of any number of inputs, with the type and shape that n says: recorded, or at run time
/// executed in the mode of the moment.
template <class In = void>
constexpr void apply_to_all(node n, const handle* const* inputs, int count, handle& result) {
  handle others;
  const handle* const few[] = {inputs[0], inputs[1], &others};
  if (count > 3) {
    node m;
    m.op = &builtin<op::more>;
    m.type = inputs[2]->element_type();
    m.set_shape(inputs[2]->dims());
    apply_to_all<In>(m, inputs + 2, count - 2, others);
    inputs = few;
    count = 3;
  }
  n.arity = static_cast<std::int8_t>(count);
  if (!__builtin_is_constant_evaluated())
    later<In, basic_machine<void>>::run(n, inputs, count, result);
  else record(n, inputs, count, result);
}

/// The type that elements are computed with.
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

/// A node with an op's attributes; for ops that take it from there, with the result's dims.
template <class Op>
constexpr node with(const typename Op::attributes& a, const shape& dims = {}) {
  node n;
  n.set<Op>(a);
  n.set_shape(dims);
  return n;
}
/// The same; an attribute that there is no room for is refused.
template <class Op>
constexpr node with(const typename Op::attributes& a, const size_scope& scope,
                    const shape& dims = {}) {
  node n;
  n.attr = pack(a, scope);
  n.set_shape(dims);
  return n;
}

/// The one point where an op becomes eager, traced or captured. spec carries attributes; the shape
/// is the op's rule applied to the inputs; errors name the line of who.
template <class Op, class Out, class In, int R, class... H>
[[gnu::noinline]] constexpr Tensor<Out, R> apply_at(caller who, const node& spec,
                                                    const H&... inputs) {
  const op_info& op = info_of<Op, Out, In>;
  const handle* const in[] = {&inputs..., nullptr};
  constexpr int count = sizeof...(H);
  Tensor<Out, R> result;
  if (!__builtin_is_constant_evaluated()) {
    machine_of<Op>::apply(who, spec, op, in, count, result);
  } else {
    node n = spec;
    complete(who, n, op, in, count);
    record(n, in, count, result);
  }
  return result;
}
template <class Op, class Out, std::same_as<bfloat16> In, int R, class... H>
  requires computes<Op>
constexpr Tensor<Out, R> apply_at(caller who, const node& spec, const H&... inputs) {
  return narrowed<Out>(apply_at<Op, computed<Out>, float, R>(who, spec, widened(inputs)...));
}
/// The same for what no line called.
template <class Op, class Out, class In, int R, class... H>
constexpr Tensor<Out, R> apply(const node& n, const H&... inputs) {
  return apply_at<Op, Out, In, R>(nobody, n, inputs...);
}

}  // namespace xla::detail

namespace xla::op {

using detail::op_kind;
using detail::shape;
using detail::shape_rule;

/// The base of ops that work element by element, inputs broadcast as NumPy's.
struct map {
  static constexpr op_kind kind = op_kind::map;
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    for (int i = 1; i < r.count; ++i) s = r.sizes.broadcast(s, r.in[i]);
    return s;
  }
};

}  // namespace xla::op
