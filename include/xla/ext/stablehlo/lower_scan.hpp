// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cumulative sums, products and recurrences in StableHLO, in log(n) steps. table.hpp lists the
// lowerings.

#include <limits>

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lane.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/cummax.hpp"
#include "xla/op/logcumsumexp.hpp"
#include "xla/op/special.hpp"

namespace xla::detail::hlo {

/// A scan along an axis in as many steps as its size has bits: step i combines every element with
/// the result 2^i before it. If a product of factors leaves double's range on the way, a 0 before
/// them gives NaN.
class scan_steps {
 public:
  scan_steps(writer& w, const op::scanning::attributes& a, const shape& dims)
      : w_(w), axis_(a.axis), backward_(a.backward), size_(dims[a.axis]) {}

  /// The type of the running values, as in the library's kernels: double for floating-point types.
  value carried(const value& x) const {
    return w_.convert(x, is_float(x.type.of) ? element::f64 : x.type.of);
  }
  /// The elements shifted by `distance`, with a number in place of those that are missing.
  value before(const value& x, extent distance, double otherwise) const {
    return moved(x, distance, -distance, otherwise);
  }
  value products(value x) const {
    for (extent n = 1; n < size_; n *= 2) x = w_.map("multiply", x, before(x, n, 1));
    return x;
  }
  value sums(value x) const {
    for (extent n = 1; n < size_; n *= 2) x = w_.map("add", x, before(x, n, 0));
    return x;
  }
  value logarithms_of_sums(value x) const {
    constexpr double none = -std::numeric_limits<double>::infinity();
    for (extent n = 1; n < size_; n *= 2)
      x = op::logaddexp::kernel(lane(w_, x), lane(w_, before(x, n, none))).v;
    return x;
  }
  /// y = x + factor * (previous y), with nothing before the first.
  value recurrence(value y, value factor) const {
    factor = moved(moved(factor, -1, 0, 0), 1, 0, 0);
    for (extent n = 1; n < size_; n *= 2) {
      y = w_.map("add", y, w_.map("multiply", factor, before(y, n, 0)));
      factor = w_.map("multiply", factor, before(factor, n, 0));
    }
    return y;
  }

 private:
  value moved(const value& x, extent first, extent last, double otherwise) const {
    const shape none = filled(x.type.dims.rank, 0);
    const shape begin = with_size(none, axis_, backward_ ? last : first),
                end = with_size(none, axis_, backward_ ? first : last);
    return w_.pad(x, w_.constant(otherwise, x.type.of), begin, end, none);
  }

  writer& w_;
  int axis_;
  bool backward_;
  extent size_;
};

template <>
struct lowering<op::cumsum> {
  static value write(writer& w, const lowering_call& f) {
    if (count(f.out().dims) == 0) return f.in(0);
    const scan_steps scan(w, f.attributes<op::cumsum>(), f.out().dims);
    return w.convert(scan.sums(scan.carried(f.in(0))), f.out().of);
  }
};

template <>
struct lowering<op::cumprod> {
  static value write(writer& w, const lowering_call& f) {
    if (count(f.out().dims) == 0) return f.in(0);
    const auto a = f.attributes<op::cumprod>();
    const scan_steps scan(w, a, f.out().dims);
    const value x = scan.carried(f.in(0));
    return w.convert(scan.products(a.exclusive ? scan.before(x, 1, 1) : x), f.out().of);
  }
};

template <>
struct lowering<op::logcumsumexp> {
  static value write(writer& w, const lowering_call& f) {
    if (count(f.out().dims) == 0) return f.in(0);
    const scan_steps scan(w, f.attributes<op::logcumsumexp>(), f.out().dims);
    return w.convert(scan.logarithms_of_sums(scan.carried(f.in(0))), f.out().of);
  }
};

/// Of two adjacent windows: whether the later one has the best element.
template <class Op>
struct best_so_far_lowering {
  static value write(writer& w, const lowering_call& f) {
    const shape dims = f.out().dims;
    const int axis = f.attributes<Op>().axis;
    value x = f.in(0), at = w.iota(element::i64, dims, axis);
    const scan_steps scan(w, {axis}, dims);
    const value none = w.constant(0, element::i64, dims);
    for (extent n = 1; n < dims[axis]; n *= 2) {
      const value earlier = scan.before(x, n, 0), index = scan.before(at, n, -1);
      value later = w.compare(Op::better, x, earlier);
      if (is_float(x.type.of)) {
        later = w.map("and", later, w.compare("EQ", earlier, earlier));
        later = w.map("or", later, w.compare("NE", x, x));
      }
      later = w.map("or", later, w.compare("LT", index, none));
      x = w.select(later, x, earlier);
      at = w.select(later, at, index);
    }
    return at;
  }
};
template <>
struct lowering<op::cummax_index> : best_so_far_lowering<op::cummax_index> {};
template <>
struct lowering<op::cummin_index> : best_so_far_lowering<op::cummin_index> {};

template <>
struct lowering<op::recurrence> {
  static value write(writer& w, const lowering_call& f) {
    if (count(f.out().dims) == 0) return f.in(0);
    const auto a = f.attributes<op::recurrence>();
    const scan_steps scan(w, a, f.out().dims);
    const value x = scan.carried(f.in(0)), factor = scan.carried(f.in(1));
    const bool shifted = a.exclusive || a.shifted;
    return w.convert(scan.recurrence(a.exclusive ? scan.before(x, 1, 0) : x,
                                     shifted ? scan.before(factor, 1, 0) : factor),
                     f.out().of);
  }
};

}  // namespace xla::detail::hlo
