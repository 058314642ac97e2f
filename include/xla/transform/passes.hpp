// SPDX-License-Identifier: Apache-2.0
#pragma once

// The library's passes, in the order of their names (pass_names.hpp). They run in the compiler for
// compiled functions, at run time for recorded graphs; each pass has a header of its own.

#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "xla/transform/dead.hpp"
#include "xla/transform/fuse.hpp"
#include "xla/transform/gradient_uses.hpp"
#include "xla/transform/layouts.hpp"
#include "xla/transform/pass.hpp"
#include "xla/transform/pass_names.hpp"
#include "xla/transform/recompute.hpp"
#include "xla/transform/share.hpp"
#include "xla/transform/simplify.hpp"
#include "xla/transform/sink_draws.hpp"
#include "xla/transform/verify.hpp"

namespace xla::detail {

/// Defined by transform/bfloat16_storage.hpp, which only programs with rounding products contain.
constexpr void bfloat16_storage(pass_state& s) {
  if (s.g.store_bfloat16 && s.g.loop_count == 0) s.g.store_bfloat16(s);
}

constexpr void batch_steps(pass_state& s) {
  if (s.g.loop_count != 0) s.g.rules_of_loops->batch_products(s);
}

/// A step on a graph's way to a program. Each leaves a legal graph, whichever of the others run,
/// and changes no bit of any result; bfloat16_storage.hpp has the exception for denormals.
struct pass {
  std::string_view name;
  void (*run)(pass_state&);
};
inline constexpr pass passes[] = {
    {"gradient_uses", &find_gradient_uses},
    {"simplify", &simplify},
    {"batch_products", &batch_steps},
    {"share", &share},
    {"dead", &drop_dead},
    {"recompute", &recompute},
    {"bfloat16_storage", &bfloat16_storage},
    {"layouts", &lay_out},
    {"rows", &fuse_rows},
    {"fuse", &fuse},
    {"sink_draws", &sink_draws},
};

/// Observes a graph after a pass of that name, to print or store it.
struct no_observer {
  constexpr void operator()(std::string_view, const pass_state&) const {}
};

/// Custom passes, which run after the library's of the same stage: xla/passes.hpp.
struct added_passes {
  /// Runs the k-th custom pass of a stage, and returns its name; empty if there is none.
  std::string_view (*run)(const added_passes& self, std::string_view after, int k, pass_state&);
  const std::string_view* names = nullptr;
  int count = 0;
};

/// Takes a graph through a list of passes, and after each through the custom passes of that stage.
/// The latter happens in constant evaluation or if there is an observer, so that the run time has
/// no code for them (see run/state/registered_passes.hpp). An illegal graph after one of them is
/// reported in s.wrong.
template <class Observer = no_observer>
[[gnu::cold]] constexpr void run_passes(const pass* list, std::size_t count, pass_state& s,
                                        Passes wanted, Observer observer = {}) {
  const auto run_added = [&](std::string_view after) {
    if (std::is_same_v<Observer, no_observer> && !__builtin_is_constant_evaluated()) return;
    std::string_view name;
    for (int k = 0; wanted.added && s.wrong.empty(); ++k) {
      name = wanted.added->run(*wanted.added, after, k, s);
      if (name.empty()) return;
      if (s.wrong.empty()) observer(name, s);
    }
  };
  observer("captured", s);
  run_added("captured");
  for (std::size_t i = 0; i < count && s.wrong.empty(); ++i) {
    const pass& p = list[i];
    if ((wanted.left_out >> i & 1) == 0) {
      p.run(s);
      if (verifies(wanted))
        if (const text why = verify(s); !why.empty())
          s.wrong << "xla: the pass " << p.name << " made an illegal graph: " << why;
    }
    observer(p.name, s);
    run_added(p.name);
  }
}
/// Takes a graph through all of them.
template <class Observer = no_observer>
constexpr void run_passes(pass_state& s, Passes wanted, Observer observer = {}) {
  run_passes(passes, std::size(passes), s, wanted, observer);
}

}  // namespace xla::detail
