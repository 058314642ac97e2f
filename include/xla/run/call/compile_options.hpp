// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "xla/run/engine/engine.hpp"

namespace xla {

/// How a function is compiled.
struct CompileOptions {
  std::string name = "step";  ///< in the metrics report and in XLA_DEBUG's output
  int max_signatures = 64;    ///< different argument shapes that are specialised
  /// Convolutions may use Winograd's algorithm; see set_winograd(). In the body of another compiled
  /// function that one's option holds.
  bool winograd = true;
  Engine engine = {};  ///< what runs it, as xla::pjrt("CPU"); in another one's body that one's does
};

}  // namespace xla
