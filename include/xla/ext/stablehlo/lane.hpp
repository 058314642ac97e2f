// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stand-in for a packet of numbers that writes StableHLO instead of computing. The kernels of
// elementwise ops run on it, so that each op is written down once.

#include <numbers>

#include "xla/ext/stablehlo/writer.hpp"

namespace xla::detail::hlo {

/// Stands for a packet in an op's kernel expression: each operation on it writes a line of
/// StableHLO. It has the interface and the meaning of kernel::vec.
class lane {
 public:
  lane(writer& to, const value& v) : w(&to), v(v) {}

  writer* w;
  value v;

  lane like(double x) const {
    lane made(*w, w->constant(x, v.type.of, v.type.dims));
    made.number_ = x == x;
    return made;
  }

  friend lane operator+(const lane& a, const lane& b) { return a.with("add", b); }
  friend lane operator-(const lane& a, const lane& b) { return a.with("subtract", b); }
  friend lane operator*(const lane& a, const lane& b) { return a.with("multiply", b); }
  /// Division by zero integers gives zero; XLA gives -1.
  friend lane operator/(const lane& a, const lane& b) {
    const lane quotient = a.with("divide", b);
    if (is_float(a.v.type.of)) return quotient;
    return (b == b.like(0)).select(b.like(0), quotient);
  }
  lane operator-() const { return with("negate"); }
  friend lane operator==(const lane& a, const lane& b) { return a.is("EQ", b); }
  friend lane operator!=(const lane& a, const lane& b) { return a.is("NE", b); }
  friend lane operator<(const lane& a, const lane& b) { return a.is("LT", b); }
  friend lane operator<=(const lane& a, const lane& b) { return a.is("LE", b); }
  friend lane operator>(const lane& a, const lane& b) { return a.is("GT", b); }
  friend lane operator>=(const lane& a, const lane& b) { return a.is("GE", b); }
  // Of booleans.
  friend lane operator&&(const lane& a, const lane& b) { return a.with("and", b); }
  friend lane operator||(const lane& a, const lane& b) { return a.with("or", b); }
  lane operator!() const { return with("not"); }
  // Of the bits of integers.
  friend lane operator&(const lane& a, const lane& b) { return a.with("and", b); }
  friend lane operator|(const lane& a, const lane& b) { return a.with("or", b); }
  friend lane operator^(const lane& a, const lane& b) { return a.with("xor", b); }
  lane operator~() const { return with("not"); }
  lane select(const lane& a, const lane& b) const { return {*w, w->select(v, a.v, b.v)}; }

  /// The maximum; this if one is NaN. StableHLO's maximum gives NaN only if the other is none.
  lane max(const lane& b) const {
    return b.number_ || !is_float(v.type.of) ? with("maximum", b) : (b > *this).select(b, *this);
  }
  lane min(const lane& b) const {
    return b.number_ || !is_float(v.type.of) ? with("minimum", b) : (b < *this).select(b, *this);
  }
  lane max_nan(const lane& b) const { return with("maximum", b); }
  lane min_nan(const lane& b) const { return with("minimum", b); }
  lane abs() const { return is_unsigned(v.type.of) ? *this : with("abs"); }
  lane sqrt() const { return with("sqrt"); }
  lane rsqrt() const { return with("rsqrt"); }
  lane floor() const { return with("floor"); }
  lane ceil() const { return with("ceil"); }
  lane round() const { return is_float(v.type.of) ? with("round_nearest_even") : *this; }
  lane trunc() const { return (*this < like(0)).select(ceil(), floor()); }
  /// The remainder; integers divided by zero give 0, where XLA gives the dividend.
  lane fmod(const lane& b) const {
    const lane rest = with("remainder", b);
    return is_float(v.type.of) ? rest : (b == b.like(0)).select(b.like(0), rest);
  }
  lane exp() const { return with("exponential"); }
  lane log() const { return with("log"); }
  lane log2() const { return log() * like(std::numbers::log2e); }
  lane log10() const { return log() * like(std::numbers::log10e); }
  lane expm1() const { return with("exponential_minus_one"); }
  lane log1p() const { return with("log_plus_one"); }
  lane tanh() const { return with("tanh"); }
  lane sin() const { return with("sine"); }
  lane cos() const { return with("cosine"); }
  lane atan() const { return with("chlo.atan"); }
  lane atan2(const lane& x) const { return with("atan2", x); }
  lane erf() const { return with("chlo.erf"); }
  lane erfc() const { return with("chlo.erfc"); }
  lane lgamma() const { return with("chlo.lgamma"); }
  lane digamma() const { return with("chlo.digamma"); }
  lane zeta(const lane& q) const { return with("chlo.zeta", q); }
  /// The last operation is a select, because XLA's CPU backend recomputes a value for each of its
  /// users otherwise; halving last would make it compute erfc() for each.
  lane ndtr() const {
    const lane half = (*this * like(-1 / std::numbers::sqrt2)).erfc() * like(0.5);
    return (*this == *this).select(half, *this);
  }
  /// Integers to a negative power are 0, but for 1 and -1.
  lane pow(const lane& y) const {
    const lane power = with("power", y);
    if (is_float(v.type.of) || is_unsigned(v.type.of)) return power;
    const lane zero = like(0), one = like(1), minus = like(-1);
    const lane sign = ((y & one) == one).select(*this, one);
    const lane inverse = (*this == one || *this == minus).select(sign, zero);
    return (y < zero).select(inverse, power);
  }

 private:
  lane with(std::string_view op) const { return {*w, w->map(op, v)}; }
  lane with(std::string_view op, const lane& b) const { return {*w, w->map(op, v, b.v)}; }
  lane is(std::string_view how, const lane& b) const { return {*w, w->compare(how, v, b.v)}; }

  bool number_ = false;  // known not to be NaN
};

}  // namespace xla::detail::hlo
