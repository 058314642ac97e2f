// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes op_info, the record of an op's name, rules and kernels, from the struct that defines the
// op. XLA_OP uses it (register.hpp); ops do not include it themselves.

#include "xla/base/dependent.hpp"
#include "xla/op/rule.hpp"

namespace xla::detail {

/// The kernels of an op, which kernel/ makes from its definition.
template <class Op, class Out, class In>
struct kernel_of;

template <class Op>
inline constexpr bool has_algorithms = requires { Op::has_algorithms; };

/// The kernel to which an op's description points. Declared separately from kernel_of, so that a
/// program does not instantiate kernels that a library has.
template <class Op, class Out, class In>
struct kernel_entry {
  static void run(const kernel_call& call)
    requires(Op::kind != op_kind::alias);
  static void tile(const tile_call& call)
    requires(Op::kind == op_kind::map);
  static void choose(const kernel_call& of, kernel_choice& out)
    requires(has_algorithms<Op>);
};
template <class Op, class Out, class In>
void kernel_entry<Op, Out, In>::run(const kernel_call& call)
  requires(Op::kind != op_kind::alias)
{
  kernel_of<Op, Out, In>::run(call);
}
template <class Op, class Out, class In>
void kernel_entry<Op, Out, In>::tile(const tile_call& call)
  requires(Op::kind == op_kind::map)
{
  kernel_of<Op, Out, In>::tile(call);
}

template <class Op, class Out, class In>
[[gnu::cold]] void kernel_entry<Op, Out, In>::choose(const kernel_call& of, kernel_choice& out)
  requires(has_algorithms<Op>)
{
  kernel_of<Op, Out, In>::choose(of, out);
}

template <class Op, class Out, class In>
using gradient_step = std::conditional_t<has_attributes<Op>, attributed_gradient_of<Op, Out, In>,
                                         gradient_of<Out, In>>;

template <class Op, class Out, class In>
concept differentiable = floating_type<Out> && floating_type<In> &&
                         requires(gradient_step<Op, Out, In>& g) { Op::gradient(g); };

/// The parts that every op defines: its name, how it fuses, and its shape rule.
template <class Op>
concept complete_op = requires(const shape_rule& r) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::kind } -> std::convertible_to<op_kind>;
  { Op::shape_of(r) } -> std::same_as<shape>;
};

/// transform/layouts.hpp defines it.
template <class = void>
constexpr void propagate_layouts(pass_state& s);

/// run/execute/with_layouts.hpp defines it.
template <class = void>
void run_with_layouts(impl& t);

/// run/trace/lazy.hpp defines it.
template <class = void>
void run_recorded();

/// run/execute/epilogue.hpp defines it.
template <class = void>
void find_epilogues(plan_steps& steps);

/// run/execute/exchange.hpp defines these.
template <class = void>
void identify_plan(plan_steps& steps);
template <class = void>
void find_buckets(plan_steps& steps);

/// run/plan/memory_plan.hpp defines these.
template <class = void>
bool may_update(const basic_plan<void>& p, int i, int value, int old);
template <class = void>
void put_input(basic_memory_planner<void>& by, int i, int value);

template <class Op>
constexpr plan_hooks make_plan_hooks() {
  plan_hooks h;
  if constexpr (requires { Op::notifies_tiles; })
    h.epilogues = &find_epilogues<dependent<Op, void>>;
  if constexpr (requires { Op::exchanges; }) h.identify = &identify_plan<dependent<Op, void>>;
  if constexpr (requires { Op::bundled; }) h.buckets = &find_buckets<dependent<Op, void>>;
  if constexpr (requires { Op::updates; }) {
    h.overwrites = &may_update<dependent<Op, void>>;
    h.put_input = &put_input<dependent<Op, void>>;
  }
  return h;
}
template <class Op>
inline constexpr plan_hooks plan_hooks_of = make_plan_hooks<Op>();
template <class Op>
concept in_plans = requires { Op::notifies_tiles; } || requires { Op::exchanges; } ||
                   requires { Op::bundled; } || requires { Op::updates; };

template <class Op, class Out, class In>
constexpr void run_gradient(gradient_scope& s) {
  gradient_of<Out, In> g{s};
  if constexpr (has_attributes<Op>) {
    attributed_gradient_of<Op, Out, In> with{g};
    Op::gradient(with);
  } else {
    Op::gradient(g);
  }
}

template <class Op>
constexpr shape run_loops(const shape* in, const shape& out, const packed_attributes& attr) {
  return Op::loops(in, out, unpack<typename Op::attributes>(attr));
}

/// How much of an op a description contains; nothing else is instantiated.
enum class op_parts {
  facts,   ///< the kind of op: for ops within a region
  kernel,  ///< and its kernel: for steps of a compiled program
  values,  ///< and everything that computes values: if no gradient is needed
  all,     ///< and its gradient
};

template <class Op, class Out, class In, op_parts Parts>
constexpr op_info make_info();

/// The one description of an op at given element types of its result and its main input.
template <class Op, class Out, class In, op_parts Parts = op_parts::all>
inline constexpr op_info info_of = make_info<Op, Out, In, Parts>();

template <class Op, class Out, class In, op_parts Parts>
constexpr op_info make_info() {
  static_assert(complete_op<Op>, "xla: an op needs a name, a kind and a shape rule");
  op_info i{.name = Op::name, .id = id_of<Op>, .kind = Op::kind};
  i.result = dtype_of<Out>;
  if constexpr (has_attributes<Op>) i.fields = fields_of<typename Op::attributes>;
  if constexpr (requires { Op::commutative; }) i.commutative = Op::commutative;
  if constexpr (requires { Op::costly; }) i.costly = Op::costly;
  if constexpr (requires { Op::impure; }) i.impure = Op::impure;
  if constexpr (requires { Op::check; }) i.check = Op::check;
  if constexpr (requires { Op::exchanges; }) {
    i.exchanges = true;
    if constexpr (Parts >= op_parts::kernel) i.before = &run_recorded<dependent<Op, void>>;
  }
  if constexpr (requires { Op::alone_is_input; }) i.alone_is_input = true;
  if constexpr (requires { Op::updates; }) i.updates = Op::updates;
  if constexpr (requires { Op::picks; }) i.picks = Op::picks;
  if constexpr (requires { &Op::loops; }) {
    i.product = true;
    i.loops = &run_loops<Op>;
  }
  if constexpr (requires { Op::results; }) i.results = Op::results;
  if constexpr (requires { Op::prepares; }) i.prepares = Op::prepares;
  if constexpr (requires { Op::takes_axes; }) i.takes_axes = Op::takes_axes;
  if constexpr (Op::kind == op_kind::map) i.accepts = axes_rule::broadcast;
  if constexpr (requires { Op::accepts; }) i.accepts = Op::accepts;
  if constexpr (requires { &Op::preferred_layout; }) {
    i.preferred_layout = &Op::preferred_layout;
    i.layouts = &propagate_layouts<dependent<Op, void>>;
    if constexpr (Parts >= op_parts::values)
      i.with_layouts = &run_with_layouts<dependent<Op, void>>;
  }
  if constexpr (requires { Op::layouts; }) i.layouts = Op::layouts;
  i.differentiable = differentiable<Op, Out, In>;
  if constexpr (Parts >= op_parts::kernel && Op::kind != op_kind::alias) {
    i.run = &kernel_entry<Op, Out, In>::run;
    if constexpr (in_plans<Op>) i.plan = &plan_hooks_of<Op>;
    if constexpr (has_algorithms<Op>) i.choose = &kernel_entry<Op, Out, In>::choose;
  }
  if constexpr (Parts >= op_parts::values) {
    i.shape_of = &Op::shape_of;
    if constexpr (Op::kind == op_kind::map) i.tile = &kernel_entry<Op, Out, In>::tile;
  }
  if constexpr (Parts == op_parts::all) {
    if constexpr (differentiable<Op, Out, In>) i.gradient = &run_gradient<Op, Out, In>;
#if !defined(XLA_EXTERN_RUNTIME)  // if all of it is instantiated anyway, a smaller one is useless
    i.has_less = true;
    i.facts = &info_of<Op, Out, In, op_parts::facts>;
    i.runs = &info_of<Op, Out, In, op_parts::kernel>;
#endif
  }
  return i;
}

}  // namespace xla::detail
