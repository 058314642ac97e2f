// SPDX-License-Identifier: Apache-2.0
#pragma once

// The element types of safetensors files, and conversion of types that tensors do not have. The
// other safetensors headers use it.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "xla/kernel/simd/eigen_packets.hpp"
#include "xla/shape/dtype.hpp"

namespace xla::ext::detail {

/// An element type's name in the format. Elements of 16 bits are float32 in memory.
struct safetensors_type {
  dtype type;
  std::string_view name;
  dtype width;  ///< has the size of an element in the file
};

inline constexpr std::array<safetensors_type, 8> safetensors_types{{
    {dtype::float32, "F32", dtype::float32},
    {dtype::float32, "BF16", dtype::bfloat16},
    {dtype::float32, "F16", dtype::bfloat16},
    {dtype::float64, "F64", dtype::float64},
    {dtype::int32, "I32", dtype::int32},
    {dtype::int64, "I64", dtype::int64},
    {dtype::uint8, "U8", dtype::uint8},
    {dtype::boolean, "BOOL", dtype::boolean},
}};

/// bfloat16 that stays bfloat16 in memory.
inline constexpr safetensors_type stored_bfloat16{dtype::bfloat16, "BF16", dtype::bfloat16};

constexpr bool is_half(const safetensors_type& t) { return t.name == "F16"; }
/// True if elements in the file differ from those in memory.
constexpr bool is_narrow(const safetensors_type& t) { return t.type != t.width; }

/// Elements of 16 bits as float32, exactly.
inline std::vector<std::uint8_t> widen(const safetensors_type& from,
                                       std::span<const std::uint8_t> narrow) {
  std::vector<std::uint8_t> out(narrow.size() * 2);
  for (std::size_t i = 0; i < narrow.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, narrow.data() + 2 * i, 2);
    const auto upper = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    if (is_half(from))
      value = Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits));
    else std::memcpy(&value, &upper, 4);
    std::memcpy(out.data() + 4 * i, &value, 4);
  }
  return out;
}

/// float32 elements as 16 bits, rounded to the nearest even; values out of range become infinite.
inline std::vector<std::uint8_t> narrow(const safetensors_type& to,
                                        std::span<const std::uint8_t> wide) {
  std::vector<std::uint8_t> out(wide.size() / 2);
  for (std::size_t i = 0; i < wide.size() / 4; ++i) {
    float value = 0;
    std::memcpy(&value, wide.data() + 4 * i, 4);
    const bfloat16 rounded{value};
    std::uint16_t bits = Eigen::half_impl::float_to_half_rtne(value).x;
    static_assert(sizeof rounded == sizeof bits);
    if (!is_half(to)) std::memcpy(&bits, &rounded, 2);
    std::memcpy(out.data() + 2 * i, &bits, 2);
  }
  return out;
}

}  // namespace xla::ext::detail
