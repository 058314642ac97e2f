// SPDX-License-Identifier: Apache-2.0
#include "xla/data/resize.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "catch.hpp"
#include "data/resize.inc"
#include "support/pictures.hpp"
#include "xla/data/random_resized_crop.hpp"

using namespace xla::data;
using numbers = std::vector<std::int64_t>;

TEST_CASE("pictures are resized to torchvision's and Pillow's bytes") {
  for (const auto& [from, size, mode, height, width, pixels] : reference::resize_cases) {
    INFO(from[0] << " x " << from[1] << " x " << from[2] << " to " << size[0] << " x " << size[1]);
    const auto picture = test::picture(from[0], from[1], from[2]);
    const auto out =
        size[0] == 0 ? resize(picture, size[1], mode) : resize(picture, {size[0], size[1]}, mode);
    CHECK(out.height == height);
    CHECK(out.width == width);
    CHECK(out.channels == from[2]);
    CHECK(out.pixels == test::bytes_of(pixels));
  }
}

TEST_CASE("other numbers of channels are resized one by one") {
  const auto five = test::picture(9, 12, 5), out = resize(five, {4, 7});
  for (std::int64_t c = 0; c < 5; ++c) {
    auto one = black_picture(9, 12, 1), resized = black_picture(4, 7, 1);
    for (std::size_t i = 0; i < one.pixels.size(); ++i)
      one.pixels[i] = five.pixels[5 * i + static_cast<std::size_t>(c)];
    for (std::size_t i = 0; i < resized.pixels.size(); ++i)
      resized.pixels[i] = out.pixels[5 * i + static_cast<std::size_t>(c)];
    CHECK(resize(one, {4, 7}).pixels == resized.pixels);
  }
}

TEST_CASE("the middle is torchvision's, odd or larger than the picture") {
  for (const auto& [from, size, pixels] : reference::crop_cases) {
    INFO(from[0] << " x " << from[1] << " to " << size[0] << " x " << size[1]);
    const auto out = center_crop(test::picture(from[0], from[1], from[2]), {size[0], size[1]});
    CHECK(out.height == size[0]);
    CHECK(out.width == size[1]);
    CHECK(out.pixels == test::bytes_of(pixels));
  }
}

TEST_CASE("a chain makes of a picture torchvision's numbers") {
  SampleRandom random{{}, 0};
  const Compose chain{Resize{16}, CenterCrop{{12, 12}}, ToTensor{},
                      Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}};
  const auto out = chain(test::picture(45, 33, 3), random);
  CHECK(out.channels == 3);
  CHECK(out.height == 12);
  CHECK(out.width == 12);
  REQUIRE(out.pixels.size() == std::size(reference::recipe));
  for (std::size_t i = 0; i < out.pixels.size(); ++i)
    REQUIRE(std::abs(out.pixels[i] - reference::recipe[i]) < 1e-6f);

  const auto both = Compose{Resize{{3, 5}, InterpolationMode::bicubic}, ToTensor{},
                            RandomHorizontalFlip{1}}(test::picture(8, 9, 1), random);
  auto image = to_image(resize(test::picture(8, 9, 1), {3, 5}, InterpolationMode::bicubic));
  for (std::int64_t y = 0; y < 3; ++y) std::ranges::reverse(image.row(0, y));
  CHECK(both.pixels == image.pixels);
}

TEST_CASE("windows, channels and numbers of a picture") {
  const auto picture = test::picture(4, 5, 3);
  const auto window = crop(picture, 1, 2, 3, 2);
  for (std::int64_t y = 0; y < 3; ++y)
    CHECK(std::ranges::equal(window.row(y), picture.row(1 + y).subspan(6, 6)));
  const Picture two{1, 2, 3, {10, 20, 30, 255, 0, 128}};
  CHECK(as_gray(two).pixels == std::vector<std::uint8_t>{18, 91});
  CHECK(as_rgb(as_gray(two)).pixels == std::vector<std::uint8_t>{18, 18, 18, 91, 91, 91});
  CHECK(as_rgb(two).pixels == two.pixels);
  CHECK_THROWS_WITH(as_rgb(black_picture(2, 2, 4)),
                    "as_rgb: a picture of 4 channels; it has to have 1 or 3");
  CHECK_THROWS_WITH(as_gray(black_picture(2, 2, 2)),
                    "as_gray: a picture of 2 channels; it has to have 1 or 3");
  const auto image = to_image(two);
  CHECK(image.pixels == std::vector<float>{10 / 255.f, 1, 20 / 255.f, 0, 30 / 255.f, 128 / 255.f});
}

TEST_CASE("sizes that cannot be are refused") {
  const auto picture = test::picture(4, 5, 1);
  CHECK_THROWS_WITH(resize(picture, {0, 3}),
                    "resize: a picture of 4 x 5 cannot be resized to 0 x 3");
  CHECK_THROWS_AS(resize(picture, {3, -1}), xla::shape_error);
  CHECK_THROWS_AS(resize(Picture{}, {3, 3}), xla::shape_error);
  CHECK_THROWS_WITH(resize(black_picture(1, 2'000'000, 1), 256),
                    "resize: a picture of 1 x 2000000 cannot be resized to 256 x 512000000");
  CHECK_THROWS_WITH(resize(picture, 0),
                    "resize: a picture of 4 x 5 cannot be resized to a shorter side of 0");
  CHECK_THROWS_AS(resize(Picture{0, 4, 1}, 3), xla::shape_error);
  CHECK_THROWS_AS(center_crop(picture, {2, 0}), xla::shape_error);
  CHECK_THROWS_AS(center_crop(picture, {1 << 30, 1 << 30}), xla::shape_error);
  CHECK_THROWS_WITH(crop(picture, 1, 0, 4, 2),
                    "crop: a window of 4 x 2 at (1, 0) is not inside a picture of 4 x 5");
  CHECK_THROWS_AS(crop(picture, -1, 0, 2, 2), xla::shape_error);
}

// The means and the windows in the middle are torchvision's: 20,000 draws of get_params.
TEST_CASE("random windows have torchvision's areas, shapes and places") {
  const RandomResizedCrop any{.size = {7, 5}};
  double area = 0, shape = 0, top = 0, left = 0;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) {
    SampleRandom random{{1, 2}, i};
    const auto at = any.window(40, 60, random);
    REQUIRE((at.top >= 0 && at.left >= 0 && at.height >= 1 && at.width >= 1));
    REQUIRE((at.top + at.height <= 40 && at.left + at.width <= 60));
    const double pixels = static_cast<double>(at.height * at.width);
    const double ratio = static_cast<double>(at.width) / static_cast<double>(at.height);
    REQUIRE((pixels > 2400 * 0.07 && ratio > 0.7 && ratio < 1.43));
    area += pixels / 2400, shape += ratio;
    top += static_cast<double>(at.top), left += static_cast<double>(at.left);
  }
  CHECK(std::abs(area / count - 0.3987) < 0.01);
  CHECK(std::abs(shape / count - 1.0459) < 0.01);
  CHECK(std::abs(top / count - 5.33) < 0.3);
  CHECK(std::abs(left / count - 14.7) < 0.4);

  const RandomResizedCrop whole{.size = {7, 5}, .scale = {1, 1}};
  const auto middle = [&](std::int64_t height, std::int64_t width) {
    SampleRandom random{{}, 0};
    const auto at = whole.window(height, width, random);
    return numbers{at.top, at.left, at.height, at.width};
  };
  CHECK(middle(2, 100) == numbers{0, 48, 2, 3});
  CHECK(middle(100, 2) == numbers{48, 0, 3, 2});

  const auto from = test::picture(40, 60, 3);
  auto picture = from;
  SampleRandom random{{3, 4}, 5}, again{{3, 4}, 5};
  any(picture, random);
  const auto at = any.window(40, 60, again);
  CHECK(picture.pixels == resize(crop(from, at.top, at.left, at.height, at.width), {7, 5}).pixels);
  const RandomResizedCrop falling{.size = {7, 5}, .scale = {0.5f, 0.1f}};
  CHECK_THROWS_WITH(
      falling(picture, random),
      "RandomResizedCrop: a range from 0.500000 to 0.100000; it has to rise and be above 0");
}
