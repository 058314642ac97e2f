// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/arithmetic.hpp"
#include "xla/op/reduce.hpp"

namespace xla::detail {

/// Applies the gradient rule of one op; in any mode, since rules are written with tensors.
constexpr void apply_gradient(const op_info& op, gradient_scope& scope) { op.gradient(scope); }

// The functions below are templates over the loss's element type so that a program that never calls
// backward() instantiates no kernel for it.

/// The sum of two gradients of the same shape.
template <class Loss>
constexpr handle add_gradients(dtype type, const handle& a, const handle& b) {
  if (type == dtype::float32) return as_any<float>(a) + as_any<float>(b);
  return as_any<double>(a) + as_any<double>(b);
}


/// Backward over a graph under capture: from the last node to the first, each op's rule adds nodes;
/// what reaches a slot is added to the slot's gradient.
template <class Loss>
struct graph_backward {
  graph& g;
  int last;
  int* gradient;  // of each node up to last; -1: none

  constexpr handle at(int index) const {
    handle h;
    h.name_node(&g, index);
    return h;
  }

  constexpr void accumulate(int index, int value) {
    gradient[index] = gradient[index] < 0
                          ? value
                          : add_gradients<Loss>(g.nodes[index].type, at(gradient[index]), at(value)).lift(&g);
  }

  constexpr void collect(int slot_index, int value) {
    slot& s = g.slots[slot_index];
    if (!s.requires_grad) return;
    const int old = g.gradient_of(slot_index);
    s.grad = old < 0 ? value : add_gradients<Loss>(g.nodes[value].type, at(old), at(value)).lift(&g);
    s.state = grad_state::present;
  }

  constexpr void step(int index) {
    const node n = g.nodes[index];
    gradient_scope s;
    for (int i = 0; i < n.arity; ++i) {
      s.in[i] = at(n.in[i]);
      s.wants[i] = g.nodes[n.in[i]].needs_grad;
    }
    s.out = at(index);
    s.grad = at(gradient[index]);
    s.attr = n.attr;
    s.size = n.size;
    apply_gradient(*n.op, s);
    for (int i = 0; i < n.arity; ++i)
      if (s.wants[i] && s.result[i].defined()) accumulate(n.in[i], s.result[i].lift(&g));
  }

  constexpr void run() {
    for (int i = last; i >= 0; --i) {
      if (gradient[i] < 0 || !g.nodes[i].needs_grad) continue;
      if (const int slot = slot_of(g.nodes[i]); slot >= 0) collect(slot, gradient[i]);
      else step(i);
    }
  }
};

template <class Loss>
constexpr void backward(graph& g, int root) {
  if (!g.nodes[root].needs_grad) {
    g.sizes.refused.set(
        "backward() of a value that no parameter went into: nothing requires a gradient");
    return;
  }
  const bool recording = g.recording;
  g.recording = false;
  int* gradient = new int[static_cast<std::size_t>(root) + 1];
  for (int i = 0; i <= root; ++i) gradient[i] = -1;
  gradient[root] = constant<Loss>(1).lift(&g);
  graph_backward<Loss>{g, root, gradient}.run();
  delete[] gradient;
  g.recording = recording;
}

}  // namespace xla::detail

namespace xla {

template <element T, int R>
constexpr void Tensor<T, R>::backward() const requires(R == 0)
{
  static_assert(std::is_floating_point_v<T>, "xla: backward() needs a loss of float or double");
  if (!std::is_constant_evaluated()) detail::machine<T>::backward(*this);
  else if (owner()) detail::backward<T>(*owner(), node_index());
  else throw std::logic_error("xla: backward() of a constant");
}

}  // namespace xla
