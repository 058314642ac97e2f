// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instruction set that `-march` names: the one place that chooses among the folders of this one.
// Each has a header packet.hpp, with functions of namespace isa that are overloaded for its vectors.
// Macros XLA_ISA_… say which of those exist that not every set has. Another set is a folder and a
// line here.
#include "xla/kernel/simd/eigen_packets.hpp"

#if defined(EIGEN_VECTORIZE_AVX512)
#include "xla/kernel/simd/avx512/packet.hpp"
#elif defined(EIGEN_VECTORIZE_AVX)
#include "xla/kernel/simd/avx/packet.hpp"
#elif defined(EIGEN_VECTORIZE_SSE)
#include "xla/kernel/simd/sse/packet.hpp"
#else
#include "xla/kernel/simd/portable/packet.hpp"
#endif
