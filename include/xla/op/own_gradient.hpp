// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  add_op<later<R, void>>(n, in, 2, result);
  return result;
}

/// A function with a gradient rule of its own: it stands between its inputs, its results and what
/// the rule needs besides, in this order.
template <class In>
constexpr handle function_of(const op_info& info, const packed_attributes& attr,
                             const handle* const* inputs, int count) {
  node f;
  f.op = &info;
  f.attr = attr;
  f.type = inputs[0]->element_type();
  f.set_shape(inputs[0]->dims());
  handle function;
  add_op<later<In, void>>(f, inputs, count, function);
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
