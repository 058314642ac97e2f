// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops that stand for inputs, constants, outputs and state of a graph, and compute nothing. They
// have no kernel and no gradient rule, and any element type; the graph and its passes know them by
// name. Ops with a kernel and a gradient are in op/.

#include "xla/graph/node.hpp"

/// Registers such an op, as XLA_OP does others.
#define XLA_BUILTIN_OP(type) XLA_DETAIL_OP_ID(type)

namespace xla::op {

/// The base of ops that stand for a slot of the graph or for its gradient.
struct of_slot {
  struct attributes {
    detail::optional_number slot{};
    bool gradient = false;
    bool replaces = false;  ///< of detach: the gradient is replaced, not read
    XLA_ATTRIBUTES(slot, gradient, replaces)
  };
};

/// A slot's value, or its gradient, when the step begins.
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
    std::int64_t whole = 0;  ///< of an integer, exact beyond 2^53
    XLA_ATTRIBUTES(value, whole)
  };
};

/// A hyper-parameter: an input of the graph, so that a new value does not need a new graph. Each
/// has a slot of its own.
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

/// A tensor whose elements exist only at run time. A graph cannot contain it; it only has the sizes
/// of a parameter in a type's default constructor.
struct data {
  static constexpr auto name = "data";
  static constexpr auto kind = detail::op_kind::leaf;
};

/// The same value, through which no gradient flows. With a slot: the value written to it, with
/// needs_grad set if gradients are collected; or the slot's gradient, which the body reads or
/// replaces.
struct detach : of_slot {
  static constexpr auto name = "detach";
  static constexpr auto kind = detail::op_kind::alias;
};

/// The new value of a parameter, its slot, which the same step reads again. It is a step of its
/// own, so that a call in which the parameter is frozen can use the old value instead.
struct updated : of_slot {
  static constexpr auto name = "updated";
  static constexpr auto kind = detail::op_kind::alias;
};

/// A number computed from a parameter's gradient, such as its part of a norm; 0 where the parameter
/// is frozen.
struct gradient_part : of_slot {
  static constexpr auto name = "gradient_part";
  static constexpr auto kind = detail::op_kind::alias;
};

/// The base of ops that stand for one of several results, by number.
struct numbered {
  struct attributes {
    int number = 0;
    XLA_ATTRIBUTES(number)
  };
};

/// One of the results of a compiled function that does not call backward() itself. A backward()
/// outside of it sends gradients on to its input.
struct compiled_result : numbered {
  static constexpr auto name = "compiled result";
  static constexpr auto kind = detail::op_kind::leaf;
};

/// The same elements on another device, by its number. It exists at run time only: a captured graph
/// runs on one device, that of its arguments.
struct to_device {
  static constexpr auto name = "to_device";
  static constexpr auto kind = detail::op_kind::library;
  struct attributes {
    int device = 0;
    int width = 0;  ///< of an element, in bytes
    XLA_ATTRIBUTES(device, width)
  };
};

/// A result, by number from 1 on, of the op that it reads, which has several.
struct output : numbered {
  static constexpr auto name = "output";
  static constexpr auto kind = detail::op_kind::output;
  static constexpr bool differentiable = true;
};

/// A function with its own gradient rule. Its inputs are the function's inputs, its results, and
/// the tensors that its backward function reads. The node's elements are those of its first input,
/// and nothing reads them. The attributes belong to its gradient rule; those of custom_gradient()
/// are:
struct custom_gradient {
  struct attributes {
    detail::precision precision{};  ///< the rounding of its backward function's products
    int inputs = 0,
        results =
            0;  ///< how many of its inputs are the function's inputs, and how many are its results
    XLA_ATTRIBUTES(precision, inputs, results)
  };
  static constexpr auto name = "custom_gradient";
  static constexpr auto kind = detail::op_kind::alias;
  static constexpr bool differentiable = true;
};

/// A result of such a function, by number. Its value is its first input; gradients go to the
/// function, its second input.
struct result : numbered {
  static constexpr auto name = "result";
  static constexpr auto kind = detail::op_kind::alias;
  static constexpr bool differentiable = true;
};

/// The base of ops that draw random numbers.
struct drawing {
  struct attributes {
    detail::optional_number
        again{};  ///< the draw whose numbers are drawn again; none: the numbers are new
    XLA_ATTRIBUTES(again)
  };
  /// At run time a tensor stores this in place of the attributes: the state of the generator.
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

/// If a node is a result of an op with several, that op, which is an input; else nullptr.
template <class Node>
constexpr auto* result_of_input(const Node& n) {
  return is<op::result>(n) ? &n.in[1] : is<op::output>(n) ? &n.in[0] : nullptr;
}

}  // namespace xla::detail
