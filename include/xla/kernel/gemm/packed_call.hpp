// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pointer to products by matrices that their buffers cache packed. Programs of headers alone
// leave it null and do not link these kernels; op/matmul_packed.hpp sets it.

#include <atomic>

#include "xla/kernel/call.hpp"

namespace xla::kernel {

/// A product of floats by a matrix whose packed form is cached: false if it is of another kind, or
/// if nothing is cached yet. With a `choice` it only reports what is cached.
using packed_matmul = bool (*)(const ::xla::detail::kernel_call& call,
                               ::xla::detail::kernel_choice* choice);

inline constinit std::atomic<packed_matmul> the_packed_matmul{nullptr};

}  // namespace xla::kernel
