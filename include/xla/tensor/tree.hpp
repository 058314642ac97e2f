// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes the members of structs, and visits the leaves of nested tuples, arrays and modules by
// type, without an object. visit.hpp visits the leaves of objects.

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "xla/base/hana.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/text.hpp"
#include "xla/tensor/scalar.hpp"
#include "xla/tensor/state.hpp"
#include "xla/tensor/training.hpp"

namespace xla {
namespace detail {

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
  return hana::unpack(base, [&](auto... m) { return hana::make_basic_tuple(m..., more...); });
}

/// A member of a member.
template <class Outer, class Inner>
struct member_within {
  Outer outer;
  Inner inner;
  constexpr auto& operator()(auto& x) const { return inner(outer(x)); }
};
/// The members of an inner layer as those of the struct that has it, one of them by another name,
/// then more.
template <class Layer, class Get, class... M>
constexpr auto renamed_members(Get layer, std::string_view from, const char* to, M... more) {
  return hana::unpack(Layer::xla_members(), [&](auto... m) {
    return hana::make_basic_tuple(make_member(m.name == from ? to : m.name,
                                              member_within<Get, decltype(m.get)>{layer, m.get})...,
                                  more...);
  });
}

template <class X>
concept described = requires { std::remove_cvref_t<X>::xla_members(); };

/// A second name that files have for a parameter; see XLA_TIED.
struct tied_name {
  const char *alias, *name;
};

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

/// The type of a result for the caller: a part selected by an index becomes a tensor.
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

/// The leaves of an argument.
template <class X>
concept tree_leaf = is_tensor<X> || is_state<X> || std::is_same_v<X, Scalar> ||
                    std::is_same_v<X, TrainingFlag> || std::is_arithmetic_v<X> || std::is_enum_v<X>;

/// An argument that refers to a model: a training step is captured with the symbolic model in its
/// place.
template <class X>
concept optimizer_like = requires { typename std::remove_cvref_t<X>::model_type; };

}  // namespace detail

/// The path from an argument to a member, as a list from the inside out: each member has a name or,
/// if that is null, an index. The name "" adds nothing, so that the only member of a container has
/// the container's name.
struct tree_path {
  const tree_path* parent = nullptr;
  std::int64_t index;  // between the others, because g++ joins neighbouring stores by slow shuffles
  const char* name = "";

  constexpr tree_path() {}
  constexpr tree_path(const tree_path* p, const char* n) : parent(p), name(n) {}
  constexpr tree_path(const tree_path* p, std::int64_t i) : parent(p), index(i), name(nullptr) {}

  /// Writes the path from an object.
  constexpr void write(detail::text& to) const {
    if (parent) parent->write(to);
    if (name && !*name) return;
    if (!to.empty()) to << '.';
    if (name) to << name;
    else to << index;
  }
  constexpr detail::text written() const {
    detail::text way;
    write(way);
    return way;
  }
  template <class = void>
  [[gnu::cold]] std::string str() const {
    const std::string here = name ? name : detail::decimal(index);
    if (!parent) return name ? here : detail::join({"argument ", here});
    const std::string s = parent->str();
    return here.empty() ? s : detail::join({s, s.empty() ? "" : ".", here});
  }
};

XLA_INSTANCE(std::string tree_path::str<void>() const);

/// The path to the i-th tensor that an optimizer keeps for a parameter, the owner. It has the
/// owner's sizes, except 1 along the axes for which one_along(axis, rank, i) holds.
struct state_path : tree_path {
  using axis_test = bool (*)(int axis, int rank, int i);
  const detail::handle* owner;
  axis_test one_along;
  constexpr state_path(const tree_path& parameter, const detail::handle& o, std::int64_t i,
                       axis_test one = nullptr)
      : tree_path(&parameter, i), owner(&o), one_along(one) {}
};

namespace detail {

struct array_member {
  std::size_t i;
  constexpr auto& operator()(auto& x) const { return x[i]; }
};
template <std::size_t I>
struct tuple_member {
  constexpr auto& operator()(auto& x) const { return std::get<I>(x); }
};

/// Calls f(get, name) for the members that a U describes. The list is a constant: the compiler
/// visits each block of a model many times, and making the list would cost more than f.
template <class U>
inline constexpr auto each_member_of = hana::unpack(
    U::xla_members(), [](auto... m) { return [m...](const auto& f) { (f(m.get, m.name), ...); }; });

/// Calls f(get, called) for the parts of a U in order: get(u) is the member, called is its name or
/// else its index. Every traversal of the members of arguments and models uses this function.
template <class U, class F>
constexpr void for_each_member(const F& f) {
  if constexpr (is_array<U>) {
    for (std::size_t i = 0; i < std::tuple_size_v<U>; ++i)
      f(array_member{i}, static_cast<std::int64_t>(i));
  } else if constexpr (is_tuple<U>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(tuple_member<I>{}, static_cast<std::int64_t>(I)), ...);
    }(std::make_index_sequence<std::tuple_size_v<U>>{});
  } else if constexpr (described<U>) {
    each_member_of<U>(f);
  }
}

/// The type of the member of a U that Get returns.
template <class U, class Get>
using member_type = std::remove_cvref_t<std::invoke_result_t<const Get&, U&>>;

/// Calls f(std::type_identity<Leaf>, path) for the leaves of a type, without making one.
template <class U, class F>
constexpr void visit_types(const F& f, const tree_path& path = {}) {
  if constexpr (tree_leaf<U>) {
    f(std::type_identity<U>{}, path);
  } else if constexpr (!optimizer_like<U>) {
    for_each_member<U>([&]<class Get>(const Get&, const auto& called) {
      visit_types<member_type<U, Get>>(f, tree_path(&path, called));
    });
  }
}

/// Calls f(tied_name, path) for the second names that the structs of a type declare; path leads to
/// the struct.
template <class U, class F>
constexpr void visit_ties(const F& f, const tree_path& path = {}) {
  if constexpr (!tree_leaf<U> && !optimizer_like<U>) {
    if constexpr (requires { U::xla_tied_names(); })
      for (const tied_name& t : U::xla_tied_names()) f(t, path);
    for_each_member<U>([&]<class Get>(const Get&, const auto& called) {
      visit_ties<member_type<U, Get>>(f, tree_path(&path, called));
    });
  }
}

}  // namespace detail
}  // namespace xla
