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

}  // namespace bench
