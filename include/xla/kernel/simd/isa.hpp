// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instruction set that `-march` names: the only header that chooses among the folders of this
// one. Each folder has a header packet.hpp with functions in namespace isa, overloaded for its
// vectors. Macros XLA_ISA_… say which optional functions exist. A new instruction set is a folder
// and a line here.
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
