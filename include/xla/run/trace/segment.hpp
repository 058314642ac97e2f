// SPDX-License-Identifier: Apache-2.0
#pragma once

// Begins and ends a checkpointed segment on tensors; segment_recorder.hpp defines it.
// xla::checkpoint() calls it at run time; a captured graph numbers its segments instead.

#include "xla/base/instance.hpp"

namespace xla::detail {

/// The tensors that this thread makes between the two calls are computed again in backward.
template <class In = void>
void* open_segment();
template <class In = void>
void close_segment(void* opened) noexcept;

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/trace/segment_recorder.hpp"
#endif
