// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transforms of images for training, as torchvision's, and datasets that apply them. Each sample
// has random numbers of its own, which depend on seed, epoch and number.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/loader.hpp"
#include "xla/data/picture.hpp"
#include "xla/kernel/random/philox.hpp"

namespace xla::data {

/// The image that a transform changes: (channels, height, width), row by row.
struct Image {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<float> pixels = {};

  std::span<float> row(std::int64_t channel, std::int64_t y) {
    return {pixels.data() + (channel * height + y) * width, static_cast<std::size_t>(width)};
  }
  std::span<const float> row(std::int64_t channel, std::int64_t y) const {
    return {pixels.data() + (channel * height + y) * width, static_cast<std::size_t>(width)};
  }
};

/// Bytes as numbers from 0 to 1, channel by channel; as torchvision's `to_tensor`.
inline Image to_image(const Picture& picture) {
  Image out{picture.channels, picture.height, picture.width,
            std::vector<float>(picture.pixels.size())};
  for (std::int64_t c = 0; c < out.channels; ++c)
    for (std::int64_t y = 0; y < out.height; ++y) {
      const auto* byte = picture.row(y).data() + c;
      for (float& pixel : out.row(c, y)) {
        pixel = static_cast<float>(*byte) / 255;
        byte += out.channels;
      }
    }
  return out;
}

/// `to_image` as a transform: transforms before it take pictures, those after it images.
struct ToTensor {
  Image operator()(const Picture& picture) const { return to_image(picture); }
};

/// The random numbers of one sample in one epoch: a function of seed, epoch and sample number
/// alone.
class SampleRandom {
 public:
  SampleRandom(const Epoch& epoch, std::int64_t sample)
      : key_{static_cast<std::uint32_t>(epoch.seed), static_cast<std::uint32_t>(epoch.seed >> 32)},
        // The last word of the counter is never 0; those of tensors and of shuffled orders are.
        counter_{0, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(epoch.number),
                 1 + static_cast<std::uint32_t>(sample >> 32)} {}

  /// The next number, uniform in [0, 1).
  float uniform() { return uniform01(next()); }
  /// The next whole number, uniform in [0, n); n is below 2^32.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(next() * static_cast<std::uint64_t>(n) >> 32);
  }

 private:
  std::uint32_t next() {
    const auto word = philox4x32(counter_, key_)[0];
    ++counter_[0];
    return word;
  }
  philox_key key_;
  philox_counter counter_;
};

/// Mirrors an image left to right with probability p; as torchvision's.
struct RandomHorizontalFlip {
  float p = 0.5f;

  void operator()(Image& image, SampleRandom& random) const {
    if (random.uniform() >= p) return;
    for (std::int64_t c = 0; c < image.channels; ++c)
      for (std::int64_t y = 0; y < image.height; ++y) std::ranges::reverse(image.row(c, y));
  }
};

/// How the border around an image is filled: with the number `fill`, with the edge's pixels, or
/// with the mirrored image, which repeats the edge pixel (`symmetric`) or not (`reflect`).
enum class padding_mode { constant, edge, reflect, symmetric };

/// Cuts a window at a random position out of an image with a border around it; like torchvision's.
/// Sizes are (height, width). Throws `xla::shape_error` if the window is larger than image and
/// border.
struct RandomCrop {
  std::array<std::int64_t, 2> size;
  std::int64_t padding = 0;  ///< On each of the four sides.
  float fill = 0;
  padding_mode mode = padding_mode::constant;

  void operator()(Image& image, SampleRandom& random) const {
    const auto [height, width] = size;
    check(image);
    const auto top = random.below(image.height + 2 * padding - height + 1) - padding;
    const auto left = random.below(image.width + 2 * padding - width + 1) - padding;
    Image out{image.channels, height, width,
              std::vector<float>(static_cast<std::size_t>(image.channels * height * width), fill)};
    for (std::int64_t c = 0; c < image.channels; ++c)
      for (std::int64_t y = 0; y < height; ++y) {
        const auto from_y = inside(top + y, image.height);
        if (from_y < 0) continue;
        const auto from = image.row(c, from_y);
        const auto to = out.row(c, y);
        for (std::int64_t x = 0; x < width; ++x)
          if (const auto from_x = inside(left + x, image.width); from_x >= 0)
            to[static_cast<std::size_t>(x)] = from[static_cast<std::size_t>(from_x)];
      }
    image = std::move(out);
  }

 private:
  void check(const Image& image) const {
    const auto by = [](std::int64_t height, std::int64_t width) {
      return std::to_string(height) + " x " + std::to_string(width);
    };
    const auto shorter = std::min(image.height, image.width);
    if (padding < 0 || (mode == padding_mode::reflect && padding >= shorter) ||
        (mode != padding_mode::constant && padding > shorter))
      throw shape_error("RandomCrop: a border of " + std::to_string(padding) +
                        " cannot be made of an image of " + by(image.height, image.width));
    if (size[0] < 1 || size[1] < 1 || size[0] > image.height + 2 * padding ||
        size[1] > image.width + 2 * padding)
      throw shape_error("RandomCrop: a window of " + by(size[0], size[1]) +
                        " does not fit into an image of " + by(image.height, image.width) +
                        " with a border of " + std::to_string(padding));
  }
  /// The pixel that position x shows, for an axis of n pixels; -1 for `fill`.
  std::int64_t inside(std::int64_t x, std::int64_t n) const {
    if (x >= 0 && x < n) return x;
    switch (mode) {
      case padding_mode::constant: return -1;
      case padding_mode::edge: return x < 0 ? 0 : n - 1;
      case padding_mode::reflect: return x < 0 ? -x : 2 * n - 2 - x;
      case padding_mode::symmetric: return x < 0 ? -1 - x : 2 * n - 1 - x;
    }
    return -1;
  }
};

/// (pixel - mean) / std, with a mean and a std for each channel or one for all; as torchvision's.
/// Throws `xla::error` for a std that is not above 0, `xla::shape_error` for other numbers of them.
struct Normalize {
  std::vector<float> mean, std;

  void operator()(Image& image, SampleRandom&) const {
    const auto channels = static_cast<std::size_t>(image.channels);
    for (const auto* const values : {&mean, &std})
      if (values->size() != 1 && values->size() != channels)
        throw shape_error("Normalize: " + std::to_string(mean.size()) + " means and " +
                          std::to_string(std.size()) + " stds for images of " +
                          std::to_string(channels) + " channels");
    for (std::size_t c = 0; c < channels; ++c) {
      const float m = mean[mean.size() == 1 ? 0 : c], s = std[std.size() == 1 ? 0 : c];
      if (!(s > 0)) throw runtime_error("Normalize: a std is " + std::to_string(s));
      const auto plane = static_cast<std::size_t>(image.height * image.width);
      for (float& pixel : std::span(image.pixels).subspan(c * plane, plane))
        pixel = (pixel - m) / s;
    }
  }
};

/// Applies transforms one after the other: `Compose{RandomCrop{.size = {32, 32}, .padding = 4},
/// RandomHorizontalFlip{}}`. A transform of your own is a function of an `Image&`, which it
/// changes, and a `SampleRandom&`; it may run on a loader's thread. A chain with `ToTensor` makes
/// an image of a `Picture`: `Compose{Resize{256}, ToTensor{}, Normalize{…}}`; transforms before
/// `ToTensor` take a `Picture&`.
template <class... Transforms>
class Compose {
 public:
  explicit Compose(Transforms... transforms) : transforms_(std::move(transforms)...) {}

  void operator()(Image& image, SampleRandom& random) const {
    std::apply([&](const auto&... each) { (each(image, random), ...); }, transforms_);
  }
  Image operator()(Picture picture, SampleRandom& random) const {
    static_assert((std::is_same_v<Transforms, ToTensor> || ...),
                  "Compose: one of the transforms of a picture is ToTensor, which makes the image");
    return std::apply(
        [&](const auto&... each) { return along(random, std::move(picture), each...); },
        transforms_);
  }

 private:
  template <class X, class First, class... Rest>
  static Image along(SampleRandom& random, X x, const First& first, const Rest&... rest) {
    if constexpr (std::is_same_v<First, ToTensor>) {
      return along(random, first(x), rest...);
    } else {
      first(x, random);
      return along(random, std::move(x), rest...);
    }
  }
  static Image along(SampleRandom&, Image image) { return image; }

  std::tuple<Transforms...> transforms_;
};

/// Transforms each of the images (batch, channels, height, width) with its sample's random numbers.
/// Bytes become numbers from 0 to 1, as by torchvision's ToTensor. Throws `xla::shape_error` if the
/// transformed images have different sizes.
template <class T, class Transform>
Tensor<float, 4> transform_images(const Tensor<T, 4>& images, std::span<const std::int64_t> samples,
                                  const Epoch& epoch, const Transform& with) {
  const auto sizes = images.sizes();
  if (sizes[0] != static_cast<std::int64_t>(samples.size()))
    throw shape_error("transform_images: " + std::to_string(sizes[0]) + " images of " +
                      std::to_string(samples.size()) + " samples");
  constexpr float white = std::is_same_v<T, std::uint8_t> ? 255 : 1;
  const auto pixels = static_cast<std::size_t>(sizes[1] * sizes[2] * sizes[3]);
  const T* const all = images.data();
  Image image{sizes[1], sizes[2], sizes[3]}, first = image;
  std::vector<float> out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    image = {sizes[1], sizes[2], sizes[3], std::move(image.pixels)};
    image.pixels.resize(pixels);
    std::transform(all + i * pixels, all + (i + 1) * pixels, image.pixels.begin(),
                   [](T value) { return static_cast<float>(value) / white; });
    SampleRandom random{epoch, samples[i]};
    with(image, random);
    if (i == 0) {
      first = {image.channels, image.height, image.width};
      out.reserve(samples.size() * image.pixels.size());
    }
    if (image.channels != first.channels || image.height != first.height ||
        image.width != first.width)
      throw shape_error("transform_images: the images of a batch come out with different sizes");
    out.insert(out.end(), image.pixels.begin(), image.pixels.end());
  }
  return from_blob(out.data(), {sizes[0], first.channels, first.height, first.width});
}

/// A dataset whose first tensor holds images (batch, channels, height, width) of float or bytes,
/// transformed again in every epoch: `DataLoader{TransformedDataset{images, RandomHorizontalFlip{}},
/// {.batch_size = 64, .shuffle = true, .seed = 1, .prefetch = 2}}`. Sample i of an epoch is the
/// same image in every batch, order and mode.
template <class D, class Transform>
class TransformedDataset {
 public:
  TransformedDataset(D dataset, Transform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  std::int64_t size() const { return dataset_.size(); }

  /// The samples with these numbers in this epoch.
  auto batch(std::span<const std::int64_t> samples, const Epoch& epoch = {}) const {
    return std::apply(
        [&](const auto& images, const auto&... rest) {
          return typename detail::batch_of<Tensor<float, 4>,
                                           std::remove_cvref_t<decltype(rest)>...>::type{
              transform_images(images, samples, epoch, transform_), rest...};
        },
        detail::make_batch(dataset_, samples, epoch));
  }

  const D& dataset() const { return dataset_; }

 private:
  D dataset_;
  Transform transform_;
};

}  // namespace xla::data
