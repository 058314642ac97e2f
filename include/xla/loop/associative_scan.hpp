// SPDX-License-Identifier: Apache-2.0
#pragma once

// associative_scan(): the running results of an operation over elements, called as
// jax.lax.associative_scan. It combines them in order, through scan(); it builds no tree.

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/scan.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/permute.hpp"

namespace xla {

/// Options of xla::associative_scan.
struct AssociativeScanOptions {
  int axis = 0;  ///< the axis of the elements
  bool reverse =
      false;  ///< from the last element to the first; results stay in the order of the elements
};

namespace detail {

/// Combines two trees of the same structure leaf by leaf: f(a, b).
template <class X, class F>
constexpr auto join_trees(const X& a, const X& b, const F& f);
template <class X, class F, std::size_t... I>
constexpr X join_elements(const X& a, const X& b, const F& f, std::index_sequence<I...>) {
  X out;  // one by one, as g++ 12 would lose constants
  ((std::get<I>(out) = join_trees(std::get<I>(a), std::get<I>(b), f)), ...);
  return out;
}
template <class X, class F>
constexpr auto join_trees(const X& a, const X& b, const F& f) {
  if constexpr (is_tensor<X>) return f(a, b);
  else return join_elements(a, b, f, std::make_index_sequence<std::tuple_size_v<X>>{});
}

/// The number of elements, taken from the first tensor.
template <class X>
constexpr Size elements_of(const X& all, call_site site) {
  Size n = -1;
  map_tree(all, [&](const auto& t) {
    n = t.size(0);
    return t;
  });
  if (n.known() && n.extent() == 0)
    size_scope{n.table(), site}.fail("there are no elements: a scan needs at least one");
  return n;
}

}  // namespace detail

/// The running results of combine(previous result, element) along an axis, beginning with the first
/// element, like itertools.accumulate. combine(a, b) takes two elements, trees of tensors without
/// that axis, and returns one like them; the results are stacked along the axis. It should be
/// associative: the steps run one after the other, so that XLA or another library, which groups
/// them differently, gives the same up to rounding. At least one element is needed. Gradients pass
/// as through scan().
///
///     const auto [a, h] = xla::associative_scan(  // h = a h + x, for all times
///         [](const auto& l, const auto& r) {
///           return std::tuple(std::get<0>(l) * std::get<0>(r),
///                             std::get<0>(r) * std::get<1>(l) + std::get<1>(r));
///         },
///         std::tuple(factors, xs));
template <class Combine, class X>
constexpr auto associative_scan(const Combine& combine, const X& elements,
                                AssociativeScanOptions options = {}, caller loc = here()) {
  constexpr auto function = detail::loop_function::associative_scan;
  const detail::call_site site = detail::loop_call{function, loc}.site();
  detail::require_tree<function, X>();
  const auto all = detail::map_tree(elements, [&](const auto& t) {
    return options.axis == 0 ? t : movedim(t, options.axis, 0, loc);
  });
  const Size n = detail::elements_of(all, site);
  const auto first = detail::map_tree(
      all, [&](const auto& t) { return select(t, 0, options.reverse ? n - 1 : Size(0), loc); });
  const auto rest = detail::map_tree(all, [&](const auto& t) {
    return slice(t, 0, options.reverse ? Size(0) : Size(1), options.reverse ? n - 1 : n, 1, loc);
  });
  using Element = std::remove_const_t<decltype(first)>;
  const auto step = [&](const Element& before, const Element& x) {
    using Next = decltype(combine(before, x));
    static_assert(std::is_convertible_v<Next, Element>,
                  "xla::associative_scan: combine must return an element of the type that it is "
                  "given: the same tensors, of the same ranks and element types");
    const Element next = combine(before, x);
    return std::pair(next, next);
  };
  const auto others =
      detail::scan_as<function>(step, first, rest, {.reverse = options.reverse}, loc).second;
  const auto one = detail::map_tree(first, [](const auto& t) { return unsqueeze(t, 0); });
  return detail::join_trees(one, others, [&](const auto& a, const auto& b) {
    const auto joined = options.reverse ? concat({b, a}, 0, loc) : concat({a, b}, 0, loc);
    return options.axis == 0 ? joined : movedim(joined, 0, options.axis, loc);
  });
}

}  // namespace xla
