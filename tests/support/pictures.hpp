// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "xla/data/picture.hpp"

namespace test {

/// Stripes, steps and corners of all steepness, as picture() of tests/reference/pictures.py.
inline xla::data::Picture picture(std::int64_t height, std::int64_t width, std::int64_t channels) {
  auto out = xla::data::black_picture(height, width, channels);
  auto* pixel = out.pixels.data();
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        *pixel++ = static_cast<std::uint8_t>(y * y * 7 + x * 13 + x * y * 3 + x / 5 * 37 + c * 101);
  return out;
}

/// The bytes of a string of hexadecimal digits.
inline std::vector<std::uint8_t> bytes_of(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(value(digits[i]) * 16 + value(digits[i + 1])));
  return out;
}

}  // namespace test
