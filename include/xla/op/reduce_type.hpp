// SPDX-License-Identifier: Apache-2.0
#pragma once

// How exchanges combine elements: sum, mean, max, min. Ops, transports and kernels name it.

#include <cstdint>
#include <string_view>

namespace xla {

/// What becomes of the elements that replicas have at the same place.
enum class reduce_type : std::uint8_t { sum, mean, max, min, product };

constexpr std::string_view name_of(reduce_type how) {
  switch (how) {
    case reduce_type::sum: return "sum";
    case reduce_type::mean: return "mean";
    case reduce_type::max: return "max";
    case reduce_type::min: return "min";
    default: return "product";
  }
}

}  // namespace xla
