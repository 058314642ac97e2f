// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines run_recorded_passes(): the library's passes over a graph that is recorded at run time.

#include "xla/base/instance.hpp"
#include "xla/kernel/op/image_sum.hpp"  // of the steps that
#include "xla/kernel/op/movement.hpp"   // passes make
#include "xla/run/state/selected_passes.hpp"
#include "xla/transform/passes.hpp"

namespace xla::detail {

template <class>
[[gnu::cold]] void run_recorded_passes(pass_state& s, Passes wanted) {
  run_passes(s, wanted);
}
XLA_PASS_INSTANCE(void run_recorded_passes<void>(pass_state&, Passes));

}  // namespace xla::detail
