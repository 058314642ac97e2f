// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <xla/io/file.hpp>
#include <xla/xla.hpp>

/// Images (n, 1, height, width) side by side as a grey PGM file, `columns` in a row: each from its
/// least value, black, to its greatest, white, every pixel a square of `zoom`.
inline void write_pgm(const std::string& path, const xla::Tensor<float, 4>& images,
                      std::size_t columns, std::size_t zoom) {
  const auto sizes = images.sizes();
  const auto count = static_cast<std::size_t>(sizes[0]);
  const auto high = static_cast<std::size_t>(sizes[2]), wide = static_cast<std::size_t>(sizes[3]);
  const auto values = images.to_vector();
  const auto rows = std::max<std::size_t>(1, (count + columns - 1) / columns);
  const auto tall = rows * (high * zoom + 2), across = columns * (wide * zoom + 2);
  const std::string header = "P5 " + std::to_string(across) + " " + std::to_string(tall) + " 255\n";
  std::vector<std::uint8_t> out(header.begin(), header.end());
  out.resize(header.size() + tall * across, 64);  // what is between them
  for (std::size_t i = 0; i < count; ++i) {
    const auto image = std::span(values).subspan(i * high * wide, high * wide);
    const auto [least, greatest] = std::ranges::minmax(image);
    const float scale = greatest > least ? 255 / (greatest - least) : 0;
    const auto corner =
        header.size() + i / columns * (high * zoom + 2) * across + i % columns * (wide * zoom + 2);
    for (std::size_t y = 0; y < high * zoom; ++y)
      for (std::size_t x = 0; x < wide * zoom; ++x)
        out[corner + y * across + x] =
            static_cast<std::uint8_t>((image[y / zoom * wide + x / zoom] - least) * scale);
  }
  xla::io::write_file(path, out);
}
