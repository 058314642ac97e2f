// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Where weights and batches come from; the same as in peers/task.py.
namespace bench {

/// A 32-bit number that depends on its stream and position alone (lowbias32 of a counter).
inline std::uint32_t hashed(std::uint32_t stream, std::int64_t i) {
  std::uint32_t x = static_cast<std::uint32_t>(i) + stream * 0x9E3779B9u;
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  return x ^ x >> 16;
}

inline float uniform(std::uint32_t stream, std::int64_t i) {
  return static_cast<float>(hashed(stream, i) >> 8) * 0x1p-24f;
}

}  // namespace bench
