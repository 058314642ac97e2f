// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "xla/base/hana.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/join.hpp"
#include "xla/op/scalar.hpp"
#include "xla/tensor/state.hpp"
#include "xla/tensor/training.hpp"

namespace xla::detail {

/// One described member: its name, and how to reach it.
template <class Get>
struct member {
  const char* name;
  Get get;
};
template <class Get>
constexpr member<Get> make_member(const char* name, Get get) {
  return {name, get};
}

/// The members of a base class, then more.
template <class Base, class... M>
constexpr auto more_members(Base base, M... more) {
  return hana::unpack(base, [&](auto... m) { return hana::make_tuple(m..., more...); });
}

template <class X>
concept described = requires { std::remove_cvref_t<X>::xla_members(); };

template <class X>
inline constexpr bool is_array = false;
template <class X, std::size_t N>
inline constexpr bool is_array<std::array<X, N>> = true;

template <class X>
inline constexpr bool is_tuple = false;
template <class... X>
inline constexpr bool is_tuple<std::tuple<X...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class X>
inline constexpr bool is_part = false;
template <class T, int R, int Rank>
inline constexpr bool is_part<indexed<T, R, Rank>> = true;

/// What a result is to the caller: a part that was chosen by an index becomes a tensor.
template <class X>
struct result_of {
  using type = X;
};
template <class T, int R, int Rank>
struct result_of<indexed<T, R, Rank>> {
  using type = Tensor<T, Rank>;
};
template <class... X>
struct result_of<std::tuple<X...>> {
  using type = std::tuple<typename result_of<X>::type...>;
};
template <class A, class B>
struct result_of<std::pair<A, B>> {
  using type = std::pair<typename result_of<A>::type, typename result_of<B>::type>;
};

template <class X>
concept container = requires(X& x) {
  x.begin();
  x.size();
};

/// What an argument is made of at its ends.
template <class X>
concept tree_leaf = is_tensor<X> || is_state<X> || std::is_same_v<X, Scalar> ||
                    std::is_same_v<X, TrainingFlag> || std::is_arithmetic_v<X> || std::is_enum_v<X>;

/// An argument that refers to a model: a training step is captured with the model's twin in place.
template <class X>
concept optimizer_like = requires { typename std::remove_cvref_t<X>::model_type; };

/// The way from an argument to a member, as a list from the inside out.
struct tree_path {
  const tree_path* parent = nullptr;
  const char* name = nullptr;
  std::int64_t index = -1;

  template <class = void>
  [[gnu::cold]] std::string str() const {
    const std::string number = index < 0 ? std::string() : std::to_string(index);
    if (!parent) return index < 0 ? number : join({"argument ", number});
    const std::string s = parent->str();
    if (!name && index < 0) return s;
    return join({s, s.empty() ? "" : ".", name ? std::string_view(name) : number});
  }
};

XLA_INSTANCE(std::string tree_path::str<void>() const);

}  // namespace xla::detail
