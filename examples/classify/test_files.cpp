// SPDX-License-Identifier: Apache-2.0
// test_files <folder> writes what the test of classify reads: weights, labels, pictures; test_files
// <folder> odd writes pictures of rarer kinds alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <xla/ext/png.hpp>
#include <xla/ext/safetensors.hpp>
#include <xla/io/file.hpp>
#include <xla/models/resnet.hpp>
#include <xla/nn/state_dict.hpp>

#include "../../tests/ext/jpegs.inc"

namespace {

/// As numbers() of reference.py: from -1 to 1.
double number(std::uint64_t i, std::uint64_t seed) {
  std::uint64_t x = i * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
  return static_cast<double>(x >> 41) / (1 << 22) - 1;
}

template <class Model>
xla::StateDict weights() {
  const Model model;
  auto state = xla::state_dict(model);
  for (std::size_t index = 0; index < state.size(); ++index) {
    auto& array = state[index];
    if (array.type != xla::dtype::float32) continue;
    std::vector<float> values(array.bytes.size() / sizeof(float));
    const auto inputs = static_cast<double>(values.size()) / static_cast<double>(array.sizes[0]);
    const bool weight = array.sizes.size() > 1;
    const bool around_zero = weight || array.name.ends_with("bias") || array.name.ends_with("mean");
    const double spread = array.name == "fc.weight" ? 12 : 3;
    const double scale = weight        ? static_cast<float>(std::sqrt(spread / inputs))
                         : around_zero ? 0.125
                                       : 0.25;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((around_zero ? 0 : 1) + scale * number(i, index));
    std::memcpy(array.bytes.edit().data(), values.data(), array.bytes.size());
  }
  return state;
}

/// Weights for this many classes, and their labels.
template <int Classes>
void write_weights(const std::string& folder) {
  const std::string path = folder + std::to_string(Classes);
  xla::ext::write_safetensors(path + ".safetensors",
                              {weights<xla::models::ResNet18<Classes>>(), {}});
  std::ofstream labels{path + ".txt"};
  for (int i = 0; i < Classes; ++i) labels << "label " << i << '\n';
}

xla::data::Picture picture(std::int64_t height, std::int64_t width, std::int64_t channels) {
  auto out = xla::data::black_picture(height, width, channels);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        out.row(y)[static_cast<std::size_t>(x * channels + c)] =
            static_cast<std::uint8_t>((x + 2 * y + 40 * c) / 3 % 256 ^ (x / 16 * 37 & 127));
  return out;
}

std::vector<std::uint8_t> jpeg_named(std::string_view name) {
  std::vector<std::uint8_t> out;
  for (const auto& each : reference::jpeg_cases)
    for (const char* at = each.file; name == each.name && *at != 0; at += 2)
      out.push_back(static_cast<std::uint8_t>(std::stoi(std::string(at, 2), nullptr, 16)));
  return out;
}

/// A PNG file of 16 bits, as libpng writes them.
void write_deep(const std::string& path) {
  std::vector<std::uint16_t> colours;
  for (int i = 0; i < 3 * 40 * 30; ++i) colours.push_back(static_cast<std::uint16_t>(i * 4099));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 40;
  image.height = 30;
  image.format = PNG_FORMAT_LINEAR_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, colours.data(), 0, nullptr) == 0)
    throw xla::runtime_error(path + " cannot be written");
}

/// CMYK, turned by EXIF, grey, of 16 bits, and one whose header claims 65500 x 65500 pixels.
void write_odd(const std::string& folder) {
  for (const std::string name : {"inks", "turned", "grey"})
    xla::io::write_file(folder + name + ".jpg", jpeg_named(name));
  write_deep(folder + "deep.png");
  auto huge = jpeg_named("whole");
  constexpr std::array<std::uint8_t, 2> sizes_follow{0xff, 0xc0};
  const auto at = std::search(huge.begin(), huge.end(), sizes_follow.begin(), sizes_follow.end());
  std::copy_n(std::array<std::uint8_t, 4>{0xff, 0xdc, 0xff, 0xdc}.begin(), 4, at + 5);
  xla::io::write_file(folder + "huge.jpg", huge);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = std::string(argc > 1 ? argv[1] : ".") + '/';
  write_odd(folder);
  if (argc > 2) return 0;
  write_weights<1000>(folder);
  write_weights<10>(folder);
  xla::ext::write_png(folder + "colours.png", picture(240, 320, 3));
  xla::ext::write_png(folder + "grey.png", picture(300, 200, 1));
  auto half = xla::io::read_file(folder + "colours.png");
  half.resize(half.size() / 2);
  xla::io::write_file(folder + "half.png", half);
} catch (const std::exception& e) {
  std::fprintf(stderr, "test_files: %s\n", e.what());
  return 1;
}
