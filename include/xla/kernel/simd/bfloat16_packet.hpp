// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packets of bfloat16 in memory, which registers hold as floats: load, store, round. Regions and
// products use it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "xla/kernel/simd/packet.hpp"
#include "xla/shape/bfloat16.hpp"

namespace xla::kernel::detail {

#if XLA_GNU_EXTENSIONS
/// The words of a packet, and bfloat16 for each of its numbers.
using lane_words [[gnu::vector_size(sizeof(packet<float>))]] = std::uint32_t;
using bfloat16_lanes [[gnu::vector_size(sizeof(packet<float>) / 2)]] = std::uint16_t;

inline packet<float> as_packet(lane_words u) {
  packet<float> x;
  std::memcpy(&x, &u, sizeof x);
  return x;
}
/// Every lane as the nearest bfloat16, ties to the even one; NaN stays NaN.
inline packet<float> round_lanes(packet<float> x) {
#ifdef XLA_ISA_ROUNDS
  return isa::round_to_bfloat16(x);
#else
  lane_words u;
  std::memcpy(&u, &x, sizeof u);
  const lane_words nan = (lane_words)((u & 0x7fffffffu) > 0x7f800000u);
  const lane_words near = u + (0x7fffu + (u >> 16 & 1u));
  return as_packet(((nan & (u | 0x400000u)) | (~nan & near)) & 0xffff0000u);
#endif
}
/// The first n numbers, at most a packet; the others are 0.
[[gnu::always_inline]] inline packet<float> widen_lanes(const bfloat16* p, std::size_t n) {
  bfloat16_lanes h{};
  std::memcpy(&h, p, n * sizeof *p);
  return as_packet(__builtin_convertvector(h, lane_words) << 16);
}
/// Writes the first n numbers of an already rounded packet.
[[gnu::always_inline]] inline void store_lanes(bfloat16* to, packet<float> x, std::size_t n) {
  lane_words u;
  std::memcpy(&u, &x, sizeof u);
  const bfloat16_lanes h = __builtin_convertvector(u >> 16, bfloat16_lanes);
  std::memcpy(static_cast<void*>(to), &h, n * sizeof *to);
}

#else
/// The numbers of a packet, one by one.
struct lane_array {
  float x[lanes<float>] = {};
  explicit lane_array(packet<float> all) { std::memcpy(x, &all, sizeof all); }
  packet<float> all() const {
    packet<float> p;
    std::memcpy(&p, x, sizeof p);
    return p;
  }
};
inline packet<float> round_lanes(packet<float> all) {
  lane_array a(all);
  for (float& x : a.x) x = bfloat16{x};
  return a.all();
}
inline packet<float> widen_lanes(const bfloat16* p, std::size_t n) {
  lane_array a(packet<float>{});
  for (std::size_t i = 0; i < lanes<float>; ++i) a.x[i] = i < n ? float{p[i]} : 0.f;
  return a.all();
}
inline void store_lanes(bfloat16* to, packet<float> all, std::size_t n) {
  const lane_array a(all);
  for (std::size_t i = 0; i < n; ++i) to[i] = bfloat16{a.x[i]};
}
#endif

/// Rounds floats.
template <class T>
void round_all(const T* from, bfloat16* to, index_t count) {
  index_t i = 0;
  if constexpr (is_vector<T>)
    for (; i + lanes<T> <= count; i += lanes<T>)
      store_lanes(to + i, round_lanes(simd::ploadu<packet<T>>(from + i)), lanes<T>);
  for (; i < count; ++i) to[i] = bfloat16{from[i]};
}
/// Rounds floats to floats; `to` may be their own address.
template <class T>
void round_all(const T* from, T* to, index_t count) {
  index_t i = 0;
  if constexpr (is_vector<T>)
    for (; i + lanes<T> <= count; i += lanes<T>)
      simd::pstoreu(to + i, round_lanes(simd::ploadu<packet<T>>(from + i)));
  for (; i < count; ++i) to[i] = bfloat16{from[i]};
}
template <class T>
void widen_all(const bfloat16* from, T* to, index_t count) {
  index_t i = 0;
  if constexpr (is_vector<T>)
    for (; i + lanes<T> <= count; i += lanes<T>)
      simd::pstoreu(to + i, widen_lanes(from + i, lanes<T>));
  for (; i < count; ++i) to[i] = from[i];
}

}  // namespace xla::kernel::detail
