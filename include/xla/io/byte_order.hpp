// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order of an element's bytes, for files whose order is not this processor's.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace xla::io::detail {

/// Reverses the bytes of every element.
inline void reverse_bytes(std::span<std::uint8_t> elements, std::size_t width) {
  for (std::size_t at = 0; width > 1 && at + width <= elements.size(); at += width)
    std::ranges::reverse(elements.subspan(at, width));
}
/// The same unless this processor has that order.
template <std::endian Order>
void convert_bytes(std::span<std::uint8_t> elements, std::size_t width) {
  if constexpr (std::endian::native != Order) reverse_bytes(elements, width);
}

}  // namespace xla::io::detail
