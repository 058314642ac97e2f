// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixtureSameFamily, by the names of torch.distributions: weights by a Categorical, components by
// any other distribution of this folder.

#include "xla/distributions/categorical.hpp"
#include "xla/op/derived/norm.hpp"

namespace xla::distributions {

/// A mixture of distributions of one kind. The component's last batch axis counts them, and a
/// Categorical gives their weights: MixtureSameFamily{Categorical(weights), Normal(means, scales)}.
template <class Mixture, class Component>
class MixtureSameFamily {
 public:
  using value_type = typename Component::value_type;
  static constexpr int event_rank = Component::event_rank;
  static constexpr int batch_rank = Component::batch_rank - 1;
  static_assert(Component::batch_rank >= 1 && Mixture::batch_rank <= batch_rank,
                "xla::distributions::MixtureSameFamily: the components' last axis counts them, and "
                "the mixture has no more axes than the components");

  Mixture mixture_distribution;
  Component component_distribution;

  constexpr MixtureSameFamily(const Mixture& mixture, const Component& component)
      : mixture_distribution(mixture), component_distribution(component) {}

  constexpr auto mean() const { return average(component_distribution.mean()); }
  constexpr auto variance() const {
    const auto means = component_distribution.mean();
    const auto difference = means - unsqueeze(average(means), axis);
    const auto squares = difference * difference;
    return average(component_distribution.variance() + squares);
  }
  constexpr auto stddev() const { return sqrt(variance()); }

  constexpr auto sample() const {
    const auto which = mixture_distribution.sample();
    return choose(component_distribution.sample(), which);
  }
  template <std::size_t N>
  constexpr auto sample(const Size (&sizes)[N]) const {
    const auto which = mixture_distribution.sample(sizes);
    return choose(component_distribution.sample(sizes), which);
  }

  template <class T, int V>
  constexpr auto log_prob(const Tensor<T, V>& value) const {
    static_assert(V >= event_rank, "xla::distributions::MixtureSameFamily: the value lacks axes");
    const auto each = component_distribution.log_prob(unsqueeze(value, axis));
    return logsumexp(each + mixture_distribution.logits(), {-1});
  }
  template <class T, int V>
  constexpr auto cdf(const Tensor<T, V>& value) const
    requires(event_rank == 0)
  {
    const auto each = component_distribution.cdf(unsqueeze(value, -1));
    return average(each);
  }

 private:
  static constexpr int axis = -1 - event_rank;  // of the components

  template <class T, int R>
  constexpr Tensor<T, R - 1> average(const Tensor<T, R>& each) const {
    return sum(each * with_trailing<event_rank>(mixture_distribution.probs()), {axis});
  }
  template <class T, int R, int I>
  static constexpr Tensor<T, R - 1> choose(const Tensor<T, R>& each,
                                           const Tensor<std::int64_t, I>& which) {
    const auto index = with_rank<R>(with_trailing<event_rank + 1>(which));
    return squeeze<axis>(take_along_dim(each, index, axis)).detach();
  }
};
template <class Mixture, class Component>
MixtureSameFamily(const Mixture&, const Component&) -> MixtureSameFamily<Mixture, Component>;

}  // namespace xla::distributions
