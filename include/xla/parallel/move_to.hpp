// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>

#include "xla/tensor.hpp"

namespace xla::parallel {

/// Puts a tensor, a module, or each part of a tuple of such on a device; what else there is stays
/// as it is.
template <class X>
void move_to(X& x, const Device& device) {
  if constexpr (requires { std::tuple_size<X>::value; })
    std::apply([&](auto&... part) { (move_to(part, device), ...); }, x);
  else if constexpr (requires {
                       { x.to(device) } -> std::same_as<X>;
                     })
    x = x.to(device);
  else if constexpr (requires { x.to(device); }) x.to(device);
}

}  // namespace xla::parallel
