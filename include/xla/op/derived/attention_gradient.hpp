// SPDX-License-Identifier: Apache-2.0
#pragma once

// The second derivative of attention, composed of other ops, because a fused kernel is rarely worth
// it. attention.hpp calls it for the gradient of a gradient.

#include <initializer_list>

#include "xla/op/attention.hpp"
#include "xla/op/create.hpp"
#include "xla/op/custom_gradient.hpp"
#include "xla/op/derived/attention_weights.hpp"
#include "xla/op/matmul.hpp"

namespace xla::detail {

/// Attention composed of other ops, for the gradients that its kernels do not compute: q (batch,
/// heads, queries, width), and keys and values once for each head.
template <class T>
struct composed_attention {
  using heads = Tensor<T, 4>;
  heads q, k, v;
  Tensor<T, 0> scale;
  heads weights;
  precision products;

  constexpr composed_attention(const handle& queries, const handle& keys, const handle& values,
                               const op::attending::attributes& how, const handle& mask)
      : q(as<heads>(queries)),
        k(repeat(as<heads>(keys))),
        v(repeat(as<heads>(values))),
        products(how.precision) {
    scale = score_scale<T>(q.size(3), q.table());
    weights = weigh(multiply(q, k, false, true) * scale, how, mask);
  }

  /// Products with the kernels' precision.
  constexpr heads multiply(const heads& a, const heads& b, bool turn_a, bool turn_b) const {
    return as<heads>(gradient_product(as_any<T>(a), as_any<T>(b), turn_a, turn_b, products));
  }
  template <class X>
  static constexpr X as(const handle& h) {
    X x;
    static_cast<handle&>(x) = h;
    return x;
  }
  /// Repeats shared tensors for each head.
  constexpr heads repeat(const heads& x) const {
    const Size shared = x.size(1), group = q.size(1) / shared;
    const shape grouped = sizes({x.size(0), shared, group, x.size(2), x.size(3)});
    const auto one = reshape(x, {x.size(0), shared, 1, x.size(2), x.size(3)});
    return reshape(as<Tensor<T, 5>>(expand_to(as_any<T>(one), grouped)),
                   {x.size(0), q.size(1), x.size(2), x.size(3)});
  }
  /// The gradient of shared tensors.
  static constexpr any_tensor<T> together(const heads& x, const handle& of) {
    const Size shared = as<heads>(of).size(1), group = x.size(1) / shared;
    return as_any<T>(sum(reshape(x, {x.size(0), shared, group, x.size(2), x.size(3)}), {2}));
  }

  /// The gradient of weights from that of the result.
  constexpr heads back(const heads& gradient) const { return multiply(gradient, v, false, true); }
  static constexpr Tensor<T, 4> over_keys(const heads& x) { return sum(x, {-1}, keepdim); }
  /// The gradient of scores from that of weights; 0, of either sign, for hidden ones.
  constexpr heads of_scores(const heads& back) const {
    return where(weights == 0, 0, weights * (back - over_keys(weights * back)));
  }

 private:
  static constexpr shape sizes(std::initializer_list<Size> all) {
    shape s;
    for (const Size& n : all) s.push(n.extent());
    return s;
  }
  static constexpr heads weigh(const heads& scores, const op::attending::attributes& how,
                               const handle& mask) {
    const auto causal = [&] { return causal_mask<T>(scores.size(2), scores.size(3)); };
    if (how.shown) {
      const auto shown = as<Tensor<bool, 4>>(mask);
      if (!how.causal) return masked_softmax(scores, shown, unknown_caller);
      return masked_softmax(scores, logical_and(shown, causal()), unknown_caller);
    }
    if (how.added) {
      const heads moved = scores + as<heads>(mask);
      return how.causal ? masked_softmax(moved, causal(), unknown_caller) : shown_softmax(moved);
    }
    return how.causal ? causal_softmax(scores, causal()) : softmax(scores);
  }
};

/// The gradient rule of attention's gradient.
template <class G>
constexpr void differentiate_attention_again(G& g) {
  using T = typename decltype(g.grad())::value_type;
  using composed = composed_attention<T>;
  using heads = Tensor<T, 4>;
  const auto how = g.attributes();
  const bool masked = how.shown || how.added;
  const composed c(g.scope.in[0], g.scope.in[1], g.scope.in[2], how,
                   masked ? g.scope.in[6] : handle());
  const heads d = composed::template as<heads>(g.scope.in[3]);
  const auto arrived = [&](int k) {
    const auto x = g.grad_of(k);
    return composed::template as<heads>(x.defined() ? x : as_any<T>(zeros_like(g.in(k))));
  };
  const heads by_q = arrived(0), by_k = c.repeat(arrived(1)), by_v = c.repeat(arrived(2));
  const heads back = c.back(d), share = c.over_keys(c.weights * back);
  const heads scores = c.weights * (back - share);
  const heads by_scores =
      (c.multiply(by_q, c.k, false, true) + c.multiply(c.q, by_k, false, true)) * c.scale;
  const heads common = c.over_keys(by_scores * c.weights);
  const heads by_back = c.weights * (by_scores - common);
  const heads by_weights =
      c.multiply(d, by_v, false, true) + by_scores * (back - share) - common * back;
  const heads again = c.of_scores(by_weights);
  const auto both = [&](const heads& x, const heads& y) { return (x + y) * c.scale; };
  if (g.needs(0))
    g.to(0, as_any<T>(both(c.multiply(scores, by_k, false, false),
                           c.multiply(again, c.k, false, false))));
  if (g.needs(1))
    g.to(1, c.together(
                both(c.multiply(scores, by_q, true, false), c.multiply(again, c.q, true, false)),
                g.scope.in[1]));
  if (g.needs(2)) g.to(2, c.together(c.multiply(by_back, d, true, false), g.scope.in[2]));
  if (g.needs(3))
    g.to(3, as_any<T>(c.multiply(c.weights, by_v, false, false) +
                      c.multiply(by_back, c.v, false, false)));
  if (how.added && g.needs(6)) g.to(6, as_any<T>(again));
}

/// Attention's gradient rule: for q, k, v and the mask, from these and both results.
template <class T>
struct attention_rule {
  using heads = Tensor<T, 4>;
  static constexpr void run(gradient_scope& s) {
    const auto how = unpack<op::attending::attributes>(s.attr);
    const bool masked = how.shown || how.added;
    if (s.needs[0] || s.needs[1] || s.needs[2]) {
      node n;
      n.attr = s.attr;
      const auto made = masked ? gradients(s, n, s.in[5]) : gradients(s, n);
      s.result[0] = std::get<0>(made);
      s.result[1] = std::get<1>(made);
      s.result[2] = std::get<2>(made);
    }
    if (!how.added || !s.needs[5]) return;
    const composed_attention<T> c(s.in[0], s.in[1], s.in[2], how, s.in[5]);
    const heads d = c.template as<heads>(s.grads[0]);
    s.result[5] = sum_to(as_any<T>(c.of_scores(c.back(d))), s.in[5].dims());
  }

 private:
  template <class... Mask>
  static constexpr std::tuple<heads, heads, heads> gradients(const gradient_scope& s, const node& n,
                                                             const Mask&... mask) {
    return apply_several<op::attention_gradient, T, heads, heads, heads>(
        unknown_caller, n, s.in[0], s.in[1], s.in[2], s.grads[0], s.in[3], s.in[4], mask...);
  }
};
template <class T>
inline constexpr op_info attention_function = function_with(&attention_rule<T>::run);

/// Attention by kernels of its own, with a mask of four axes or none.
template <class T, class... Mask>
constexpr Tensor<T, 4> attend_at_once(const Tensor<T, 4>& q, const Tensor<T, 4>& k,
                                      const Tensor<T, 4>& v, bool causal, caller loc,
                                      const Mask&... mask) {
  using heads = Tensor<T, 4>;
  op::attending::attributes how{.causal = causal};
  how.shown = (std::is_same_v<typename Mask::value_type, bool> || ...);
  how.added = sizeof...(Mask) > 0 && !how.shown;
  how.precision = product_precision<T>(q, k);
  const auto made = apply_several<op::attention, T, heads, heads>(loc, with<op::attention>(how), q,
                                                                  k, v, mask...);
  const heads& out = std::get<0>(made);
  const auto follows = [](const auto& x) {
    return x.requires_grad() || (__builtin_is_constant_evaluated() && x.input_grad());
  };
  if (!follows(q) && !follows(k) && !follows(v) && !(follows(mask) || ...)) return out;
  const handle* const in[] = {&q, &k, &v, &out, &std::get<1>(made), &mask...};
  const handle function =
      function_of<T>(attention_function<T>, pack(how), in, 5 + static_cast<int>(sizeof...(Mask)));
  return result_of_function<heads>(out, function, 0);
}

}  // namespace xla::detail
