// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotary embeddings of positions, as decoders use them.

#include <numbers>

#include "xla/op/cast.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/trigonometric.hpp"

namespace xla {

/// Reduced frequencies for texts longer than those of the original training, by the names of
/// Hugging Face's configurations. Pairs that turn less than low_freq_factor times in
/// original_max_position_embeddings tokens turn factor times slower, those that turn more than
/// high_freq_factor times are unchanged, and those in between are interpolated. Grattafiori et al.
/// (2024), Llama 3.1. With 0 original tokens all turn factor times slower: Chen et al. (2023).
struct RotaryScaling {
  double factor = 1;  ///< 1: nothing changes
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int original_max_position_embeddings = 0;

  constexpr bool valid() const { return factor > 0 && low_freq_factor < high_freq_factor; }
  friend constexpr bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

namespace detail {
/// The angle by which each pair of a width turns from one position to the next: (width / 2).
template <class T>
constexpr Tensor<T, 1> rotary_frequencies(Size width, const Tensor<T, 0>& theta,
                                          const RotaryScaling& scaling, auto* table) {
  const Tensor<T, 1> exponent = arange<T>(width / 2) * (-2) / width;
  const Tensor<T, 1> all = exp(exponent * log(theta));
  if (scaling.factor == 1) return all;
  const double first = scaling.low_freq_factor, range = scaling.high_freq_factor - first;
  const double turns = scaling.original_max_position_embeddings / (2 * std::numbers::pi);
  const auto frequency = with_table(all, table);
  const auto kept = clamp(frequency * (turns / range) - first / range, 0, 1);
  return frequency * (kept * (1 - 1 / scaling.factor) + 1 / scaling.factor);
}
}  // namespace detail

/// Rotates the pairs (i, i + width / 2) of x (…, sequence, width) by position × theta^(-2i /
/// width), so that products of two rows depend only on the distance of their positions. There is
/// one position per row of the sequence. Su et al. (2021), with Llama's pairing of halves. An odd
/// width, or another number of positions, is a shape_error. A RotaryScaling slows some of the
/// pairs. With x of bfloat16 positions are float.
template <class T, int R>
constexpr Tensor<T, R> rotary_embedding(const Tensor<T, R>& x,
                                        const Tensor<detail::computed<T>, 1>& positions,
                                        detail::number_of<T> theta, const RotaryScaling& scaling,
                                        caller loc = here()) {
  static_assert(R >= 2, "xla::rotary_embedding: needs (…, sequence, width)");
  const detail::shape from = x.dims();
  const Size width = x.size(-1), half = width / 2;
  const detail::size_scope scope{x.table(), {"rotary_embedding", loc}};
  if (width.known() && width.extent() % 2 != 0) {
    scope.fail(detail::text("the width ") << width.extent() << " cannot be halved");
    return x;
  }
  if (!scaling.valid()) {
    scope.fail(
        detail::text("a RotaryScaling has a factor above 0, and its low_freq_factor is "
                     "smaller than its high_freq_factor"));
    return x;
  }
  const detail::extent count = positions.dims()[0];
  if (detail::extent n = from[R - 2]; !scope.equal(n, count)) {
    scope.fail(detail::text("") << count << " positions for a sequence of " << n);
    return x;
  }
  using C = detail::computed<T>;
  const auto angle = unsqueeze(positions, 1) *
                     detail::rotary_frequencies<C>(width, theta.operand(), scaling, x.table());
  const auto c = unsqueeze(cos(angle), 1), s = unsqueeze(sin(angle), 1);
  // Both halves in one pass: each times cos, plus the other one times sin, which is negative for
  // the first.
  const auto sign = unsqueeze(arange<C>(2) * 2 - 1, 1);
  detail::shape halves = from;
  halves[R - 1] = 2;
  halves.push(half.extent());
  const auto both = detail::with_shape<op::reshape, R + 1>(detail::widened(x), halves);
  const auto turned = detail::map_binary<op::mul, C>(both, c, loc) + flip(both, {-2}) * (s * sign);
  return detail::narrowed<T>(detail::with_shape<op::reshape, R>(turned, from));
}

template <class T, int R>
constexpr Tensor<T, R> rotary_embedding(const Tensor<T, R>& x,
                                        const Tensor<detail::computed<T>, 1>& positions,
                                        detail::number_of<T> theta = 10000, caller loc = here()) {
  return rotary_embedding(x, positions, theta, RotaryScaling{}, loc);
}

/// The same at the positions 0, 1, 2 … of the sequence.
template <class T, int R>
constexpr Tensor<T, R> rotary_embedding(const Tensor<T, R>& x, detail::number_of<T> theta = 10000,
                                        caller loc = here()) {
  return rotary_embedding(x, arange<detail::computed<T>>(x.size(-2)), theta, loc);
}
template <class T, int R>
constexpr Tensor<T, R> rotary_embedding(const Tensor<T, R>& x, detail::number_of<T> theta,
                                        const RotaryScaling& scaling, caller loc = here()) {
  return rotary_embedding(x, arange<detail::computed<T>>(x.size(-2)), theta, scaling, loc);
}

}  // namespace xla
