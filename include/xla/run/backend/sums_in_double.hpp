// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines in_double() of the interpreter, by a table of all ops: interpreter_sums.cpp has it, so
// that a changed op does not compile the interpreter again.

#include "xla/base/dependent.hpp"
#include "xla/op/table.hpp"

namespace xla::detail {

/// Ops with several results, such as attention, keep their type.
template <class Op>
struct double_op {
  static constexpr const op_info* of() {
    if constexpr (requires { Op::results; }) return nullptr;
    else if constexpr (
        Op::kind == op_kind::reduce || requires { &Op::loops; } || requires { Op::updates; })
      return &info_of<Op, double, double, op_parts::kernel>;
    else return nullptr;
  }
  static constexpr const op_info* value = of();
};

template <class In>
const op_info* in_double(const op_info& op) {
  const op_info* const* const wide = op_table<double_op, dependent<In, computing_ops>>.find(op);
  return wide ? *wide : nullptr;
}

}  // namespace xla::detail
