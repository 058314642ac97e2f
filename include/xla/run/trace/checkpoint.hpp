// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::checkpoint(): recomputes the values of a function instead of saving them for backward. The
// pass transform/recompute.hpp does the same for cheap values automatically.

#include <type_traits>
#include <utility>

#include "xla/run/state/mode.hpp"
#include "xla/run/trace/graph_of.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/run/trace/segment.hpp"

namespace xla {
namespace detail {

/// True for tensors, and for modules, arrays and tuples that contain one.
template <class X>
constexpr bool holds_tensor() {
  bool any = false;
  visit_types<std::remove_cvref_t<X>>([&]<class L>(std::type_identity<L>, const tree_path&) {
    any = any || is_tensor<L> || is_state<L>;
  });
  return any;
}

/// Records f's nodes as a segment; f's results are saved.
template <class R, class F, class... A>
constexpr R capture_segment(F&& f, A&&... a) {
  graph* const g = graph_of(a...);
  if (!g || !g->recording) return std::forward<F>(f)(std::forward<A>(a)...);
  g->open_segment();
  R result = std::forward<F>(f)(std::forward<A>(a)...);
  const int inner = g->segment;
  visit_tree(result,
             [&](auto& leaf, const tree_path&) {
               if constexpr (holds_tensor<decltype(leaf)>()) {
                 node& n = g->nodes[leaf.lift(g)];
                 if (n.segment == inner) n.segment = g->segments[inner - 1].parent;
               }
             },
             {});
  g->close_segment();
  return result;
}

template <class R, class F, class... A>
R run_segment(F&& f, A&&... a) {
  if (!grad_enabled()) return std::forward<F>(f)(std::forward<A>(a)...);
  using In = dependent<R, void>;
  const struct scope {
    void* segment = open_segment<In>();
    ~scope() { close_segment<In>(segment); }
  } recorded;
  return std::forward<F>(f)(std::forward<A>(a)...);
}

}  // namespace detail

/// Calls f(a…), whose inner values are not saved for backward, but computed again when backward
/// needs them: less memory for one more forward pass of f. f is a module or a function of tensors,
/// modules and other arguments; gradients flow to tensors and to the parameters that it uses.
/// Random numbers are the same the second time, and f's writes (running statistics) happen once, so
/// that all numbers are those of f(a…), in every mode. May be nested. Chen et al. (2016).
template <class F, class... A>
constexpr auto checkpoint(F&& f, A&&... a) {
  static_assert(std::is_invocable_v<F, A...>,
                "xla::checkpoint: the function cannot be called with these arguments");
  static_assert((false || ... || detail::holds_tensor<A>()),
                "xla::checkpoint: pass the tensors that the function starts from as arguments");
  using R = typename detail::result_of<std::remove_cvref_t<std::invoke_result_t<F, A...>>>::type;
  static_assert(!std::is_void_v<R>,
                "xla::checkpoint: the function returns nothing; it has to return what is used of "
                "it, a tensor or a tuple of tensors");
  if (!__builtin_is_constant_evaluated())
    return detail::run_segment<R>(std::forward<F>(f), std::forward<A>(a)...);
  return detail::capture_segment<R>(std::forward<F>(f), std::forward<A>(a)...);
}

}  // namespace xla
