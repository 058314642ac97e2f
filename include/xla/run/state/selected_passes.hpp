// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines set_passes() and XLA_PASSES, and stores the choice. Traced graphs and plans get their
// passes from it.

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/state/passes.hpp"
#include "xla/transform/pass_names.hpp"

namespace xla {
namespace detail {

/// Parses "-share,-fuse"; throws runtime_error for anything else, in the name of `function`.
template <class = void>
[[gnu::cold]] Passes parse_passes(std::string_view function, std::string_view list) {
  Passes wanted;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(item.size() < list.size() ? item.size() + 1 : item.size());
    text wrong;
    if (item.empty() || item[0] != '-')
      wrong << "\"" << item << "\" disables no pass: write -share, or -share,-fuse";
    else wanted = wanted & passes_without(item.substr(1), wrong);
    if (!wrong.empty()) throw runtime_error(std::string((text(function) << ": " << wrong).view()));
  }
  return wanted;
}
XLA_INSTANCE(Passes parse_passes<void>(std::string_view, std::string_view));

/// The library's passes that are disabled for traced graphs and plans.
template <class = void>
[[gnu::noinline]] inline std::atomic<std::uint32_t>& passes_left_out() {
  static std::atomic<std::uint32_t> wanted{[] {
    const char* list = std::getenv("XLA_PASSES");
    return list ? parse_passes<>("XLA_PASSES", list).left_out : 0;
  }()};
  return wanted;
}

/// Takes a recorded graph through the library's passes; run/state/recorded_passes.hpp defines it.
template <class = void>
void run_recorded_passes(pass_state& s, Passes wanted);

/// The passes that a program has registered for traced graphs: registered_passes.hpp.
struct registered_passes {
  /// Runs these passes and the library's on a graph.
  void (*run)(const registered_passes& self, pass_state& s, Passes wanted);
  /// The version of the current set of passes: a number that no other set has had.
  std::atomic<std::uint64_t> set{0};
};
/// nullptr if there are none.
inline constinit std::atomic<const registered_passes*> passes_registered{nullptr};

}  // namespace detail

template <class>
[[gnu::cold]] void set_passes(std::string_view list) {
  detail::passes_left_out<>() = detail::parse_passes<>("xla::set_passes", list).left_out;
}
XLA_INSTANCE(void set_passes<void>(std::string_view));

}  // namespace xla

#if XLA_PASSES_HERE
#include "xla/run/state/recorded_passes.hpp"
#endif
