// SPDX-License-Identifier: Apache-2.0
#pragma once

// cumsum() and cumprod(), and the base of ops that scan along an axis.

#include "xla/op/reduce.hpp"

namespace xla::detail {
template <class Op, class T, int R>
constexpr Tensor<T, R> scan_by(const Tensor<T, R>& x, const typename Op::attributes& way);
template <class T, int R, class Way>
constexpr Tensor<T, R> recurrence_by(const Tensor<T, R>& x, const Tensor<T, R>& factor,
                                     const Way& way);
}  // namespace xla::detail

namespace xla::op {

/// The base of ops that scan along an axis.
struct scanning {
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    detail::axis_number axis{};
    bool backward = false;   ///< from the last element to the first
    bool exclusive = false;  ///< up to the previous element, without the element itself
    bool shifted = false;    ///< of recurrence: the factor is the previous element's
    XLA_ATTRIBUTES(axis, backward, exclusive, shifted)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};

/// Sums along an axis up to each element.
struct cumsum : scanning {
  static constexpr auto name = "cumsum";
  static constexpr void gradient(auto& g) {
    auto way = g.attributes();
    way.backward = !way.backward;
    g.to(0, detail::scan_by<cumsum>(g.grad(), way));
  }
};

/// y = x + factor * (previous y), which is 0 before the first. Linear in x; its gradients are
/// recurrences in the other direction.
struct recurrence : scanning {
  static constexpr auto name = "recurrence";
  static constexpr void gradient(auto& g) {
    const auto [axis, backward, exclusive, shifted] = g.attributes();
    const attributes same{axis, !backward}, before{axis, !backward, true},
        factor_before{axis, !backward, false, true};
    const auto of = [&](const attributes& way) {
      return detail::recurrence_by(g.grad(), g.in(1), way);
    };
    if (g.needs(0)) g.to(0, of(exclusive ? before : shifted ? same : factor_before));
    if (!g.needs(1)) return;
    if (exclusive || shifted) return g.to(1, of(before) * g.out());
    g.to(1, of(factor_before) *
                detail::recurrence_by(g.in(0), g.in(1), attributes{axis, backward, true, shifted}));
  }
};

/// Products along an axis up to each element. An element's gradient is the product of the previous
/// ones times a recurrence over the following ones: nothing is divided, so zeros cause no error.
struct cumprod : scanning {
  static constexpr auto name = "cumprod";
  static constexpr void gradient(auto& g) {
    const auto [axis, backward, exclusive, shifted] = g.attributes();
    const auto after = detail::recurrence_by(g.grad(), g.in(0),
                                             attributes{axis, !backward, exclusive, !exclusive});
    g.to(0, detail::scan_by<cumprod>(g.in(0), attributes{axis, backward, true}) * after);
  }
};

}  // namespace xla::op

XLA_OP(xla::op::cumsum, numbers);
XLA_OP(xla::op::recurrence, fractions);
XLA_OP(xla::op::cumprod, numbers);

namespace xla {
namespace detail {
template <class Op, class T, int R>
constexpr Tensor<T, R> scan_by(const Tensor<T, R>& x, const typename Op::attributes& way) {
  return apply<Op, T, T, R>(with<Op>(way), x);
}
template <class T, int R, class Way>
constexpr Tensor<T, R> recurrence_by(const Tensor<T, R>& x, const Tensor<T, R>& factor,
                                     const Way& way) {
  return apply<op::recurrence, T, T, R>(with<op::recurrence>(way), x, factor);
}
}  // namespace detail

/// The cumulative sums along an axis: for floating-point numbers with a running value in double,
/// for integers and bool in std::int64_t. An axis that does not exist is a shape_error.
template <class T, int R>
constexpr Tensor<detail::total_type<T>, R> cumsum(const Tensor<T, R>& x, int axis,
                                                  caller loc = here()) {
  static_assert(R >= 1, "xla::cumsum: needs at least one axis");
  return detail::scan_by<op::cumsum>(detail::total_operand(x),
                                     {detail::axis_of(x, R, axis, {"cumsum", loc})});
}

/// The cumulative products along an axis; integers and bool are multiplied in std::int64_t, which
/// wraps around. The gradient is right where elements are 0, too. An axis that does not exist is a
/// shape_error.
template <class T, int R>
constexpr Tensor<detail::total_type<T>, R> cumprod(const Tensor<T, R>& x, int axis,
                                                   caller loc = here()) {
  static_assert(R >= 1, "xla::cumprod: needs at least one axis");
  return detail::scan_by<op::cumprod>(detail::total_operand(x),
                                      {detail::axis_of(x, R, axis, {"cumprod", loc})});
}

}  // namespace xla
