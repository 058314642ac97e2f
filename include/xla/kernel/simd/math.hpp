// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elementary functions of vec<T>: Eigen's if they are exact enough, else polynomials of
// math_table.hpp, else the C library's, lane by lane.

#include <cstddef>
#include <limits>
#include <numbers>

#include "xla/kernel/simd/gamma.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/kernel/simd/math_table.hpp"

namespace xla::kernel {
namespace detail {

/// a b + c, rounded once if the processor can.
template <class T>
XLA_INLINE vec<T> fma(vec<T> a, vec<T> b, vec<T> c) {
  return {simd::pmadd(a.v, b.v, c.v)};
}

/// c[0] + c[1] x + c[2] x^2 …
template <class T, std::size_t N>
XLA_INLINE vec<T> polynomial(vec<T> x, const T (&c)[N]) {
  vec<T> y = vec<T>::splat(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) y = fma(y, x, vec<T>::splat(c[i]));
  return y;
}

/// The same for eight coefficients in three dependent steps, for code in which the next operation
/// waits for the result, as a row waits for its logarithm.
template <class T>
XLA_INLINE vec<T> short_polynomial(vec<T> x, vec<T> x2, const T (&c)[8]) {
  auto two = [&](int i) { return fma(x, vec<T>::splat(c[i + 1]), vec<T>::splat(c[i])); };
  const vec<T> low = fma(two(2), x2, two(0)), high = fma(two(6), x2, two(4));
  return fma(high, x2 * x2, low);
}

/// x = n ln2 + r for the nearest whole n.
template <class T>
struct exp_rest {
  vec<T> n, r;
  explicit XLA_INLINE exp_rest(vec<T> x) {
    using table = math_table<T>;
    n = {simd::print((x * vec<T>::splat(T(std::numbers::log2e))).v)};
    r = fma(n, vec<T>::splat(-table::ln2[0]), x);
    r = fma(n, vec<T>::splat(-table::ln2[1]), r);
  }
};

/// exp(x) = 2^n (1 + q), for x between the table's bounds.
template <class T>
struct split_exp {
  vec<T> n, q;
  explicit XLA_INLINE split_exp(vec<T> x) {
    const exp_rest<T> of(x);
    n = of.n;
    q = fma(of.r * of.r, polynomial(of.r, math_table<T>::expm1), of.r);
  }
};

/// x clamped to the bounds; NaN stays.
template <class T>
XLA_INLINE vec<T> between(T low, vec<T> x, T high) {
  return x.max(vec<T>::splat(low)).min(vec<T>::splat(high));
}

/// exp(-x^2 / divisor), corrected for the rounding of the square; divisor is a power of two.
template <class T>
XLA_INLINE vec<T> exp_of_square(vec<T> x, T divisor) {
  const vec<T> scale = vec<T>::splat(-1 / divisor);
  vec<T> high, low;
  simd::twoprod(x.v, x.v, high.v, low.v);
  const vec<T> e = (high * scale).exp();
  return fma(e, low * scale, e);
}

/// exp(z^2) erfc(z) for z >= 0. Shepherd and Laframboise (1981).
template <class T>
XLA_INLINE vec<T> scaled_erfc(vec<T> z) {
  const vec<T> k = z.like(math_table<T>::erfc_center);
  const vec<T> t = (z - k) / (z + k);
  return polynomial(t, math_table<T>::erfc) / (z + z + z.like(1));
}

/// erf(x) for |x| <= 1.
template <class T>
XLA_INLINE vec<T> small_erf(vec<T> x) {
  return fma(x, polynomial(x * x, math_table<T>::erf), x);
}

template <class T>
XLA_INLINE bool any(mask<T> m) {
  if constexpr (mask<T>::bitwise) return m.bits != 0;
  else return simd::predux(m.select(vec<T>::splat(T(1)), vec<T>::splat(T(0))).v) != T(0);
}

/// The sine of x + shift quarter turns: in packets for |x| up to a million, beyond lane by lane.
template <class F>
XLA_INLINE vec<double> sine(vec<double> x, double shift, F far) {
  using V = vec<double>;
  using table = math_table<double>;
  const V n = (x * V::splat(2 * std::numbers::inv_pi)).round();
  V r = x;
  for (double part : table::half_pi) r = fma(n, V::splat(-part), r);
  const V r2 = r * r;
  const V s = fma(r * r2, polynomial(r2, table::sin), r);
  const V half = r2 * V::splat(0.5), w = V::splat(1) - half;
  const V c = w + fma(r2 * r2, polynomial(r2, table::cos), V::splat(1) - w - half);
  const V turned = n + V::splat(shift);
  const V quarter = turned - (turned * V::splat(0.25)).floor() * V::splat(4);
  const V y = (quarter == V::splat(1) || quarter == V::splat(3)).select(c, s);
  const V near = (quarter >= V::splat(2)).select(-y, y);
  const mask<double> is_near = x.abs() <= V::splat(1e6);
  if (!any(!is_near)) return near;
  return is_near.select(near, V{each_lane<double>(x.v, far)});
}

/// x^y of integers by squaring, wrapping around; a fraction becomes 0.
template <class T>
inline T integer_power(T x, T y) {
  if (std::is_signed_v<T> && y < 0) return x == 1 ? 1 : x != static_cast<T>(-1) ? 0 : y & 1 ? x : 1;
  vec<T> power{x}, result{T(1)};
  for (; y != 0; y = static_cast<T>(y >> 1)) {
    if (y & 1) result = result * power;
    power = power * power;
  }
  return result.v;
}

}  // namespace detail

template <class T>
XLA_INLINE vec<T> vec<T>::exp() const {
  if constexpr (!vector) return {std::exp(v)};
  else {
    using table = detail::math_table<T>;
    // For infinity the remainder would be NaN. If the processor scales by powers of two itself, the
    // scaling gives infinity.
    const detail::exp_rest<T> x(scales_by_power<T> ? *this : min(splat(table::exp_high)));
    const vec y{scale_by_power<T>(detail::polynomial(x.r, table::exp).v, x.n.v)};
    // A result below the normal numbers becomes 0: arithmetic with denormal numbers is slow.
    return (!(*this < splat(table::exp_low))).select(y, splat(T(0)));
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::log() const {
  if constexpr (!vector) return {static_cast<T>(std::log(v))};
  else if constexpr (!has_parts<T>) {
    // Eigen treats denormal numbers as the smallest normal ones.
    using limits = std::numeric_limits<T>;
    constexpr int up = limits::digits;
    const mask<T> low = *this < splat(limits::min());
    const vec scaled = *this * splat(static_cast<T>(std::int64_t{1} << up));
    return vec{simd::plog(low.select(scaled, *this).v)} -
           low.select(splat(up * std::numbers::ln2_v<T>), splat(T(0)));
  } else {
    using table = detail::math_table<T>;
    const number_parts<T> x(v);
    const vec n{x.exponent}, f = vec{x.mantissa} - splat(T(1));
    const vec f2 = f * f, p = detail::short_polynomial(f, f2, table::log);
    const vec y = detail::fma(f2, detail::fma(f, p, splat(T(-0.5))), n * splat(table::ln2[1]));
    return detail::fma(n, splat(table::ln2[0]), y + f);
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::expm1() const {
  if constexpr (!vector) return {std::expm1(v)};
  else {
    using table = detail::math_table<T>;
    const detail::split_exp<T> e(detail::between(table::exp_low, *this, table::exp_high));
    // Computes with halves, because 2^n overflows before exp(x) does.
    const vec half{scale_by_power<T>(splat(T(0.5)).v, e.n.v)};
    const vec y = detail::fma(half, e.q, half - splat(T(0.5)));
    return (abs() < splat(table::tiny)).select(*this, y + y);
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::log1p() const {
  if constexpr (!vector) return {std::log1p(v)};
  else {
    const vec one = splat(T(1)), u = one + *this, log = u.log();
    const vec lost = *this - (u - one);
    const mask<T> plain = u == splat(T(0)) || u > splat(T(1e10));
    return (u == one).select(*this, plain.select(log, log + lost / u));
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::tanh() const {
  if constexpr (!vector) return {std::tanh(v)};
  else if constexpr (std::is_same_v<T, float> && simd::packet_traits<T>::HasTanh)
    return {simd::ptanh(v)};
  else {
    const vec e = (abs() * splat(T(-2))).expm1();
    return keep_sign(-e / (e + splat(T(2))));
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::sin() const {
  if constexpr (!vector) return {std::sin(v)};
  else if constexpr (std::is_same_v<T, double>) {
    const vec y = detail::sine(*this, 0, [](double x) { return std::sin(x); });
    return (abs() < splat(1e-8)).select(*this, y);
  } else if constexpr (simd::packet_traits<T>::HasSin) return {simd::psin(v)};
  else return {detail::each_lane<T>(v, [](T x) { return std::sin(x); })};
}

template <class T>
XLA_INLINE vec<T> vec<T>::cos() const {
  if constexpr (!vector) return {std::cos(v)};
  else if constexpr (std::is_same_v<T, double>)
    return detail::sine(*this, 1, [](double x) { return std::cos(x); });
  else if constexpr (simd::packet_traits<T>::HasCos) return {simd::pcos(v)};
  else return {detail::each_lane<T>(v, [](T x) { return std::cos(x); })};
}

template <class T>
XLA_INLINE vec<T> vec<T>::erf() const {
  if constexpr (!vector) return {std::erf(v)};
  else {
    const vec one = splat(T(1)), all = splat(T(6)), a = abs().min(all);
    const vec large = one - (-(a * a)).exp() * detail::scaled_erfc(a);
    return (a < one).select(detail::small_erf(*this), keep_sign(large));
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::erfc() const {
  if constexpr (!vector) return {std::erfc(v)};
  else {
    const vec half = splat(T(0.5)), one = splat(T(1)), all = splat(T(28));
    const vec a = abs().min(all);
    const vec tail = detail::exp_of_square(a, T(1)) * detail::scaled_erfc(a);
    const vec large = (*this < half).select(one + one - tail, tail);
    return (a < half).select(one - detail::small_erf(*this), large);
  }
}

template <class T>
XLA_INLINE vec<T> vec<T>::ndtr() const {
  constexpr T root_half = T(1 / std::numbers::sqrt2);
  if constexpr (!vector) return {std::erfc(-v * root_half) / 2};
  else {
    const vec half = splat(T(0.5)), one = splat(T(1)), all = splat(T(40));
    const vec a = abs().min(all), z = a * splat(root_half);
    const vec tail = detail::exp_of_square(a, T(2)) * detail::scaled_erfc(z) * half;
    const vec large = (*this < half).select(tail, one - tail);
    const vec small = detail::fma(detail::small_erf(*this * splat(root_half)), half, half);
    return (z < half).select(small, large);
  }
}

// Lane by lane, because the C library's are exact for powers of their bases.
template <class T>
XLA_INLINE vec<T> vec<T>::log2() const {
  auto one = [](T a) { return std::log2(a); };
  if constexpr (vector) return {detail::each_lane<T>(v, one)};
  else return {one(v)};
}

template <class T>
XLA_INLINE vec<T> vec<T>::log10() const {
  auto one = [](T a) { return std::log10(a); };
  if constexpr (vector) return {detail::each_lane<T>(v, one)};
  else return {one(v)};
}

// Lane by lane: Eigen has no packet form.
template <class T>
XLA_INLINE vec<T> vec<T>::atan() const {
  auto one = [](T a) { return std::atan(a); };
  if constexpr (vector) return {detail::each_lane<T>(v, one)};
  else return {one(v)};
}

template <class T>
XLA_INLINE vec<T> vec<T>::atan2(vec x) const {
  auto one = [](T a, T b) { return std::atan2(a, b); };
  if constexpr (vector) return {detail::each_lane<T>(v, x.v, one)};
  else return {one(v, x.v)};
}

// Lane by lane and in double: losses and distributions use these, not inner loops.
template <class T>
XLA_INLINE vec<T> vec<T>::lgamma() const {
  auto one = [](T a) { return static_cast<T>(detail::log_gamma(a)); };
  if constexpr (vector) return {detail::each_lane<T>(v, one)};
  else return {one(v)};
}

template <class T>
XLA_INLINE vec<T> vec<T>::digamma() const {
  auto one = [](T a) { return static_cast<T>(detail::digamma(a)); };
  if constexpr (vector) return {detail::each_lane<T>(v, one)};
  else return {one(v)};
}

template <class T>
XLA_INLINE vec<T> vec<T>::zeta(vec q) const {
  auto one = [](T s, T a) { return static_cast<T>(detail::zeta(s, a)); };
  if constexpr (vector) return {detail::each_lane<T>(v, q.v, one)};
  else return {one(v, q.v)};
}

// Lane by lane, because Eigen's pow is no faster and less exact.
template <class T>
XLA_INLINE vec<T> vec<T>::pow(vec y) const {
  auto one = [](T a, T b) { return std::pow(a, b); };
  if constexpr (std::is_integral_v<T>) return {detail::integer_power(v, y.v)};
  else if constexpr (vector) return {detail::each_lane<T>(v, y.v, one)};
  else return {one(v, y.v)};
}

}  // namespace xla::kernel
