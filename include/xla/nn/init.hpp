// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/arithmetic.hpp"
#include "xla/op/random.hpp"
#include "xla/run/runtime.hpp"
#include "xla/tensor/state.hpp"

namespace xla::nn::init {

/// Uniform in [low, high).
template <class T, int R>
void uniform_(Parameter<T, R>& p, T low = 0, T high = 1) {
  p.copy_(rand_like(p.detach()) * (high - low) + low);
}

/// Normal with the given mean and standard deviation.
template <class T, int R>
void normal_(Parameter<T, R>& p, T mean = 0, T std = 1) {
  p.copy_(randn_like(p.detach()) * std + mean);
}

}  // namespace xla::nn::init
