// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels of 3x3 taps with stride 1 for a single vector of channels. A product of pixels would load
// an element for each multiply-add; here a pixel is loaded once for the three columns of the result
// that use it.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/patches.hpp"

namespace xla::kernel::detail {

inline constexpr int columns_of_line = 14;  // divides most widths

/// Some columns of a line of the result.
template <class T>
struct line_call {
  index_t pixel, channels;  // elements from one pixel to the next; input channels
  index_t tap;              // the distance between the weights of successive taps
  int count = 0;            // of rows
  const T* rows[3] = {};    // the first pixel that the first column uses
  const T* weights[3] = {};
  bool left = false, right = false;  // whether the first or last column uses pixels outside
};

template <int N, class T>
[[gnu::noinline]] void sum_line(const line_call<T>& call, T* to, index_t step) {
  using vector = packet<T>;
  const index_t pixel = call.pixel, tap = call.tap;
  vector sum[N];
#pragma GCC unroll 16
  for (int t = 0; t < N; ++t) sum[t] = simd::pset1<vector>(T{0});
  for (int k = 0; k < call.count; ++k) {
    const T* const row = call.rows[k];
    const T* const first = call.left ? zero_row<T> : row;
    const T* const last = call.right ? zero_row<T> : row + (N + 1) * pixel;
    const T* w = call.weights[k];
#pragma GCC unroll 1
    for (index_t i = 0; i < call.channels; ++i, w += lanes<T>) {
      vector weight[3];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) weight[j] = simd::ploadu<vector>(w + j * tap);
#pragma GCC unroll 18
      for (int p = 0; p < N + 2; ++p) {
        const T* const at = p == 0 ? first : p == N + 1 ? last : row + p * pixel;
        const vector one = simd::pset1<vector>(at[i]);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j)
          if (p >= j && p - j < N) sum[p - j] = simd::pmadd(weight[j], one, sum[p - j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < N; ++t) simd::pstoreu(to + t * step, sum[t]);
}

/// Whether every pixel uses three neighbours in each of three rows, from left to right or back,
/// with at most one of them outside.
template <class T>
bool sees_threes(const patches<T>& a) {
  if (!is_vector<T> || lanes<T> < 16 || a.count != 9 || a.step_x * a.step_y != 1 || a.joined != 1 ||
      a.block != a.channels || a.columns < columns_of_line || a.columns > a.width - a.last.x + 1 ||
      a.first.x < -1)
    return false;
  const index_t on = a.taps[1].x - a.taps[0].x;
  for (index_t t = 0; t < 9; ++t)
    if (a.taps[t].y != a.taps[t / 3 * 3].y || a.taps[t].x != a.taps[0].x + t % 3 * on) return false;
  return on == 1 || on == -1;
}

/// The pixels that a line of the result uses.
template <class T>
class threes {
 public:
  threes(const patches<T>& a, index_t line, index_t wide) : a_(a) {
    const index_t image = line / a.rows, y = line % a.rows, tap = a.channels * wide;
    const bool back = a.taps[1].x < a.taps[0].x;
    call_ = {.pixel = a.pixel, .channels = a.channels, .tap = back ? -tap : tap};
    for (index_t k = 0; k < 3; ++k) {
      const index_t row = y + a.taps[3 * k].y;
      if (row < 0 || row >= a.height) continue;
      offsets_[call_.count] = (3 * k + (back ? 2 : 0)) * tap;
      call_.rows[call_.count++] =
          a.images + ((image * a.height + row) * a.width + a.first.x) * a.pixel;
    }
  }

  /// Of channels from the given one on.
  void sum(index_t channel, const T* weights, T* to, index_t step) const {
    line_call<T> call = call_;
    for (int k = 0; k < call.count; ++k) call.weights[k] = weights + offsets_[k];
    for (index_t x = 0; x < a_.columns; x += columns_of_line) {
      const index_t from = std::min(x, a_.columns - columns_of_line);
      for (int k = 0; k < call.count; ++k) call.rows[k] = call_.rows[k] + from * a_.pixel + channel;
      call.left = from + a_.first.x < 0;
      call.right = from + a_.first.x + columns_of_line + 1 >= a_.width;
      sum_line<columns_of_line>(call, to + from * step, step);
    }
  }

 private:
  const patches<T>& a_;
  line_call<T> call_;
  index_t offsets_[3];  // of weights
};

}  // namespace xla::kernel::detail
