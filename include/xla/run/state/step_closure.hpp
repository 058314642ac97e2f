// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace xla::detail {

/// What is to be done at the end of the step.
struct step_closure {
  virtual ~step_closure() = default;
  virtual void run() = 0;
};

}  // namespace xla::detail
