// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/instance.hpp"

namespace xla::detail {

/// What this thread makes between the two is computed again in backward.
template <class In = void>
void* open_segment();
template <class In = void>
void close_segment(void* opened) noexcept;

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/trace/segment_recorder.hpp"
#endif
