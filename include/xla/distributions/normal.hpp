// SPDX-License-Identifier: Apache-2.0
#pragma once

// Normal, by the names of torch.distributions: a class of the public API, built on ops alone.

#include <numbers>

#include "xla/distributions/parameter.hpp"
#include "xla/op/erf.hpp"
#include "xla/op/erfinv.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/random.hpp"

namespace xla::distributions {

struct normal_scale {
  static constexpr auto name = "distributions::Normal: scale";
  static constexpr auto words = "has to be above 0";
  static constexpr auto sentence = "distributions::Normal: scale has to be above 0";
};

/// The normal distribution of a mean loc and a standard deviation scale, tensors that broadcast or
/// numbers: Normal(mean, exp(log_std)). A scale that is not above 0 is an xla::error, unless
/// validate_args is false.
template <class T, int Rank>
class Normal {
 public:
  static_assert(floating_type<T>, "xla::distributions::Normal: needs float or double; cast first");
  using value_type = T;
  static constexpr int batch_rank = Rank, event_rank = 0;

  Tensor<T, Rank> loc, scale;

  template <parameter L, parameter S>
  constexpr Normal(const L& mean, const S& deviation, bool validate_args = true,
                   caller at = here()) {
    const auto positive =
        checked<normal_scale, T>(deviation, above_zero, unbounded, validate_args, at);
    const auto both = broadcast_tensors(as_tensor<T>(mean), positive, at);
    loc = both.first;
    scale = both.second;
  }

  constexpr Tensor<T, Rank> mean() const { return loc; }
  constexpr Tensor<T, Rank> mode() const { return loc; }
  constexpr Tensor<T, Rank> stddev() const { return scale; }
  constexpr Tensor<T, Rank> variance() const { return scale * scale; }
  constexpr Tensor<T, Rank> entropy() const { return log(scale) + (0.5 + half_log_2_pi); }

  /// Gradients flow through a draw of rsample to loc and scale, and through none of sample.
  constexpr Tensor<T, Rank> rsample() const { return loc + randn_like(loc) * scale; }
  template <std::size_t N>
  constexpr Tensor<T, Rank + static_cast<int>(N)> rsample(const Size (&sizes)[N]) const {
    return loc + randn_like(with_leading(sizes, loc)) * scale;
  }
  constexpr Tensor<T, Rank> sample() const { return rsample().detach(); }
  template <std::size_t N>
  constexpr Tensor<T, Rank + static_cast<int>(N)> sample(const Size (&sizes)[N]) const {
    return rsample(sizes).detach();
  }

  template <int V>
  constexpr auto log_prob(const Tensor<T, V>& value) const {
    const auto z = (value - loc) / scale;
    const auto exponent = z * z * -0.5;
    return exponent - log(scale) - half_log_2_pi;
  }
  template <int V>
  constexpr auto cdf(const Tensor<T, V>& value) const {
    return erf((value - loc) / scale * (1 / std::numbers::sqrt2)) * 0.5 + 0.5;
  }
  template <int V>
  constexpr auto icdf(const Tensor<T, V>& value) const {
    return loc + scale * erfinv(value * 2 - 1) * std::numbers::sqrt2;
  }

 private:
  static constexpr double half_log_2_pi = 0.91893853320467274;
};
template <parameter L, parameter S, class... More>
Normal(const L&, const S&, More...) -> Normal<element_of<L, S>, rank_of<L, S>>;

}  // namespace xla::distributions
