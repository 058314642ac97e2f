// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention and its gradient in StableHLO, by matrix products and softmax. table.hpp lists the
// lowerings; nothing is computed here.

#include <cmath>

#include "xla/ext/stablehlo/extremum.hpp"
#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lower_matmul.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/attention.hpp"

namespace xla::detail::hlo {

/// Attention without blocks: every head has its own keys and values, and the scores are a tensor.
class attention_text {
 public:
  attention_text(writer& w, const lowering_call& f, int mask)
      : w_(w),
        q_(f.in(0)),
        of_(q_.type.of),
        kv_(f.in(1).type.dims),
        k_(repeat(f.in(1))),
        v_(repeat(f.in(2))) {
    const auto how = f.attributes<op::attention>();
    added_ = how.added;
    precision_ = how.precision;
    scores_ = product(q_, k_, 3, 3);
    if (added_) scores_ = scaled(scores_);
    const value hidden = w_.constant(lowest(of_), of_, scores_.type.dims);
    if (how.added) scores_ = w_.map("add", scores_, like_scores(f.in(mask)));
    if (how.shown) scores_ = w_.select(like_scores(f.in(mask)), scores_, hidden);
    if (!how.causal) return;
    const auto number = [&](int axis) { return w_.iota(element::i64, scores_.type.dims, axis); };
    scores_ = w_.select(w_.compare("GE", number(2), number(3)), scores_, hidden);
  }

  const value& queries() const { return q_; }
  const value& keys() const { return k_; }
  const value& values() const { return v_; }
  const value& scores() const { return scores_; }

  /// The weights of each query's keys, with the largest score and the sum of exponentials above it,
  /// which is 1 if there is none.
  struct weights {
    value all, shift, total, none;
  };
  weights softmax() const {
    const value top = most(scores_);
    const value zero = zeros(w_, top.type), one = w_.constant(1, of_, top.type.dims);
    const value hidden = w_.constant(lowest(of_), of_, top.type.dims);
    const value shift = w_.select(w_.compare("EQ", top, hidden), zero, top);
    const value e = w_.map("exponential", above(shift));
    const value sums = sum(e), none = w_.compare("EQ", sums, zero);
    const value total = w_.select(none, one, sums);
    return {w_.map("divide", e, like_scores(total)), shift, total, none};
  }

  /// The exponents of scores above these.
  value above(const value& x) const {
    const value more = w_.map("subtract", scores_, like_scores(x));
    return added_ ? more : scaled(more);
  }
  value scaled(const value& x) const {
    const double scale = 1 / std::sqrt(static_cast<double>(q_.type.dims[3]));
    return w_.map("multiply", x, w_.constant(scale, of_, x.type.dims));
  }
  /// Sums over these axes for each head.
  value product(const value& left, const value& right, int over_a, int over_b) const {
    const value a = multiplied(w_, left, precision_), b = multiplied(w_, right, precision_);
    const shape &x = a.type.dims, &y = b.type.dims;
    const shape out{4, {x[0], x[1], x[5 - over_a], y[5 - over_b]}};
    const std::string axes =
        "lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], "
        "lhs_contracting_dimensions = [" +
        std::to_string(over_a) + "], rhs_contracting_dimensions = [" + std::to_string(over_b) + "]";
    return w_.op("dot_general", {a, b}, {of_, out},
                 "dot_dimension_numbers = #stablehlo.dot<" + axes + ">, " + precision());
  }
  /// Reduces over the last axis, which stays with size 1.
  value sum(const value& x) const {
    return w_.reduce(x, w_.constant(0, of_), axis_set::one(3),
                     [&](const value& a, const value& b) { return w_.map("add", a, b); });
  }
  value most(const value& x) const {
    return w_.reduce(x, w_.constant(lowest(of_), of_), axis_set::one(3),
                     [&](const value& a, const value& b) { return w_.map("maximum", a, b); });
  }
  value like_scores(const value& x) const { return w_.to(x, scores_.type.dims); }
  /// What heads share.
  value together(const value& x) const {
    const shape d = x.type.dims;
    const value split = w_.reshape(x, {5, {d[0], kv_[1], group(), d[2], d[3]}});
    const value one =
        w_.reduce(split, w_.constant(0, of_), axis_set::one(2),
                  [&](const value& a, const value& b) { return w_.map("add", a, b); });
    return w_.reshape(one, {4, {d[0], kv_[1], d[2], d[3]}});
  }

 private:
  extent group() const { return q_.type.dims[1] / kv_[1]; }
  value repeat(const value& x) const {
    const shape d = x.type.dims;
    const value all = w_.broadcast(x, {5, {d[0], d[1], group(), d[2], d[3]}}, {4, {0, 1, 3, 4}});
    return w_.reshape(all, {4, {d[0], q_.type.dims[1], d[2], d[3]}});
  }

  writer& w_;
  value q_;
  element of_;
  shape kv_;
  value k_, v_, scores_;
  bool added_ = false;
  detail::precision precision_{};
};

template <>
struct lowering<op::attention> {
  static list<value> write(writer& w, const lowering_call& f) {
    const attention_text t(w, f, 3);
    const attention_text::weights by = t.softmax();
    shape row = by.total.type.dims;
    row[3] = row[2];
    row[2] = 1;
    const value zero = zeros(w, by.total.type);
    const auto finite = [&](const value& x) { return w.reshape(w.select(by.none, zero, x), row); };
    return list_of({t.product(by.all, t.values(), 3, 2),
                    w.concat(list_of({finite(by.shift), finite(w.map("log", by.total))}), 2)});
  }
};

/// Writes the weights exactly as attention does, so that XLA computes them once if a program has
/// both.
template <>
struct lowering<op::attention_gradient> {
  static list<value> write(writer& w, const lowering_call& f) {
    const attention_text t(w, f, 6);
    const value &d = f.in(3), &out = f.in(4);
    const value weights = t.softmax().all;
    const value share = t.like_scores(t.sum(w.map("multiply", d, out)));
    const value back = w.map("subtract", t.product(d, t.values(), 3, 3), share);
    const value scores = t.scaled(w.map("multiply", weights, back));
    return list_of({t.product(scores, t.keys(), 3, 2),
                    t.together(t.product(scores, t.queries(), 2, 2)),
                    t.together(t.product(weights, d, 2, 2))});
  }
};

}  // namespace xla::detail::hlo
