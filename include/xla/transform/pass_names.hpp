// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of the library's passes, in order, and how they are selected by name. What only selects
// passes includes this, and is not compiled again when a pass changes; passes.hpp has the passes.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "xla/base/refuse.hpp"
#include "xla/transform/program.hpp"

namespace xla {

namespace detail {

/// A step on a graph's way to a program, by name.
struct pass_label {
  enum kind : std::uint8_t {
    optional,
    needed,  ///< the meaning of programs depends on it: it cannot be disabled
    sized,   ///< arranges the steps of a program whose sizes are known: run/plan/specialize.hpp
  };
  std::string_view name;
  kind is = optional;
};
/// All passes in order, those that are sized last.
inline constexpr pass_label pass_labels[] = {
    {"gradient_uses", pass_label::needed},
    {"simplify"},
    {"batch_products"},
    {"share"},
    {"dead"},
    {"recompute"},
    {"bfloat16_storage"},
    {"layouts"},
    {"rows"},
    {"fuse"},
    {"sink_draws"},
    {"buckets", pass_label::sized},
    {"updates", pass_label::sized},
    {"slices", pass_label::sized},
    {"epilogues", pass_label::sized},
    {"side_by_side", pass_label::sized},
};
static_assert(std::size(pass_labels) <= 32, "xla::Passes has a bit for each");

constexpr std::uint32_t bit_of(const pass_label& p) {
  return std::uint32_t{1} << (&p - pass_labels);
}

/// Without the pass of this name; if there is none to disable, why says so and lists those that can
/// be.
[[gnu::cold]] constexpr Passes passes_without(std::string_view name, text& why) {
  for (const pass_label& p : pass_labels)
    if (p.name == name && p.is != pass_label::needed) return {bit_of(p)};
  why << "no pass is called \"" << name << "\"; there are";
  const char* before = " ";
  for (const pass_label& p : pass_labels) {
    if (p.is == pass_label::needed) continue;
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
    if (p.name == name && p.is != pass_label::sized) return true;
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
