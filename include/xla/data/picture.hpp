// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoded picture: bytes with height, width and channels. Decoders make it (ext/image.hpp),
// transforms change it; a tensor is made of it last.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xla/base/error.hpp"

namespace xla::data {

/// A picture as image files store it: bytes, row by row, the channels of a pixel side by side. One
/// channel is grey, three are red, green and blue.
struct Picture {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels = {};

  std::span<std::uint8_t> row(std::int64_t y) {
    return {pixels.data() + y * width * channels, static_cast<std::size_t>(width * channels)};
  }
  std::span<const std::uint8_t> row(std::int64_t y) const {
    return {pixels.data() + y * width * channels, static_cast<std::size_t>(width * channels)};
  }
};

/// The default limit on the pixels of a picture that is read or made; it is Pillow's.
inline constexpr std::int64_t max_picture_pixels = 178'956'970;

/// A black picture.
inline Picture black_picture(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {height, width, channels,
          std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * channels))};
}

/// The window of a picture whose upper left pixel is (top, left). Throws `xla::shape_error` if the
/// window is empty or reaches beyond the picture.
inline Picture crop(const Picture& from, std::int64_t top, std::int64_t left, std::int64_t height,
                    std::int64_t width) {
  if (top < 0 || left < 0 || height < 1 || width < 1 || height > from.height - top ||
      width > from.width - left)
    throw shape_error("crop: a window of " + std::to_string(height) + " x " +
                      std::to_string(width) + " at (" + std::to_string(top) + ", " +
                      std::to_string(left) + ") is not inside a picture of " +
                      std::to_string(from.height) + " x " + std::to_string(from.width));
  Picture out = black_picture(height, width, from.channels);
  for (std::int64_t y = 0; y < height; ++y)
    std::copy_n(from.row(top + y).begin() + left * from.channels, width * from.channels,
                out.row(y).begin());
  return out;
}

namespace detail {

inline void check_channels(const char* function, const Picture& from, std::int64_t channels) {
  if (from.channels != channels)
    throw shape_error(std::string(function) + ": a picture of " + std::to_string(from.channels) +
                      " channels; it has to have 1 or 3");
}

}  // namespace detail

/// The picture with three channels; a grey value is copied to each. Throws `xla::shape_error`
/// unless it has one channel or three.
inline Picture as_rgb(Picture from) {
  if (from.channels == 3) return from;
  detail::check_channels("as_rgb", from, 1);
  Picture out = black_picture(from.height, from.width, 3);
  for (std::size_t i = 0; i < from.pixels.size(); ++i)
    std::fill_n(out.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, from.pixels[i]);
  return out;
}

/// The picture with one channel, 0.299 red + 0.587 green + 0.114 blue, rounded like Pillow. Throws
/// `xla::shape_error` unless it has one channel or three.
inline Picture as_gray(Picture from) {
  if (from.channels == 1) return from;
  detail::check_channels("as_gray", from, 3);
  Picture out = black_picture(from.height, from.width, 1);
  const auto* p = from.pixels.data();
  for (auto& gray : out.pixels) {
    gray = static_cast<std::uint8_t>((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 32768u) >> 16);
    p += 3;
  }
  return out;
}

}  // namespace xla::data
