// SPDX-License-Identifier: Apache-2.0
#pragma once

// The element types of tensors, as an enumeration and as C++ concepts, with their sizes and names.
// Conversion of elements is op/cast.hpp, not here.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "xla/shape/bfloat16.hpp"

namespace xla {

/// Element types of a tensor.
enum class dtype : std::uint8_t { float32, float64, int32, int64, uint8, boolean, bfloat16 };
inline constexpr std::size_t dtypes = static_cast<std::size_t>(dtype::bfloat16) + 1;

/// A C++ type that a tensor can hold.
template <class T>
concept element =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t> || std::same_as<T, bool> ||
    std::same_as<T, bfloat16>;

/// A floating-point element type, through which gradients can flow.
template <class T>
concept floating_type = std::is_floating_point_v<T> || std::same_as<T, bfloat16>;

/// The dtype of a C++ element type.
template <element T>
inline constexpr dtype dtype_of = std::same_as<T, float>          ? dtype::float32
                                  : std::same_as<T, double>       ? dtype::float64
                                  : std::same_as<T, std::int32_t> ? dtype::int32
                                  : std::same_as<T, std::int64_t> ? dtype::int64
                                  : std::same_as<T, std::uint8_t> ? dtype::uint8
                                  : std::same_as<T, bool>         ? dtype::boolean
                                                                  : dtype::bfloat16;

/// The C++ element type of a dtype.
template <dtype Type>
using element_type = std::tuple_element_t<
    static_cast<std::size_t>(Type),
    std::tuple<float, double, std::int32_t, std::int64_t, std::uint8_t, bool, bfloat16>>;

/// Bytes of one element.
constexpr std::int64_t size_of(dtype t) {
  switch (t) {
    case dtype::float32:
    case dtype::int32: return 4;
    case dtype::float64:
    case dtype::int64: return 8;
    case dtype::bfloat16: return 2;
    default: return 1;
  }
}

constexpr std::string_view name_of(dtype t) {
  switch (t) {
    case dtype::float32: return "float32";
    case dtype::float64: return "float64";
    case dtype::int32: return "int32";
    case dtype::int64: return "int64";
    case dtype::uint8: return "uint8";
    case dtype::bfloat16: return "bfloat16";
    default: return "bool";
  }
}

namespace detail {
/// The type to which the operands of a float32 product are rounded before multiplication; sums are
/// in float32. See xla::autocast.
enum class precision : std::uint8_t { float32, bfloat16 };

/// Whether a dtype is one of those types.
constexpr bool is_fraction(dtype t) {
  return t == dtype::float32 || t == dtype::float64 || t == dtype::bfloat16;
}

template <dtype D>
struct cpp_type_;
template <>
struct cpp_type_<dtype::float32> {
  using type = float;
};
template <>
struct cpp_type_<dtype::float64> {
  using type = double;
};
template <>
struct cpp_type_<dtype::int32> {
  using type = std::int32_t;
};
template <>
struct cpp_type_<dtype::int64> {
  using type = std::int64_t;
};
template <>
struct cpp_type_<dtype::uint8> {
  using type = std::uint8_t;
};
template <>
struct cpp_type_<dtype::boolean> {
  using type = bool;
};
template <>
struct cpp_type_<dtype::bfloat16> {
  using type = bfloat16;
};
}  // namespace detail

/// The C++ element type of a dtype.
template <dtype D>
using cpp_type = typename detail::cpp_type_<D>::type;

}  // namespace xla
