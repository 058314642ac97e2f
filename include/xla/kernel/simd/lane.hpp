// SPDX-License-Identifier: Apache-2.0
#pragma once

// vec<T>, the type that kernel expressions of ops compute with: one packet, or one number if T has
// no packets.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "xla/base/compiler.hpp"
#include "xla/kernel/simd/mask.hpp"
#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel {

template <class T>
struct vec;

/// The result of a comparison, a bool in every lane.
template <class T>
struct mask {
  static constexpr bool vector = is_vector<T>;
  static constexpr bool bitwise = has_mask_register<T>;
  mask_bits<T> bits;

  XLA_INLINE static mask from(bool b)
    requires(!vector)
  {
    return {static_cast<T>(b)};
  }
  XLA_INLINE vec<T> select(vec<T> a, vec<T> b) const
    requires(!std::is_same_v<T, bool>);
  XLA_INLINE mask select(mask a, mask b) const { return (*this && a) || (!*this && b); }
  friend XLA_INLINE mask operator!=(mask a, mask b) {
    if constexpr (bitwise) return {static_cast<mask_bits<T>>(a.bits ^ b.bits)};
    else if constexpr (vector) return {simd::pxor(a.bits, b.bits)};
    else return from(a.bits != b.bits);
  }
  friend XLA_INLINE mask operator==(mask a, mask b) { return !(a != b); }
  friend XLA_INLINE mask operator&&(mask a, mask b) {
    if constexpr (bitwise) return {static_cast<mask_bits<T>>(a.bits & b.bits)};
    else if constexpr (vector) return {simd::pand(a.bits, b.bits)};
    else return from(a.bits && b.bits);
  }
  friend XLA_INLINE mask operator||(mask a, mask b) {
    if constexpr (bitwise) return {static_cast<mask_bits<T>>(a.bits | b.bits)};
    else if constexpr (vector) return {simd::por(a.bits, b.bits)};
    else return from(a.bits || b.bits);
  }
  // False is less than true.
  friend XLA_INLINE mask operator<(mask a, mask b) { return !a && b; }
  friend XLA_INLINE mask operator<=(mask a, mask b) { return !a || b; }
  friend XLA_INLINE mask operator>(mask a, mask b) { return b < a; }
  friend XLA_INLINE mask operator>=(mask a, mask b) { return b <= a; }
  XLA_INLINE mask operator!() const {
    if constexpr (bitwise) return {static_cast<mask_bits<T>>(~bits)};
    else if constexpr (vector) return {simd::pandnot(simd::ptrue(bits), bits)};
    else return from(!bits);
  }
};

namespace detail {

/// Applies a scalar function to every lane, for functions without packet form in Eigen.
template <class T, class F>
XLA_INLINE packet<T> each_lane(packet<T> p, F f) {
  alignas(64) T buffer[lanes<T>];
  simd::pstore(buffer, p);
  for (T& x : buffer) x = f(x);
  return simd::pload<packet<T>>(buffer);
}
template <class T, class F>
XLA_INLINE packet<T> each_lane(packet<T> p, packet<T> q, F f) {
  alignas(64) T a[lanes<T>], b[lanes<T>];
  simd::pstore(a, p);
  simd::pstore(b, q);
  for (int i = 0; i < lanes<T>; ++i) a[i] = f(a[i], b[i]);
  return simd::pload<packet<T>>(a);
}

// Signed overflow wraps, as it does in every array library.
template <class T>
using wrapping = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, char, T>>;

}  // namespace detail

/// The sum of two numbers; integers wrap.
template <class T>
XLA_INLINE T add_wrapping(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  else
    return static_cast<T>(static_cast<detail::wrapping<T>>(a) +
                          static_cast<detail::wrapping<T>>(b));
}

/// The product, in the same way.
template <class T>
XLA_INLINE T multiply_wrapping(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a * b;
  else  // unsigned int at least: narrower ones would be multiplied as int
    return static_cast<T>(static_cast<std::common_type_t<detail::wrapping<T>, unsigned>>(a) *
                          static_cast<std::common_type_t<detail::wrapping<T>, unsigned>>(b));
}

/// The numbers of a kernel expression: one packet of T, or one integer. An op's kernel is written
/// with this type; see op/.
template <class T>
struct vec {
  static constexpr bool vector = is_vector<T>;
  using P = packet<T>;
  P v;

  /// The same number in every lane.
  XLA_INLINE static vec splat(T x) {
    if constexpr (vector) return {simd::pset1<P>(x)};
    else return {x};
  }
  XLA_INLINE vec like(double x) const { return splat(static_cast<T>(x)); }

  friend XLA_INLINE vec operator+(vec a, vec b) {
    if constexpr (vector) return {simd::padd(a.v, b.v)};
    else return {static_cast<T>(unsign(a.v) + unsign(b.v))};
  }
  friend XLA_INLINE vec operator-(vec a, vec b) {
    if constexpr (vector) return {simd::psub(a.v, b.v)};
    else return {static_cast<T>(unsign(a.v) - unsign(b.v))};
  }
  friend XLA_INLINE vec operator*(vec a, vec b) {
    if constexpr (vector) return {simd::pmul(a.v, b.v)};
    else return {static_cast<T>(unsign(a.v) * unsign(b.v))};
  }
  friend XLA_INLINE vec operator/(vec a, vec b) {
    if constexpr (vector) return {simd::pdiv(a.v, b.v)};
    else if constexpr (std::is_floating_point_v<T>) return {a.v / b.v};
    else if (b.v == 0) return {T{}};
    else if (std::is_signed_v<T> && b.v == static_cast<T>(-1)) return -a;
    else return {static_cast<T>(a.v / b.v)};
  }
  XLA_INLINE vec operator-() const {
    if constexpr (vector) return {simd::pnegate(v)};
    else return {static_cast<T>(unsign(T{}) - unsign(v))};
  }

  // Bitwise operations of integers.
  friend XLA_INLINE vec operator&(vec a, vec b)
    requires std::is_integral_v<T>
  {
    return {static_cast<T>(a.v & b.v)};
  }
  friend XLA_INLINE vec operator|(vec a, vec b)
    requires std::is_integral_v<T>
  {
    return {static_cast<T>(a.v | b.v)};
  }
  friend XLA_INLINE vec operator^(vec a, vec b)
    requires std::is_integral_v<T>
  {
    return {static_cast<T>(a.v ^ b.v)};
  }
  XLA_INLINE vec operator~() const
    requires std::is_integral_v<T>
  {
    return {static_cast<T>(~v)};
  }

  friend XLA_INLINE mask<T> operator==(vec a, vec b) {
    if constexpr (vector) return {detail::is_equal<T>(a.v, b.v)};
    else return mask<T>::from(a.v == b.v);
  }
  friend XLA_INLINE mask<T> operator!=(vec a, vec b) { return !(a == b); }
  friend XLA_INLINE mask<T> operator<(vec a, vec b) {
    if constexpr (vector) return {detail::is_less<T>(a.v, b.v)};
    else return mask<T>::from(a.v < b.v);
  }
  friend XLA_INLINE mask<T> operator<=(vec a, vec b) {
    if constexpr (vector) return {detail::is_less_equal<T>(a.v, b.v)};
    else return mask<T>::from(a.v <= b.v);
  }
  friend XLA_INLINE mask<T> operator>(vec a, vec b) { return b < a; }
  friend XLA_INLINE mask<T> operator>=(vec a, vec b) { return b <= a; }

  /// True in lanes where a or b is NaN.
  friend XLA_INLINE mask<T> unordered(vec a, vec b) {
    if constexpr (vector) return {detail::is_unordered<T>(a.v, b.v)};
    else return mask<T>::from(a.v != a.v || b.v != b.v);
  }

  /// The larger; this if one is NaN.
  XLA_INLINE vec max(vec b) const {
    if constexpr (vector) return {larger<T>(v, b.v)};
    else return (b > *this).select(b, *this);
  }
  /// The smaller; this if one is NaN.
  XLA_INLINE vec min(vec b) const {
    if constexpr (vector) return {smaller<T>(v, b.v)};
    else return (b < *this).select(b, *this);
  }
  /// The larger; NaN if either is.
  XLA_INLINE vec max_nan(vec b) const {
    if constexpr (std::is_floating_point_v<T>) return (b == b).select(max(b), b);
    else return max(b);
  }
  /// The smaller; NaN if either is.
  XLA_INLINE vec min_nan(vec b) const {
    if constexpr (std::is_floating_point_v<T>) return (b == b).select(min(b), b);
    else return min(b);
  }
  XLA_INLINE vec abs() const {
    if constexpr (vector) return {simd::pabs(v)};
    else if constexpr (std::is_unsigned_v<T>) return *this;
    else return v < 0 ? -*this : *this;
  }
  XLA_INLINE vec sqrt() const {
    if constexpr (vector) return {exact_sqrt<T>(v)};
    else return {static_cast<T>(std::sqrt(v))};
  }
  XLA_INLINE vec rsqrt() const { return splat(T(1)) / sqrt(); }
  XLA_INLINE vec floor() const {
    if constexpr (vector) return keep_sign({simd::pfloor(v)});
    else return {std::floor(v)};
  }
  XLA_INLINE vec ceil() const {
    if constexpr (vector) return keep_sign({simd::pceil(v)});
    else return {std::ceil(v)};
  }
  /// Rounds to the nearest whole number, halves to even.
  XLA_INLINE vec round() const {
    if constexpr (vector) return keep_sign({simd::print(v)});
    else if constexpr (std::is_integral_v<T>) return *this;
    else return {std::nearbyint(v)};
  }
  XLA_INLINE vec trunc() const {
    if constexpr (vector) return keep_sign(abs().floor());
    else return {std::trunc(v)};
  }
  /// This number's sign with another number's magnitude, which is not negative or has the sign
  /// already.
  XLA_INLINE vec keep_sign(vec magnitude) const
    requires vector
  {
    return {simd::por(magnitude.v, simd::pand(v, splat(T(-0.0)).v))};
  }
  /// The exact remainder of division towards zero; integers divided by zero give 0.
  XLA_INLINE vec fmod(vec b) const {
    auto one = [](T x, T y) -> T {
      if constexpr (std::is_floating_point_v<T>) return std::fmod(x, y);
      else return y == T{} || (std::is_signed_v<T> && y == T(-1)) ? T{} : static_cast<T>(x % y);
    };
    if constexpr (vector) return {detail::each_lane<T>(v, b.v, one)};
    else return {one(v, b.v)};
  }

  // Higher functions: see math.hpp.
  XLA_INLINE vec exp() const;
  XLA_INLINE vec log() const;
  XLA_INLINE vec log2() const;
  XLA_INLINE vec log10() const;
  XLA_INLINE vec expm1() const;
  XLA_INLINE vec log1p() const;
  XLA_INLINE vec tanh() const;
  XLA_INLINE vec sin() const;
  XLA_INLINE vec cos() const;
  XLA_INLINE vec atan() const;
  XLA_INLINE vec atan2(vec x) const;
  XLA_INLINE vec erf() const;
  XLA_INLINE vec erfc() const;
  XLA_INLINE vec ndtr() const;
  XLA_INLINE vec lgamma() const;
  XLA_INLINE vec digamma() const;
  XLA_INLINE vec zeta(vec q) const;
  XLA_INLINE vec pow(vec exponent) const;

  /// All lanes combined by f, in every lane: the upper half onto the lower, until one is left.
  template <class F>
  XLA_INLINE vec across(F f) const {
    if constexpr (!vector) return *this;
    else {
      vec x = *this;
      if constexpr (lanes<T> >= 16) x = f(x, vec{exchange_lanes<T, 8>(x.v)});
      if constexpr (lanes<T> >= 8) x = f(x, vec{exchange_lanes<T, 4>(x.v)});
      if constexpr (lanes<T> >= 4) x = f(x, vec{exchange_lanes<T, 2>(x.v)});
      x = f(x, vec{exchange_lanes<T, 1>(x.v)});
      // The order of the tree decides which zero or NaN a lane gets, so all lanes take the first
      // lane's.
      return {spread_first<T>(x.v)};
    }
  }

 private:
  static XLA_INLINE auto unsign(T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<detail::wrapping<T>>(x);
    else return x;
  }
};

template <class T>
XLA_INLINE vec<T> mask<T>::select(vec<T> a, vec<T> b) const
  requires(!std::is_same_v<T, bool>)
{
  if constexpr (vector) return {detail::select<T>(bits, a.v, b.v)};
  else return {bits ? a.v : b.v};
}

/// Lanes of bool: a mask with arithmetic.
template <>
struct vec<bool> : mask<bool> {
  vec(mask<bool> m) : mask<bool>(m) {}
  XLA_INLINE static vec splat(bool x) { return mask<bool>{x}; }
};

}  // namespace xla::kernel
