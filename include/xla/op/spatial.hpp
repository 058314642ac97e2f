// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

namespace xla {

/// A number for each axis of an image, {height, width}, or one for both: kernels, strides, paddings
/// and dilations are given so.
struct HeightWidth {
  std::int64_t height = 0, width = 0;

  constexpr HeightWidth(std::integral auto both) : HeightWidth(both, both) {}
  constexpr HeightWidth(std::integral auto h, std::integral auto w)
      : height(static_cast<std::int64_t>(h)), width(static_cast<std::int64_t>(w)) {}

  friend constexpr bool operator==(const HeightWidth&, const HeightWidth&) = default;
};

}  // namespace xla
