// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/conv.hpp"
#include "xla/kernel/conv_depthwise.hpp"
#include "xla/kernel/conv_plain.hpp"

namespace xla::kernel {

/// The ways to compute a convolution.
enum class conv_way {
  product,       ///< of what taps see and the weight: conv_plain.hpp
  small_groups,  ///< sums over vectors of channels: conv_depthwise.hpp
};

/// The way of a convolution, by its sizes alone, so that bits do not depend on the mode. Behind
/// each row: times as fast as the ways below it, forward / input gradient / weight gradient, float,
/// batch 1, a Xeon core with AVX-512.
template <class T>
constexpr conv_way way_of(const conv_sizes& s) {
  // Depthwise 3x3, 144@56: 94 / 140 / 96; 960@7: 125 / 333 / 183; 3@112: 6 / 9 / 26; 7x7, 96@56:
  // 94 / 134 / 170; two results a channel, 32@56: 32 / 51 / 38. Groups of 2, 64@56: 31 / 42 / 68;
  // of 4, 128@56: 19 / 38 / 45; of 8, 256@28: 6 / 10 / 16, 256@56 with stride 2: 5 / 28 / 8.
  if (has_small_groups<T>(s)) return conv_way::small_groups;
  return conv_way::product;
}

template <class T>
void conv_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y) {
  switch (way_of<T>(s)) {
    case conv_way::small_groups: return small_groups_forward(s, x, w, y);
    case conv_way::product: return detail::plain_forward(s, x, w, y);
  }
}

template <class T>
void conv_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx) {
  switch (way_of<T>(s)) {
    case conv_way::small_groups: return small_groups_input_gradient(s, dy, w, dx);
    case conv_way::product: return detail::plain_input_gradient(s, dy, w, dx);
  }
}

template <class T>
void conv_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw) {
  switch (way_of<T>(s)) {
    case conv_way::small_groups: return small_groups_weight_gradient(s, x, dy, dw);
    case conv_way::product: return detail::plain_weight_gradient(s, x, dy, dw);
  }
}

}  // namespace xla::kernel
