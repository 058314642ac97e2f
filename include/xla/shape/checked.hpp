// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arithmetic on sizes that detects overflow. Sizes, shapes and the planner of memory use it;
// indices in kernels use plain integers, as their ranges are known to fit.

#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"

namespace xla::detail {

/// to = a op b for + - * /, with overflow detection: false if the result does not fit 64 bits.
constexpr bool calculate(std::int64_t a, char op, std::int64_t b, std::int64_t& to) {
  switch (op) {
    case '+': return !XLA_ADD_OVERFLOWS(a, b, to);
    case '-': return !XLA_SUBTRACT_OVERFLOWS(a, b, to);
    case '*': return !XLA_MULTIPLY_OVERFLOWS(a, b, to);
    default:
      if (b == 0) return false;
      if (b == -1) return !XLA_SUBTRACT_OVERFLOWS(0, a, to);
      to = a / b;
      return true;
  }
}

/// "4611686018427387904 * 4 is not a size: it is beyond 2^63".
constexpr text no_size(std::int64_t a, char op, std::int64_t b) {
  const char o[] = {' ', op, ' ', '\0'};
  return text() << a << o << b << (b == 0 ? " is not a size" : " is not a size: it is beyond 2^63");
}

template <class = void>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_arithmetic(std::int64_t a, char op,
                                                              std::int64_t b) {
  throw shape_error((text("xla: ") << no_size(a, op, b)).chars);
}
XLA_INSTANCE(void refuse_arithmetic<void>(std::int64_t, char, std::int64_t));

/// a op b for numbers outside of any function, as in x.size(0) * 2.
template <char op>
constexpr std::int64_t calculated(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!calculate(a, op, b, result)) refuse_arithmetic(a, op, b);
  return result;
}

}  // namespace xla::detail
