// SPDX-License-Identifier: Apache-2.0
#pragma once

// Categorical, by the names of torch.distributions. It draws indices; there is no
// OneHotCategorical.

#include "xla/distributions/parameter.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/multinomial.hpp"

namespace xla::distributions {

struct categorical_probs {
  static constexpr auto name = "distributions::Categorical: the probability";
  static constexpr auto words = "has to be at least 0 and finite";
  static constexpr auto sentence = name;
};
struct categorical_sum {
  static constexpr auto name = "distributions::Categorical: the sum of probabilities";
  static constexpr auto words = "has to be above 0 and finite";
};

/// A distribution over the indices 0 … n - 1 of the last axis, by their weights:
/// Categorical(weights), which need not sum to 1, or Categorical(logits(x)). Weights that are
/// negative or sum to 0 are an xla::error, unless validate_args is false.
template <class T, int Rank>
class Categorical {
 public:
  static_assert(Rank >= 1, "xla::distributions::Categorical: needs an axis of probabilities");
  static_assert(floating_type<T>,
                "xla::distributions::Categorical: needs float or double; cast first");
  using value_type = std::int64_t;
  static constexpr int batch_rank = Rank - 1, event_rank = 0;

  template <tensor_parameter P>
  constexpr explicit Categorical(const P& p, bool validate_args = true, caller at = here()) {
    const auto weights = checked<categorical_probs, T>(p, 0, unbounded, validate_args, at);
    Tensor<T, Rank> total = sum(weights, {-1}, keepdim);
    if (validate_args) total = check_between<categorical_sum>(total, above_zero, unbounded, at);
    given_ = weights / total;
  }
  constexpr explicit Categorical(const probs_parameter<T, Rank>& p, bool validate_args = true,
                                 caller at = here())
      : Categorical(p.value, validate_args, at) {}
  constexpr explicit Categorical(const logits_parameter<T, Rank>& l)
      : given_(l.value), are_logits_(true) {}
  /// Stops the build, because a distribution has one parameter.
  template <labelled_parameter A, labelled_parameter B>
  constexpr Categorical(const A&, const B&) {
    static_assert(tensor_parameter<A>,
                  "xla::distributions::Categorical: takes probs or logits, not both");
  }

  /// The probability of each index.
  constexpr Tensor<T, Rank> probs() const {
    if (are_logits_) return softmax(given_, -1);
    return given_;
  }
  /// The logarithms of the probabilities.
  constexpr Tensor<T, Rank> logits() const {
    if (are_logits_) return log_softmax(given_, -1);
    return log(clamp_probs(given_));
  }
  constexpr Size num_events() const { return given_.size(-1); }

  /// Indices have no mean: NaN, as in PyTorch.
  constexpr Tensor<T, batch_rank> mean() const {
    return full_like(max(given_.detach(), last), std::numeric_limits<T>::quiet_NaN());
  }
  constexpr Tensor<T, batch_rank> variance() const { return mean(); }
  constexpr Tensor<T, batch_rank> stddev() const { return mean(); }
  constexpr Tensor<std::int64_t, batch_rank> mode() const { return argmax(given_, -1); }
  constexpr Tensor<T, batch_rank> entropy() const {
    const auto finite = maximum(logits(), std::numeric_limits<T>::lowest());
    return -sum(probs() * finite, last);
  }

  constexpr Tensor<std::int64_t, batch_rank> sample() const { return draw(probs()); }
  template <std::size_t N>
  constexpr Tensor<std::int64_t, batch_rank + static_cast<int>(N)> sample(
      const Size (&sizes)[N]) const {
    return draw(with_leading(sizes, probs().detach()));
  }

  /// The value holds indices, which broadcast against the distribution. An index out of range is an
  /// index_error.
  template <int V>
  constexpr auto log_prob(const Tensor<std::int64_t, V>& value) const {
    constexpr int rank = 1 + (V > batch_rank ? V : batch_rank);
    return squeeze<-1>(
        take_along_dim(with_rank<rank>(logits()), with_rank<rank>(unsqueeze(value, -1)), -1));
  }

 private:
  static constexpr int last[] = {Rank - 1};
  template <int R>
  static constexpr Tensor<std::int64_t, R - 1> draw(const Tensor<T, R>& p) {
    return squeeze<-1>(multinomial(p, 1, true));
  }

  Tensor<T, Rank> given_;
  bool are_logits_ = false;
};
template <tensor_parameter P, class... More>
Categorical(const P&, More...) -> Categorical<typename P::value_type, P::rank>;
template <class T, int R, class... More>
Categorical(const probs_parameter<T, R>&, More...) -> Categorical<T, R>;
template <class T, int R, class... More>
Categorical(const logits_parameter<T, R>&, More...) -> Categorical<T, R>;

}  // namespace xla::distributions
