// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element types and sizes as PJRT has them, with the bounds beyond which XLA ends the process. The
// library's own types are shape/dtype.hpp.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/abi.hpp"
#include "xla/shape/dtype.hpp"
#include "xla/shape/shape.hpp"

namespace xla::ext::pjrt {

/// An element type of arrays, which need not be one of tensors.
using element = abi::element;

/// The properties of an element type.
struct element_facts {
  element type;
  std::string_view in_text, name;  ///< "ui8" in StableHLO, "uint8" to people
  std::size_t bytes;
};
inline constexpr element_facts all_elements[] = {
    {element::boolean, "i1", "bool", 1},       {element::int8, "i8", "int8", 1},
    {element::int16, "i16", "int16", 2},       {element::int32, "i32", "int32", 4},
    {element::int64, "i64", "int64", 8},       {element::uint8, "ui8", "uint8", 1},
    {element::uint16, "ui16", "uint16", 2},    {element::uint32, "ui32", "uint32", 4},
    {element::uint64, "ui64", "uint64", 8},    {element::float16, "f16", "float16", 2},
    {element::float32, "f32", "float32", 4},   {element::float64, "f64", "float64", 8},
    {element::bfloat16, "bf16", "bfloat16", 2}};
/// Whether the element type is valid; a plugin ends the process for others.
constexpr bool is_known(element e) {
  return static_cast<int>(e) >= 1 && static_cast<std::size_t>(e) <= std::size(all_elements);
}
/// Throws if the element type is invalid; the message begins with the caller's name.
inline void check_element(element e, std::string_view function) {
  if (!is_known(e))
    throw runtime_error(xla::detail::join({function, ": there are no elements of the type ",
                                           std::to_string(static_cast<int>(e)),
                                           "; pjrt::all_elements has those that there are"}));
}
constexpr const element_facts& facts_of(element e) {
  if (!is_known(e)) check_element(e, "pjrt::facts_of");
  return all_elements[static_cast<int>(e) - 1];
}

constexpr element element_of(dtype t) {
  switch (t) {
    case dtype::float32: return element::float32;
    case dtype::float64: return element::float64;
    case dtype::int32: return element::int32;
    case dtype::int64: return element::int64;
    case dtype::uint8: return element::uint8;
    case dtype::bfloat16: return element::bfloat16;
    default: return element::boolean;
  }
}

/// The element type and the sizes of an array.
struct array_type {
  element type = element::float32;
  xla::detail::shape sizes;

  constexpr std::size_t bytes() const {
    return facts_of(type).bytes * static_cast<std::size_t>(count(sizes));
  }
  friend constexpr bool operator==(const array_type&, const array_type&) = default;
};

/// More bytes than any machine's memory. For arrays beyond it XLA's compiler may divide by zero,
/// which ends the process.
inline constexpr std::int64_t max_bytes = std::int64_t{1} << 46;

/// "float32 (64, 10)".
inline std::string describe(const array_type& a) {
  return std::string(((xla::detail::text(facts_of(a.type).name) << ' ') << a.sizes).view());
}

}  // namespace xla::ext::pjrt
