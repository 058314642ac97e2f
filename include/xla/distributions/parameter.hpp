// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parameters that a distribution accepts, and the checks of their values. The distributions
// include it.

#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

#include "xla/op/check_between.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/broadcast.hpp"
#include "xla/op/reduce.hpp"

/// What a distribution is made of: tensors that broadcast, or numbers.
namespace xla::distributions {

template <class X>
concept tensor_parameter = requires(const X& x) {
  typename X::value_type;
  { x.detach() } -> std::same_as<Tensor<typename X::value_type, X::rank>>;
};
template <class X>
concept parameter = tensor_parameter<X> || std::convertible_to<X, Scalar>;

/// The element type and rank of a parameter; a number takes the other parameter's type.
template <class X>
struct parameter_facts {
  using value_type = void;
  static constexpr int rank = 0;
};
template <tensor_parameter X>
struct parameter_facts<X> {
  using value_type = typename X::value_type;
  static constexpr int rank = X::rank;
};

/// The element type of two parameters. Two plain numbers are float, as in PyTorch. For two
/// different tensor types it is the first, and as_tensor refuses the other.
template <class A, class B>
struct common_element {
  using a = typename parameter_facts<A>::value_type;
  using b = typename parameter_facts<B>::value_type;
  using one = std::conditional_t<std::is_void_v<a>, b, a>;
  using type = std::conditional_t<std::is_void_v<one>, float, one>;
};
template <class A, class B>
using element_of = typename common_element<A, B>::type;
template <class A, class B>
inline constexpr int rank_of =
    parameter_facts<A>::rank > parameter_facts<B>::rank ? parameter_facts<A>::rank
                                                        : parameter_facts<B>::rank;

template <class T, parameter X>
constexpr auto as_tensor(const X& x) {
  if constexpr (tensor_parameter<X>) {
    constexpr bool same = std::is_same_v<typename X::value_type, T>;
    static_assert(same,
                  "xla::distributions: the element types of the parameters differ; convert "
                  "one: xla::cast<float>(x)");
    if constexpr (same) return Tensor<T, X::rank>(x);
    else return Tensor<T, X::rank>();
  } else {
    return Scalar(x).template as<T>();
  }
}

/// The smallest number above 0.
inline constexpr double above_zero = std::numeric_limits<double>::denorm_min();
inline constexpr double unbounded = std::numeric_limits<double>::max();

/// A parameter as a tensor, with a check that its elements are in [low, high]. A number is checked
/// now, a tensor when it is computed. Without `validate` nothing is checked.
template <class Why, class T, parameter X>
constexpr auto checked(const X& x, double low, double high, bool validate, caller at) {
  const auto t = as_tensor<T>(x);
  if (!validate) return t;
  if constexpr (!tensor_parameter<X>) {
    if (const Scalar number(x); number.known()) {
      if (!(number.value() >= low && number.value() <= high)) refuse_now(t, Why::sentence);
      return t;
    }
  }
  return check_between<Why>(t, low, high, at);
}

/// x with leading axes of these sizes.
template <std::size_t N, class T, int R>
constexpr auto with_leading(const Size (&sizes)[N], const Tensor<T, R>& x) {
  Size all[N + static_cast<std::size_t>(R)];
  for (std::size_t i = 0; i < N; ++i) all[i] = sizes[i];
  for (int i = 0; i < R; ++i) all[N + static_cast<std::size_t>(i)] = x.size(i);
  return expand_as(x, zeros<T>(all));
}

/// x with leading axes of size 1 up to rank Rank.
template <int Rank, class T, int R>
constexpr auto with_rank(const Tensor<T, R>& x) {
  if constexpr (R >= Rank) return x;
  else return with_rank<Rank>(unsqueeze(x, 0));
}
/// x with N trailing axes of size 1.
template <int N, class T, int R>
constexpr auto with_trailing(const Tensor<T, R>& x) {
  if constexpr (N == 0) return x;
  else return with_trailing<N - 1>(unsqueeze(x, -1));
}

/// The sums over the last N axes.
template <int N, class T, int R>
constexpr Tensor<T, R - N> sum_rightmost(const Tensor<T, R>& x) {
  static_assert(N <= R, "xla::distributions: more event axes than the distribution has axes");
  if constexpr (N == 0) {
    return x;
  } else {
    int axes[N];
    for (int i = 0; i < N; ++i) axes[i] = R - N + i;
    return sum(x, axes);
  }
}

/// Marks a distribution's parameter as probabilities or as logits: Categorical(logits(x)).
template <class T, int R>
struct probs_parameter {
  Tensor<T, R> value;
};
template <class T, int R>
struct logits_parameter {
  Tensor<T, R> value;
};
template <class X>
concept labelled_parameter = tensor_parameter<decltype(X::value)>;

template <parameter X>
constexpr auto probs(const X& x) {
  using T = element_of<X, X>;
  return probs_parameter<T, parameter_facts<X>::rank>{as_tensor<T>(x)};
}
template <parameter X>
constexpr auto logits(const X& x) {
  using T = element_of<X, X>;
  return logits_parameter<T, parameter_facts<X>::rank>{as_tensor<T>(x)};
}

/// Probabilities clamped away from 0 and 1 by the type's epsilon, so that their logarithms are
/// finite.
template <class T, int R>
constexpr Tensor<T, R> clamp_probs(const Tensor<T, R>& p) {
  constexpr T eps = std::numeric_limits<T>::epsilon();
  return clamp(p, eps, 1 - eps);
}

}  // namespace xla::distributions
