// SPDX-License-Identifier: Apache-2.0
// Makes folders that train_images learns from: draw_pictures <folder> [<pictures of each class>]
// draws shapes, draw_pictures <folder> mnist <folder with MNIST's files> writes digits.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <xla/data/picture.hpp>
#include <xla/ext/image.hpp>
#include <xla/io/file.hpp>
#include <xla/kernel/random/philox.hpp>

#include "../digits.hpp"

namespace {

using Pixel = std::array<float, 3>;

/// Whether a point of the plane is in a shape that fills the square from -1 to 1.
bool inside(std::string_view shape, float x, float y) {
  const float far = std::hypot(x, y);
  if (shape == "circle") return far < 1;
  if (shape == "cross") return std::min(std::abs(x), std::abs(y)) < 0.3f;
  if (shape == "ring") return far < 1 && far > 0.6f;
  if (shape == "square") return true;
  return y > -0.5f && y + 1.7f * std::abs(x) < 1;  // a triangle
}

/// A shape of some size, place, turn and colour on a ground of another colour, with noise.
xla::data::Picture draw(std::string_view shape, std::uint64_t number) {
  std::uint64_t drawn = 0;
  const auto next = [&] { return xla::uniform01(xla::philox4x32(drawn++, 1 + number)[0]); };
  const auto side = static_cast<std::int64_t>(40 + 24 * next()),
             other = side + std::int64_t(9 * next());
  auto out = xla::data::black_picture(side, other, 3);
  const float radius = static_cast<float>(side) * (0.2f + 0.2f * next());
  const auto place = [&](std::int64_t along) {
    return radius + (static_cast<float>(along) - 2 * radius) * next();
  };
  const float top = place(side), left = place(other), turn = 0.6f * (next() - 0.5f);
  const Pixel ink{next(), next(), next()};
  const float shift = 0.4f + 0.3f * next();
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t x = 0; x < other; ++x) {
      const float u = (static_cast<float>(x) - left) / radius,
                  v = (top - static_cast<float>(y)) / radius;
      const float a = u * std::cos(turn) - v * std::sin(turn),
                  b = u * std::sin(turn) + v * std::cos(turn);
      const bool in = std::max(std::abs(a), std::abs(b)) < 1 && inside(shape, a, b);
      for (std::size_t c = 0; c < 3; ++c) {
        const float ground = ink[c] < 0.5f ? ink[c] + shift : ink[c] - shift;
        const float value = std::clamp(in ? ink[c] : ground, 0.0f, 0.85f) + 0.15f * next();
        out.row(y)[static_cast<std::size_t>(3 * x) + c] = static_cast<std::uint8_t>(255 * value);
      }
    }
  return out;
}

void write(const std::string& folder, std::size_t number, const xla::data::Picture& picture) {
  xla::io::write_file(folder + std::to_string(number) + ".png", xla::ext::to_png(picture));
}

void draw_shapes(const std::string& folder, std::uint64_t count) {
  std::uint64_t number = 0;
  for (const char* const shape : {"circle", "cross", "ring", "square", "triangle"}) {
    const auto path = folder + "/" + shape + "/";
    std::filesystem::create_directories(path);
    for (std::uint64_t i = 0; i < count; ++i) write(path, i, draw(shape, number++));
  }
  std::printf("%llu pictures of 5 shapes in %s\n", static_cast<unsigned long long>(number),
              folder.c_str());
}

/// As `<folder>/train/<digit>/<number>.png` and `<folder>/test/…`, grey.
void write_digits(const std::string& folder, const std::string& from) {
  const auto sets = read_folder(from);
  for (std::size_t s = 0; s < 2; ++s) {
    const auto [images, digits] = sets[s].batch(xla::arange(sets[s].size()).to_vector());
    const auto pixels = images.to_vector();
    const auto is = digits.to_vector();
    for (std::size_t i = 0; i < is.size(); ++i) {
      const auto path = folder + (s == 0 ? "/train/" : "/test/") + std::to_string(is[i]) + "/";
      std::filesystem::create_directories(path);
      auto picture = xla::data::black_picture(28, 28, 1);
      std::transform(
          pixels.begin() + static_cast<std::ptrdiff_t>(784 * i),
          pixels.begin() + static_cast<std::ptrdiff_t>(784 * (i + 1)), picture.pixels.begin(),
          [](float value) { return static_cast<std::uint8_t>(std::lround(255 * value)); });
      write(path, i, picture);
    }
    std::printf("%zu digits\n", is.size());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "", what = argc > 2 ? argv[2] : "200";
  std::uint64_t count = 0;
  const auto [end, failed] = std::from_chars(what.data(), what.data() + what.size(), count);
  if (!folder.empty() && what == "mnist" && argc > 3) write_digits(folder, argv[3]);
  else if (!folder.empty() && failed == std::errc{} && *end == 0) draw_shapes(folder, count);
  else
    throw xla::runtime_error(
        "<folder> [<pictures of each class>], or <folder> mnist <folder with MNIST's files>");
} catch (const std::exception& e) {
  std::fprintf(stderr, "draw_pictures: %s\n", e.what());
  return 1;
}
