// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients of matrices that the steps of a loop multiply by: one product over all steps, after
// the reversed loop. loop/step_tape.hpp does the same where steps run one by one.

#include "xla/op/custom_gradient.hpp"
#include "xla/op/matmul.hpp"
#include "xla/transform/batch_products.hpp"
#include "xla/transform/loop_reads.hpp"

namespace xla::detail {

/// The axis of a product's other operand along which the gradient of one operand is summed.
constexpr int summed_axis(const packed_attributes& product, int operand) {
  const auto a = unpack<op::matmul::attributes>(product);
  return operand == 1 ? a.transpose_a : !a.transpose_b;
}

/// The products of a loop's body whose gradients wait for those of all steps.
class loop_products : public loop_reads {
 protected:
  constexpr loop_products(graph_backward& of, int loop, int source, loop_reads* around)
      : loop_reads(of, loop, source, around),
        deferred_(room(loop - begin_)),
        defers_(keeps_steps(g, g.nodes[loop])) {}

  /// Defers the gradient of an outside matrix in a product: one product over all steps, after the
  /// loop, replaces the sum of the steps' products. Returns false if the rule must run in the step,
  /// for example because steps run again and their values are not kept.
  constexpr bool defer_product(int at) {
    const node n = g.nodes[at];
    const int arrived = pass.gradient[at];
    if (!is<op::matmul>(n) || n.rank != 2 || !defers_ || arrived < 0) return false;
    for (int k : {0, 1}) {
      const int matrix = n.in[k], other = n.in[1 - k];
      const bool plain = g.nodes[matrix].rank == 2 && g.nodes[other].rank == 2;
      if (!plain || !pass.follows(matrix) || has(matrix) || !has(other)) continue;
      const int from = pass.read(other, arrived);
      deferred_.get()[deferred_count_++] = {at, k, arrived, from};
      if (!pass.follows(other)) return true;
      gradient_scope s(2);
      s.in[k] = pass.at(pass.read(matrix, arrived));
      s.in[1 - k] = pass.at(from);
      gradient_of_product(s, n, 1 - k, pass.at(arrived));
      return true;
    }
    return false;
  }
  /// Computes the deferred gradients; called after the loop.
  constexpr void multiply_deferred() {
    for (int i = 0; i < deferred_count_; ++i) multiply(deferred_.get()[i]);
  }

 private:
  /// A product in a step with an outside matrix, whose gradient is one product over all steps.
  struct deferred_product {
    int of = none;        ///< the product
    int operand = 0;      ///< which one comes from outside
    int gradient = none;  ///< in a step: of the product
    int other = none;     ///< in a step: its other operand
  };

  constexpr void gradient_of_product(gradient_scope& s, const node& n, int operand,
                                     const handle& gradient) {
    s.needs[operand] = true;
    s.grad = gradient;
    s.attr = n.attr;
    apply_gradient(*n.op, s);
    pass.accumulate(n.in[operand], s.result[operand].lift(&g));
  }
  constexpr handle matrices_of_steps(int value, int axis) {
    const node& n = g.nodes[value];
    const bool sliced = is<op::step_slice>(n) && given_by_loop(n) == to_.number() && n.arity == 1;
    const auto& rules = static_cast<const recorded_loop_rules&>(*g.rules_of_loops);
    return pass.at(rules.join_matrices(g, sliced ? n.in[0] : to_.steps(value), axis));
  }
  constexpr void multiply(const deferred_product& p) {
    const node n = g.nodes[p.of];
    const int k = p.operand;
    gradient_scope s(2);
    s.in[k] = pass.at(n.in[k]);
    s.in[1 - k] = matrices_of_steps(p.other, summed_axis(n.attr, k));
    gradient_of_product(s, n, k, matrices_of_steps(p.gradient, 1 - k));
  }

  owned_array<deferred_product> deferred_;
  int deferred_count_ = 0;
  bool defers_;
};

}  // namespace xla::detail
