// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stages at which a compiled function's graph can be printed, and the function that does it.
// compile.hpp includes it; print_stage.hpp defines it.

#include <string>
#include <string_view>

#include "xla/base/instance.hpp"
#include "xla/transform/capture.hpp"

namespace xla {

/// The point at which a graph is shown: as the body made it, after the pass of a name ("share"), as
/// steps, or planned: the steps that run for arguments of given sizes.
struct Stage {
  struct Planned {};

  std::string_view name;

  constexpr Stage(const char* after) : name(after) {}
  static constexpr const char* captured = "captured";
  static constexpr const char* simplified = "simplify";
  static constexpr const char* shared = "share";
  static constexpr const char* lowered = "lowered";
  static constexpr Planned planned{};
};

namespace detail {

/// A captured graph as text; run/call/print_stage.hpp defines it.
template <class = void>
std::string print_stage(const graph_view& from, Stage stage, Passes wanted);

}  // namespace detail
}  // namespace xla

#if XLA_PASSES_HERE
#include "xla/run/call/print_stage.hpp"
#endif
