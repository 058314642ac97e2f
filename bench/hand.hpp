// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <vector>

// What one would write by hand instead of a tensor expression: loops over Eigen's packets.
namespace bench {

namespace simd = Eigen::internal;
using packet = simd::packet_traits<float>::type;
inline constexpr std::int64_t lanes = simd::packet_traits<float>::size;

inline packet splat(float x) { return simd::pset1<packet>(x); }

/// out[i] = f(in[i]...) for n elements, n a multiple of the lanes.
template <class F, class... In>
[[gnu::noinline]] void map_by_hand(F f, std::int64_t n, float* out, const In*... in) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < n; i += lanes)
    simd::pstoreu(out + i, f(simd::ploadu<packet>(in + i)...));
}

/// Calls f(k, packet) over one row; the last packet is filled up with `rest`.
template <class F>
inline void each_packet(const float* row, std::int64_t n, float rest, F&& f) {
  std::int64_t k = 0;
#pragma GCC unroll 4
  for (; k + lanes <= n; k += lanes) f(k, simd::ploadu<packet>(row + k));
  if (k == n) return;
  alignas(64) float last[lanes];
  std::fill(std::copy(row + k, row + n, last), last + lanes, rest);
  f(k, simd::pload<packet>(last));
}

inline void store(float* row, std::int64_t k, std::int64_t n, packet p) {
  if (k + lanes <= n) return simd::pstoreu(row + k, p);
  alignas(64) float last[lanes];
  simd::pstore(last, p);
  std::copy(last, last + (n - k), row + k);
}

/// exp(x - max) of one row into `e`; returns its sum. The sums run in four chains.
inline float exp_of_row(const float* x, float* e, std::int64_t n) {
  packet most[4] = {splat(-3e38f), splat(-3e38f), splat(-3e38f), splat(-3e38f)};
  each_packet(x, n, -3e38f, [&](std::int64_t k, packet p) {
    packet& m = most[k / lanes % 4];
    m = simd::pmax(m, p);
  });
  const packet top = splat(simd::predux_max(
      simd::pmax(simd::pmax(most[0], most[1]), simd::pmax(most[2], most[3]))));
  packet sums[4] = {splat(0), splat(0), splat(0), splat(0)};
  each_packet(x, n, -3e38f, [&](std::int64_t k, packet p) {
    const packet y = simd::pexp(simd::psub(p, top));
    simd::pstore(e + k, y);
    packet& s = sums[k / lanes % 4];
    s = simd::padd(s, y);
  });
  return simd::predux(simd::padd(simd::padd(sums[0], sums[1]), simd::padd(sums[2], sums[3])));
}

/// softmax of every row.
[[gnu::noinline]] inline void softmax_by_hand(std::int64_t rows, std::int64_t n, const float* x,
                                              float* out, float* scratch) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, out += n) {
    const packet scale = splat(1 / exp_of_row(x, scratch, n));
    each_packet(scratch, n, 0, [&](std::int64_t k, packet e) {
      store(out, k, n, simd::pmul(e, scale));
    });
  }
}

/// Mean cross-entropy of all rows, and its gradient.
[[gnu::noinline]] inline float cross_entropy_by_hand(std::int64_t rows, std::int64_t n,
                                                     const float* x, const std::int64_t* target,
                                                     float* gradient, float* scratch) {
  float loss = 0;
  const float share = 1 / static_cast<float>(rows);
  for (std::int64_t i = 0; i < rows; ++i, x += n, gradient += n) {
    const float sum = exp_of_row(x, scratch, n);
    loss -= std::log(scratch[target[i]] / sum);
    const packet scale = splat(share / sum);
    each_packet(scratch, n, 0, [&](std::int64_t k, packet e) {
      store(gradient, k, n, simd::pmul(e, scale));
    });
    gradient[target[i]] -= share;
  }
  return loss * share;
}

}  // namespace bench
