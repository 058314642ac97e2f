// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attributes that compile single functions for instructions on bfloat16, whatever -march says.
// bfloat16_support.hpp decides at run time whether they may be called.

#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/base/system/platform.hpp"

// Functions with instructions that not every processor has name these in an attribute; callers
// check the processor first. The compiled run time has such code for all of x86-64. Headers alone
// have it only if the compiler may use AVX-512 anyway, since the intrinsics make an include half a
// second slower (Eigen has included them then). Linux for ARM has it always: Eigen includes its
// intrinsics.
#if defined(__x86_64__) && (defined(XLA_EXTERN_RUNTIME) || defined(__AVX512F__))
#define XLA_HAS_DOT 1
#define XLA_DOT_CODE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]]
#elif XLA_GNU_EXTENSIONS && XLA_LINUX && defined(__AARCH64EL__)
#define XLA_HAS_DOT 1
#define XLA_DOT_CODE [[gnu::target("+bf16")]]
#else
#define XLA_HAS_DOT 0
#endif
#define XLA_DOT_INLINE XLA_DOT_CODE [[gnu::always_inline]] inline  // where XLA_HAS_DOT
#if XLA_HAS_DOT && XLA_LINUX && defined(__x86_64__)
#define XLA_HAS_AMX 1
#else
#define XLA_HAS_AMX 0
#endif

namespace xla::kernel::detail {

/// Two neighbours along k, the lower one in the lower half: the unit that `dot` and `amx` pack.
using bfloat16_pair = std::uint32_t;

}  // namespace xla::kernel::detail
