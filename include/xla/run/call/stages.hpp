// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "xla/base/instance.hpp"
#include "xla/transform/capture.hpp"

namespace xla {

/// Where on its way a graph is shown: as the body made it, after local rewrites, after equal nodes
/// were shared and dead ones left out, and as the steps that run.
enum class Stage { captured, simplified, shared, lowered };

namespace detail {

/// A captured graph as text; run/call/print_stage.hpp defines it.
template <class = void>
std::string print_stage(const graph_view& from, Stage stage);

}  // namespace detail
}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/call/print_stage.hpp"
#endif
