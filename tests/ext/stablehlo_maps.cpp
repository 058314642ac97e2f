// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/on_plugin.hpp"
#include "support/stablehlo.hpp"
#include "xla/ext/stablehlo.hpp"
#include "xla/functions.hpp"
#include "xla/kernel/op/map.hpp"
#include "xla/run/backend/backend.hpp"

// Every elementwise op on the list of ops, for every element type of its group, and its gradient:
// a new one is among them, without a line here. What other ops compute is in
// stablehlo_lowering.cpp.

namespace {

using xla::detail::handle;
using xla::detail::op_info;

/// Elements around which ops are smooth, and some that are outside of where they are defined.
template <class T>
xla::Tensor<T, 1> elements(int input) {
  if constexpr (std::is_same_v<T, bool>)
    return xla::cast<bool>(input == 0 ? xla::tensor<std::int64_t>({1, 0, 1, 0, 1, 1, 0, 0})
                                      : xla::tensor<std::int64_t>({1, 1, 0, 0, 0, 1, 1, 0}));
  else if constexpr (std::is_integral_v<T>)
    return input == 0 ? xla::tensor<T>({0, 1, -1, 2, 3, -5, 7, 40})
                      : xla::tensor<T>({3, -2, 1, 2, 0, 3, -4, 5});
  else
    return input == 0 ? xla::tensor<T>({.3, .5, .6, .8, .9, 1.1, 1.3, 1.65})
                      : xla::tensor<T>({.7, .45, .55, 1.3, .35, .9, 1.2, .65});
}

/// An op at its element types, and what calls it.
struct listed_map {
  const op_info* op;
  std::string types;
  bool differentiable;
  /// Its result; with `gradient` the inputs' gradients of the sum of its squares, instead.
  std::vector<handle> (*call)(const op_info& op, bool gradient);
};

template <class Out, class In, bool Chooses, int Arity>
std::vector<handle> call(const op_info& op, bool gradient) {
  const auto mask = elements<bool>(0);
  xla::Tensor<In, 1> x[Arity];
  const handle* in[Arity];
  for (int k = 0; k < Arity; ++k) {
    x[k] = elements<In>(k);
    if constexpr (xla::floating_type<In>)
      if (gradient) x[k].requires_grad_();
    in[k] = Chooses && k == 0 ? static_cast<const handle*>(&mask) : &x[k];
  }
  xla::Tensor<Out, 1> y;
  xla::detail::machine_of<Out>::apply(xla::detail::unknown_caller, xla::detail::plain, op, in,
                                      Arity, y);
  if (!gradient) return {y};
  std::vector<handle> gradients;
  if constexpr (xla::floating_type<Out> && xla::floating_type<In>) {
    sum(y * y).backward();
    for (int k = Chooses; k < Arity; ++k) gradients.push_back(x[k].grad());
  }
  return gradients;
}

template <class Op, class Out, class In>
void add_map(std::vector<listed_map>& all) {
  if constexpr (Op::kind == xla::detail::op_kind::map && !xla::detail::has_attributes<Op>) {
    using map = xla::detail::single_map<Op, Out, In>;
    all.push_back({&xla::detail::info_of<Op, Out, In>,
                   std::string(xla::name_of(xla::dtype_of<In>)) + " to " +
                       std::string(xla::name_of(xla::dtype_of<Out>)),
                   xla::detail::differentiable<Op, Out, In>,
                   &call<Out, In, map::chooses, map::arity>});
  }
}

std::vector<listed_map> every_map() {
  std::vector<listed_map> all;
#define ADD_MAP(op, Out, In) add_map<op, Out, In>(all)
#define ADD_MAPS(op, group) XLA_TYPES_##group(ADD_MAP, ADD_MAP, ADD_MAP, op);
  XLA_ALL_OPS(ADD_MAPS)
#undef ADD_MAPS
#undef ADD_MAP
  return all;
}

/// What keeps an op from a program of its own: it names its input's elements again, or it is among
/// replicas alone that it computes.
template <class Op>
struct never_alone {
  static constexpr bool value = Op::kind == xla::detail::op_kind::alias ||
                                requires { Op::exchanges; } || requires { Op::alone_is_input; };
};

}  // namespace

TEST_CASE("the text of every elementwise op on the list is in order, and of its gradient") {
  const xla::eager_mode_guard traced(false);
  const auto all = every_map();
  CHECK(all.size() > 100);
  for (const listed_map& m : all) {
    INFO(m.op->name << ", " << m.types);
    xla::sync(true);
    const auto pending = m.call(*m.op, false);
    CHECK(test::stablehlo_reader::problem(xla::stablehlo()) == "");
    if (!m.differentiable) continue;
    const auto gradients = m.call(*m.op, true);
    CHECK_FALSE(gradients.empty());
    CHECK(test::stablehlo_reader::problem(xla::stablehlo()) == "");
  }
  xla::sync(true);
}

TEST_CASE("XLA computes every elementwise op on the list, alone and in programs, and its gradient",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  REQUIRE(xla::backend_name() == "referee");  // which compares with the interpreter
  for (const auto& row : xla::detail::op_table<never_alone, xla::detail::computing_ops>.rows)
    if (row.value) test::note_op(row.name, "never_alone");
  for (const listed_map& m : every_map()) {
    {
      const xla::eager_mode_guard eager;
      m.call(*m.op, false);
    }
    const xla::eager_mode_guard traced(false);
    const auto results = m.call(*m.op, false);
    auto gradients = m.differentiable ? m.call(*m.op, true) : std::vector<handle>();
    xla::sync(true);
    test::note_op(m.op->name);
    if (!m.differentiable) continue;
    test::note_op(m.op->name, "differentiable");
    test::note_op(m.op->name, "gradient");
  }
}
