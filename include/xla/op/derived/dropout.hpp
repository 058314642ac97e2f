// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/random.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// x with each element 0 with probability p, the others over 1 - p, so that the mean stays. Without
/// training x itself. Srivastava et al. (2014).
template <class T, int R>
constexpr Tensor<T, R> dropout(const Tensor<T, R>& x, detail::number_of<T> p = 0.5,
                               bool training = true) {
  if (p.outside(0, 1)) refuse_now(x, "dropout: p is a probability, between 0 and 1");
  if (!training) return x;
  const Tensor<T, 0> gone = p.tensor();
  const Tensor<T, 0> kept = 1 - gone;
  // With p = 1 nothing is kept, and nothing is divided by 0.
  const Tensor<T, 0> scale = 1 / where(kept > 0, kept, 1);
  return where(rand_like(x) >= gone, x, 0) * scale;
}

}  // namespace xla
