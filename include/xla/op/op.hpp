// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/instance.hpp"
#include "xla/tensor.hpp"

namespace xla::detail {

/// The kernels of an op: made in kernel/ from its definition.
template <class Op, class Out, class In>
struct kernel_of;

/// What a description of an op points to. Declared apart from kernel_of, so that a program does not
/// make what it finds in a library.
template <class Op, class Out, class In>
struct kernel_entry {
  static void run(const kernel_call& call)
    requires(Op::kind != op_kind::alias);
  static void tile(const tile_call& call)
    requires(Op::kind == op_kind::map);
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

/// From the id in a fused region back to the definition; see XLA_OP.
template <std::uint32_t Id>
struct op_by_id;

/// What a shape rule sees: the shapes of the inputs, the op's attributes, and where to compute.
struct shape_rule {
  size_scope sizes;
  const node& op;
  shape in[3];
  int count = 0;
};

/// One step of backward: the op's inputs, result and incoming gradient; the rule fills result.
struct gradient_scope {
  handle in[3];
  handle out, grad;
  handle result[3];
  bool wants[3] = {};
  handle collected;       ///< the first input's gradient so far, when there is one
  bool replaces = false;  ///< result[0] takes the place of collected
  std::int64_t attr = 0;
  extent size = 0;
};

template <class T>
constexpr any_tensor<T> as_any(const handle& h) {
  any_tensor<T> t;
  static_cast<handle&>(t) = h;
  return t;
}

template <class T>
constexpr any_tensor<T> sum_to(const any_tensor<T>& x, const shape& target);

/// What an op's gradient rule is written against.
template <class Out, class In>
struct gradient_of {
  gradient_scope& scope;

  constexpr any_tensor<Out> out() const { return as_any<Out>(scope.out); }
  constexpr any_tensor<Out> grad() const { return as_any<Out>(scope.grad); }
  template <class T = In>
  constexpr any_tensor<T> in(int i) const {
    return as_any<T>(scope.in[i]);
  }
  constexpr bool wants(int i) const { return scope.wants[i]; }
  constexpr std::int64_t attr() const { return scope.attr; }
  constexpr extent size() const { return scope.size; }
  /// The gradient of the first input so far; undefined while there is none.
  constexpr any_tensor<In> collected() const { return as_any<In>(scope.collected); }
  /// The gradient of the first input with what is collected.
  constexpr void replace(const any_tensor<In>& total) {
    scope.result[0] = total;
    scope.replaces = true;
  }
  /// The gradient of input i; summed over the axes along which the input was broadcast.
  template <class T = In>
  constexpr void to(int i, const any_tensor<T>& g) {
    scope.result[i] = sum_to(g, scope.in[i].dims());
  }
};

template <class Op, class Out, class In>
concept differentiable =
    fraction<Out> && fraction<In> && requires(gradient_of<Out, In>& g) { Op::gradient(g); };

/// What every op defines: its name, how it fuses, and its shape rule.
template <class Op>
concept complete_op = requires(const shape_rule& r) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::kind } -> std::convertible_to<op_kind>;
  { Op::shape_of(r) } -> std::same_as<shape>;
};

template <class Op, class Out, class In>
constexpr void run_gradient(gradient_scope& s) {
  gradient_of<Out, In> g{s};
  Op::gradient(g);
}

template <class Op, class Out, class In>
constexpr op_info make_facts() {
  static_assert(complete_op<Op>, "xla: an op needs a name, a kind and a shape rule");
  op_info i{.name = Op::name, .id = op_id(Op::name), .kind = Op::kind};
  i.result = dtype_of<Out>;
  if constexpr (requires { Op::commutative; }) i.commutative = Op::commutative;
  if constexpr (requires { Op::costly; }) i.costly = Op::costly;
  if constexpr (requires { Op::impure; }) i.impure = Op::impure;
  if constexpr (requires { Op::check; }) i.check = Op::check;
  if constexpr (requires { Op::updates; }) i.updates = Op::updates;
  if constexpr (requires { Op::picks; }) i.picks = Op::picks;
  if constexpr (requires { &Op::loops; }) {
    i.product = true;
    i.loops = &Op::loops;
  }
  if constexpr (requires { Op::takes_axes; }) i.takes_axes = Op::takes_axes;
  i.differentiable = differentiable<Op, Out, In>;
  return i;
}

template <class Op, class Out, class In>
constexpr op_info make_runs() {
  op_info i = make_facts<Op, Out, In>();
  if constexpr (Op::kind != op_kind::alias) i.run = &kernel_entry<Op, Out, In>::run;
  return i;
}

/// What a compiled program points to.
template <class Op, class Out, class In>
inline constexpr op_info facts_of = make_facts<Op, Out, In>();
template <class Op, class Out, class In>
inline constexpr op_info runs_of = make_runs<Op, Out, In>();

template <class Op, class Out, class In>
constexpr op_info make_values() {
  op_info i = make_runs<Op, Out, In>();
  i.shape_of = &Op::shape_of;
  if constexpr (Op::kind == op_kind::map) i.tile = &kernel_entry<Op, Out, In>::tile;
  return i;
}
/// An op of values that no gradient is wanted of.
template <class Op, class Out, class In>
inline constexpr op_info values_of = make_values<Op, Out, In>();

template <class Op, class Out, class In>
constexpr op_info make_info() {
  op_info i = make_values<Op, Out, In>();
  if constexpr (differentiable<Op, Out, In>) i.gradient = &run_gradient<Op, Out, In>;
  // A program with a library of the run time finds the whole there.
#if !defined(XLA_EXTERN_RUNTIME)
  i.lean = true;
  i.facts = &facts_of<Op, Out, In>;
  i.runs = &runs_of<Op, Out, In>;
#endif
  return i;
}

/// The one description of an op at given element types of its result and its main input.
template <class Op, class Out, class In>
inline constexpr op_info info_of = make_info<Op, Out, In>();

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
  n.set_shape(op.shape_of(rule));
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

/// Registers an op, below its definition: fused regions find it again by its id (two names with one
/// id do not compile), and xla::runtime makes its kernels and gradient for a group of element types.
/// A program makes those of other types where it uses them. op/list.hpp is made from these lines.
#define XLA_OP(type, group)                                      \
  template <>                                                    \
  struct xla::detail::op_by_id<xla::detail::op_id(type::name)> { \
    using op = type;                                             \
  };                                                             \
  XLA_TYPES_##group(XLA_DETAIL_ELSEWHERE, XLA_DETAIL_ELSEWHERE, XLA_DETAIL_ELSEWHERE, type)

#if defined(XLA_EXTERN_RUNTIME)
#define XLA_DETAIL_ELSEWHERE(type, Out, In)                           \
  extern template struct xla::detail::kernel_entry<type, Out, In>; \
  extern template const xla::detail::op_info xla::detail::info_of<type, Out, In>
#else
#define XLA_DETAIL_ELSEWHERE(...) static_assert(true)
#endif

// The groups: F(type, Out, In) for each pair that begins with float, D with double, I with others.
#define XLA_TYPES_fractions(F, D, I, type) F(type, float, float); D(type, double, double)
#define XLA_TYPES_doubles(F, D, I, type) D(type, double, double)
#define XLA_TYPES_indices(F, D, I, type) I(type, std::int64_t, std::int64_t)
#define XLA_TYPES_truths(F, D, I, type) I(type, bool, bool)
#define XLA_TYPES_numbers(F, D, I, type) \
  XLA_TYPES_fractions(F, D, I, type);    \
  XLA_TYPES_indices(F, D, I, type)
#define XLA_TYPES_all(F, D, I, type)  \
  XLA_TYPES_numbers(F, D, I, type);   \
  XLA_TYPES_truths(F, D, I, type)
#define XLA_TYPES_comparisons(F, D, I, type) \
  F(type, bool, float);                      \
  D(type, bool, double);                     \
  I(type, bool, std::int64_t)
#define XLA_TYPES_places(F, D, I, type) \
  F(type, std::int64_t, float);         \
  D(type, std::int64_t, double);        \
  I(type, std::int64_t, std::int64_t)
#define XLA_TYPES_conversions(F, D, I, type) \
  F(type, double, float);                    \
  F(type, std::int64_t, float);              \
  F(type, bool, float);                      \
  D(type, float, double);                    \
  D(type, std::int64_t, double);             \
  D(type, bool, double);                     \
  I(type, float, std::int64_t);              \
  I(type, double, std::int64_t);             \
  I(type, bool, std::int64_t);               \
  I(type, float, bool);                      \
  I(type, double, bool);                     \
  I(type, std::int64_t, bool)
