// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <xla/io/idx.hpp>
#include <xla/kernel/philox.hpp>
#include <xla/xla.hpp>
#ifdef XLA_HAS_ZLIB
#include <xla/ext/gzip.hpp>
using xla::ext::read_idx;
#else
using xla::io::read_idx;
#endif

/// Images of digits, (n, 784) from 0 to 1, and the digits, (n).
using Digits = xla::data::TensorDataset<xla::Tensor<float, 2>, xla::Tensor<std::int64_t, 1>>;

/// Images of 28 x 28 bytes and as many labels from MNIST's IDX files. Throws `xla::io_error` for
/// others.
inline Digits read_digits(const std::string& images_path, const std::string& labels_path) {
  const auto check = [](bool good, const std::string& path, const std::string& what) {
    if (!good) throw xla::io_error("'" + path + "' " + what);
  };
  const auto images = read_idx(images_path), labels = read_idx(labels_path);
  const auto uint8 = xla::io::idx_type::uint8;
  check(images.type == uint8 && images.sizes.size() == 3 && images.sizes[1] == 28 &&
            images.sizes[2] == 28,
        images_path, "does not hold images of 28 x 28 bytes");
  check(labels.type == uint8 && labels.sizes.size() == 1, labels_path,
        "does not hold one byte per label");
  const auto count = images.sizes[0];
  check(labels.sizes[0] == count, labels_path,
        "has " + std::to_string(labels.sizes[0]) + " labels for " + std::to_string(count) +
            " images");
  check(count >= 5, images_path, "has fewer than the 5 images that a split takes");
  for (const auto label : labels.bytes)
    check(label <= 9, labels_path, "has the label " + std::to_string(label) + ", not 0 to 9");
  const auto pixels = xla::from_blob(images.bytes.data(), {count, 784});
  const auto digits = xla::from_blob(labels.bytes.data(), {count});
  return Digits{xla::cast<float>(pixels) / 255.0f, xla::cast<std::int64_t>(digits)};
}

/// Digits as a clock shows them, by seven bars, moved about and with noise: to run without files.
inline Digits draw_digits(std::int64_t count) {
  struct bar {
    std::size_t x, y, width, height;
  };
  constexpr std::array<bar, 7> bars{{{0, 0, 11, 2},
                                     {9, 0, 2, 10},
                                     {9, 8, 2, 10},
                                     {0, 16, 11, 2},
                                     {0, 8, 2, 10},
                                     {0, 0, 2, 10},
                                     {0, 8, 11, 2}}};
  constexpr std::array<unsigned, 10> shown{0x3f, 0x06, 0x5b, 0x4f, 0x66,
                                           0x6d, 0x7d, 0x07, 0x7f, 0x6f};
  std::vector<float> pixels(static_cast<std::size_t>(count) * 784);
  std::vector<std::int64_t> digits;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto random = xla::philox4x32(i, 2026);
    const auto digit = random[0] % 10;
    float* const corner = &pixels[784 * i + 28 * (1 + random[1] % 8) + 1 + random[2] % 15];
    for (std::size_t b = 0; b < bars.size(); ++b)
      if (shown[digit] >> b & 1)
        for (std::size_t at = 0; at < bars[b].width * bars[b].height; ++at)
          corner[28 * (bars[b].y + at / bars[b].width) + bars[b].x + at % bars[b].width] = 1;
    digits.push_back(digit);
  }
  const auto clean = xla::from_blob(pixels.data(), {count, 784});
  return Digits{clean * 0.7f + xla::rand_like(clean) * 0.3f, xla::tensor(digits)};
}
