// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace xla {

/// How a function is compiled.
struct CompileOptions {
  std::string name = "step";  ///< in the metrics report and in XLA_DEBUG's output
  int max_signatures = 64;    ///< different argument shapes that are specialised
  /// Convolutions may use Winograd's algorithm; see set_winograd(). In the body of another compiled
  /// function that one's option holds.
  bool winograd = true;
};

}  // namespace xla
