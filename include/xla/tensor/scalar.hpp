// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::Scalar, a hyper-parameter that may change between calls without a new compilation, such as a
// learning rate. A tensor without axes is a value that ops compute; a Scalar is an input.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "xla/tensor.hpp"

namespace xla {
namespace detail {
/// Converts a scalar tensor of T to another element type. It is a separate function, so that
/// programs whose numbers are never tensors have no kernels for it.
template <class T>
constexpr handle held_as(const handle& tensor, dtype type);
}  // namespace detail

/// A hyper-parameter. At run time it is a plain number that may be changed at any time. In a
/// compiled step it is an input: changing it never makes another specialisation, and two equal ones
/// are never merged.
class Scalar {
 public:
  constexpr Scalar() = default;
  constexpr Scalar(std::convertible_to<double> auto v) : value_(static_cast<double>(v)) {}

  /// 0 if a tensor holds the number.
  constexpr double value() const { return is_ == role::held ? 0 : value_; }
  /// False for an input of a compiled function, whose number only a call knows, and for a number
  /// that a tensor holds.
  constexpr bool known() const { return is_ == role::plain; }
  /// As a tensor without axes, to compute with.
  template <class T>
  constexpr Tensor<T, 0> as() const;

  /// Takes its number from a scalar tensor, which must outlive it: a rate that differs from step to
  /// step of a loop.
  template <class T>
    requires std::is_floating_point_v<T>
  static constexpr Scalar held_by(const Tensor<T, 0>& tensor) {
    Scalar s;
    s.tensor_ = &tensor;
    s.held_as_ = &detail::held_as<T>;
    s.is_ = role::held;
    return s;
  }

  // Binding: the slot of a graph that this number stands for.
  constexpr void name_slot(detail::graph* g, int slot) {
    graph_ = g;
    slot_ = slot;
    is_ = role::input;
  }

 private:
  enum class role : std::uint8_t { plain, input, held };

  // Two and a half words, because a model has many of them.
  union {
    double value_ = 0;
    detail::handle (*held_as_)(const detail::handle& tensor, dtype type);
  };
  union {
    detail::graph* graph_ = nullptr;
    const detail::handle* tensor_;
  };
  int slot_ = -1;
  role is_ = role::plain;
};

}  // namespace xla
