// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by the readers of PNG and JPEG: errors about damaged or too large pictures, and the
// orientation in EXIF data. It reads nothing else of EXIF.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/data/picture.hpp"

namespace xla::ext::detail {

[[noreturn]] inline void refuse_image(const std::string& name, const std::string& reason) {
  throw io_error("'" + name + "' is not a picture that can be read: " + reason);
}

/// Called before memory is allocated.
inline void check_image_size(const std::string& name, std::int64_t height, std::int64_t width,
                             std::int64_t max_pixels) {
  if (height < 1 || width < 1) refuse_image(name, "it has no pixels");
  if (height > max_pixels / width)
    refuse_image(name, "it has " + std::to_string(height) + " x " + std::to_string(width) +
                           " pixels, more than the limit of " + std::to_string(max_pixels));
}

/// Reads integers of EXIF data, which is a TIFF file in either byte order; 0 beyond the end.
class exif_numbers {
 public:
  explicit exif_numbers(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), little_(!bytes.empty() && bytes[0] == 'I') {}

  std::uint32_t at(std::uint64_t offset, unsigned size) const {
    if (offset + size > bytes_.size()) return 0;
    std::uint32_t value = 0;
    for (unsigned i = 0; i < size; ++i)
      value = value << 8 | bytes_[static_cast<std::size_t>(offset + (little_ ? size - 1 - i : i))];
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool little_;
};

/// The orientation in EXIF data, 1 to 8; 1 (upright) if there is none that can be read.
inline int exif_orientation(std::span<const std::uint8_t> exif) {
  constexpr std::uint32_t orientation = 0x0112, entry_size = 12;
  const exif_numbers numbers{exif};
  if (numbers.at(2, 2) != 42) return 1;
  const std::uint64_t directory = numbers.at(4, 4);
  const auto entries = numbers.at(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const auto entry = directory + 2 + std::uint64_t{i} * entry_size;
    if (numbers.at(entry, 2) != orientation) continue;
    const auto value = numbers.at(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

/// The upright picture of one that was stored with this orientation.
inline data::Picture upright(data::Picture from, int orientation) {
  if (orientation == 1) return from;
  const bool transposed = orientation >= 5;
  auto out = data::black_picture(transposed ? from.width : from.height,
                                 transposed ? from.height : from.width, from.channels);
  // Whether the stored rows run up, and the stored columns to the left, after the axes are
  // exchanged.
  const bool up = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool left = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  for (std::int64_t y = 0; y < out.height; ++y) {
    auto* to = out.row(y).data();
    for (std::int64_t x = 0; x < out.width; ++x, to += out.channels) {
      const auto row = transposed ? x : y, column = transposed ? y : x;
      const auto* pixel = from.row(up ? from.height - 1 - row : row).data() +
                          (left ? from.width - 1 - column : column) * from.channels;
      std::copy_n(pixel, from.channels, to);
    }
  }
  return out;
}

}  // namespace xla::ext::detail
