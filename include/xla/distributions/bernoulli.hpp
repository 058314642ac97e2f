// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bernoulli, by the names of torch.distributions: a class of the public API, built on ops alone.

#include "xla/distributions/parameter.hpp"
#include "xla/op/derived/probability_loss.hpp"
#include "xla/op/integers.hpp"
#include "xla/op/sigmoid.hpp"

namespace xla::distributions {

struct bernoulli_probs {
  static constexpr auto name = "distributions::Bernoulli: the probability";
  static constexpr auto words = "has to be from 0 to 1";
  static constexpr auto sentence = "distributions::Bernoulli: a probability is from 0 to 1";
};

/// 1 with a probability, else 0: Bernoulli(p), or Bernoulli(logits(x)). A probability outside [0,
/// 1] is an xla::error, unless validate_args is false.
template <class T, int Rank>
class Bernoulli {
 public:
  static_assert(floating_type<T>,
                "xla::distributions::Bernoulli: needs float or double; cast first");
  using value_type = T;
  static constexpr int batch_rank = Rank, event_rank = 0;

  template <parameter P>
  constexpr explicit Bernoulli(const P& p, bool validate_args = true, caller at = here())
      : given_(checked<bernoulli_probs, T>(p, 0, 1, validate_args, at)) {}
  constexpr explicit Bernoulli(const probs_parameter<T, Rank>& p, bool validate_args = true,
                               caller at = here())
      : Bernoulli(p.value, validate_args, at) {}
  constexpr explicit Bernoulli(const logits_parameter<T, Rank>& l)
      : given_(l.value), are_logits_(true) {}
  /// Stops the build, because a distribution has one parameter.
  template <labelled_parameter A, labelled_parameter B>
  constexpr Bernoulli(const A&, const B&) {
    static_assert(tensor_parameter<A>,
                  "xla::distributions::Bernoulli: takes probs or logits, not both");
  }

  constexpr Tensor<T, Rank> probs() const {
    if (are_logits_) return sigmoid(given_);
    return given_;
  }
  constexpr Tensor<T, Rank> logits() const {
    if (are_logits_) return given_;
    const auto p = clamp_probs(given_);
    const auto yes = log(p);
    return yes - log1p(-p);
  }

  constexpr Tensor<T, Rank> mean() const { return probs(); }
  /// The likelier value; NaN if both are equally likely, as in PyTorch.
  constexpr Tensor<T, Rank> mode() const {
    const auto p = probs();
    return where(p == 0.5, std::numeric_limits<T>::quiet_NaN(), cast<T>(p > 0.5));
  }
  constexpr Tensor<T, Rank> variance() const {
    const auto p = probs();
    return p * (1 - p);
  }
  constexpr Tensor<T, Rank> stddev() const { return sqrt(variance()); }
  constexpr Tensor<T, Rank> entropy() const {
    const auto l = logits();
    return binary_cross_entropy_with_logits(l, probs(), reduction::none);
  }

  constexpr Tensor<T, Rank> sample() const { return bernoulli(probs().detach()); }
  template <std::size_t N>
  constexpr Tensor<T, Rank + static_cast<int>(N)> sample(const Size (&sizes)[N]) const {
    return bernoulli(with_leading(sizes, probs().detach()));
  }

  template <int V>
  constexpr auto log_prob(const Tensor<T, V>& value) const {
    const auto both = broadcast_tensors(logits(), value);
    return -binary_cross_entropy_with_logits(both.first, both.second, reduction::none);
  }

 private:
  Tensor<T, Rank> given_;
  bool are_logits_ = false;
};
template <parameter P, class... More>
Bernoulli(const P&, More...) -> Bernoulli<element_of<P, P>, parameter_facts<P>::rank>;
template <class T, int R, class... More>
Bernoulli(const probs_parameter<T, R>&, More...) -> Bernoulli<T, R>;
template <class T, int R, class... More>
Bernoulli(const logits_parameter<T, R>&, More...) -> Bernoulli<T, R>;

}  // namespace xla::distributions
