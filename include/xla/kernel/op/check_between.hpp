// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of op::check_between: copies elements that are in bounds, else throws with the
// position.

#include <algorithm>
#include <cstdio>
#include <string>

#include "xla/kernel/call.hpp"
#include "xla/op/check_between.hpp"

namespace xla::detail {

template <class = void>
[[noreturn, gnu::cold]] void refuse_element(double value, std::int64_t position, const caller& at,
                                            std::string_view function, std::string_view words) {
  char number[32];
  std::snprintf(number, sizeof number, "%.9g", value);
  text t;
  t << function << " " << number << " at position " << position << " " << words << at;
  throw runtime_error(std::string(t.view()));
}

/// Copies elements if all are in bounds; else throws an error with the function's name and text.
template <class T>
void copy_between(const kernel_call& call, std::string_view function, std::string_view words) {
  const auto* const x = static_cast<const T*>(call.in[0]);
  const std::int64_t n = count(*call.out_shape);
  const auto [low, high] = call.attributes<op::check_between>();
  for (std::int64_t i = 0; i < n; ++i)
    if (const auto value = static_cast<double>(x[i]); !(value >= low && value <= high))
      refuse_element(value, i, call.at, function, words);
  std::copy_n(x, n, static_cast<T*>(call.out));
}
XLA_OP_INSTANCE(void copy_between<float>(const kernel_call&, std::string_view, std::string_view));
XLA_OP_INSTANCE(void copy_between<double>(const kernel_call&, std::string_view, std::string_view));

template <class T>
struct kernel_of<op::check_between, T, T> {
  static void run(const kernel_call& call) {
    copy_between<T>(call, op::check_between::name, op::check_between::words);
  }
};
template <class Function, class T>
struct kernel_of<check_between_of<Function>, T, T> {
  static void run(const kernel_call& call) {
    copy_between<T>(call, Function::name, Function::words);
  }
};

}  // namespace xla::detail
