// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include "xla/tensor.hpp"

namespace xla {

/// A number by role: a hyper-parameter. At run time a plain value that may be changed at any time;
/// in a compiled step an input, so that changing it never makes another specialisation and two
/// that are equal are never taken for one.
class Scalar {
 public:
  constexpr Scalar() = default;
  constexpr Scalar(std::convertible_to<double> auto v) : value_(static_cast<double>(v)) {}

  constexpr double value() const { return value_; }
  /// False for the input of a compiled function, whose number only a call knows.
  constexpr bool known() const { return !graph_; }
  /// As a tensor without axes, to compute with.
  template <class T>
  constexpr Tensor<T, 0> as() const;

  // Binding: the slot of a graph that this number stands for.
  constexpr void name_slot(detail::graph* g, int slot) {
    graph_ = g;
    slot_ = slot;
  }

 private:
  double value_ = 0;
  detail::graph* graph_ = nullptr;
  int slot_ = -1;
};

}  // namespace xla
