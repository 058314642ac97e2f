// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes an array of modules by names with suffixes, as PyTorch's recurrent layers have
// "weight_ih_l0". nn/recurrent.hpp alone uses it; other modules use XLA_MODULE.

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "xla/module.hpp"

namespace xla::detail {

/// The names of a struct's members.
template <class X>
constexpr auto member_names() {
  return hana::unpack(X::xla_members(), [](const auto&... m) {
    return std::array<std::string_view, sizeof...(m)>{m.name...};
  });
}

/// The M-th member's name of an Element, followed by the I-th suffix and a terminating 0.
template <class Element, std::size_t M, const auto& Suffixes, std::size_t I>
inline constexpr auto suffixed_name = [] {
  constexpr std::string_view name = member_names<Element>()[M];
  constexpr std::string_view suffix = Suffixes[I];
  std::array<char, name.size() + suffix.size() + 1> both{};
  for (std::size_t k = 0; k < name.size(); ++k) both[k] = name[k];
  for (std::size_t k = 0; k < suffix.size(); ++k) both[name.size() + k] = suffix[k];
  return both;
}();

/// The I-th of an array.
template <std::size_t I>
struct array_element {
  constexpr auto& operator()(auto& x) const { return x[I]; }
};

template <class Element, const auto& Suffixes, std::size_t I, class Get, class... M,
          std::size_t... K>
constexpr auto with_suffix(Get get, std::index_sequence<K...>, M... m) {
  return hana::make_basic_tuple(make_member(suffixed_name<Element, K, Suffixes, I>.data(),
                                            member_within<Get, decltype(m.get)>{get, m.get})...);
}

/// The members of the I-th element and those after it; get: how to reach the array.
template <class Element, const auto& Suffixes, std::size_t I, class Get>
constexpr auto suffixed_members(Get get) {
  const member_within<Get, array_element<I>> element{get, {}};
  const auto own = hana::unpack(Element::xla_members(), [&](const auto&... m) {
    return with_suffix<Element, Suffixes, I>(element, std::index_sequence_for<decltype(m)...>(),
                                             m...);
  });
  if constexpr (I + 1 == Suffixes.size()) {
    return own;
  } else {
    return hana::unpack(suffixed_members<Element, Suffixes, I + 1>(get),
                        [&](auto... more) { return more_members(own, more...); });
  }
}

}  // namespace xla::detail

/// Like XLA_MODULE for a struct with an array of modules, `array`, whose members appear under their
/// names followed by an element's suffix, as PyTorch's recurrent layers have "weight_ih_l0" and
/// "weight_ih_l1". suffixes: a static array of std::string_view, one for each element. Members with
/// names of their own are added by XLA_MEMBER_AS("name", member).
#define XLA_SUFFIXED_MODULE(array, suffixes, ...)                                           \
  static constexpr auto xla_members() {                                                     \
    return ::xla::detail::more_members(                                                     \
        ::xla::detail::suffixed_members<typename decltype(array)::value_type, suffixes, 0>( \
            [](auto& self) -> auto& { return self.array; }) __VA_OPT__(, __VA_ARGS__));     \
  }                                                                                         \
  XLA_DETAIL_TRAINING(constexpr, *this)
