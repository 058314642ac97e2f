// SPDX-License-Identifier: Apache-2.0
#pragma once

// multinomial(): draws indices by weights.

#include <limits>

#include "xla/op/compare.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/random.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/sort.hpp"

namespace xla::op {

/// The input itself, after a check that every element is finite and not negative, and that at least
/// `above` of every row (the last axis) are positive; else an error.
struct check_probabilities {
  static constexpr auto name = "check_probabilities";
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool check = true;
  struct attributes {
    std::int64_t above = 1;
    XLA_ATTRIBUTES(above)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};

}  // namespace xla::op

XLA_OP(xla::op::check_probabilities, doubles);

namespace xla {
namespace detail {

/// Samples with replacement: the position of a uniform number among the cumulative probabilities.
template <int R>
constexpr Tensor<std::int64_t, R> draw_among_sums(const Tensor<double, R>& p,
                                                  std::int64_t samples) {
  shape s = p.dims();
  s[R - 1] = samples;
  const auto sums = cumsum(p, -1);
  const Tensor<double, R> u = random<op::uniform, double, R>(s, p.table());
  const auto below = unsqueeze(sums, -2) <= unsqueeze(u * max(sums, {-1}, keepdim), -1);
  return sum(cast<std::int64_t>(below), {-1});
}
/// Samples without replacement: the smallest of exponential times with the weights as rates.
/// Efraimidis and Spirakis (2006).
template <int R>
constexpr Tensor<std::int64_t, R> draw_by_race(const Tensor<double, R>& p, std::int64_t samples) {
  const auto time = maximum(-log1p(-rand_like(p)), std::numeric_limits<double>::min());
  return topk(where(p > 0, p / time, -1), samples).second;
}

}  // namespace detail

/// Random indices along the last axis, each with a frequency by its weight: (…, n) gives (…,
/// num_samples). Weights need not sum to 1. Without replacement no index is repeated, and as many
/// weights must be positive. Weights that are negative, infinite or NaN are an xla::error.
template <class T, int R>
constexpr Tensor<std::int64_t, R> multinomial(const Tensor<T, R>& probs, std::int64_t num_samples,
                                              bool replacement = false, caller loc = here()) {
  static_assert(R >= 1, "xla::multinomial: needs an axis of probabilities");
  static_assert(floating_type<T>,
                "xla::multinomial: probabilities are float or double; cast first");
  const detail::size_scope scope{probs.table(), {"multinomial", loc}};
  const detail::extent n = probs.dims()[R - 1];
  if (num_samples < 1) {
    scope.fail("num_samples is at least 1");
    num_samples = 1;
  }
  if (!replacement && !scope.at_least(n, num_samples))
    scope.fail(detail::text("cannot take ")
               << num_samples << " samples of " << n << " probabilities without replacement");
  const auto p = detail::apply<op::check_probabilities, double, double, R>(
      detail::with<op::check_probabilities>({replacement ? 1 : num_samples}),
      cast<double>(probs.detach()));
  // Scaled by the largest, so that neither their sum nor a small one leaves the range of numbers.
  const Tensor<double, R> relative = p / max(p, {-1}, keepdim);
  if (replacement || num_samples == 1) return detail::draw_among_sums(relative, num_samples);
  return detail::draw_by_race(relative, num_samples);
}

}  // namespace xla
