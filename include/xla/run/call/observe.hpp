// SPDX-License-Identifier: Apache-2.0
#pragma once

// observe(): lets a pass of your own inspect the graph of a compiled function, in the compiler.
// xla/passes.hpp includes it; nothing is run.

#include "xla/compile.hpp"
#include "xla/transform/user_pass.hpp"

namespace xla {
namespace detail {

/// The passes that a function names, and one more after those of its stage, which is returned.
template <class P>
struct observing_passes : added_passes {
  P& pass;
  bool& done;
  const added_passes* named;

  constexpr observing_passes(P& p, bool& d, const added_passes* before)
      : added_passes{&run_one}, pass(p), done(d), named(before) {}

 private:
  static constexpr std::string_view run_one(const added_passes& self, std::string_view after, int k,
                                            pass_state& s) {
    const auto& all = static_cast<const observing_passes&>(self);
    if (all.named)
      if (const auto ran = all.named->run(*all.named, after, k, s); !ran.empty()) return ran;
    if (all.done || stage_of<P>() != after) return {};
    all.done = true;
    s.wrong << run_pass(P::name, after, all.pass, s);
    return P::name;
  }
};

/// A pass after it has visited the graph of F for arguments of these types; or the error.
template <class P>
struct seen_by {
  P pass{};
  text why{};
};
template <int Capacity, class P, class F, class... A>
constexpr seen_by<P> observed() {
  graph_storage<Capacity> g;
  int results[Capacity] = {};
  write writes[Capacity + 16] = {};
  double facts[Capacity] = {};
  std::int8_t flags[Capacity] = {};
  capture_body<F, A...> body(g, results, writes, facts, flags, Capacity);
  body.run();
  pass_state s(g, {results, body.result_count, writes, body.write_count}, true);
  seen_by<P> seen;
  bool done = false;
  const observing_passes<P> with(seen.pass, done, passes_of<F>.added);
  Passes all = passes_of<F>;
  all.added = &with;
  run_passes(s, all);
  seen.why = s.wrong;
  return seen;
}

template <class P, class F, class... A>
struct observation {
  static constexpr seen_by<P> seen = observed<static_program<F, A...>::capacity, P, F, A...>();
  static constexpr text why = seen.why;
};

template <class P, class F, class... A>
P observe() {
  if constexpr (!static_program<F, A...>::why.empty()) {
    refuse<static_program<F, A...>::why>();
  } else if constexpr (!observation<P, F, A...>::why.empty()) {
    refuse<observation<P, F, A...>::why>();
  } else {
    return observation<P, F, A...>::seen.pass;
  }
  return P{};
}

}  // namespace detail

/// Runs P{} in the compiler on the graph of a compiled function for arguments of these types, after
/// the passes that the function names, and returns that object. Runs no step; changes by the pass
/// are dropped.
///
///     std::cout << xla::observe<Census>(step, model, x).count("matmul");
template <class P, class F, class... A>
P observe(const Compiled<F>&, A&&...) {
  if constexpr (detail::checked_pass<P>::runs)
    return detail::observe<P, F, detail::argument_of<A&&>...>();
}
template <class P, class M, class Call, class... A>
P observe(const CompiledModule<M, Call>&, A&&...) {
  if constexpr (detail::checked_pass<P>::runs)
    return detail::observe<P, Call, M&, detail::argument_of<A&&>...>();
}

}  // namespace xla
