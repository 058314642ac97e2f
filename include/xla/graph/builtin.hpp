// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops that stand for inputs, constants, outputs and state of a graph, and compute nothing. They
// have no kernel and no gradient rule, and any element type; the graph and its passes know them by
// name. Ops with a kernel and a gradient are in op/.

#include "xla/graph/node.hpp"

/// Registers such an op, as XLA_OP does others.
#define XLA_BUILTIN_OP(type) XLA_DETAIL_OP_ID(type)

namespace xla::op {

/// The base of ops that stand for a slot of the graph, or its gradient.
struct of_slot {
  struct attributes {
    detail::optional_number slot{};
    bool gradient = false;
    bool replaces = false;  ///< of detach: the gradient is not read, but replaced
    XLA_ATTRIBUTES(slot, gradient, replaces)
  };
};

/// A value from outside: a slot's at entry, or its gradient's.
struct input : of_slot {
  static constexpr auto name = "input";
  static constexpr auto kind = detail::op_kind::leaf;
};

/// One number, written in the body.
struct constant {
  static constexpr auto name = "constant";
  static constexpr auto kind = detail::op_kind::constant;
  struct attributes {
    double value = 0;
    std::int64_t whole = 0;  ///< of an integer: exact beyond 2^53
    XLA_ATTRIBUTES(value, whole)
  };
};

/// A number that a graph takes as an input, so that changing it makes no other graph: a slot's,
/// which no two numbers share.
struct scalar : of_slot {
  static constexpr auto name = "scalar";
  static constexpr auto kind = detail::op_kind::leaf;
};

/// A size as a number.
struct size {
  static constexpr auto name = "size";
  static constexpr auto kind = detail::op_kind::leaf;
  struct attributes {
    detail::size_value of{};
    XLA_ATTRIBUTES(of)
  };
};

/// Elements that only run time knows; no graph may hold it, but a parameter of a type's default
/// constructor has its sizes.
struct data {
  static constexpr auto name = "data";
  static constexpr auto kind = detail::op_kind::leaf;
};

/// The same value with no way back for gradients. With a slot: what is written there, with
/// needs_grad set where that collects gradients; or its gradient, as the body reads or replaces it.
struct detach : of_slot {
  static constexpr auto name = "detach";
  static constexpr auto kind = detail::op_kind::alias;
};

/// The value that a step gives to a parameter, its slot, where it reads that again: a step of its
/// own, so that in calls in which the parameter is frozen the old value stands for it.
struct updated : of_slot {
  static constexpr auto name = "updated";
  static constexpr auto kind = detail::op_kind::alias;
};

/// A number that was made of a parameter's gradient, 0 where that is frozen.
struct gradient_part : of_slot {
  static constexpr auto name = "gradient_part";
  static constexpr auto kind = detail::op_kind::alias;
};

/// The base of ops that are one of several results, by its number.
struct numbered {
  struct attributes {
    int number = 0;
    XLA_ATTRIBUTES(number)
  };
};

/// One of the results of a compiled function without backward(), by number. Gradients go on to its
/// input, which backward() outside makes.
struct compiled_result : numbered {
  static constexpr auto name = "compiled result";
  static constexpr auto kind = detail::op_kind::leaf;
};

/// The same elements on another device, by its number. At run time alone: a captured graph runs on
/// its arguments' device.
struct to_device {
  static constexpr auto name = "to_device";
  static constexpr auto kind = detail::op_kind::library;
  struct attributes {
    int device = 0;
    int width = 0;  ///< of an element, in bytes
    XLA_ATTRIBUTES(device, width)
  };
};

/// A result of the op that it reads, which has several: by number, 1 or more.
struct output : numbered {
  static constexpr auto name = "output";
  static constexpr auto kind = detail::op_kind::output;
  static constexpr bool differentiable = true;
};

/// A function with its own gradient: its inputs are the function's, its results, and what its
/// backward function gets. Its elements, its first input's, are not read. Its attributes are its
/// rule's: of custom_gradient() these.
struct custom_gradient {
  struct attributes {
    detail::precision precision{};  ///< of its backward function's products
    int inputs = 0, results = 0;    ///< how many of its inputs are the function's, and its results
    XLA_ATTRIBUTES(precision, inputs, results)
  };
  static constexpr auto name = "custom_gradient";
  static constexpr auto kind = detail::op_kind::alias;
  static constexpr bool differentiable = true;
};

/// A result of such a function, by number: the elements of its first input; its gradient is one of
/// the function's, the second.
struct result : numbered {
  static constexpr auto name = "result";
  static constexpr auto kind = detail::op_kind::alias;
  static constexpr bool differentiable = true;
};

/// The base of ops that draw random numbers.
struct drawing {
  struct attributes {
    detail::optional_number again{};  ///< the draw whose numbers these are; none: they are new
    XLA_ATTRIBUTES(again)
  };
  /// In place of those, of a tensor at run time: where the generator stood.
  struct drawn {
    std::uint64_t seed = 0, offset = 0;
    XLA_ATTRIBUTES(seed, offset)
  };
};

}  // namespace xla::op

XLA_BUILTIN_OP(xla::op::input);
XLA_BUILTIN_OP(xla::op::constant);
XLA_BUILTIN_OP(xla::op::scalar);
XLA_BUILTIN_OP(xla::op::size);
XLA_BUILTIN_OP(xla::op::data);
XLA_BUILTIN_OP(xla::op::detach);
XLA_BUILTIN_OP(xla::op::updated);
XLA_BUILTIN_OP(xla::op::gradient_part);
XLA_BUILTIN_OP(xla::op::compiled_result);
XLA_BUILTIN_OP(xla::op::to_device);
XLA_BUILTIN_OP(xla::op::output);
XLA_BUILTIN_OP(xla::op::custom_gradient);
XLA_BUILTIN_OP(xla::op::result);

namespace xla::detail {

template <class Op>
concept has_attributes = requires { typename Op::attributes; };

/// The description of an op that is built in.
template <class Op>
inline constexpr op_info builtin = [] {
  op_info i{.name = Op::name, .id = id_of<Op>, .kind = Op::kind};
  i.differentiable = requires { Op::differentiable; };
  if constexpr (has_attributes<Op>) i.fields = fields_of<typename Op::attributes>;
  return i;
}();

/// The op whose result a node is, where that has several: an input of it; nullptr: it is none.
template <class Node>
constexpr auto* result_of_input(const Node& n) {
  return is<op::result>(n) ? &n.in[1] : is<op::output>(n) ? &n.in[0] : nullptr;
}

}  // namespace xla::detail
