// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts elements between types while weights are loaded. Only state_loader.hpp uses it; tensors
// are converted by cast().

#include <cstdint>
#include <cstring>
#include <utility>

#include "xla/shape/dtype.hpp"

namespace xla::nn::detail {

/// Calls f(type) with the element type of a numeric dtype; false, without a call, for another.
template <bool Fraction, class F>
bool visit_numbers(dtype t, const F& f) {
  const auto is = [&]<class T>(std::type_identity<T> type) {
    return t == dtype_of<T> && (f(type), true);
  };
  if constexpr (Fraction)
    return is(std::type_identity<float>{}) || is(std::type_identity<double>{}) ||
           is(std::type_identity<bfloat16>{});
  else
    return is(std::type_identity<std::int32_t>{}) || is(std::type_identity<std::int64_t>{}) ||
           is(std::type_identity<std::uint8_t>{});
}

/// Converts an element to another type; false if an integer does not fit.
template <class From, class To>
bool convert_element(const void* from, void* to) {
  From value{};
  std::memcpy(&value, from, sizeof value);
  if constexpr (!floating_type<From>)
    if (!std::in_range<To>(value)) return false;
  using wide = std::conditional_t<floating_type<From>, double, From>;
  const To result = static_cast<To>(static_cast<wide>(value));
  std::memcpy(to, &result, sizeof result);
  return true;
}

/// Converts elements between types: floating-point numbers to floating-point numbers, rounded, and
/// integers to integers. False for other pairs, and if a number does not fit.
template <class = void>
bool convert_elements(dtype from, const std::uint8_t* data, std::int64_t count, dtype to,
                      std::uint8_t* result) {
  bool fits = true;
  const auto of_kind = [&]<bool Fraction>(std::bool_constant<Fraction>) {
    bool known = false;
    return visit_numbers<Fraction>(
               from,
               [&]<class From>(std::type_identity<From>) {
                 known = visit_numbers<Fraction>(to, [&]<class To>(std::type_identity<To>) {
                   for (std::int64_t i = 0; fits && i < count; ++i)
                     fits = convert_element<From, To>(data + i * std::int64_t{sizeof(From)},
                                                      result + i * std::int64_t{sizeof(To)});
                 });
               }) &&
           known;
  };
  return (of_kind(std::true_type{}) || of_kind(std::false_type{})) && fits;
}

}  // namespace xla::nn::detail
