// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of random permutations; philox.hpp defines it.

#include <cstdint>

#include "xla/base/instance.hpp"

namespace xla {

/// Fills `out[0..n)` with a random order of 0 … n - 1 (Fisher and Yates, Durstenfeld 1964); it
/// consumes the counters of `n` 64-bit elements.
template <class = void>
void fill_permutation(std::int64_t* out, std::int64_t n, std::uint64_t seed, std::uint64_t offset);

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/kernel/random/philox.hpp"
#endif
