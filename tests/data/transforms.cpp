// SPDX-License-Identifier: Apache-2.0
#include "xla/data/transforms.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "xla/data/padding.hpp"
#include "xla/data/subset.hpp"
#include "xla/xla.hpp"

namespace {

using namespace xla::data;
using numbers = std::vector<std::int64_t>;
using pixels = std::vector<float>;

// One image of one channel, (2, 3): 1 to 6.
Image small_image() { return {1, 2, 3, {1, 2, 3, 4, 5, 6}}; }
template <class Transform>
Image changed(const Transform& transform, Image image = small_image(), std::int64_t sample = 0) {
  SampleRandom random{{7, 0}, sample};
  transform(image, random);
  return image;
}

// Images (2, 5, 4) whose pixels are all different, and their numbers.
auto images(std::int64_t n) {
  return TensorDataset{xla::reshape(xla::cast<float>(xla::arange(n * 40)), {n, 2, 5, 4}),
                       xla::arange(n)};
}
auto augmentation() {
  return Compose{RandomCrop{.size = {5, 4}, .padding = 2}, RandomHorizontalFlip{},
                 Normalize{{1, 2}, {3, 4}}};
}
// Of each sample the image that an epoch has.
template <class Loader>
std::map<std::int64_t, pixels> epoch(Loader& loader) {
  std::map<std::int64_t, pixels> out;
  for (auto& [data, target] : loader) {
    static_assert(std::is_same_v<decltype(data), xla::Tensor<float, 4>>);
    const auto all = data.to_vector();
    const auto of = target.to_vector();
    const auto each = all.size() / of.size();
    for (std::size_t i = 0; i < of.size(); ++i) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(i * each);
      out[of[i]] = pixels(at, at + static_cast<std::ptrdiff_t>(each));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("a flip mirrors rows, with its probability") {
  CHECK(changed(RandomHorizontalFlip{1}).pixels == pixels{3, 2, 1, 6, 5, 4});
  CHECK(changed(RandomHorizontalFlip{0}).pixels == small_image().pixels);
  int flipped = 0;
  for (std::int64_t i = 0; i < 1000; ++i)
    flipped += changed(RandomHorizontalFlip{0.3f}, small_image(), i).pixels[0] == 3 ? 1 : 0;
  CHECK(flipped > 250);
  CHECK(flipped < 350);
}

TEST_CASE("a crop takes every window, with a border of each kind") {
  CHECK(changed(RandomCrop{.size = {2, 3}}).pixels == small_image().pixels);
  CHECK(changed(RandomCrop{.size = {4, 5}, .padding = 1, .fill = 9}).pixels ==
        pixels{9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9});
  const auto border = [](padding_mode mode) {
    return changed(RandomCrop{.size = {4, 5}, .padding = 1, .mode = mode}).pixels;
  };
  CHECK(border(padding_mode::edge) ==
        pixels{1, 1, 2, 3, 3, 1, 1, 2, 3, 3, 4, 4, 5, 6, 6, 4, 4, 5, 6, 6});
  CHECK(border(padding_mode::symmetric) == border(padding_mode::edge));
  CHECK(border(padding_mode::reflect) ==
        pixels{5, 4, 5, 6, 5, 2, 1, 2, 3, 2, 5, 4, 5, 6, 5, 2, 1, 2, 3, 2});
  CHECK(changed(RandomCrop{.size = {2, 7}, .padding = 2, .mode = padding_mode::symmetric},
                {1, 2, 3, {1, 2, 3, 1, 2, 3}})
            .pixels == pixels{2, 1, 1, 2, 3, 3, 2, 2, 1, 1, 2, 3, 3, 2});
  std::map<pixels, int> windows;
  for (std::int64_t i = 0; i < 1200; ++i)
    ++windows[changed(RandomCrop{.size = {1, 2}}, small_image(), i).pixels];
  CHECK(windows.size() == 4);
  for (const auto& [window, count] : windows) CHECK((count > 230 && count < 370));
  const auto two =
      changed(RandomCrop{.size = {2, 3}}, {2, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}});
  CHECK(two.channels == 2);
  CHECK(two.pixels[6] == 7);
}

TEST_CASE("normalisation has a mean and a std for each channel, or one for all") {
  const Image two{2, 1, 2, {1, 3, 5, 9}};
  CHECK(changed(Normalize{{1, 5}, {2, 4}}, two).pixels == pixels{0, 1, 0, 1});
  CHECK(changed(Normalize{{1}, {2}}, two).pixels == pixels{0, 1, 2, 4});
}

TEST_CASE("transforms that do not fit the image are refused") {
  CHECK_THROWS_WITH(changed(RandomCrop{.size = {5, 3}, .padding = 1}),
                    "RandomCrop: a window of 5 x 3 does not fit into an image of 2 x 3 with a "
                    "border of 1");
  CHECK_THROWS_AS(changed(RandomCrop{.size = {0, 1}}), xla::shape_error);
  CHECK_THROWS_AS(changed(RandomCrop{.size = {2, 2}, .padding = -1}), xla::shape_error);
  CHECK_THROWS_WITH(
      changed(RandomCrop{.size = {2, 2}, .padding = 2, .mode = padding_mode::reflect}),
      "RandomCrop: a border of 2 cannot be made of an image of 2 x 3");
  CHECK_THROWS_AS(changed(Normalize{{1, 2}, {1, 1}}), xla::shape_error);
  CHECK_THROWS_AS(changed(Normalize{{1}, {0}}), xla::error);
  int calls = 0;
  const auto uneven = [&](Image& image, SampleRandom&) {
    image.width = 3 - calls++;
    image.pixels.resize(static_cast<std::size_t>(2 * 5 * image.width));
  };
  const auto [data, of] = images(2).batch(numbers{0, 1});
  CHECK_THROWS_AS(transform_images(data, numbers{0, 1}, {}, uneven), xla::shape_error);
  CHECK_THROWS_AS(transform_images(data, numbers{0}, {}, augmentation()), xla::shape_error);
}

TEST_CASE("draws depend on seed, epoch and sample alone") {
  const auto data = images(30);
  const TransformedDataset plain{data, augmentation()};
  DataLoader reference{plain, {.batch_size = 30, .seed = 5}};
  const auto first = epoch(reference), second = epoch(reference);
  CHECK(first.size() == 30);
  int moved = 0;
  for (const auto& [sample, image] : first) moved += image != second.at(sample) ? 1 : 0;
  CHECK(moved > 20);

  const auto threads = xla::num_threads();
  for (const int t : {1, 2})
    for (const bool eager : {true, false})
      for (const std::int64_t ahead : {0, 3}) {
        xla::set_num_threads(t);
        const xla::eager_mode_guard mode{eager};
        DataLoader loader{plain, {.batch_size = 7, .shuffle = true, .seed = 5, .prefetch = ahead}};
        CHECK(epoch(loader) == first);
        CHECK(epoch(loader) == second);
        loader.set_epoch(1);
        CHECK(epoch(loader) == second);
      }
  xla::set_num_threads(threads);

  DataLoader other{plain, {.batch_size = 30, .seed = 6}};
  CHECK(epoch(other) != first);
  // A subset of transformed images has the draws of the whole.
  DataLoader some{Subset{plain, {4, 20}}, {.batch_size = 1, .seed = 5}};
  CHECK(epoch(some) == std::map<std::int64_t, pixels>{{4, first.at(4)}, {20, first.at(20)}});
  DataLoader padded{plain, {.batch_size = 16, .seed = 5}, pad_last};
  for (auto& [x, y, mask] : padded) CHECK(x.sizes() == numbers{16, 2, 5, 4});
}

TEST_CASE("a compiled step sees the same images as an eager one") {
  const TransformedDataset data{images(12), augmentation()};
  const auto body = [](auto& x) { return xla::sum(x * x); };
  auto compiled = xla::compile(body, {.name = "squares"});
  const auto losses = [&](auto& step, std::int64_t ahead) {
    DataLoader loader{data, {.batch_size = 4, .shuffle = true, .seed = 2, .prefetch = ahead}};
    pixels out;
    for (int e = 0; e < 2; ++e)
      for (auto& [x, y] : loader) out.push_back(step(x).item());
    return out;
  };
  CHECK(losses(compiled, 2) == losses(body, 0));
}

TEST_CASE("bytes become numbers from 0 to 1, and what else a batch has stays") {
  const std::vector<std::uint8_t> bytes{0, 51, 255, 102};
  const auto labels = xla::arange(2);
  const TensorDataset data{xla::from_blob(bytes.data(), {2, 1, 1, 2}), labels, labels};
  const TransformedDataset mirrored{data, RandomHorizontalFlip{1}};
  const auto [x, y, z] = mirrored.batch(numbers{1, 0});
  CHECK(x.sizes() == numbers{2, 1, 1, 2});
  CHECK(x.to_vector() == pixels{0.4f, 1, 0.2f, 0});
  CHECK(y.to_vector() == numbers{1, 0});
  CHECK(std::get<0>(mirrored.batch(numbers{})).sizes() == numbers{0, 1, 1, 2});
}
