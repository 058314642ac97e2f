// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a custom pass after a named stage, and verifies the result. observe() and register_pass()
// call it, and tags::with names it; users include xla/passes.hpp.

#include <type_traits>

#include "xla/transform/pass_graph.hpp"
#include "xla/transform/passes.hpp"

namespace xla {
namespace detail {

/// The stage of a custom pass: after `after`, if it declares one.
template <class P>
constexpr std::string_view stage_of() {
  if constexpr (requires { P::after; }) return P::after;
  else return "captured";
}

/// Appends why a pass cannot have this name or run after that stage, if it cannot.
[[gnu::cold]] constexpr void refuse_names(std::string_view name, std::string_view after,
                                          text& why) {
  if (name.empty() || is_stage(name) || name == "lowered") {
    why << "a pass is called \"" << name << "\": give it a name of its own";
  } else if (!is_stage(after)) {
    why << "the pass " << name << " runs after \"" << after
        << "\", which is no stage; there are captured";
    for (const pass_label& p : pass_labels)
      if (p.is != pass_label::kind::sized) why << ", " << p.name;
  }
}

/// Why a graph cannot be changed after a stage; empty if it can: up to dead it is nodes alone.
[[gnu::cold]] constexpr text why_no_change(std::string_view after) {
  if (after == "captured") return {};
  for (const pass_label& p : pass_labels) {
    if (p.name == after) return {};
    if (&p == &pass_named("dead")) break;
  }
  return text("the graph cannot be changed after ") << after << ", but up to the stage dead";
}

/// Runs a pass on the graph. Returns the error in a sentence that names the pass, or an empty one.
template <class F>
[[gnu::cold]] constexpr text run_pass(std::string_view name, std::string_view after, F& pass,
                                      pass_state& s) {
  const text why_not = why_no_change(after);
  graph_editor editor(s, name, why_not);
  Graph graph(editor);
  pass(graph);
  return editor.finish();
}

/// A class that tags::with accepts.
template <class P>
concept compiled_pass = requires(P& pass, Graph& g) {
  std::string_view(P::name);
  P{};
  pass(g);
};
/// Runs the pass on a graph that returns its input.
template <class P>
constexpr bool try_pass() {
  graph_storage<8> g;
  slot input;
  int result = g.add_leaf(g.add_slot(input), false, dtype::float32, {});
  pass_state s(g, {&result, 1, nullptr, 0}, false);
  P pass{};
  run_pass(P::name, stage_of<P>(), pass, s);
  return true;
}
template <class P>
concept runs_in_compiler = requires { typename std::bool_constant<try_pass<P>()>; };

template <class P>
inline constexpr text wrong_names = [] {
  text why("xla::tags::with: ");
  const int begin = why.length;
  refuse_names(P::name, stage_of<P>(), why);
  return why.length == begin ? text() : why;
}();

/// Stops the build if a compiled function cannot run P.
template <class P>
struct checked_pass {
  static_assert(compiled_pass<P>,
                "xla::tags::with: a pass is a class with a static constexpr name, a default "
                "constructor, and constexpr void operator()(xla::Graph& graph)");
  static constexpr bool runs = false;
};
template <compiled_pass P>
struct checked_pass<P> : known_pass_or_refusal<wrong_names<P>> {
  static_assert(runs_in_compiler<P>,
                "xla::tags::with: a pass of a compiled function runs in the compiler: its "
                "operator() is constexpr, prints nothing and uses no global variable; what it has "
                "found xla::observe<Pass>(step, arguments...) returns");
  static constexpr bool runs = runs_in_compiler<P> && wrong_names<P>.empty();
};

template <class P>
constexpr void run_compiled_pass(pass_state& s) {
  P pass{};
  s.wrong << run_pass(P::name, stage_of<P>(), pass, s);
}

/// The k-th pass of a stage.
template <class... P>
constexpr std::string_view run_one_of(const added_passes&, std::string_view after, int k,
                                      pass_state& s) {
  std::string_view ran;
  const auto meet = [&]<class One>(std::type_identity<One>) {
    if (stage_of<One>() != after || k-- != 0) return;
    run_compiled_pass<One>(s);
    ran = One::name;
  };
  (meet(std::type_identity<P>()), ...);
  return ran;
}

template <class... P>
inline constexpr std::string_view names_of[] = {P::name...};
template <class... P>
inline constexpr added_passes added_list{&run_one_of<P...>, names_of<P...>, sizeof...(P)};

template <bool Run, class... P>
inline constexpr Passes with_passes{.added = &added_list<P...>};
template <class... P>
inline constexpr Passes with_passes<false, P...>;

}  // namespace detail

namespace tags {

/// Adds passes to a compiled function: xla::compile<xla::tags::with<Census>>(step). See
/// xla/passes.hpp.
template <class... P>
  requires(sizeof...(P) > 0)
inline constexpr Passes with = detail::with_passes<(detail::checked_pass<P>::runs && ...), P...>;

}  // namespace tags
}  // namespace xla
