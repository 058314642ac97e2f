// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines set_passes() and XLA_PASSES, and keeps the choice. Traced graphs and plans ask it for the
// passes that they run.

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"
#include "xla/kernel/op/image_sum.hpp"  // of the steps that
#include "xla/kernel/op/movement.hpp"   // passes make
#include "xla/run/state/passes.hpp"
#include "xla/transform/passes.hpp"

namespace xla {
namespace detail {

/// "-share,-fuse" as passes; throws runtime_error about anything else, in the name of function.
template <class = void>
[[gnu::cold]] Passes parse_passes(std::string_view function, std::string_view list) {
  Passes wanted;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(item.size() < list.size() ? item.size() + 1 : item.size());
    text wrong;
    if (item.empty() || item[0] != '-')
      wrong << "\"" << item << "\" leaves no pass out: write -share, or -share,-fuse";
    else wanted = wanted & passes_without(item.substr(1), wrong);
    if (!wrong.empty()) throw runtime_error(std::string((text(function) << ": " << wrong).view()));
  }
  return wanted;
}
XLA_INSTANCE(Passes parse_passes<void>(std::string_view, std::string_view));

/// The passes of the library that are left out of graphs that are traced, and of plans.
template <class = void>
[[gnu::noinline]] inline std::atomic<std::uint32_t>& passes_left_out() {
  static std::atomic<std::uint32_t> wanted{[] {
    const char* list = std::getenv("XLA_PASSES");
    return list ? parse_passes<>("XLA_PASSES", list).left_out : 0;
  }()};
  return wanted;
}

/// Passes that a program has registered for graphs that are traced: registered_passes.hpp.
struct registered_passes {
  /// Takes a graph through these and the library's.
  void (*run)(const registered_passes& self, pass_state& s, Passes wanted);
  /// Which set of them is there now: a number that no other set has had.
  std::atomic<std::uint64_t> set{0};
};
/// nullptr while there are none.
inline constinit std::atomic<const registered_passes*> passes_registered{nullptr};

}  // namespace detail

template <class>
[[gnu::cold]] void set_passes(std::string_view list) {
  detail::passes_left_out<>() = detail::parse_passes<>("xla::set_passes", list).left_out;
}
XLA_INSTANCE(void set_passes<void>(std::string_view));

}  // namespace xla
