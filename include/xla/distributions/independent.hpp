// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the last axes of a distribution one event, so that log_prob sums over them.

#include "xla/distributions/parameter.hpp"

namespace xla::distributions {

/// A distribution whose last N axes are one event: log_prob and entropy are sums over them.
/// independent<1>(Normal(mean, scale)) is PyTorch's Independent(Normal(mean, scale), 1).
template <class Base, int N>
class Independent {
 public:
  using value_type = typename Base::value_type;
  static constexpr int batch_rank = Base::batch_rank - N, event_rank = Base::event_rank + N;

  Base base_dist;

  constexpr explicit Independent(const Base& base) : base_dist(base) {
    static_assert(
        N >= 0 && N <= Base::batch_rank,
        "xla::distributions::Independent: more event axes than the distribution has axes");
  }

  constexpr auto mean() const { return base_dist.mean(); }
  constexpr auto mode() const { return base_dist.mode(); }
  constexpr auto variance() const { return base_dist.variance(); }
  constexpr auto stddev() const { return base_dist.stddev(); }
  constexpr auto entropy() const { return sum_rightmost<N>(base_dist.entropy()); }

  constexpr auto sample() const { return base_dist.sample(); }
  template <std::size_t S>
  constexpr auto sample(const Size (&sizes)[S]) const {
    return base_dist.sample(sizes);
  }
  constexpr auto rsample() const
    requires requires(const Base& b) { b.rsample(); }
  {
    return base_dist.rsample();
  }
  template <std::size_t S>
  constexpr auto rsample(const Size (&sizes)[S]) const
    requires requires(const Base& b) { b.rsample(sizes); }
  {
    return base_dist.rsample(sizes);
  }

  template <class T, int V>
  constexpr auto log_prob(const Tensor<T, V>& value) const {
    return sum_rightmost<N>(base_dist.log_prob(value));
  }
};
template <int N, class Base>
constexpr Independent<Base, N> independent(const Base& base) {
  return Independent<Base, N>(base);
}

}  // namespace xla::distributions
