// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/module.hpp"
#include "xla/op/reshape.hpp"

namespace xla::nn {

/// The input as it is.
struct Identity {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return x;
  }
};

/// All axes from First on as one: (batch, everything else).
template <int First = 1>
struct Flatten {
  template <class T, int R>
  constexpr Tensor<T, First + 1> operator()(const Tensor<T, R>& x) const {
    return flatten<First>(x);
  }
};

}  // namespace xla::nn
