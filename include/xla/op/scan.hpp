// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/reduce.hpp"

namespace xla::detail {
template <class Op, class T, int R>
constexpr Tensor<T, R> scan_by(const Tensor<T, R>& x, std::int64_t attr);
template <class T, int R>
constexpr Tensor<T, R> recurrence_by(const Tensor<T, R>& x, const Tensor<T, R>& factor,
                                     std::int64_t attr);
}  // namespace xla::detail

namespace xla::op {

/// What attr says of a scan: the axis, and the order of its elements.
struct scan {
  int axis;
  bool from_last;      ///< from the last element to the first
  bool before;         ///< up to the element before each, without its own
  bool factor_before;  ///< of recurrence: the factor is the element before's
  constexpr explicit scan(std::int64_t attr)
      : axis(static_cast<int>(attr & 7)),
        from_last(attr & backward),
        before(attr & exclusive),
        factor_before(attr & shifted) {}
  static constexpr std::int64_t backward = 8, exclusive = 16, shifted = 32;
};

/// The base of ops that go along an axis.
struct scanning {
  static constexpr bool computes = true;
  static constexpr op_kind kind = op_kind::library;
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};

/// Sums along an axis up to each element.
struct cumsum : scanning {
  static constexpr auto name = "cumsum";
  static constexpr void gradient(auto& g) {
    g.to(0, detail::scan_by<cumsum>(g.grad(), g.attr() ^ scan::backward));
  }
};

/// y = x + factor * (y of the element before), which is 0 before the first. Linear in x, and its
/// gradients are recurrences of the other direction.
struct recurrence : scanning {
  static constexpr auto name = "recurrence";
  static constexpr void gradient(auto& g) {
    const std::int64_t back = (g.attr() & ~(scan::exclusive | scan::shifted)) ^ scan::backward;
    const scan s(g.attr());
    const auto of = [&](std::int64_t attr) {
      return detail::recurrence_by(g.grad(), g.in(1), back | attr);
    };
    if (g.wants(0)) g.to(0, of(s.before ? scan::exclusive : s.factor_before ? 0 : scan::shifted));
    if (!g.wants(1)) return;
    if (s.before || s.factor_before) return g.to(1, of(scan::exclusive) * g.out());
    g.to(1,
         of(scan::shifted) * detail::recurrence_by(g.in(0), g.in(1), g.attr() | scan::exclusive));
  }
};

/// Products along an axis up to each element. An element's gradient is the product of those before
/// it times a recurrence over those after: nothing is divided, so zeros do no harm.
struct cumprod : scanning {
  static constexpr auto name = "cumprod";
  static constexpr void gradient(auto& g) {
    const bool before = scan(g.attr()).before;
    const auto after = detail::recurrence_by(g.grad(), g.in(0),
                                             ((g.attr() & ~scan::exclusive) ^ scan::backward) |
                                                 (before ? scan::exclusive : scan::shifted));
    g.to(0, detail::scan_by<cumprod>(g.in(0), g.attr() | scan::exclusive) * after);
  }
};

}  // namespace xla::op

XLA_OP(xla::op::cumsum, numbers);
XLA_OP(xla::op::recurrence, fractions);
XLA_OP(xla::op::cumprod, numbers);

namespace xla {
namespace detail {
template <class Op, class T, int R>
constexpr Tensor<T, R> scan_by(const Tensor<T, R>& x, std::int64_t attr) {
  node n;
  n.attr = attr;
  return apply<Op, T, T, R>(n, x);
}
template <class T, int R>
constexpr Tensor<T, R> recurrence_by(const Tensor<T, R>& x, const Tensor<T, R>& factor,
                                     std::int64_t attr) {
  node n;
  n.attr = attr;
  return apply<op::recurrence, T, T, R>(n, x, factor);
}
}  // namespace detail

/// The sums of the elements along an axis up to each one; of fractions carried in double. An axis
/// that is not there is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> cumsum(const Tensor<T, R>& x, int axis, caller who = here()) {
  static_assert(R >= 1, "xla::cumsum: needs at least one axis");
  return detail::scan_by<op::cumsum>(x, detail::axis_of(x, R, axis, {"cumsum", who}));
}
/// Of bool: how many hold up to each element.
template <int R>
constexpr Tensor<std::int64_t, R> cumsum(const Tensor<bool, R>& x, int axis, caller who = here()) {
  return cumsum(cast<std::int64_t>(x), axis, who);
}

/// The products of the elements along an axis up to each one; integers wrap around. The gradient is
/// right where elements are 0, too. An axis that is not there is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> cumprod(const Tensor<T, R>& x, int axis, caller who = here()) {
  static_assert(R >= 1, "xla::cumprod: needs at least one axis");
  return detail::scan_by<op::cumprod>(x, detail::axis_of(x, R, axis, {"cumprod", who}));
}
/// Of bool: 1 while all hold up to each element.
template <int R>
constexpr Tensor<std::int64_t, R> cumprod(const Tensor<bool, R>& x, int axis, caller who = here()) {
  return cumprod(cast<std::int64_t>(x), axis, who);
}

}  // namespace xla
