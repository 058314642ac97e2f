// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arguments of an op's shape rule and gradient rule. Every op's struct uses these; the how-to
// add_an_op.md shows them.

#include "xla/tensor.hpp"

namespace xla::detail {

/// The argument of a shape rule: the shapes of the inputs, the op's attributes, and the scope to
/// compute in.
struct shape_rule {
  size_scope sizes;
  const node& op;
  shape in[3];
  int count = 0;
  const shape* others = nullptr;  ///< of the inputs after the third

  constexpr const shape& input(int i) const { return i < 3 ? in[i] : others[i - 3]; }

  template <class Op>
  constexpr typename Op::attributes attributes() const {
    return op.attributes<Op>();
  }
};

/// One step of backward: the op's inputs, result and incoming gradient; the rule fills result.
struct gradient_scope {
  handle few[6];
  bool few_needed[3] = {};
  handle* in = few;
  handle* result = few + 3;
  bool* needs = few_needed;
  handle out, grad;
  handle* grads = nullptr;  ///< of an op with several results: their gradients, undefined if absent
  int grad_count = 0;
  handle collected;       ///< the first input's gradient so far, when there is one
  bool replaces = false;  ///< result[0] takes the place of collected
  packed_attributes attr;

  constexpr explicit gradient_scope(int inputs) {
    if (inputs <= 3) return;
    in = new handle[2 * static_cast<std::size_t>(inputs)];
    result = in + inputs;
    needs = new bool[static_cast<std::size_t>(inputs)];
  }
  gradient_scope(const gradient_scope&) = delete;
  constexpr ~gradient_scope() {
    if (in != few) {
      delete[] in;
      delete[] needs;
    }
    delete[] grads;
  }
  constexpr void make_grads(int count) {
    grads = new handle[static_cast<std::size_t>(count)];
    grad_count = count;
  }
};

template <class T>
constexpr any_tensor<T> as_any(const handle& h) {
  any_tensor<T> t;
  static_cast<handle&>(t) = h;
  return t;
}

template <class T>
constexpr any_tensor<T> sum_to(const any_tensor<T>& x, const shape& target);

/// The interface that an op's gradient rule is written with.
template <class Out, class In>
struct gradient_of {
  gradient_scope& scope;

  constexpr any_tensor<Out> out() const { return as_any<Out>(scope.out); }
  constexpr any_tensor<Out> grad() const { return as_any<Out>(scope.grad); }
  /// The gradient of result k of several; undefined if the loss does not depend on it.
  template <class T = Out>
  constexpr any_tensor<T> grad_of(int k) const {
    if (k == 0) return as_any<T>(scope.grad);
    return k < scope.grad_count ? as_any<T>(scope.grads[k]) : any_tensor<T>();
  }
  template <class T = In>
  constexpr any_tensor<T> in(int i) const {
    return as_any<T>(scope.in[i]);
  }
  constexpr bool needs(int i) const { return scope.needs[i]; }
  /// The gradient of the first input so far; undefined while there is none.
  constexpr any_tensor<In> collected() const { return as_any<In>(scope.collected); }
  /// The gradient of the first input, including the collected part.
  constexpr void replace(const any_tensor<In>& total) {
    scope.result[0] = total;
    scope.replaces = true;
  }
  /// Sets the gradient of input i, summed over the axes along which the input was broadcast.
  template <class T = In>
  constexpr void to(int i, const any_tensor<T>& g) {
    scope.result[i] = sum_to(g, scope.in[i].dims());
  }
};

/// The same for an op with attributes.
template <class Op, class Out, class In>
struct attributed_gradient_of : gradient_of<Out, In> {
  constexpr typename Op::attributes attributes() const {
    return unpack<typename Op::attributes>(this->scope.attr);
  }
};

}  // namespace xla::detail
