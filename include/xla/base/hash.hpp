// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds a word to a hash: a function of its two arguments, and not cryptographic. Signatures of
// graphs, fingerprints of programs and caches use it.

#include <cstdint>

namespace xla::detail {

/// A hash with one more word in it.
constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  return (h ^ (v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2))) * 0xff51afd7ed558ccdull;
}

}  // namespace xla::detail
