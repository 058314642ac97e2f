// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops behind scaled_dot_product_attention, with their gradient rules. The public function is in
// derived/attention.hpp, the kernels are in kernel/attention/.

#include "xla/op/op.hpp"

namespace xla::detail {
/// op/derived/attention_gradient.hpp defines it.
template <class G>
constexpr void differentiate_attention_again(G& g);
}  // namespace xla::detail

namespace xla::op {

/// The base of attention and its gradient: q (batch, heads, queries, width), k (batch, kv_heads,
/// keys, width), v (batch, kv_heads, keys, out), and a mask of four axes, of which each may be 1.
struct attending {
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    bool causal = false;  ///< query i attends to keys 0 … i
    bool shown = false;   ///< the mask says which keys are attended to
    bool added = false;   ///< or is added to the scaled scores
    detail::precision
        precision{};  ///< the rounding of the operands of both products, and of their gradients
    XLA_ATTRIBUTES(causal, shown, added, precision)
  };

 protected:
  static constexpr void check_mask(const shape_rule& r, const shape& mask) {
    shape scores = r.in[0];
    scores[3] = r.in[1][2];
    bool fits = true;
    for (int i = 0; i < 4; ++i)
      fits = fits && (r.sizes.find(mask[i]) == 1 || r.sizes.equal(scores[i], mask[i]));
    if (!fits)
      r.sizes.fail(detail::text("a mask of ")
                   << mask << " does not broadcast to scores of " << scores);
  }
  /// (heads of the batch, queries, keys, the summed axis), for this many products.
  static constexpr shape loops_of(const shape* in, int by_keys, int by_values) {
    const shape &q = in[0], &v = in[2];
    shape s;
    s.push(q[0] * q[1]);
    s.push(q[2]);
    s.push(v[2]);
    s.push(by_keys * q[3] + by_values * v[3]);
    return s;
  }
};

/// softmax(q kᵀ / √width) v over the allowed keys, and (batch, heads, 2, queries): for each query
/// its largest score, scaled only if numbers are added, and the logarithm of the sum of
/// exponentials relative to it. They are separate, because their sum would lose the logarithm next
/// to a large score. A query that attends to nothing gets 0. Dao et al. (2022).
struct attention : attending {
  static constexpr auto name = "attention";
  static constexpr int results = 2;
  static constexpr shape shape_of(const shape_rule& r) {
    const shape &q = r.in[0], &k = r.in[1], &v = r.in[2];
    const auto differ = [&](const char* what, detail::extent a, detail::extent b) {
      if (!r.sizes.equal(a, b))
        r.sizes.fail(detail::text("queries ")
                     << q << ", keys " << k << " and values " << v << " differ in " << what);
    };
    differ("their batch", q[0], k[0]);
    differ("their batch", k[0], v[0]);
    differ("the heads of keys and values", k[1], v[1]);
    differ("the number of keys and values", k[2], v[2]);
    differ("the width of queries and keys", q[3], k[3]);
    if (r.count > 3) check_mask(r, r.input(3));
    shape s = q;
    s[3] = v[3];
    return s;
  }
  static constexpr shape shape_of_result(const shape_rule& r, int) {
    shape s = r.in[0];
    s[3] = s[2];
    s[2] = 2;
    return s;
  }
  static constexpr shape loops(const shape* in, const shape&, const attributes&) {
    return loops_of(in, 1, 1);
  }
};

/// The gradients of q, k and v, from q, k, v, the result's gradient, the result, attention's second
/// result, and the mask.
struct attention_gradient : attending {
  static constexpr auto name = "attention_gradient";
  static constexpr int results = 3;
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
  static constexpr shape shape_of_result(const shape_rule& r, int k) { return r.in[k]; }
  static constexpr shape loops(const shape* in, const shape&, const attributes&) {
    return loops_of(in, 3, 2);
  }
  static constexpr void gradient(auto& g) { detail::differentiate_attention_again(g); }
};

}  // namespace xla::op

XLA_OP(xla::op::attention, fractions);
XLA_OP(xla::op::attention_gradient, fractions);
