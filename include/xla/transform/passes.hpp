// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of the library's passes, in order, and how they are selected by name. The list runs in
// the compiler for compiled functions, at run time for recorded graphs; each pass has a header of
// its own.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "xla/base/refuse.hpp"
#include "xla/transform/dead.hpp"
#include "xla/transform/fuse.hpp"
#include "xla/transform/gradient_uses.hpp"
#include "xla/transform/layouts.hpp"
#include "xla/transform/pass.hpp"
#include "xla/transform/recompute.hpp"
#include "xla/transform/share.hpp"
#include "xla/transform/simplify.hpp"
#include "xla/transform/sink_draws.hpp"
#include "xla/transform/verify.hpp"

namespace xla {

namespace detail {

/// A step on a graph's way to a program.
struct pass {
  enum class kind : std::uint8_t {
    optional,
    needed,  ///< the meaning of programs depends on it: it cannot be disabled
    sized,   ///< arranges the steps of a program whose sizes are known: run/plan/specialize.hpp
  };
  std::string_view name;
  void (*run)(pass_state&);  ///< not called if it is sized
  kind is = kind::optional;
};
/// Defined by transform/bfloat16_storage.hpp, which only programs with rounding products contain.
constexpr void bfloat16_storage(pass_state& s) {
  if (s.g.store_bfloat16 && s.g.loop_count == 0) s.g.store_bfloat16(s);
}

constexpr void batch_steps(pass_state& s) {
  if (s.g.loop_count != 0) s.g.rules_of_loops->batch_products(s);
}

/// All passes in order; a new one is a line here and a file. Each leaves a legal graph, whichever
/// of the others run, and changes no bit of any result; bfloat16_storage.hpp has the exception for
/// denormals.
inline constexpr pass passes[] = {
    {"gradient_uses", &find_gradient_uses, pass::kind::needed},
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
    {"buckets", nullptr, pass::kind::sized},
    {"updates", nullptr, pass::kind::sized},
    {"slices", nullptr, pass::kind::sized},
    {"epilogues", nullptr, pass::kind::sized},
    {"side_by_side", nullptr, pass::kind::sized},
};
static_assert(std::size(passes) <= 32, "xla::Passes has a bit for each");

/// Their names without the functions, so that looking up a name at run time links no pass.
struct pass_label {
  std::string_view name;
  pass::kind is = pass::kind::optional;
};
inline constexpr auto pass_labels = [] {
  std::array<pass_label, std::size(passes)> labels;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = {passes[i].name, passes[i].is};
  return labels;
}();

constexpr std::uint32_t bit_of(const pass_label& p) {
  return std::uint32_t{1} << (&p - pass_labels.data());
}

/// Without the pass of this name; if there is none to disable, why says so and lists those that can
/// be.
[[gnu::cold]] constexpr Passes passes_without(std::string_view name, text& why) {
  for (const pass_label& p : pass_labels)
    if (p.name == name && p.is != pass::kind::needed) return {bit_of(p)};
  why << "no pass is called \"" << name << "\"; there are";
  const char* before = " ";
  for (const pass_label& p : pass_labels) {
    if (p.is == pass::kind::needed) continue;
    why << before << p.name;
    before = ", ";
  }
  return {};
}

/// The pass of a name that is on the list.
consteval const pass_label& pass_named(std::string_view name) {
  for (const pass_label& p : pass_labels)
    if (p.name == name) return p;
  throw "no such pass";
}

/// A graph before the library's passes, or after one of these.
[[gnu::cold]] constexpr bool is_stage(std::string_view name) {
  if (name == "captured") return true;
  for (const pass_label& p : pass_labels)
    if (p.name == name && p.is != pass::kind::sized) return true;
  return false;
}

/// On request, and in debug builds, but not in constant evaluation, which is the user's compile
/// time.
constexpr bool verifies(Passes wanted) {
#ifndef NDEBUG
  if (!__builtin_is_constant_evaluated()) return true;
#endif
  return wanted.verify;
}

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
    if (p.is == pass::kind::sized) continue;
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

/// The name of a pass as a template argument.
template <std::size_t Size>
struct pass_name {
  char chars[Size] = {};
  constexpr pass_name(const char (&name)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) chars[i] = name[i];
  }
  constexpr std::string_view view() const { return {chars, Size - 1}; }
};

/// Why a name cannot be disabled; empty if it can.
template <pass_name Name>
inline constexpr text not_left_out = [] {
  text why("xla::tags::without: "), unknown;
  passes_without(Name.view(), unknown);
  return unknown.empty() ? text() : why << unknown;
}();

template <const text& Why>
struct known_pass_or_refusal : refusal_of<Why> {};
template <const text& Why>
  requires(Why.empty())
struct known_pass_or_refusal<Why> {};

template <pass_name Name>
struct left_out_pass : known_pass_or_refusal<not_left_out<Name>> {
  static constexpr Passes value = [] {
    text unknown;
    return passes_without(Name.view(), unknown);
  }();
};

}  // namespace detail

namespace tags {

/// Disables passes of a compiled function, to find the one that causes an error or a gain:
///   auto step = xla::compile<xla::tags::without<"share", "fuse">>(train_step);
template <detail::pass_name... Names>
inline constexpr Passes without = (detail::left_out_pass<Names>::value & ... & Passes{});

/// Verifies the graph after each pass while the program is built; can be combined:
/// xla::compile<xla::tags::verified & xla::tags::without<"share">>(train_step).
inline constexpr Passes verified{.verify = true};

}  // namespace tags

}  // namespace xla
