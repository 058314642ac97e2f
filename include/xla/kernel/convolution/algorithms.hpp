// SPDX-License-Identifier: Apache-2.0
#pragma once

// The choice of a convolution's algorithm, and the functions of convolution.hpp that dispatch on
// it. It computes nothing itself: depthwise.hpp, direct.hpp and winograd.hpp do.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/convolution.hpp"
#include "xla/kernel/convolution/depthwise.hpp"
#include "xla/kernel/convolution/winograd_gradient.hpp"
#include "xla/kernel/convolution/winograd_rows.hpp"

namespace xla::kernel {

/// The algorithms that compute a convolution and its gradients.
enum class conv_algorithm {
  small_groups,  ///< sums over vectors of channels: depthwise.hpp
  direct,        ///< products of pixels under the taps and the weight: direct.hpp
  winograd_2,    ///< F(2 x 2, 3 x 3): winograd.hpp, winograd_panels.hpp
  winograd_4,    ///< F(4 x 4, 3 x 3)
  winograd_rows  ///< along the rows of larger kernels: winograd_rows.hpp
};

/// The cost of reading the weights of one position of a tile, in tiles; of one tap, in pixels.
constexpr double weights_cost = 16;

/// The cost of F(M x M, 3 x 3), in multiply-adds of direct sums per pair of channels. A position of
/// a tile costs more than a direct sum, and the tile's transforms come on top, which more channels
/// share.
template <int M>
double winograd_cost(const conv_sizes& s) {
  const auto tiles_of = [](std::int64_t n) { return static_cast<double>((n + M - 1) / M); };
  const double tiles =
      static_cast<double>(s.batch) * tiles_of(s.out_height) * tiles_of(s.out_width);
  const double share = 1 / static_cast<double>(s.in) + 1 / static_cast<double>(s.out);
  constexpr double positions = (M + 2) * (M + 2);
  constexpr double position = M == 2 ? 1.3 : 1.45, transforms = M == 2 ? 4 : 6;
  return positions * (position * (1 + transforms * share) * tiles + weights_cost);
}

/// Whether Winograd's algorithm is allowed for these strides, groups and channels.
template <class = void>
bool may_be_winograd(const conv_sizes& s) {
  return s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[1] == 1 && s.groups == 1 &&
         s.in % 16 == 0 && s.out % 16 == 0 &&
         std::max(s.in, s.out) <= detail::max_winograd_channels && !s.direct &&
         s.padding[0] <= s.dilation[0] * (s.kernel[0] - 1) && s.padding[1] < s.kernel[1];
}

/// Whether it costs less than direct sums along the rows of a kernel. Speed relative to these on
/// one core, weights transformed before / for one call; batch 1, batch 8 (a Zen 3, 2026-11-30):
///
///   1 x 64, 1024 -> 128, 128 pixels   1.8  / 1.35   2.2  / 1.9
///   1 x 64, 128 -> 128, 64 pixels     1.7  / 1.1    2.1  / 1.7
///   1 x 64, 128 -> 128, 32 pixels     1.4  / 0.7    1.7  / 1.15
///   1 x 64, 256 -> 512, 8 pixels      0.6  / 0.45   1.2  / 0.65
///   5 x 5, 64 -> 192, 27 x 27         1.95 / 1.8    1.85 / 1.65
///   7 x 7, 64 -> 64, 28 x 28          1.95 / 1.75   2.2  / 1.7
///   1 x 7, 128 -> 192, 17 x 17        1.6  / 1.35   1.25 / 1.3
template <class = void>
bool pays_by_rows(const conv_sizes& s) {
  if (s.kernel[1] < 4 || s.taps() < 6 || s.height * s.width == 0) return false;
  // The pairs of a place in a line and a tap that see the image.
  const auto pairs = [](std::int64_t places, std::int64_t taps, std::int64_t first,
                        std::int64_t last) {
    std::int64_t all = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap)
      all += std::max<std::int64_t>(
          std::min(places, last + 1 - tap) - std::max<std::int64_t>(first - tap, 0), 0);
    return static_cast<double>(all);
  };
  const auto lines = static_cast<double>(s.batch * s.out_height);
  const double direct =
      lines * pairs(s.out_width, s.kernel[1], s.padding[1], s.padding[1] + s.width - 1) +
      weights_cost * static_cast<double>(s.kernel[1]);
  const double share = 1 / static_cast<double>(s.in) + 1 / static_cast<double>(s.out);
  return detail::with_windows(s, conv_direction::forward, [&](const auto& w) {
    return detail::window_points *
               (1.2 * (1 + 2 * share) * lines * pairs(w.tiles, w.pieces, w.first, w.last) +
                weights_cost * static_cast<double>(w.pieces)) <
           direct;
  });
}

/// The algorithm of a convolution or one of its gradients. It depends on sizes alone, so that bits
/// do not depend on the mode.
template <class T>
conv_algorithm algorithm_of(const conv_sizes& s) {
  // Speed relative to direct sums of groups: forward / input gradient / weight gradient, batch 1,
  // the same Xeon as below. Depthwise 3x3, 144@56: 22 / 20 / 28; 960@7: 24 / 28 / 26; 7x7, 96@56:
  // 10 / 8 / 16; two results a channel, 32@56: 4 / 6 / 6. Groups of 2, 64@56: 5 / 5 / 9; of 4,
  // 128@56: 5 / 4 / 4; of 8, 256@28: 1.8 / 1.7 / 1.3, 256@56 with stride 2: 1.3 / 2.1 / 1.2.
  if (has_small_groups<T>(s)) return conv_algorithm::small_groups;

  // The costs are fitted to these speeds of F(4 x 4) and F(2 x 2) relative to direct sums; a Xeon
  // core with AVX-512 and 2 MiB of L2, the other core loaded. In training, images and weights from
  // memory:
  //
  //   channels, pixels   forward, batch 1   batch 2      batch 8
  //    64, 56 x 56       1.8   1.35         1.9   1.5    2.15  1.5
  //   128, 28 x 28       1.25  1.35         1.4   1.35   2.15  1.65
  //   256, 14 x 14       1.45  1.5          1.75  1.7    1.9   1.65
  //   512, 14 x 14       1.6   1.5          1.8   1.6    2.2   1.75
  //   512, 7 x 7         0.85  1.05         1.3   1.25   1.8   1.35
  //
  //                      input's gradient, 1   8            weight's gradient, 1   8
  //    64, 56 x 56       1.75  1.45            2.1   1.5    1.25  1.2              1.9   1.35
  //   128, 28 x 28       1.2   1.25            2.05  1.55   1.65  1.2              1.9   1.45
  //   256, 14 x 14       1.25  1.4             2.0   1.6    1.55  1.55             1.65  1.4
  //   512, 14 x 14       1.3   1.3             2.0   1.55   1.65  1.45             2.4   2.0
  //   512, 7 x 7         0.9   0.9             1.55  1.2    1.2   1.35             1.9   1.1
  //
  // Forward with weights that were transformed before, as inference caches them:
  //
  //   channels, pixels   batch 1      batch 2      batch 8
  //    64, 56 x 56       2.45  1.65   2.5   1.65   2.3   1.6
  //   128, 28 x 28       2.5   1.8    2.65  1.85   2.5   1.7
  //   256, 14 x 14       1.45  1.7    2.35  2.05   2.0   1.8
  //   512, 14 x 14       1.35  1.75
  //   512, 7 x 7         0.6   0.9    0.9   1.2    2.1   1.55
  //
  // A choice per case would give the modes different bits.
  if (!may_be_winograd(s)) return conv_algorithm::direct;
  if (s.kernel[0] == 3 && s.kernel[1] == 3 && s.dilation[0] == 1) {
    const double direct =
        9 * (static_cast<double>(s.batch * s.out_height * s.out_width) + weights_cost);
    const double two = winograd_cost<2>(s), four = winograd_cost<4>(s);
    if (std::min(two, four) < direct)
      return four <= two ? conv_algorithm::winograd_4 : conv_algorithm::winograd_2;
  }
  return pays_by_rows(s) ? conv_algorithm::winograd_rows : conv_algorithm::direct;
}

template <class T>
[[gnu::cold]] const char* conv_algorithm_name(const conv_sizes& s) {
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups: return "small groups";
    case conv_algorithm::winograd_2: return "winograd 2x2";
    case conv_algorithm::winograd_4: return "winograd 4x4";
    case conv_algorithm::winograd_rows: return "winograd rows";
    case conv_algorithm::direct: break;
  }
  return "direct";
}

template <class T>
bool conv_packs(const conv_sizes& s, conv_direction d) {
  return s.in * s.out * s.taps() != 0 &&
         (algorithm_of<T>(s) != conv_algorithm::direct || detail::packs_directly<T>(s, d));
}

template <class T>
std::int64_t conv_packed_size(const conv_sizes& s, conv_direction d) {
  if (!conv_packs<T>(s, d)) return 0;
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups: return small_groups_packed_size<T>(s);
    case conv_algorithm::winograd_2: return detail::winograd_weights_size<2, T>(s);
    case conv_algorithm::winograd_4: return detail::winograd_weights_size<4, T>(s);
    case conv_algorithm::winograd_rows: return detail::rows_packed_size<T>(s, d);
    case conv_algorithm::direct: break;
  }
  return detail::direct_packed_size<T>(s, d);
}

template <class T>
void conv_pack(const conv_sizes& s, conv_direction d, conv_weights<T> w, T* to) {
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups: return small_groups_pack(s, d, w, to);
    case conv_algorithm::winograd_2: return detail::winograd_weights<2>(s, d, w, to);
    case conv_algorithm::winograd_4: return detail::winograd_weights<4>(s, d, w, to);
    case conv_algorithm::winograd_rows: return detail::rows_pack(s, d, w, to);
    case conv_algorithm::direct: return detail::direct_pack(s, d, w, to);
  }
}

template <class T>
void conv_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y, const epilogue* after) {
  const std::int64_t results = s.batch * s.out_height * s.out_width * s.out;
  if (results == 0) return;
  if (s.in * s.taps() == 0) return void(std::fill_n(y, results, T{0}));
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups: return small_groups_forward(s, x, w, y, after);
    case conv_algorithm::winograd_2: return detail::winograd_forward<2>(s, x, w, y, after);
    case conv_algorithm::winograd_4: return detail::winograd_forward<4>(s, x, w, y, after);
    case conv_algorithm::winograd_rows:
      return detail::multiply_rows(s, conv_direction::forward, x, w, y, after);
    case conv_algorithm::direct: return detail::direct_forward(s, x, w, y, after);
  }
}

template <class T>
void conv_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx,
                         const epilogue* after) {
  const std::int64_t results = s.batch * s.height * s.width * s.in;
  if (results == 0) return;
  if (s.out_height * s.out_width * s.out * s.taps() == 0)
    return void(std::fill_n(dx, results, T{0}));
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups: return small_groups_input_gradient(s, dy, w, dx, after);
    case conv_algorithm::winograd_2: return detail::winograd_input_gradient<2>(s, dy, w, dx, after);
    case conv_algorithm::winograd_4: return detail::winograd_input_gradient<4>(s, dy, w, dx, after);
    case conv_algorithm::winograd_rows:
      return detail::multiply_rows(s, conv_direction::input_gradient, dy, w, dx, after);
    case conv_algorithm::direct: return detail::direct_input_gradient(s, dy, w, dx, after);
  }
}

template <class T>
void conv_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw) {
  const std::int64_t results = s.out * (s.in / s.groups) * s.taps();
  if (results == 0) return;
  if (s.batch * s.out_height * s.out_width == 0) return void(std::fill_n(dw, results, T{0}));
  switch (algorithm_of<T>(s)) {
    case conv_algorithm::small_groups: return small_groups_weight_gradient(s, x, dy, dw);
    case conv_algorithm::winograd_2: return detail::winograd_weight_gradient<2>(s, x, dy, dw);
    case conv_algorithm::winograd_4: return detail::winograd_weight_gradient<4>(s, x, dy, dw);
    case conv_algorithm::winograd_rows:
    case conv_algorithm::direct: return detail::direct_weight_gradient(s, x, dy, dw);
  }
}

}  // namespace xla::kernel
