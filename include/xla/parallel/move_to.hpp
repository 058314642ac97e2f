// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves tensors, modules or tuples of them to a device. launch(), DataParallel and its loaders use
// it.

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/tensor.hpp"

namespace xla::parallel {

/// Puts a tensor, a module, or each part of a tuple of such on a device; what else there is, and
/// what a tuple refers to, stays as it is.
template <class X>
void move_to(X& x, const Device& device) {
  if constexpr (requires { std::tuple_size<X>::value; }) {
    const auto move_part = [&]<std::size_t I>() {
      using part = std::tuple_element_t<I, X>;
      if constexpr (!std::is_reference_v<part>) move_to(std::get<I>(x), device);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (move_part.template operator()<I>(), ...);
    }(std::make_index_sequence<std::tuple_size_v<X>>{});
  } else if constexpr (requires {
                         { x.to(device) } -> std::same_as<X>;
                       }) {
    x = x.to(device);
  } else if constexpr (requires { x.to(device); }) {
    x.to(device);
  }
}

}  // namespace xla::parallel
