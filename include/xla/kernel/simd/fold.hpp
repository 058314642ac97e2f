// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds up the lanes of several packets at once, into one packet of sums. Products of small m use
// it.

#include <array>
#include <cstddef>
#include <utility>

#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel::detail {

/// The order in which the lanes of as many packets as each has lanes are added: in each stage the
/// upper half of a packet's remaining lanes is added to the lower half, and two packets share one
/// afterwards.
template <class T>
struct fold_order {
  static constexpr int width = lanes<T>;
  /// The lane of two packets, side by side, whose value goes to lane `to` of the packet that they
  /// share: one of the lower half. That of the upper half is `half` lanes on. Halves of 8 bytes or
  /// less do not leave their 16 bytes, because such shuffles are fast.
  static constexpr int source(int half, int to) {
    constexpr int block = static_cast<int>(16 / sizeof(T));
    if (2 * half > block) return to / half * 2 * half + to % half;
    const int packet = to % block / (block / 2), at = to % (block / 2);
    return packet * width + to / block * block + at / half * 2 * half + at % half;
  }
  /// The packet whose sum a lane of the result is.
  static constexpr int packet_of(int lane) {
    int p = 0;
    for (int half = 1; half < width; half *= 2) {
      const int from = source(half, lane);
      p = 2 * p + from / width;
      lane = from % width;
    }
    return p;
  }
  static constexpr auto packets = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<int, sizeof...(I)>{packet_of(static_cast<int>(I))...};
  }(lane_numbers<T>{});
};

template <class T, int Half, std::size_t... I>
[[gnu::always_inline]] inline packet<T> fold_two(packet<T> a, packet<T> b,
                                                 std::index_sequence<I...>) {
  using order = fold_order<T>;
  const packet<T> lower =
      __builtin_shufflevector(a, b, order::source(Half, static_cast<int>(I))...);
  const packet<T> upper =
      __builtin_shufflevector(a, b, (order::source(Half, static_cast<int>(I)) + Half)...);
  return simd::padd(lower, upper);
}
template <class T, int Half>
[[gnu::always_inline]] inline packet<T> fold_from(packet<T>* x) {
#pragma GCC unroll 8
  for (int i = 0; i < Half; ++i)
    x[i] = fold_two<T, Half>(x[2 * i], x[2 * i + 1], lane_numbers<T>{});
  if constexpr (Half > 1) return fold_from<T, Half / 2>(x);
  else return x[0];
}
/// The sums of as many packets as each has lanes: lane i is that of packet
/// fold_order<T>::packets[i].
template <class T>
[[gnu::always_inline]] inline packet<T> fold_packets(packet<T>* x) {
  if constexpr (lanes<T> == 1) return x[0];
  else return fold_from<T, lanes<T> / 2>(x);
}

}  // namespace xla::kernel::detail
