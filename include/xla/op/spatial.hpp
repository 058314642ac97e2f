// SPDX-License-Identifier: Apache-2.0
#pragma once

// Types for sizes of images and windows, {height, width}, or one number for both. Convolutions,
// pools and interpolation take them.

#include <concepts>
#include <cstdint>

#include "xla/shape/bounds.hpp"

namespace xla {

/// A number for each axis of an image, {height, width}, or one for both, as for kernels, strides,
/// paddings and dilations.
struct HeightWidth {
  std::int64_t height = 0, width = 0;

  constexpr HeightWidth(std::integral auto both) : HeightWidth(both, both) {}
  constexpr HeightWidth(std::integral auto h, std::integral auto w)
      : height(static_cast<std::int64_t>(h)), width(static_cast<std::int64_t>(w)) {}

  friend constexpr bool operator==(const HeightWidth&, const HeightWidth&) = default;
};

/// The output size of images, {height, width}, or one number for both; xla::none keeps the image's
/// own.
struct ImageSize {
  detail::bound height, width;

  template <std::convertible_to<detail::bound> N>
  constexpr ImageSize(const N& both) : height(both), width(both) {}
  template <std::convertible_to<detail::bound> H, std::convertible_to<detail::bound> W>
  constexpr ImageSize(const H& h, const W& w) : height(h), width(w) {}
};

}  // namespace xla
