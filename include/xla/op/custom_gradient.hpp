// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gradient of a function with a gradient rule of its own, as custom_gradient() makes one
// (run/trace/custom_gradient.hpp). Attention and stepwise loops use it, too.

#include <span>

#include "xla/op/op.hpp"

namespace xla::detail {

/// Whether two handles are of the same value.
constexpr bool same_value(const handle& a, const handle& b) {
  if (!__builtin_is_constant_evaluated()) return a.value() == b.value();
  return a.owner() && a.owner() == b.owner() && a.node_index() == b.node_index();
}

/// A value of its own that is result k of a function.
template <class R>
constexpr R result_of_function(const handle& value, const handle& function, int k) {
  node n;
  n.op = &builtin<op::result>;
  n.type = dtype_of<typename R::value_type>;
  n.set_shape(value.dims());
  n.set<op::result>({k});
  const handle* const in[] = {&value, &function};
  R result;
  add_op<dependent<R, void>>(n, in, 2, result);
  return result;
}

/// The number of the result of a function of custom_gradient() that is saved as its input q; -1:
/// none.
constexpr int saved_result(const graph& g, const node& function, int q) {
  const auto about = function.attributes<op::custom_gradient>();
  const int* const in = g.inputs(function);
  if (q < about.inputs + about.results) return -1;
  for (int i = 0; i < about.inputs; ++i)
    if (in[i] == in[q]) return -1;
  for (int k = 0; k < about.results; ++k)
    if (in[about.inputs + k] == in[q]) return k;
  return -1;
}
/// The node of result k of a function, given the function's node; -1: none.
constexpr int result_for(const graph& g, int function, int k) {
  for (int i = function + 1; i < g.count; ++i)
    if (const node& n = g.nodes[i];
        is<op::result>(n) && n.in[1] == function && n.attributes<op::result>().number == k)
      return i;
  return -1;
}
/// Adds the values that a function saves and that nothing else may use: gradients of its gradients
/// reach them.
constexpr void add_saved_results(graph& g, int function) {
  for (int q = 0; q < g.nodes[function].arity; ++q) {
    const node& of = g.nodes[function];
    const int k = saved_result(g, of, q);
    if (k < 0 || result_for(g, function, k) >= 0) continue;
    const int value = g.inputs(of)[q];
    node n;
    n.op = &builtin<op::result>;
    n.type = g.nodes[value].type;
    n.set_shape(g.nodes[value].dims_shape());
    n.set<op::result>({k});
    n.needs_grad = of.needs_grad;
    n.input_grad = of.input_grad;
    n.arity = 2;
    n.in[0] = value;
    n.in[1] = function;
    g.add(n);
  }
}

/// A function with a gradient rule of its own: connects its inputs, its results and the further
/// values of the rule, in this order.
template <class In>
constexpr handle function_of(const op_info& info, const packed_attributes& attr,
                             const handle* const* inputs, int count) {
  node f;
  f.op = &info;
  f.attr = attr;
  f.type = inputs[0]->element_type();
  f.set_shape(inputs[0]->dims());
  handle function;
  add_op<dependent<In, void>>(f, inputs, count, function);
  return function;
}

/// The description of such a function, and of its attributes.
constexpr op_info function_with(void (*rule)(gradient_scope&),
                                std::span<const attribute_field> fields = {}) {
  return {.name = op::custom_gradient::name,
          .id = id_of<op::custom_gradient>,
          .kind = op_kind::alias,
          .differentiable = true,
          .gradient = rule,
          .fields = fields};
}

}  // namespace xla::detail
