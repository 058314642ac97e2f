// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps and checks the trees of tensors that loops carry, slice and return: tensors, tuples and
// arrays of them; carries also structs with XLA_MODULE. It moves no elements; the visitors of
// models and arguments are in tensor/.

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/base/refuse.hpp"
#include "xla/graph/loops.hpp"
#include "xla/module.hpp"

namespace xla::detail {

template <class X, class F>
constexpr auto map_tree(const X& x, const F& f);

/// From the first on, one by one: in argument lists g++ evaluates the last first, and g++ 12 loses
/// constants.
template <class X, class F, std::size_t... I>
constexpr auto map_elements(const X& x, const F& f, std::index_sequence<I...>) {
  using all = std::tuple<decltype(map_tree(std::get<I>(x), f))...>;
  if constexpr (is_array<X> && sizeof...(I) > 0) {
    std::array<std::tuple_element_t<0, all>, sizeof...(I)> out;
    ((out[I] = map_tree(x[I], f)), ...);
    return out;
  } else {
    all out;
    ((std::get<I>(out) = map_tree(std::get<I>(x), f)), ...);
    return out;
  }
}

/// The type of a tree after f has mapped its tensors: f(Tensor) for each.
template <class X, class F>
constexpr auto map_tree(const X& x, const F& f) {
  if constexpr (is_part<X>) {
    return f(typename result_of<X>::type(x));
  } else if constexpr (is_state<X>) {
    return f(static_cast<const Tensor<typename X::value_type, X::rank>&>(x));
  } else if constexpr (is_tensor<X>) {
    return f(x);
  } else {
    static_assert(is_tuple<X> || is_array<X>,
                  "xla: arguments and results of the body of a loop, or of a branch of cond(), "
                  "must be tensors, or tuples or arrays of them");
    return map_elements(x, f, std::make_index_sequence<std::tuple_size_v<X>>{});
  }
}

template <class X>
inline constexpr bool is_tree = is_part<X> || is_state<X> || is_tensor<X>;
template <class X, std::size_t N>
inline constexpr bool is_tree<std::array<X, N>> = is_tree<X>;
template <class... X>
inline constexpr bool is_tree<std::tuple<X...>> = (is_tree<X> && ...);
template <class A, class B>
inline constexpr bool is_tree<std::pair<A, B>> = is_tree<A> && is_tree<B>;

/// The type of a carry inside steps: for a parameter its value's.
template <class X>
struct carried_as {
  using type = typename result_of<X>::type;
};
template <class X>
  requires is_state<X>
struct carried_as<X> {
  using type = Tensor<typename X::value_type, X::rank>;
};
template <class X, std::size_t N>
struct carried_as<std::array<X, N>> {
  using type = std::array<typename carried_as<X>::type, N>;
};
template <class... X>
struct carried_as<std::tuple<X...>> {
  using type = std::tuple<typename carried_as<X>::type...>;
};
template <class A, class B>
struct carried_as<std::pair<A, B>> {
  using type = std::pair<typename carried_as<A>::type, typename carried_as<B>::type>;
};

/// Whether every leaf is a tensor.
template <class X>
constexpr bool of_tensors() {
  bool all = true;
  visit_types<X>([&]<class L>(std::type_identity<L>, const tree_path&) { all &= is_tensor<L>; });
  return all;
}
/// The number of tensors.
template <class X>
constexpr int tensors_in() {
  int n = 0;
  visit_types<X>([&]<class L>(std::type_identity<L>, const tree_path&) { ++n; });
  return n;
}
/// Calls f(tensor) for each.
template <class X, class F>
constexpr void each_tensor(X& x, F f) {
  visit_tree(x,
             [&](auto& leaf, const tree_path&) {
               if constexpr (is_tensor<std::remove_cvref_t<decltype(leaf)>>) f(leaf);
             },
             {});
}

/// An error sentence about a call of a loop function, as a constant.
template <loop_function F, const auto& Words>
inline constexpr text sentence_about = text("xla::") << name_of(F) << ": " << Words;

/// Stops the build with it. The result type is deduced, so that this sentence precedes the errors
/// that follow from the mistake.
template <class Refused>
constexpr auto stop_first() {
  [[maybe_unused]] Refused refused;
  return false;
}
template <loop_function F, const auto& Words>
constexpr auto refuse_call() {
  return stop_first<refusal_of<sentence_about<F, Words>>>();
}

inline constexpr text is_no_tree{
    "arguments and results must be tensors, or tuples or arrays of them"};
/// Refuses an argument that is no tree of tensors; F is the called function.
template <loop_function F, class X>
constexpr auto require_tree() {
  if constexpr (!is_tree<X>) refuse_call<F, is_no_tree>();
  return std::bool_constant<is_tree<X>>();
}

template <class T, int R>
constexpr Tensor<T, R> named(graph* g, int node) {
  Tensor<T, R> t;
  t.name_node(g, node);
  return t;
}

}  // namespace xla::detail
