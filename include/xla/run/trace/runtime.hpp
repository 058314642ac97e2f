// SPDX-License-Identifier: Apache-2.0
#pragma once

// The run time of tensors. Layers include this header; ops do not. A program that links
// xla::runtime sees only the kernels that it may have to instantiate for further element types.
#include "xla/base/instance.hpp"
#if XLA_KERNELS_HERE
#include "xla/kernel/op/attention.hpp"
#include "xla/kernel/op/check_between.hpp"
#include "xla/kernel/op/collectives.hpp"
#include "xla/kernel/op/convolution.hpp"
#include "xla/kernel/op/embedding.hpp"
#include "xla/kernel/op/gather.hpp"
#include "xla/kernel/op/image_sum.hpp"
#include "xla/kernel/op/map.hpp"
#include "xla/kernel/op/matmul.hpp"
#include "xla/kernel/op/movement.hpp"
#include "xla/kernel/op/pooling.hpp"
#include "xla/kernel/op/pooling_gradient.hpp"
#include "xla/kernel/op/random.hpp"
#include "xla/kernel/op/reduce.hpp"
#include "xla/kernel/op/resample.hpp"
#include "xla/kernel/op/scan.hpp"
#include "xla/kernel/op/slice.hpp"
#include "xla/kernel/op/sort.hpp"
#include "xla/kernel/op/unfold.hpp"
#endif
#include "xla/op/index.hpp"
#include "xla/op/methods.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/transform/layouts.hpp"

namespace xla::detail {
XLA_INSTANCE(void propagate_layouts<void>(pass_state&));
}

#if XLA_RUNTIME_HERE
#include "xla/run/trace/backward.hpp"
#include "xla/run/trace/machine.hpp"
#endif
