// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of xla::compile(), and what one of them means.

#include <string>

#include "xla/run/backend/backend.hpp"

namespace xla {

/// How a function is compiled.
struct CompileOptions {
  std::string name = "step";  ///< in the metrics report and in XLA_DEBUG's output
  /// Different argument shapes that are specialised; one more is refused. Numbers of steps of loops
  /// are none of their own: as many plans stay, and of those that differ in numbers of steps alone
  /// the one goes that was used longest ago. Where a backend runs the function, each number counts.
  int max_signatures = 64;
  /// Convolutions may use Winograd's algorithm; see set_winograd(). In the body of another compiled
  /// function that one's option holds.
  bool winograd = true;
  Backend backend =
      {};  ///< what runs it, as xla::pjrt("CPU"); in another one's body that one's does
};

}  // namespace xla
