// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/run/state/recording.hpp"

namespace xla {

/// For code that changes other things than tensors and may stand in the body of a loop: traced mode,
/// which would record the body once, then runs its steps one by one. Call it before the change.
inline void begin_side_effects() { detail::recording::refuse_in_body(); }

}  // namespace xla
