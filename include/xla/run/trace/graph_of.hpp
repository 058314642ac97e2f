// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the graph that arguments belong to while a step is captured. Functions that take a body,
// such as autocast() and loops, ask it; at run time there is none.

#include "xla/module.hpp"

namespace xla::detail {

/// The graph of some arguments while a step is captured; nullptr if all are constants, or contain
/// no tensor.
template <class... X>
constexpr graph* graph_of(const X&... x) {
  graph* g = nullptr;
  const auto find = [&g](auto& leaf, const auto&) {
    if constexpr (requires { leaf.owner(); }) g = g ? g : leaf.owner();
  };
  const auto look = [&]<class A>(A& a) {
    if constexpr (fits<A>) visit_tree(a, find, {});
  };
  (look(const_cast<X&>(x)), ...);
  return g;
}

}  // namespace xla::detail
