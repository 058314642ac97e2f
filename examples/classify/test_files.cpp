// SPDX-License-Identifier: Apache-2.0
// test_files <folder> writes what the test of classify reads: weights, labels, pictures.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <xla/ext/png.hpp>
#include <xla/ext/safetensors.hpp>
#include <xla/io/file.hpp>
#include <xla/models/resnet.hpp>
#include <xla/nn/state_dict.hpp>

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
  for (std::size_t place = 0; place < state.size(); ++place) {
    auto& array = state[place];
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
      values[i] = static_cast<float>((around_zero ? 0 : 1) + scale * number(i, place));
    std::memcpy(array.bytes.edit().data(), values.data(), array.bytes.size());
  }
  return state;
}

/// Weights for so many classes, and their labels.
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

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = std::string(argc > 1 ? argv[1] : ".") + '/';
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
