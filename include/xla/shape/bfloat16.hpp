// SPDX-License-Identifier: Apache-2.0
#pragma once

// The number type bfloat16 for storage and conversion. It has no arithmetic of its own: kernels
// widen it to float, compute, and round once.

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace xla {

/// The upper half of a float: its range with 8 bits of precision, in half the memory. For storage:
/// functions on tensors of bfloat16 compute in float and round once, to the nearest even.
class bfloat16 {
 public:
  constexpr bfloat16() = default;
  template <class N>
    requires(std::is_arithmetic_v<N>)
  constexpr explicit bfloat16(N x) : bits_(round(static_cast<float>(x))) {}
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }
  constexpr bfloat16& operator+=(bfloat16 o) {
    return *this = bfloat16(static_cast<float>(*this) + static_cast<float>(o));
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr std::uint16_t round(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    if (x != x) return static_cast<std::uint16_t>(u >> 16 | 0x40);  // NaN stays NaN
    return static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
  std::uint16_t bits_ = 0;
};

}  // namespace xla

template <>
struct std::numeric_limits<xla::bfloat16> : std::numeric_limits<float> {
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4;
  static constexpr xla::bfloat16 min() { return xla::bfloat16(0x1p-126f); }
  static constexpr xla::bfloat16 max() { return xla::bfloat16(0x1.fep127f); }
  static constexpr xla::bfloat16 lowest() { return xla::bfloat16(-0x1.fep127f); }
  static constexpr xla::bfloat16 epsilon() { return xla::bfloat16(0x1p-7f); }
  static constexpr xla::bfloat16 round_error() { return xla::bfloat16(0.5f); }
  static constexpr xla::bfloat16 infinity() { return xla::bfloat16(limits::infinity()); }
  static constexpr xla::bfloat16 quiet_NaN() { return xla::bfloat16(limits::quiet_NaN()); }
  static constexpr xla::bfloat16 signaling_NaN() { return quiet_NaN(); }
  static constexpr xla::bfloat16 denorm_min() { return xla::bfloat16(0x1p-133f); }

 private:
  using limits = std::numeric_limits<float>;
};
