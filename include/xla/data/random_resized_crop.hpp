// SPDX-License-Identifier: Apache-2.0
#pragma once

// RandomResizedCrop, as torchvision's: the usual augmentation for training on photographs. The
// window is random by sample and epoch, so that runs can be repeated.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "xla/base/error.hpp"
#include "xla/data/picture.hpp"
#include "xla/data/resize.hpp"
#include "xla/data/transforms.hpp"

namespace xla::data {

/// Cuts a window of random area, aspect ratio and position out of a picture and resizes it to
/// (height, width), like torchvision's. If ten draws do not fit, it takes the centre, within
/// `ratio`. Szegedy et al. (2014). Throws `xla::error` for ranges that do not rise or are not
/// positive.
struct RandomResizedCrop {
  std::array<std::int64_t, 2> size;
  std::array<float, 2> scale = {0.08f, 1};               ///< Of the picture's area.
  std::array<float, 2> ratio = {3.0f / 4.0f, 4.0f / 3};  ///< Width by height.
  InterpolationMode interpolation = InterpolationMode::bilinear;

  /// A window of a picture, and where its upper left pixel is.
  struct Window {
    std::int64_t top, left, height, width;
  };
  /// The window that is drawn for a picture of this size.
  Window window(std::int64_t height, std::int64_t width, SampleRandom& random) const {
    for (const auto& range : {scale, ratio})
      if (!(range[0] > 0 && range[0] <= range[1]))
        throw runtime_error("RandomResizedCrop: a range from " + std::to_string(range[0]) + " to " +
                            std::to_string(range[1]) + "; it has to rise and be above 0");
    const auto whole = static_cast<double>(height) * static_cast<double>(width);
    const std::array logs{std::log(ratio[0]), std::log(ratio[1])};
    for (int i = 0; i < 10; ++i) {
      const double area = whole * between(scale, random);
      const double shape = std::exp(between(logs, random));
      const std::int64_t h = std::llround(std::sqrt(area / shape));
      const std::int64_t w = std::llround(std::sqrt(area * shape));
      if (h < 1 || w < 1 || h > height || w > width) continue;
      const auto top = random.below(height - h + 1);
      return {top, random.below(width - w + 1), h, w};
    }
    return middle(height, width);
  }

  void operator()(Picture& picture, SampleRandom& random) const {
    const auto [top, left, height, width] = window(picture.height, picture.width, random);
    picture = resize(crop(picture, top, left, height, width), size, interpolation);
  }

 private:
  static double between(const std::array<float, 2>& range, SampleRandom& random) {
    return range[0] + (range[1] - range[0]) * random.uniform();
  }
  /// As much of the centre as has an aspect ratio within the range.
  Window middle(std::int64_t height, std::int64_t width) const {
    const auto shape = static_cast<float>(width) / static_cast<float>(height);
    auto h = height, w = width;
    if (shape < ratio[0]) h = std::llround(static_cast<float>(width) / ratio[0]);
    if (shape > ratio[1]) w = std::llround(static_cast<float>(height) * ratio[1]);
    h = std::clamp(h, std::int64_t{1}, height), w = std::clamp(w, std::int64_t{1}, width);
    return {(height - h) / 2, (width - w) / 2, h, w};
  }
};

}  // namespace xla::data
