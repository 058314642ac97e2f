// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/exponential.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/trigonometric.hpp"

namespace xla {

/// Turns the pairs (i, i + width / 2) of x (…, sequence, width) by position × theta^(-2i / width),
/// so that products of two rows depend on the distance of their positions only; one position per
/// row of the sequence. Su et al. (2021), with the halves as in Llama. An odd width, or another
/// number of positions, is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> rotary_embedding(const Tensor<T, R>& x, const Tensor<T, 1>& positions,
                                        detail::number_of<T> theta = 10000, caller who = here()) {
  static_assert(R >= 2, "xla::rotary_embedding: needs (…, sequence, width)");
  const detail::shape from = x.dims();
  const Size width = x.size(-1), half = width / 2;
  const detail::size_scope scope{x.table(), {"rotary_embedding", who}};
  if (width.known() && width.extent() % 2 != 0) {
    scope.fail(detail::text("the width ") << width.extent() << " cannot be halved");
    return x;
  }
  const detail::extent count = positions.dims()[0];
  if (detail::extent n = from[R - 2]; !scope.equal(n, count)) {
    scope.fail(detail::text("") << count << " positions for a sequence of " << n);
    return x;
  }
  const Tensor<T, 1> exponent = arange<T>(half) * (-2) / width;
  const auto angle = unsqueeze(positions, 1) * exp(exponent * log(theta.tensor()));
  const auto c = unsqueeze(cos(angle), 1), s = unsqueeze(sin(angle), 1);
  // Both halves in one pass: each times cos, and the other one times sin, minus it for the first.
  const auto sign = unsqueeze(arange<T>(2) * 2 - 1, 1);
  detail::shape halves = from;
  halves[R - 1] = 2;
  halves.push(half.extent());
  const auto both = detail::with_shape<op::reshape, R + 1>(x, halves);
  const auto turned = detail::map_binary<op::mul, T>(both, c, who) + flip(both, {-2}) * (s * sign);
  return detail::with_shape<op::reshape, R>(turned, from);
}

/// The same at the positions 0, 1, 2 … of the sequence.
template <class T, int R>
constexpr Tensor<T, R> rotary_embedding(const Tensor<T, R>& x, detail::number_of<T> theta = 10000,
                                        caller who = here()) {
  return rotary_embedding(x, arange<T>(x.size(-2)), theta, who);
}

}  // namespace xla
