// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types and values of StableHLO text, and small helpers that print them. writer.hpp builds on
// it.

#include <bit>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "xla/base/list.hpp"
#include "xla/graph/builtin.hpp"
#include "xla/shape/dtype.hpp"
#include "xla/shape/shape.hpp"

namespace xla::detail::hlo {

/// The element types of StableHLO that programs use. The library's tensors have all of them except
/// ui32 and ui64.
enum class element : std::uint8_t { f32, f64, bf16, i1, i32, i64, ui8, ui32, ui64 };

constexpr std::string_view name_of(element e) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "i1",  "i32",
                                        "i64", "ui8", "ui32", "ui64"};
  return names[static_cast<int>(e)];
}
constexpr element element_of(dtype t) {
  switch (t) {
    case dtype::float32: return element::f32;
    case dtype::float64: return element::f64;
    case dtype::int32: return element::i32;
    case dtype::int64: return element::i64;
    case dtype::uint8: return element::ui8;
    case dtype::boolean: return element::i1;
    case dtype::bfloat16: return element::bf16;
  }
  return element::f32;
}
constexpr bool is_float(element e) { return e <= element::bf16; }
constexpr bool is_unsigned(element e) { return e >= element::ui8; }

/// A tensor of known sizes.
struct tensor_type {
  element of = element::f32;
  shape dims;
  friend constexpr bool operator==(const tensor_type&, const tensor_type&) = default;
};

/// The result of a line, an argument of the program, or an argument of a region.
struct value {
  int node = -1;    ///< the graph's node that it is written for; -1: an argument of the program
  int number = 0;   ///< its number among the lines for that node, or among the arguments
  int result = -1;  ///< its number among the results of a line with several; -1: the line has one
  tensor_type type;
};

/// In functions that take a list: list_of({a, b}).
template <class T>
list<T> list_of(std::initializer_list<T> all) {
  return list<T>(all.begin(), all.end());
}

inline void add_number(std::string& to, std::int64_t n) {
  char digits[24];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}
/// "1, 2, 3".
inline std::string commas(const shape& numbers) {
  std::string out;
  for (int i = 0; i < numbers.rank; ++i) {
    if (i > 0) out += ", ";
    add_number(out, numbers[i]);
  }
  return out;
}
/// An attribute: "strides = array<i64: 1, 2>".
inline std::string numbers(std::string_view name, const shape& of) {
  std::string out(name);
  out += " = array<i64";
  if (of.rank > 0) out += ": ";
  return out += commas(of) += '>';
}
/// An attribute: "dimension = 1 : i64".
inline std::string number(std::string_view name, std::int64_t n) {
  std::string out(name);
  out += " = ";
  add_number(out, n);
  return out += " : i64";
}
/// An attribute of a dialect's own enumerations: "x = #stablehlo<x GT>" of "x" and "GT".
inline std::string choice(std::string_view name, std::string_view what) {
  std::string out(name);
  out += " = #stablehlo<";
  out += name;
  out += ' ';
  out += what;
  return out += '>';
}

inline void add_type(std::string& to, const tensor_type& t) {
  to += "tensor<";
  for (int i = 0; i < t.dims.rank; ++i) {
    add_number(to, t.dims[i]);
    to += 'x';
  }
  to += name_of(t.of);
  to += '>';
}

/// A number as an element of a constant. Fractions are written as bits: nothing is rounded, and
/// infinities need no notation.
inline std::string element_text(const op::constant::attributes& x, element of) {
  const auto bits = [](std::uint64_t n, int digits) {
    std::string out = "0x";
    for (int i = 4 * (digits - 1); i >= 0; i -= 4) out += "0123456789ABCDEF"[n >> i & 15];
    return out;
  };
  std::string out;
  switch (of) {
    case element::f32: return bits(std::bit_cast<std::uint32_t>(static_cast<float>(x.value)), 8);
    case element::f64: return bits(std::bit_cast<std::uint64_t>(x.value), 16);
    case element::bf16: return bits(std::bit_cast<std::uint16_t>(bfloat16(x.value)), 4);
    case element::i1: return x.value != 0 ? "true" : "false";
    case element::i32: add_number(out, static_cast<std::int32_t>(x.whole)); break;
    case element::ui8: add_number(out, static_cast<std::uint8_t>(x.whole)); break;
    case element::ui32: add_number(out, static_cast<std::uint32_t>(x.whole)); break;
    case element::i64: add_number(out, x.whole); break;
    case element::ui64: return std::to_string(static_cast<std::uint64_t>(x.whole));
  }
  return out;
}

}  // namespace xla::detail::hlo
