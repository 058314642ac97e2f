// SPDX-License-Identifier: Apache-2.0
#pragma once

// Uniform, by the names of torch.distributions: a class of the public API, built on ops alone.

#include "xla/distributions/parameter.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/random.hpp"

namespace xla::distributions {

struct uniform_width {
  static constexpr auto name = "distributions::Uniform: high - low is";
  static constexpr auto words = "and has to be above 0";
};

/// The uniform distribution on [low, high), tensors that broadcast or numbers. A high that is not
/// above low is an xla::error, unless validate_args is false.
template <class T, int Rank>
class Uniform {
 public:
  static_assert(floating_type<T>, "xla::distributions::Uniform: needs float or double; cast first");
  using value_type = T;
  static constexpr int batch_rank = Rank, event_rank = 0;

  Tensor<T, Rank> low, high;

  template <parameter L, parameter H>
  constexpr Uniform(const L& from, const H& to, bool validate_args = true, caller at = here()) {
    const auto both = broadcast_tensors(as_tensor<T>(from), as_tensor<T>(to), at);
    low = both.first;
    high = both.second;
    width_ = high - low;
    if (validate_args) width_ = check_between<uniform_width>(width_, above_zero, unbounded, at);
  }

  constexpr Tensor<T, Rank> mean() const { return (low + high) * 0.5; }
  /// No value is more likely than the others: NaN, as in PyTorch.
  constexpr Tensor<T, Rank> mode() const {
    return full_like(low, std::numeric_limits<T>::quiet_NaN());
  }
  constexpr Tensor<T, Rank> stddev() const { return width_ * 0.28867513459481287; }  // 12^-0.5
  constexpr Tensor<T, Rank> variance() const { return width_ * width_ * (1. / 12); }
  constexpr Tensor<T, Rank> entropy() const { return log(width_); }

  /// Gradients flow through a draw of rsample to low and high, and through none of sample.
  constexpr Tensor<T, Rank> rsample() const { return low + rand_like(low) * width_; }
  template <std::size_t N>
  constexpr Tensor<T, Rank + static_cast<int>(N)> rsample(const Size (&sizes)[N]) const {
    return low + rand_like(with_leading(sizes, low)) * width_;
  }
  constexpr Tensor<T, Rank> sample() const { return rsample().detach(); }
  template <std::size_t N>
  constexpr Tensor<T, Rank + static_cast<int>(N)> sample(const Size (&sizes)[N]) const {
    return rsample(sizes).detach();
  }

  /// -infinity outside [low, high).
  template <int V>
  constexpr auto log_prob(const Tensor<T, V>& value) const {
    const auto inside = value >= low && value < high;
    return where(inside, T(0), -std::numeric_limits<T>::infinity()) - log(width_);
  }
  template <int V>
  constexpr auto cdf(const Tensor<T, V>& value) const {
    return clamp((value - low) / width_, 0, 1);
  }
  template <int V>
  constexpr auto icdf(const Tensor<T, V>& value) const {
    return value * width_ + low;
  }

 private:
  Tensor<T, Rank> width_;
};
template <parameter L, parameter H, class... More>
Uniform(const L&, const H&, More...) -> Uniform<element_of<L, H>, rank_of<L, H>>;

}  // namespace xla::distributions
