// SPDX-License-Identifier: Apache-2.0
#pragma once

// Visits the leaves of arguments and models as objects, in one fixed order. Compilation, calls,
// files and error sentences all rely on that order. tree.hpp does the same for types.

#include <type_traits>

#include "xla/tensor/argument_mismatch.hpp"
#include "xla/tensor/leaves.hpp"

namespace xla::detail {

/// Y, const where X is.
template <class X, class Y>
using same_const = std::conditional_t<std::is_const_v<X>, const Y, Y>;

/// Whether a struct has so many leaves that virtual calls are worth it: less is compiled and stored
/// for one function that all visitors share than for a function for each.
template <class U>
concept large_struct = described<U> && leaves_of<U>.count > 8 && !leaves_of<U>.others;

/// Calls f(leaf, path) for every leaf of x in the order of the described members; for an optimizer
/// the tensors that it keeps for its model, then its hyper-parameters, then those of its groups.
/// Compilation, calls, files and sentences all use this order.
template <class X, class F>
constexpr void visit_tree(X& x, F&& f, const tree_path& path) {
  using U = std::remove_cv_t<X>;
  if constexpr (tree_leaf<U>) {
    f(x, path);
  } else if constexpr (is_part<U>) {
    f(static_cast<same_const<X, typename result_of<U>::type>&>(x), path);
  } else if constexpr (optimizer_like<U>) {
    x.visit_state(f, path);
    visit_tree(x.options, f, tree_path(&path, "options"));
    if constexpr (requires { x.group_options; })
      visit_tree(x.group_options, f, tree_path(&path, "group_options"));
  } else if constexpr (fits<U> && large_struct<U>) {
    typed_leaves<X, std::remove_reference_t<F>> leaves(f);
    show_leaves(x, leaves, path);
  } else if constexpr (fits<U>) {
    for_each_member<U>([&](const auto& get, const auto& called) {
      visit_tree(get(x), f, tree_path(&path, called));
    });
  } else {
    check_fit<U>();
  }
}

/// Passes leaves to a visitor in the order of visit_tree(), in constant evaluation or at run time.
/// A visitor has tensor(t, path); cell(s, path) for a parameter or buffer; kept(s, owner, path) for
/// a tensor that an optimizer keeps for a parameter; scalar(s, path) for an xla::Scalar: each of
/// these has a slot; flag(f, path) for a TrainingFlag; fact(value, path) for a plain number, which
/// the type fixes.
template <class Visitor>
struct argument_dispatch {
  Visitor& to;

  template <class Leaf, class Path>
  constexpr void operator()(Leaf& leaf, const Path& path) const {
    using U = std::remove_cv_t<Leaf>;
    if constexpr (std::is_same_v<Path, state_path>) to.kept(leaf, *path.owner, path);
    else if constexpr (is_state<U>) to.cell(leaf, path);
    else if constexpr (is_tensor<U>) to.tensor(leaf, path);
    else if constexpr (std::is_same_v<U, Scalar>) to.scalar(leaf, path);
    else if constexpr (std::is_same_v<U, TrainingFlag>) to.flag(leaf, path);
    else to.fact(static_cast<double>(leaf), path);
  }
};

/// Passes the leaves of a call's arguments to a visitor, optimizers last, when their models are
/// known.
template <class Visitor, class... X>
constexpr void visit_arguments(Visitor& to, X&... x) {
  const argument_dispatch<Visitor> dispatch{to};
  std::int64_t i = 0, k = 0;
  ((optimizer_like<X> ? void() : visit_tree(x, dispatch, tree_path(nullptr, i)), ++i), ...);
  ((optimizer_like<X> ? visit_tree(x, dispatch, tree_path(nullptr, k)) : void(), ++k), ...);
}

}  // namespace xla::detail
