// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes pictures with Pillow's exact rounding, so that preprocessed inputs equal PyTorch's. It
// works on bytes; tensors are resized by interpolate() (op/).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/picture.hpp"
#include "xla/data/transforms.hpp"

namespace xla::data {

/// How a resized picture takes its pixels from the given one; as torchvision's InterpolationMode.
/// Both are antialiased: where a picture shrinks, all pixels count.
enum class InterpolationMode { bilinear, bicubic };

namespace detail {

/// The input pixels of a row or column that make one result pixel, and their weights as integers
/// whose sum is 2^weight_bits.
struct resize_window {
  std::int64_t first = 0, count = 0;
  const std::int32_t* weights = nullptr;
};
inline constexpr int resize_weight_bits = 22;

inline double resize_weight(InterpolationMode mode, double x) {
  x = std::abs(x);
  if (mode == InterpolationMode::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/// The windows of all pixels along one axis. Every rounding is Pillow's (its Resample.c), so that
/// results are equal, not only near.
class resize_windows {
 public:
  resize_windows(std::int64_t from, std::int64_t to, InterpolationMode mode) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double wide = std::max(scale, 1.0);
    const double reach = (mode == InterpolationMode::bilinear ? 1.0 : 2.0) * wide;
    const auto most = static_cast<std::size_t>(std::ceil(reach)) * 2 + 1;
    weights_.resize(static_cast<std::size_t>(to) * most);
    std::vector<double> exact(most);
    for (std::int64_t i = 0; i < to; ++i) {
      const double center = (static_cast<double>(i) + 0.5) * scale;
      const auto first = std::max(std::int64_t{0}, static_cast<std::int64_t>(center - reach + 0.5));
      const auto end = std::min(from, static_cast<std::int64_t>(center + reach + 0.5));
      double sum = 0;
      for (auto at = first; at < end; ++at)
        sum += exact[static_cast<std::size_t>(at - first)] =
            resize_weight(mode, (static_cast<double>(at) - center + 0.5) * (1 / wide));
      auto* const weights = weights_.data() + static_cast<std::size_t>(i) * most;
      std::transform(exact.begin(), exact.begin() + (end - first), weights, [&](double weight) {
        const double one = 1 << resize_weight_bits;
        weight = sum != 0 ? weight / sum * one : weight * one;
        return static_cast<std::int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
      });
      windows_.push_back({first, end - first, weights});
    }
  }
  const resize_window& operator[](std::int64_t i) const {
    return windows_[static_cast<std::size_t>(i)];
  }

 private:
  std::vector<std::int32_t> weights_;
  std::vector<resize_window> windows_;
};

/// The initial value of a sum of weighted bytes: the final shift then rounds.
inline constexpr std::int32_t resize_half = 1 << (resize_weight_bits - 1);
inline std::uint8_t resized_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> resize_weight_bits, 0, 255));
}

/// Resizes one row of this many channels; pixels of the result are `step` bytes apart.
template <int Channels>
void resize_row(const std::uint8_t* from, std::uint8_t* to, std::int64_t step, std::int64_t width,
                const resize_windows& windows) {
  for (std::int64_t x = 0; x < width; ++x, to += step) {
    const auto [first, count, weights] = windows[x];
    std::int32_t sums[Channels];
    std::fill_n(sums, Channels, resize_half);
    const auto* pixel = from + first * step;
    for (std::int64_t i = 0; i < count; ++i, pixel += step)
      for (int c = 0; c < Channels; ++c) sums[c] += pixel[c] * weights[i];
    for (int c = 0; c < Channels; ++c) to[c] = resized_byte(sums[c]);
  }
}

/// Rows [first, end) of `from`, each resized to another width.
inline Picture resize_rows(const Picture& from, std::int64_t first, std::int64_t end,
                           std::int64_t width, InterpolationMode mode) {
  Picture out = black_picture(end - first, width, from.channels);
  const resize_windows windows{from.width, width, mode};
  for (auto y = first; y < end; ++y) {
    const auto in = from.row(y).data();
    const auto to = out.row(y - first).data();
    std::int64_t c = 0;
    for (; c + 3 <= from.channels; c += 3)
      resize_row<3>(in + c, to + c, from.channels, width, windows);
    for (; c < from.channels; ++c) resize_row<1>(in + c, to + c, from.channels, width, windows);
  }
  return out;
}

/// All columns resized to another height; `from` begins with row `offset` of the picture that the
/// windows refer to.
inline Picture resize_columns(const Picture& from, std::int64_t offset, std::int64_t height,
                              const resize_windows& windows) {
  Picture out = black_picture(height, from.width, from.channels);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(from.width * from.channels));
  for (std::int64_t y = 0; y < height; ++y) {
    const auto [first, count, weights] = windows[y];
    std::ranges::fill(sums, resize_half);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto in = from.row(first - offset + i);
      const auto weight = weights[i];
      for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += in[x] * weight;
    }
    std::ranges::transform(sums, out.row(y).begin(), resized_byte);
  }
  return out;
}

inline std::string size_text(std::int64_t height, std::int64_t width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

}  // namespace detail

/// Resizes a picture to (height, width) with antialiasing; the numbers are torchvision's and
/// Pillow's. Throws `xla::shape_error` for a size below 1 or too many pixels.
inline Picture resize(const Picture& from, std::array<std::int64_t, 2> size,
                      InterpolationMode mode = InterpolationMode::bilinear) {
  const auto [height, width] = size;
  if (from.height < 1 || from.width < 1 || height < 1 || width < 1 ||
      height > max_picture_pixels / width)
    throw shape_error("resize: a picture of " + detail::size_text(from.height, from.width) +
                      " cannot be resized to " + detail::size_text(height, width));
  if (from.height == height && from.width == width) return from;
  if (from.height == height) return detail::resize_rows(from, 0, height, width, mode);
  const detail::resize_windows rows{from.height, height, mode};
  if (from.width == width) return detail::resize_columns(from, 0, height, rows);
  // The order of the two passes affects rounding; this is the one of Pillow 13 and later.
  if (height < from.height && from.height - height > 2 * (from.width - width))
    return detail::resize_rows(detail::resize_columns(from, 0, height, rows), 0, height, width,
                               mode);
  const auto first = rows[0].first;
  const auto end = rows[height - 1].first + rows[height - 1].count;
  return detail::resize_columns(detail::resize_rows(from, first, end, width, mode), first, height,
                                rows);
}

/// Resizes a picture so that its shorter side has this length, keeping the aspect ratio up to whole
/// pixels; like torchvision's Resize with one number.
inline Picture resize(const Picture& from, std::int64_t shorter,
                      InterpolationMode mode = InterpolationMode::bilinear) {
  const bool upright = from.width <= from.height;
  const auto low = std::min(from.height, from.width), high = std::max(from.height, from.width);
  if (low < 1 || shorter < 1 || shorter > max_picture_pixels)
    throw shape_error("resize: a picture of " + detail::size_text(from.height, from.width) +
                      " cannot be resized to a shorter side of " + std::to_string(shorter));
  const auto longer = shorter * high / low;
  return upright ? resize(from, {longer, shorter}, mode) : resize(from, {shorter, longer}, mode);
}

/// The centre of a picture (height, width), padded with black if the picture is smaller; like
/// torchvision's. Throws `xla::shape_error` for a size below 1.
inline Picture center_crop(const Picture& from, std::array<std::int64_t, 2> size) {
  const auto [height, width] = size;
  if (height < 1 || width < 1 || height > max_picture_pixels / width)
    throw shape_error("center_crop: a window of " + detail::size_text(height, width));
  // Half of the difference, rounded to even as Python does.
  const auto half = [](std::int64_t over) { return over / 2 + (over % 2 & over / 2 % 2); };
  const auto begin = [&](std::int64_t had, std::int64_t wanted) {
    return had < wanted ? -((wanted - had) / 2) : half(had - wanted);
  };
  const auto top = begin(from.height, height), left = begin(from.width, width);
  const auto rows = std::min(height, from.height), columns = std::min(width, from.width);
  if (rows == height && columns == width) return crop(from, top, left, height, width);
  Picture out = black_picture(height, width, from.channels);
  for (std::int64_t y = 0; y < rows; ++y)
    std::copy_n(from.row(std::max<std::int64_t>(top, 0) + y).begin() +
                    std::max<std::int64_t>(left, 0) * from.channels,
                columns * from.channels,
                out.row(y - std::min<std::int64_t>(top, 0)).begin() -
                    std::min<std::int64_t>(left, 0) * from.channels);
  return out;
}

/// `resize` as a transform: `Resize{256}` for the shorter side, `Resize{{224, 224}}` for (height,
/// width); as torchvision's.
class Resize {
 public:
  explicit Resize(std::int64_t shorter, InterpolationMode mode = InterpolationMode::bilinear)
      : size_{shorter, 0}, mode_(mode) {}
  explicit Resize(std::array<std::int64_t, 2> size,
                  InterpolationMode mode = InterpolationMode::bilinear)
      : size_(size), exact_(true), mode_(mode) {}

  void operator()(Picture& picture, SampleRandom&) const {
    picture = exact_ ? resize(picture, size_, mode_) : resize(picture, size_[0], mode_);
  }

 private:
  std::array<std::int64_t, 2> size_;
  bool exact_ = false;
  InterpolationMode mode_;
};

/// `center_crop` as a transform: `CenterCrop{.size = {224, 224}}`.
struct CenterCrop {
  std::array<std::int64_t, 2> size;

  void operator()(Picture& picture, SampleRandom&) const { picture = center_crop(picture, size); }
};

}  // namespace xla::data
