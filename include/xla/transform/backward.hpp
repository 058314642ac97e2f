// SPDX-License-Identifier: Apache-2.0
#pragma once

// backward() and grad(): the gradient of a loss, as nodes added to a captured graph. Outside of a
// compiled function run/trace/backward.hpp does the same with tensors, by the same rules of ops.

#include <tuple>
#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/create.hpp"
#include "xla/op/reduce.hpp"
#include "xla/tensor/state.hpp"
#include "xla/tensor/tree.hpp"
#include "xla/transform/replay.hpp"

namespace xla {

/// Options of xla::grad.
struct GradOptions {
  bool create_graph = false;  ///< the gradients can be differentiated again
};

}  // namespace xla

namespace xla::detail {

/// Applies the gradient rule of one op; in any mode, since rules are written with tensors.
constexpr void apply_gradient(const op_info& op, gradient_scope& scope) { op.gradient(scope); }

/// The sum of two gradients of the same shape. In: void, or a type that the caller depends on, so
/// that a program that never calls backward() makes no kernel for it.
template <class In>
constexpr handle add_gradients(dtype type, const handle& a, const handle& b) {
  if (type == dtype::bfloat16)
    return as_any<dependent<In, bfloat16>>(a) + as_any<dependent<In, bfloat16>>(b);
  if (type == dtype::float32)
    return as_any<dependent<In, float>>(a) + as_any<dependent<In, float>>(b);
  return as_any<dependent<In, double>>(a) + as_any<dependent<In, double>>(b);
}

/// Backward over a graph under capture: the rule of each op adds nodes. A gradient that reaches a
/// slot is added to the slot's gradient; for an argument tensor, only in calls that require its
/// gradient. grad() returns the gradients to its caller instead. The order is that of the
/// structure, depth first along the operands. It is not that of recording, which compilers may
/// choose: a + b may record b first, or a.
class graph_backward {
 public:
  using adder = handle (*)(dtype type, const handle& a, const handle& b);

  constexpr graph_backward(graph& in, int loss, bool collects, adder add)
      : g(in),
        root(loss),
        collects_(collects),
        arguments_(collects && in.loop == 0),
        add_(add),
        again_(in, loss),
        loops_(static_cast<std::size_t>(in.loop_count) + 1),
        loops(loops_.get()) {
    const std::size_t n = static_cast<std::size_t>(root) + 1;
    gradient = for_gradient_.renew(n);
    next = for_next_.renew(n);
    for (int i = 0; i <= root; ++i) gradient[i] = unseen;
  }
  graph_backward(const graph_backward&) = delete;
  graph_backward& operator=(const graph_backward&) = delete;

  template <class Loss>
  constexpr void run() {
    const owned_array<int> stack(4 * static_cast<std::size_t>(root) + 5 +
                                 static_cast<std::size_t>(g.lists.count));
    int outside = 0;
    stack.get()[0] = root;
    const int first = find_order(0, stack.get(), 1, nullptr, outside);
    const bool within = std::exchange(g.in_backward, true);
    gradient[root] = constant<Loss>(1).lift(&g);
    run_list(first);
    g.in_backward = within;
  }
  /// The node of a node's gradient, or -1 if the loss does not depend on it.
  constexpr int gradient_of(int node) const {
    return node > root || gradient[node] < 0 ? -1 : gradient[node];
  }

 private:
  friend class loop_backward;
  friend class loop_products;
  friend class loop_reads;
  friend class loop_body_order;
  template <class>
  friend class basic_function_gradient;
  static constexpr int unseen = -2, none = -1;
  /// The nodes of a loop's body in visiting order: the first one, and how many outside values the
  /// body reads.
  struct body_order {
    int first = none, outside = 0;
  };

  constexpr handle at(int index) const {
    handle h;
    h.name_node(&g, index);
    return h;
  }

  constexpr bool follows(int index) const {
    return g.nodes[index].needs_grad || (arguments_ && g.nodes[index].input_grad);
  }

  constexpr void run_list(int first) {
    for (int at = first; at >= 0; at = next[at]) {
      if (g.loop_count != 0 && g.rules_of_loops->step(*this, at)) continue;
      if (gradient[at] < 0 && !(handed && handed[at] >= 0)) continue;
      const int slot = slot_of(g.nodes[at]);
      if (slot >= 0 && collects_ && !inside) collect(slot, gradient[at]);
      if (!ends_gradients(g.nodes[at])) step(at);
    }
  }

  /// The gradient of a node so far, or -1.
  constexpr int& sum_of(int index, bool adds) {
    return inside ? g.rules_of_loops->sum(*this, index, adds) : gradient[index];
  }
  constexpr int read(int index, int arrived) {
    return g.loop_count != 0 ? g.rules_of_loops->read(*this, index, arrived)
                             : again_.value(index, arrived);
  }
  constexpr void accumulate(int index, int value) {
    int& sum = sum_of(index, true);
    sum = sum < 0 ? value : add_(g.nodes[index].type, at(sum), at(value)).lift(&g);
  }

  constexpr void collect(int slot_index, int value) {
    slot& s = g.slots[slot_index];
    if (!s.requires_grad) return;
    g.slots[g.decider(slot_index)].collected = true;
    const int old = g.gradient_of(slot_index);
    s.grad = old < 0 ? value : add_(g.nodes[value].type, at(old), at(value)).lift(&g);
    s.state = grad_state::present;
  }

  constexpr void step(int index) {
    const node n = g.nodes[index];
    if (const int* const from = result_of_input(n)) return hand_on(index, *from);
    if (n.arity <= few_inputs) return step(index, n, n.in);
    const owned_array<int> all(static_cast<std::size_t>(n.arity));  // the rule may add lists
    for (int k = 0; k < n.arity; ++k) all.get()[k] = g.inputs(n)[k];
    step(index, n, all.get());
  }
  constexpr void step(int index, const node& n, const int* inputs) {
    const int arity = n.arity;
    gradient_scope s(arity);
    // Nodes that a checkpoint dropped are recorded again when the gradient of their user exists.
    const int arrived = handed && handed[index] >= 0 ? gradient[handed[index]] : gradient[index];
    for (int i = 0; i < arity; ++i) {
      s.in[i] = at(read(inputs[i], arrived));
      s.needs[i] = follows(inputs[i]);
    }
    if (inside && g.recording) g.rules_of_loops->read_results(*this, index, s);
    const int first = arity > 0 && s.needs[0] ? inputs[0] : -1;
    const int sum = first >= 0 ? sum_of(first, false) : none;
    if (sum >= 0) s.collected = at(sum);
    s.out = at(read(index, arrived));
    if (gradient[index] >= 0) s.grad = at(gradient[index]);
    if (handed && handed[index] >= 0) take_handed(index, s);
    s.attr = n.attr;
    apply_gradient(*n.op, s);
    if (s.replaces) replace(first);
    for (int i = 0; i < arity; ++i)
      if (s.needs[i] && s.result[i].defined()) accumulate(inputs[i], s.result[i].lift(&g));
  }

  constexpr void replace(int index) {
    if (inside) g.rules_of_loops->replaced(*this, index);
    sum_of(index, true) = none;
  }

  // The gradients of an op's results wait for each other, in a list that begins at the op.
  constexpr void hand_on(int result, int from) {
    if (!handed) {
      handed = for_handed_.renew(static_cast<std::size_t>(root) + 1);
      for (int i = 0; i <= root; ++i) handed[i] = none;
    }
    handed[result] = handed[from];
    handed[from] = result;
  }
  constexpr int number(int result) const { return g.nodes[result].attributes<op::result>().number; }
  constexpr void take_handed(int index, gradient_scope& s) const {
    int count = 0;
    for (int r = handed[index]; r >= 0; r = handed[r])
      if (number(r) >= count) count = number(r) + 1;
    s.make_grads(count);
    for (int r = handed[index]; r >= 0; r = handed[r]) {
      handle& sum = s.grads[number(r)];
      const handle more = at(gradient[r]);
      if (sum.defined()) sum = add_(g.nodes[r].type, sum, more);
      else sum = more;
    }
  }

  // Post-order without recursion, reversed. A node goes on the stack twice: the second time, as
  // ~index, it is put in order after its inputs. Inputs before `begin`, outside of the loop that
  // begins there, are collected in `outside`. Returns the first node of the order; next[] links the
  // others.
  constexpr int find_order(int begin, int* stack, int top, int* outside, int& count) {
    if (g.loop_count != 0 && ordered == 0) g.rules_of_loops->homes(*this, stack, top);
    const auto outer = [&](int i) {
      return i < begin || (ordered != 0 && g.rules_of_loops->outside(*this, i, ordered));
    };
    int first = none;
    while (top > 0) {
      const int at = stack[--top];
      if (at < 0) {
        next[~at] = first;
        first = ~at;
        continue;
      }
      if (outer(at)) {
        outside[count++] = at;
        continue;
      }
      if (gradient[at] != unseen) continue;
      gradient[at] = none;
      stack[top++] = ~at;
      const node& n = g.nodes[at];
      if (ends_gradients(n)) continue;
      if (g.loop_count != 0 && g.rules_of_loops->order(*this, at, stack, top)) continue;
      const int* const in = g.inputs(n);
      for (int k = n.arity - 1; k >= 0; --k)
        if (follows(in[k]) && (outer(in[k]) || gradient[in[k]] == unseen)) stack[top++] = in[k];
    }
    return first;
  }

  graph& g;
  int root;
  bool collects_;
  bool arguments_;  // also in argument tensors, but not from the steps of a loop
  adder add_;
  graph_replay again_;
  owned_array<int> for_gradient_, for_next_, for_handed_, for_homes_;
  owned_array<body_order> loops_;
  int* gradient;          // of each node up to the root
  int* next;              // of nodes that a gradient may reach: every node before its inputs
  int ordered = 0;        // the loop whose body find_order() is for
  int* homes = nullptr;   // if there are loops: see loop_body_order
  int* handed = nullptr;  // if ops have several results: see hand_on()
  loop_backward* inside = nullptr;  // the loop whose body's rules are running
  body_order* loops;
};

template <class Loss>
constexpr void backward(graph& g, int root, caller loc) {
  if (g.loop != 0) g.rules_of_loops->end_at_arguments(g, root);
  if (!g.nodes[root].needs_grad && (g.loop != 0 || !g.nodes[root].input_grad)) {
    g.sizes.refused.set(
        text("backward() of a value that no parameter or argument went into: nothing requires a "
             "gradient")
        << std::source_location(loc));
    return;
  }
  const bool recording = g.recording;
  g.recording = false;
  graph_backward(g, root, true, &add_gradients<Loss>).template run<Loss>();
  g.recording = recording;
}

/// The gradients of a loss for some inputs, into results of their types.
template <class Loss, class Results, class... X>
constexpr void gradients(const Tensor<Loss, 0>& loss, GradOptions options, Results& results,
                         const X&... inputs) {
  graph& g = *loss.owner();
  if (!loss.requires_grad() || !(inputs.requires_grad() && ...)) {
    g.sizes.refused.set(
        "grad: every input must require a gradient: call requires_grad_() on it before the loss "
        "is computed from it");
    std::apply([&](auto&... r) { ((r = zeros_like(inputs)), ...); }, results);
    return;
  }
  const bool recording = g.recording;
  g.recording = options.create_graph;
  graph_backward pass(g, loss.node_index(), false, &add_gradients<Loss>);
  pass.template run<Loss>();
  auto one = [&](auto& result, const auto& input) {
    const int at = pass.gradient_of(input.node_index());
    if (at < 0) result = zeros_like(input);
    else result.name_node(&g, at);
  };
  std::apply([&](auto&... r) { (one(r, inputs), ...); }, results);
  g.recording = recording;
}

}  // namespace xla::detail

namespace xla {

template <element T, int R>
constexpr void Tensor<T, R>::backward(caller loc) const
  requires(R == 0)
{
  static_assert(std::is_floating_point_v<T>, "xla: backward() needs a loss of float or double");
  if (!__builtin_is_constant_evaluated()) detail::machine_of<T>::backward(*this);
  else if (owner()) detail::backward<T>(*owner(), node_index(), loc);
  else throw std::logic_error("xla: backward() of a constant");
}

namespace detail {
/// A number whose gradient with respect to y is `gradient`, bit by bit. It starts a backward pass
/// from a gradient for each element.
template <class T, int R>
constexpr auto sum_of_products(const Tensor<T, R>& y, const Tensor<T, R>& gradient,
                               call_site site) {
  static_assert(std::is_floating_point_v<T> || std::is_same_v<T, bfloat16>,
                "xla: backward() and grad() need values of float, double or bfloat16");
  const size_scope scope{y.table() ? y.table() : gradient.table(), site};
  const shape of = y.dims(), from = gradient.dims();
  if (!scope.same(of, from))
    scope.fail(text("a gradient of shape ") << from << " for a value of shape " << of);
  if constexpr (std::is_same_v<T, bfloat16>) return sum(cast<float>(y) * cast<float>(gradient));
  else return sum(y * gradient);
}
}  // namespace detail

template <element T, int R>
constexpr void Tensor<T, R>::backward(const Tensor& gradient, caller loc) const {
  detail::sum_of_products(*this, gradient.detach(), {"backward", loc}).backward(loc);
}

/// The gradients of one number with respect to tensors that require one, as a tuple; nothing is
/// accumulated in parameters. 0 if the loss does not depend on an input.
template <class T, class... X>
constexpr auto grad(const Tensor<T, 0>& loss, const std::tuple<X...>& inputs,
                    GradOptions options = {}) {
  static_assert(std::is_floating_point_v<T>, "xla::grad: needs a loss of float or double");
  static_assert(
      (!detail::is_state<X> && ...),
      "xla::grad: a tuple that owns a parameter holds a copy of it; write std::tie(a, b)");
  return std::apply(
      [&](const auto&... x) {
        std::tuple<Tensor<typename std::remove_cvref_t<decltype(x)>::value_type,
                          std::remove_cvref_t<decltype(x)>::rank>...>
            results;
        if (!__builtin_is_constant_evaluated()) {
          const detail::handle* const in[] = {&x...};
          std::apply(
              [&](auto&... r) {
                detail::handle* const out[] = {&r...};
                detail::machine_of<T>::gradients(loss, in, out, sizeof...(x), options.create_graph);
              },
              results);
        } else if (loss.owner()) detail::gradients<T>(loss, options, results, x...);
        else throw std::logic_error("xla: grad() of a constant");
        return results;
      },
      inputs);
}
namespace detail {
template <class X>
constexpr auto tie_parameters(X& x) {
  using U = std::remove_const_t<X>;
  const auto all = [](auto&... m) { return std::tuple_cat(tie_parameters(m)...); };
  if constexpr (is_state<U>) {
    if constexpr (U::trainable) return std::tie(x);
    else return std::tuple<>();
  } else if constexpr (is_array<U> || is_tuple<U>) {
    return std::apply(all, x);
  } else if constexpr (described<U>) {
    return hana::unpack(U::xla_members(), [&](const auto&... m) { return all(m.get(x)...); });
  } else {
    return std::tuple<>();
  }
}
}  // namespace detail

/// The same with respect to all parameters of a module, in the order of named_parameters().
template <class T, detail::described Module>
constexpr auto grad(const Tensor<T, 0>& loss, Module& model, GradOptions options = {}) {
  return grad(loss, detail::tie_parameters(model), options);
}
/// The gradient of one number with respect to one tensor.
template <class T, element U, int R>
constexpr Tensor<U, R> grad(const Tensor<T, 0>& loss, const Tensor<U, R>& input,
                            GradOptions options = {}) {
  return std::get<0>(grad(loss, std::tuple<const Tensor<U, R>&>(input), options));
}

}  // namespace xla
