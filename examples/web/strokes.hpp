// SPDX-License-Identifier: Apache-2.0
#pragma once

// Digits as strokes of a pen, and their pictures. The page's own digits and those that a visitor
// draws become pictures in the same way: turned, slanted and bent at random, then 20 pixels high or
// wide, with the centre of their ink in the middle, as those of MNIST.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <xla/kernel/random/philox.hpp>

namespace web {

struct Point {
  float x, y;  // y goes down
};
using Stroke = std::vector<Point>;
using Drawing = std::vector<Stroke>;

inline constexpr int side = 28;
using Picture = std::array<float, side * side>;

/// Numbers of one sample, each in [0, 1).
class Random {
 public:
  Random(std::uint64_t stream, std::uint32_t seed) : stream_(stream), seed_(seed) {}
  float operator()() {
    if (used_ == block_.size()) {
      block_ = xla::philox4x32(stream_ << 8 | blocks_++, seed_);
      used_ = 0;
    }
    return static_cast<float>(block_[used_++] >> 8) * 0x1p-24f;
  }
  float between(float low, float high) { return low + (high - low) * (*this)(); }
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>((*this)() * static_cast<float>(count));
  }

 private:
  std::uint64_t stream_, blocks_ = 0;
  std::uint32_t seed_;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = 4;
};

/// A curve through points, as 8 lines between two of them.
inline Stroke smooth(std::span<const Point> through) {
  Stroke all;
  const auto at = [&](std::size_t i, int shift) {
    const auto last = static_cast<std::ptrdiff_t>(through.size()) - 1;
    const auto j = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(i) + shift, 0, last);
    return through[static_cast<std::size_t>(j)];
  };
  for (std::size_t i = 0; i + 1 < through.size(); ++i) {
    const Point a = at(i, -1), b = at(i, 0), c = at(i, 1), d = at(i, 2);
    for (int k = 0; k < 8; ++k) {
      const float t = static_cast<float>(k) / 8;
      const auto between = [t](float p, float q, float r, float s) {
        return q + t * ((r - p) / 2 +
                        t * (p - 2.5f * q + 2 * r - s / 2 + t * (1.5f * (q - r) + (s - p) / 2)));
      };
      all.push_back({between(a.x, b.x, c.x, d.x), between(a.y, b.y, c.y, d.y)});
    }
  }
  all.push_back(through.back());
  return all;
}

/// The ways of writing a digit that the page knows.
inline const std::vector<Drawing>& ways_of_writing(std::size_t digit) {
  static const auto all = [] {
    using Path = std::vector<Point>;
    const std::array<std::vector<std::vector<Path>>, 10> paths{{
        {{{{.55f, .02f},
           {.2f, .2f},
           {.1f, .55f},
           {.3f, .93f},
           {.62f, .95f},
           {.86f, .62f},
           {.84f, .28f},
           {.55f, .02f}}},
         {{{.6f, .05f},
           {.3f, .05f},
           {.15f, .5f},
           {.4f, .98f},
           {.7f, .7f},
           {.72f, .25f},
           {.45f, .02f}}}},
        {{{{.5f, 0}, {.5f, 1}}},
         {{{.25f, .25f}, {.55f, 0}}, {{.55f, 0}, {.52f, 1}}},
         {{{.25f, .25f}, {.55f, 0}}, {{.55f, 0}, {.55f, 1}}, {{.25f, 1}, {.85f, 1}}}},
        {{{{.15f, .27f}, {.32f, .04f}, {.68f, .04f}, {.78f, .3f}, {.55f, .62f}, {.15f, .97f}},
          {{.15f, .97f}, {.88f, .95f}}},
         {{{.15f, .2f},
           {.5f, 0},
           {.78f, .25f},
           {.5f, .68f},
           {.2f, .95f},
           {.12f, .8f},
           {.35f, .8f},
           {.6f, .95f},
           {.92f, .88f}}}},
        {{{{.15f, .12f}, {.45f, 0}, {.76f, .2f}, {.62f, .42f}, {.38f, .47f}},
          {{.38f, .47f}, {.72f, .55f}, {.82f, .8f}, {.5f, 1}, {.1f, .88f}}},
         {{{.15f, .03f}, {.8f, .03f}},
          {{.8f, .03f}, {.42f, .42f}},
          {{.42f, .42f}, {.78f, .55f}, {.78f, .85f}, {.45f, 1}, {.12f, .88f}}}},
        {{{{.25f, 0}, {.1f, .55f}}, {{.1f, .55f}, {.9f, .55f}}, {{.66f, .1f}, {.62f, 1}}},
         {{{.68f, 1}, {.68f, 0}}, {{.68f, 0}, {.08f, .66f}}, {{.08f, .66f}, {.95f, .66f}}},
         {{{.2f, .05f}, {.15f, .4f}, {.4f, .52f}, {.78f, .42f}}, {{.8f, .05f}, {.72f, 1}}}},
        {{{{.25f, .03f}, {.2f, .44f}},
          {{.2f, .44f}, {.52f, .37f}, {.82f, .6f}, {.65f, .94f}, {.15f, .95f}},
          {{.25f, .03f}, {.82f, .03f}}},
         {{{.85f, .02f}, {.4f, .05f}},
          {{.4f, .05f}, {.25f, .4f}},
          {{.25f, .4f}, {.7f, .5f}, {.7f, .88f}, {.35f, 1}, {.1f, .88f}}}},
        {{{{.7f, .02f},
           {.35f, .25f},
           {.14f, .65f},
           {.3f, .97f},
           {.66f, .95f},
           {.76f, .7f},
           {.5f, .52f},
           {.2f, .68f}}},
         {{{.4f, 0}, {.2f, .45f}, {.2f, .85f}, {.5f, 1}, {.75f, .8f}, {.6f, .58f}, {.22f, .7f}}}},
        {{{{.12f, .05f}, {.85f, .05f}}, {{.85f, .05f}, {.4f, 1}}},
         {{{.12f, .05f}, {.85f, .05f}}, {{.85f, .05f}, {.55f, .45f}, {.42f, 1}}},
         {{{.12f, .05f}, {.85f, .05f}}, {{.85f, .05f}, {.4f, 1}}, {{.3f, .52f}, {.8f, .5f}}}},
        {{{{.72f, .14f},
           {.42f, 0},
           {.2f, .2f},
           {.46f, .46f},
           {.78f, .74f},
           {.55f, .99f},
           {.24f, .84f},
           {.34f, .6f},
           {.66f, .34f},
           {.72f, .14f}}},
         {{{.5f, .46f}, {.22f, .25f}, {.5f, 0}, {.78f, .25f}, {.5f, .46f}},
          {{.5f, .46f}, {.15f, .75f}, {.5f, 1}, {.85f, .75f}, {.5f, .46f}}}},
        {{{{.78f, .2f}, {.5f, 0}, {.2f, .2f}, {.35f, .48f}, {.68f, .42f}, {.78f, .2f}},
          {{.78f, .2f}, {.72f, .6f}, {.6f, 1}}},
         {{{.76f, .15f}, {.4f, .02f}, {.18f, .28f}, {.45f, .5f}, {.76f, .25f}},
          {{.76f, .15f}, {.8f, .7f}, {.55f, 1}, {.2f, .92f}}}},
    }};
    std::array<std::vector<Drawing>, 10> drawings;
    for (std::size_t d = 0; d < 10; ++d)
      for (const auto& way : paths[d]) {
        auto& drawing = drawings[d].emplace_back();
        for (const auto& path : way) drawing.push_back(smooth(path));
      }
    return drawings;
  }();
  return all[digit];
}

/// The same digit as somebody else would write it.
inline Drawing vary(Drawing drawing, Random& random, float amount) {
  constexpr float turn = 6.2831853f;
  const float angle = amount * random.between(-.2f, .2f),
              slant = amount * random.between(-.3f, .3f);
  const float wide = 1 + amount * random.between(-.25f, .25f);
  const float bend_x = amount * random.between(-.06f, .06f), where_x = random.between(0, turn);
  const float bend_y = amount * random.between(-.06f, .06f), where_y = random.between(0, turn);
  const float c = std::cos(angle), s = std::sin(angle);
  for (auto& stroke : drawing)
    for (auto& p : stroke) {
      const float x = wide * (p.x + slant * p.y + bend_x * std::sin(5 * p.y + where_x));
      const float y = p.y + bend_y * std::sin(5 * p.x + where_y);
      p = {c * x - s * y, s * x + c * y};
    }
  return drawing;
}

/// Makes the larger side 1, from the smallest x and y on.
inline Drawing to_unit(Drawing drawing) {
  Point low{1e9f, 1e9f}, high{-1e9f, -1e9f};
  for (const auto& stroke : drawing)
    for (const auto& p : stroke) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  const float size = std::max({high.x - low.x, high.y - low.y, 1e-3f});
  for (auto& stroke : drawing)
    for (auto& p : stroke) p = {(p.x - low.x) / size, (p.y - low.y) / size};
  return drawing;
}

/// The picture of a drawing, ink 1 on paper 0. `pen` is its width in pixels.
inline Picture paint(const Drawing& drawing, float pen) {
  constexpr float size = 18;  // from centre to centre of the pen; with its width about 20
  const Drawing unit = to_unit(drawing);
  Point sum{0, 0};
  float ink = 0;
  const auto each_line = [&](auto&& f) {
    for (const auto& stroke : unit)
      for (std::size_t i = 0; i < stroke.size(); ++i) f(stroke[i ? i - 1 : 0], stroke[i]);
  };
  each_line([&](Point a, Point b) {
    const float length = std::hypot(b.x - a.x, b.y - a.y) + 1e-4f;
    sum = {sum.x + length * (a.x + b.x) / 2, sum.y + length * (a.y + b.y) / 2};
    ink += length;
  });
  Picture picture{};
  Point extent{0, 0};
  for (const auto& stroke : unit)
    for (const auto& p : stroke) extent = {std::max(extent.x, p.x), std::max(extent.y, p.y)};
  // All of it has to be in the picture.
  const auto place = [&](float centre, float whole) {
    return std::clamp(side / 2 - size * centre, pen / 2, side - pen / 2 - size * whole);
  };
  const Point shift{place(sum.x / ink, extent.x), place(sum.y / ink, extent.y)};
  each_line([&](Point from, Point to) {
    const Point a{size * from.x + shift.x, size * from.y + shift.y};
    const Point b{size * to.x + shift.x, size * to.y + shift.y};
    const float reach = pen / 2 + 1, dx = b.x - a.x, dy = b.y - a.y;
    const auto range = [&](float p, float q) {
      return std::pair{std::max(0, static_cast<int>(std::min(p, q) - reach)),
                       std::min(side - 1, static_cast<int>(std::max(p, q) + reach))};
    };
    const auto [left, right] = range(a.x, b.x);
    const auto [top, bottom] = range(a.y, b.y);
    for (int y = top; y <= bottom; ++y)
      for (int x = left; x <= right; ++x) {
        const float px = static_cast<float>(x) + .5f - a.x, py = static_cast<float>(y) + .5f - a.y;
        const float along = std::clamp((px * dx + py * dy) / (dx * dx + dy * dy + 1e-6f), 0.f, 1.f);
        const float distance = std::hypot(px - along * dx, py - along * dy);
        auto& pixel = picture[static_cast<std::size_t>(side * y + x)];
        pixel = std::max(pixel, std::clamp(pen / 2 + .5f - distance, 0.f, 1.f));
      }
  });
  return picture;
}

}  // namespace web
