// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <xla/data/subset.hpp>
#include <xla/io/idx.hpp>
#include <xla/kernel/random/philox.hpp>
#include <xla/xla.hpp>
#ifdef XLA_HAS_ZLIB
#include <xla/ext/gzip.hpp>
using xla::ext::read_idx;
#else
using xla::io::read_idx;
#endif

/// Images of digits, (n, 1, 28, 28) from 0 to 1, and the digits, (n).
using Digits = xla::data::TensorDataset<xla::Tensor<float, 4>, xla::Tensor<std::int64_t, 1>>;
using SomeDigits = xla::data::Subset<Digits>;

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
  const auto pixels = xla::from_blob(images.bytes.data(), {count, 1, 28, 28});
  const auto digits = xla::from_blob(labels.bytes.data(), {count});
  return Digits{xla::cast<float>(pixels) / 255.0f, xla::cast<std::int64_t>(digits)};
}

/// Four fifths of the digits to learn, and the others to be asked.
inline std::array<SomeDigits, 2> split_digits(const Digits& digits) {
  return xla::data::random_split(digits, {0.8, 0.2}, 42);
}

/// The same of a folder with MNIST's files, plain or .gz: with all four its training set and its
/// test set, with the two of the test set alone parts of that. Throws `xla::io_error` where they
/// are missing.
inline std::array<SomeDigits, 2> read_folder(const std::string& folder) {
  const auto find = [&](const std::string& name) {
    for (const char* const ending : {"", ".gz"})
      if (const auto path = folder + "/" + name + ending; std::filesystem::exists(path))
        return path;
    return std::string{};
  };
  const auto read = [&](const std::string& set) {
    const auto images = find(set + "-images-idx3-ubyte"), labels = find(set + "-labels-idx1-ubyte");
    if (images.empty() || labels.empty())
      throw xla::io_error("'" + folder + "' lacks MNIST's " + set + "-images-idx3-ubyte or " + set +
                          "-labels-idx1-ubyte, plain or .gz; the t10k ones are enough");
    return read_digits(images, labels);
  };
  const auto all = [](const Digits& digits) {
    return SomeDigits{digits, xla::arange(digits.size()).to_vector()};
  };
  const auto test = read("t10k");
  if (find("train-images-idx3-ubyte").empty()) return split_digits(test);
  return {all(read("train")), all(test)};
}

/// Digits as a clock shows them, by seven bars, with noise, moved to one of several positions in
/// each direction: to run without files.
inline Digits draw_digits(std::int64_t count, std::uint32_t places = 15) {
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
    const auto y = 1 + random[1] % std::min(places, 8u), x = 1 + random[2] % std::min(places, 15u);
    float* const corner = &pixels[784 * i + 28 * y + x];
    for (std::size_t b = 0; b < bars.size(); ++b)
      if (shown[digit] >> b & 1)
        for (std::size_t at = 0; at < bars[b].width * bars[b].height; ++at)
          corner[28 * (bars[b].y + at / bars[b].width) + bars[b].x + at % bars[b].width] = 1;
    digits.push_back(digit);
  }
  const auto clean = xla::from_blob(pixels.data(), {count, 1, 28, 28});
  return Digits{clean * 0.7f + xla::rand_like(clean) * 0.3f, xla::tensor(digits)};
}
