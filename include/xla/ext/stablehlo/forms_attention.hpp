// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "xla/ext/stablehlo/better.hpp"
#include "xla/ext/stablehlo/form.hpp"
#include "xla/ext/stablehlo/forms_matmul.hpp"
#include "xla/ext/stablehlo/places.hpp"
#include "xla/op/attention.hpp"

namespace xla::detail::hlo {

/// Attention whole: every head has keys and values of its own, and scores are a tensor.
class attention_text {
 public:
  attention_text(writer& w, const form_call& f, int mask)
      : w_(w),
        q_(f.in(0)),
        of_(q_.type.of),
        kv_(f.in(1).type.dims),
        k_(repeat(f.in(1))),
        v_(repeat(f.in(2))) {
    const auto how = f.attributes<op::attention>();
    added_ = how.added;
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

  /// What scores are above these, as an exponent.
  value above(const value& x) const {
    const value more = w_.map("subtract", scores_, like_scores(x));
    return added_ ? more : scaled(more);
  }
  value scaled(const value& x) const {
    const double scale = 1 / std::sqrt(static_cast<double>(q_.type.dims[3]));
    return w_.map("multiply", x, w_.constant(scale, of_, x.type.dims));
  }
  /// Of each head, summed over these axes.
  value product(const value& a, const value& b, int over_a, int over_b) const {
    const shape &x = a.type.dims, &y = b.type.dims;
    const shape out{4, {x[0], x[1], x[5 - over_a], y[5 - over_b]}};
    const std::string axes =
        "lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], "
        "lhs_contracting_dimensions = [" +
        std::to_string(over_a) + "], rhs_contracting_dimensions = [" + std::to_string(over_b) + "]";
    return w_.op("dot_general", {a, b}, {of_, out},
                 "dot_dimension_numbers = #stablehlo.dot<" + axes + ">, " + precision());
  }
  /// Over the last axis, which stays.
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
    const value apart = w_.reshape(x, {5, {d[0], kv_[1], group(), d[2], d[3]}});
    const value one =
        w_.reduce(apart, w_.constant(0, of_), axis_set::one(2),
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
};

template <>
struct form<op::attention> {
  static list<value> write(writer& w, const form_call& f) {
    const attention_text t(w, f, 3);
    const value top = t.most(t.scores());
    const element of = top.type.of;
    const value zero = zeros(w, top.type), one = w.constant(1, of, top.type.dims);
    const value hidden = w.constant(lowest(of), of, top.type.dims);
    const value shift = w.select(w.compare("EQ", top, hidden), zero, top);
    const value e = w.map("exponential", t.above(shift));
    const value total = t.sum(e), none = w.compare("EQ", total, zero);
    const value by = w.select(none, one, total);
    const value weights = w.map("divide", e, t.like_scores(by));
    shape row = top.type.dims;
    row[3] = row[2];
    row[2] = 1;
    const auto kept = [&](const value& x) { return w.reshape(w.select(none, zero, x), row); };
    return list_of({t.product(weights, t.values(), 3, 2),
                    w.concat(list_of({kept(shift), kept(w.map("log", by))}), 2)});
  }
};

template <>
struct form<op::attention_gradient> {
  static list<value> write(writer& w, const form_call& f) {
    const attention_text t(w, f, 6);
    const value &d = f.in(3), &out = f.in(4);
    const shape rows = f.in(5).type.dims;
    const auto kept = [&](extent which) {
      const shape from{4, {0, 0, which, 0}}, to{4, {rows[0], rows[1], which + 1, rows[3]}};
      const value one = w.slice(f.in(5), from, to, {4, {1, 1, 1, 1}});
      return w.reshape(one, {4, {rows[0], rows[1], rows[3], 1}});
    };
    const value log = t.like_scores(kept(1));
    const value weights = w.map("exponential", w.map("subtract", t.above(kept(0)), log));
    const value share = t.like_scores(t.sum(w.map("multiply", d, out)));
    const value back = w.map("subtract", t.product(d, t.values(), 3, 3), share);
    const value scores = t.scaled(w.map("multiply", weights, back));
    return list_of({t.product(scores, t.keys(), 3, 2),
                    t.together(t.product(scores, t.queries(), 2, 2)),
                    t.together(t.product(weights, d, 2, 2))});
  }
};

}  // namespace xla::detail::hlo
