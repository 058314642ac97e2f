// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions with operands rounded to bfloat16: which product or copy rounds them, by algorithm.
// It defines the functions of bfloat16.hpp, and is compiled once, with the run time or by autocast
// programs.

#include <algorithm>
#include <cstdint>

#include "xla/kernel/convolution/algorithms.hpp"
#include "xla/kernel/convolution/amx.hpp"
#include "xla/kernel/convolution/bfloat16.hpp"
#include "xla/kernel/convolution/cached_weights.hpp"
#include "xla/kernel/convolution/dot.hpp"
#include "xla/kernel/gemm/bfloat16.hpp"

namespace xla::kernel {
namespace detail {

/// Weights of one shape, which are contiguous.
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
  const conv_algorithm by = algorithm_of<float>(s);
  return by == conv_algorithm::winograd_2 || by == conv_algorithm::winograd_4;
}
/// Whether sums of rounded operands are direct: also where those of floats go along rows.
inline bool sums_directly(const conv_sizes& s) {
  const conv_algorithm by = algorithm_of<float>(s);
  return by == conv_algorithm::direct || by == conv_algorithm::winograd_rows;
}
inline conv_sizes rounding(conv_sizes s) {
  s.rounds = true;
  return s;
}

/// Whether patches and weights may be multiplied as pairs, which are rounded while they are packed.
/// Not for so few channels that pixels are read together: no op rounds those.
template <class = void>
bool sees_pairs(const conv_sizes& s) {
  return s.groups == 1 && !is_product(s) && sums_directly(s) &&
         s.in * s.out * s.taps() * s.batch != 0 &&
         s.height * s.width * s.out_height * s.out_width != 0 && joined_pixels<float>(s) == 1;
}
/// Whether `dot` multiplies them, whose packed weights are cached.
template <class = void>
bool multiplies_pairs(const conv_sizes& s) {
  return bfloat16_products() == bfloat16_algorithm::dot && sees_pairs(s);
}
/// If so, calls f(products) with the replacement of plain_patch_products.
template <class F>
bool by_pairs([[maybe_unused]] const conv_sizes& s, [[maybe_unused]] F f) {
#if XLA_HAS_DOT
  if (multiplies_pairs(s)) return f(dot_patch_products{}), true;
#endif
#if XLA_HAS_AMX
  if (bfloat16_products() == bfloat16_algorithm::amx && sees_pairs(s))
    return f(tile_patch_products<>{}), true;
#endif
  return false;
}

}  // namespace detail

template <class>
std::int64_t conv_packed_size_bfloat16(const conv_sizes& s, conv_direction d) {
  if (detail::rounds_as_read(s)) return conv_packed_size<float>(s, d);
#if XLA_HAS_DOT
  if (detail::multiplies_pairs(s) && detail::packs_directly<float>(s, d))
    return detail::direct_packed_size<float, detail::dot_patch_products>(s, d);
#endif
  return 0;
}
XLA_PRODUCT_INSTANCE(std::int64_t conv_packed_size_bfloat16<void>(const conv_sizes&, conv_direction));

template <class>
void conv_pack_bfloat16(const conv_sizes& s, conv_direction d, conv_weights<float> w, float* to) {
#if XLA_HAS_DOT
  if (detail::multiplies_pairs(s))
    return detail::direct_pack<detail::dot_patch_products>(s, d, w, to);
#endif
  conv_pack(detail::rounding(s), d, w, to);
}
XLA_PRODUCT_INSTANCE(void conv_pack_bfloat16<void>(const conv_sizes&, conv_direction,
                                                 conv_weights<float>, float*));

template <class>
void cache_packed_bfloat16(xla::detail::buffer* cache_owner, const conv_sizes& s, conv_direction d,
                           conv_weights<float>& w) {
  const std::int64_t count = cache_owner ? conv_packed_size_bfloat16(s, d) : 0;
  if (count == 0) return;
  cache_form(
      *cache_owner, conv_form::of<float>(detail::rounding(s), d), count,
      [&](float* to) { conv_pack_bfloat16(s, d, w, to); }, w);
}
XLA_PRODUCT_INSTANCE(void cache_packed_bfloat16<void>(xla::detail::buffer*, const conv_sizes&,
                                                      conv_direction, conv_weights<float>&));

template <class>
void conv_forward_bfloat16(const conv_sizes& s, const float* x, conv_weights<float> w, float* y,
                           const epilogue* after) {
  const std::int64_t pixels = s.batch * s.height * s.width;
  if (detail::is_rounded_product(s))
    return gemm_bfloat16<float, float>(pixels, s.out, s.in, {x, s.in, 1},
                                       {w.data, w.in_stride, w.out_stride}, y, s.out, after);
  if (detail::rounds_as_read(s)) return conv_forward(detail::rounding(s), x, w, y, after);
  if (detail::by_pairs(s,
                       [&](auto by) { detail::forward_directly<decltype(by)>(s, x, w, y, after); }))
    return;
  const detail::rounded_copy<> seen(x, pixels * s.in);
  conv_forward(s, seen.data(), detail::rounded_weights<>(s, w).weights, y, after);
}
XLA_PRODUCT_INSTANCE(void conv_forward_bfloat16<void>(const conv_sizes&, const float*,
                                                    conv_weights<float>, float*, const epilogue*));

template <class>
void conv_input_gradient_bfloat16(const conv_sizes& s, const float* dy, conv_weights<float> w,
                                  float* dx, const epilogue* after) {
  const std::int64_t pixels = s.batch * s.out_height * s.out_width;
  if (detail::is_rounded_product(s))
    return gemm_bfloat16<float, float>(pixels, s.in, s.out, {dy, s.out, 1},
                                       {w.data, w.out_stride, w.in_stride}, dx, s.in, after);
  if (detail::rounds_as_read(s)) return conv_input_gradient(detail::rounding(s), dy, w, dx, after);
  if (detail::col2im_pays<float>(s))
    return detail::col2im<float>(s).write(dy, w.data, dx, &gemm_bfloat16<float, float>);
  if (detail::by_pairs(
          s, [&](auto by) { detail::input_gradient_directly<decltype(by)>(s, dy, w, dx, after); }))
    return;
  const detail::rounded_copy<> seen(dy, pixels * s.out);
  conv_input_gradient(s, seen.data(), detail::rounded_weights<>(s, w).weights, dx, after);
}
XLA_PRODUCT_INSTANCE(void conv_input_gradient_bfloat16<void>(const conv_sizes&, const float*,
                                                           conv_weights<float>, float*,
                                                           const epilogue*));

template <class>
void conv_weight_gradient_bfloat16(const conv_sizes& s, const float* x, const float* dy,
                                   float* dw) {
  const std::int64_t pixels = s.batch * s.out_height * s.out_width;
  if (detail::is_rounded_product(s))
    return gemm_bfloat16<float, float>(s.out, s.in, pixels, {dy, 1, s.out}, {x, s.in, 1}, dw, s.in);
  if (detail::rounds_as_read(s)) return conv_weight_gradient(detail::rounding(s), x, dy, dw);
  if (detail::by_pairs(s, [&](auto by) { by.weight_gradient(s, x, dy, dw); })) return;
  const detail::rounded_copy<> seen(x, s.batch * s.height * s.width * s.in);
  const detail::rounded_copy<> back(dy, pixels * s.out);
  conv_weight_gradient(s, seen.data(), back.data(), dw);
}
XLA_PRODUCT_INSTANCE(void conv_weight_gradient_bfloat16<void>(const conv_sizes&, const float*,
                                                            const float*, float*));

}  // namespace xla::kernel
