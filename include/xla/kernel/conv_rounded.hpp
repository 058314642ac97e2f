// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <xla/kernel/conv_bfloat16.hpp>
#include <xla/kernel/conv_choice.hpp>
#include <xla/kernel/gemm_bfloat16.hpp>
#include <xla/kernel/loops.hpp>
#include <xla/tensor/working_memory.hpp>

namespace xla::kernel {
namespace detail {

/// Floats as bfloat16 would have them, in memory of their own.
template <class = void>
class rounded_copy {
 public:
  rounded_copy(const float* from, index_t count)
      : to_(static_cast<float*>(memory_.take(static_cast<std::size_t>(count) * sizeof(float)))) {
    constexpr index_t some = 1 << 12;
    for_ranges((count + some - 1) / some, some, [&](index_t first, index_t last) {
      const index_t begin = first * some, end = std::min(count, last * some);
      round_all(from + begin, to_ + begin, end - begin);
    });
  }
  const float* data() const { return to_; }

 private:
  ::xla::detail::working_memory memory_;
  float* to_;
};

/// Weights alike, which lie together.
template <class = void>
struct rounded_weights {
  rounded_weights(const conv_sizes& s, const conv_weights<float>& w)
      : copy(w.data, s.out * (s.in / s.groups) * s.taps()),
        weights{copy.data(), w.out_stride, w.in_stride, w.tap_stride} {}
  rounded_copy<> copy;
  conv_weights<float> weights;
};

/// Whether it is a product of gemm_bfloat16(), which rounds while it packs.
inline bool is_rounded_product(const conv_sizes& s) { return is_product(s) && s.groups == 1; }

/// Whether operands are rounded while they are read, so that no copies are needed.
inline bool rounds_as_read(const conv_sizes& s) {
  const conv_way way = way_of<float>(s);
  return way == conv_way::winograd_2 || way == conv_way::winograd_4;
}
inline conv_sizes rounding(conv_sizes s) {
  s.rounds = true;
  return s;
}

}  // namespace detail

template <class>
void conv_forward_bfloat16(const conv_sizes& s, const float* x, conv_weights<float> w, float* y,
                           const epilogue* after) {
  const std::int64_t pixels = s.batch * s.height * s.width;
  if (detail::is_rounded_product(s))
    return gemm_bfloat16<float, float>(pixels, s.out, s.in, {x, s.in, 1},
                                       {w.data, w.in_stride, w.out_stride}, y, s.out, after);
  if (detail::rounds_as_read(s)) return conv_forward(detail::rounding(s), x, w, y, after);
  const detail::rounded_copy<> seen(x, pixels * s.in);
  conv_forward(s, seen.data(), detail::rounded_weights<>(s, w).weights, y, after);
}
XLA_FLOAT_INSTANCE(void conv_forward_bfloat16<void>(const conv_sizes&, const float*,
                                                    conv_weights<float>, float*, const epilogue*));

template <class>
void conv_input_gradient_bfloat16(const conv_sizes& s, const float* dy, conv_weights<float> w,
                                  float* dx, const epilogue* after) {
  const std::int64_t pixels = s.batch * s.out_height * s.out_width;
  if (detail::is_rounded_product(s))
    return gemm_bfloat16<float, float>(pixels, s.in, s.out, {dy, s.out, 1},
                                       {w.data, w.out_stride, w.in_stride}, dx, s.in, after);
  if (detail::rounds_as_read(s)) return conv_input_gradient(detail::rounding(s), dy, w, dx, after);
  const detail::rounded_copy<> seen(dy, pixels * s.out);
  conv_input_gradient(s, seen.data(), detail::rounded_weights<>(s, w).weights, dx, after);
}
XLA_FLOAT_INSTANCE(void conv_input_gradient_bfloat16<void>(const conv_sizes&, const float*,
                                                           conv_weights<float>, float*,
                                                           const epilogue*));

template <class>
void conv_weight_gradient_bfloat16(const conv_sizes& s, const float* x, const float* dy,
                                   float* dw) {
  const std::int64_t pixels = s.batch * s.out_height * s.out_width;
  if (detail::is_rounded_product(s))
    return gemm_bfloat16<float, float>(s.out, s.in, pixels, {dy, 1, s.out}, {x, s.in, 1}, dw, s.in);
  if (detail::rounds_as_read(s)) return conv_weight_gradient(detail::rounding(s), x, dy, dw);
  const detail::rounded_copy<> seen(x, s.batch * s.height * s.width * s.in);
  const detail::rounded_copy<> back(dy, pixels * s.out);
  conv_weight_gradient(s, seen.data(), back.data(), dw);
}
XLA_FLOAT_INSTANCE(void conv_weight_gradient_bfloat16<void>(const conv_sizes&, const float*,
                                                            const float*, float*));

}  // namespace xla::kernel
