// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small modules and types that layers share, such as Identity and Flatten. Layers with parameters
// are in files of their own.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "xla/module.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/spatial.hpp"

namespace xla::nn {

/// The input as it is.
struct Identity {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return x;
  }
};

namespace detail {

/// A number for each of D axes: for images {height, width}, or one for both.
template <int D>
using per_axis = std::conditional_t<D == 1, std::int64_t, HeightWidth>;

/// A parameter or buffer if Wanted; else Identity.
template <bool Wanted, class State>
using state_if = std::conditional_t<Wanted, State, Identity>;

template <class State, std::size_t N>
constexpr State make_state(const Size (&sizes)[N]) {
  if constexpr (std::is_same_v<State, Identity>) return {};
  else return State(sizes);
}

}  // namespace detail

/// Joins all axes from First on: (batch, everything else).
template <int First = 1>
struct Flatten {
  template <class T, int R>
  constexpr Tensor<T, First + 1> operator()(const Tensor<T, R>& x) const {
    return flatten<First>(x);
  }
};

}  // namespace xla::nn
