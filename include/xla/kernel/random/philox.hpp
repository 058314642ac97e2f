// SPDX-License-Identifier: Apache-2.0
#pragma once

// Philox4x32-10 and the distributions made from its words. It is stateless: a number follows from
// key and counter. The kernels of ops, and generators on the host, use it.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>

#include "xla/kernel/random/permutation.hpp"

namespace xla {

using philox_counter = std::array<std::uint32_t, 4>;
using philox_key = std::array<std::uint32_t, 2>;

namespace detail {

// The number of blocks computed together: large enough that g++ does not unroll the loops over a
// group completely, which would prevent vectorization.
inline constexpr int philox_lanes = 32;

/// The words of a group of successive blocks: `[word][block]`.
using philox_words = std::array<std::array<std::uint32_t, philox_lanes>, 4>;

constexpr void philox_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d,
                            std::uint32_t key0, std::uint32_t key1) {
  const auto p = std::uint64_t{0xD2511F53u} * a;
  const auto q = std::uint64_t{0xCD9E8D57u} * c;
  a = static_cast<std::uint32_t>(q >> 32) ^ b ^ key0;
  b = static_cast<std::uint32_t>(q);
  c = static_cast<std::uint32_t>(p >> 32) ^ d ^ key1;
  d = static_cast<std::uint32_t>(p);
}

}  // namespace detail

/// Philox4x32 with ten rounds: four words that depend on nothing but the counter and the key.
/// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11.
constexpr philox_counter philox4x32(philox_counter counter, philox_key key) {
  auto& [a, b, c, d] = counter;
  for (int round = 0; round < 10; ++round) {
    detail::philox_round(a, b, c, d, key[0], key[1]);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The same with the key and the low half of the counter given as 64-bit numbers.
constexpr philox_counter philox4x32(std::uint64_t counter, std::uint64_t key) {
  return philox4x32(
      {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
}

/// A float in [0, 1) from the upper 24 bits of a word.
constexpr float uniform01(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

/// A double in [0, 1) from the upper 53 bits of two words.
constexpr double uniform01(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

/// How many elements of `element_size` bytes one counter gives: four, or two of eight bytes.
constexpr std::int64_t philox_elements(std::size_t element_size) {
  return element_size >= 8 ? 2 : 4;
}

/// How many counters `n` elements of `element_size` bytes consume: the advance of a generator's
/// offset after a fill.
constexpr std::uint64_t philox_blocks(std::int64_t n, std::size_t element_size) {
  const auto per_block = philox_elements(element_size);
  return static_cast<std::uint64_t>((n + per_block - 1) / per_block);
}

namespace detail {

/// ln(x) for normal positive x, within 1 ulp or so; Cephes logf. Plain arithmetic, so that loops
/// over it vectorise and every platform gives the same bits.
template <class = void>
inline float plain_log(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto exponent = static_cast<std::int32_t>(bits - 0x3F3504F3u) >> 23;
  const float e = static_cast<float>(exponent);
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1.0f;
  const float z = f * f;
  float y = 7.0376836292e-2f;
  y = y * f - 1.1514610310e-1f;
  y = y * f + 1.1676998740e-1f;
  y = y * f - 1.2420140846e-1f;
  y = y * f + 1.4249322787e-1f;
  y = y * f - 1.6668057665e-1f;
  y = y * f + 2.0000714765e-1f;
  y = y * f - 2.4999993993e-1f;
  y = y * f + 3.3333331174e-1f;
  y = y * f * z - 2.12194440e-4f * e - 0.5f * z;
  return f + y + 0.693359375f * e;
}

struct sine_cosine {
  float sine, cosine;
};

/// Sine and cosine of `turns / 2^32` of a full turn; the reduction is exact. Cephes sinf, cosf.
template <class = void>
inline sine_cosine plain_sincos(std::uint32_t turns) {
  const auto quadrant = (turns + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(turns - (quadrant << 30));
  const float x = static_cast<float>(rest) * (2 * std::numbers::pi_v<float> * 0x1p-32f);
  const float z = x * x;
  const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
  const float c =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
      0.5f * z + 1.0f;
  const bool swap = (quadrant & 1) != 0;
  const float sine = swap ? c : s;
  const float cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}

/// The words of philox_lanes blocks from `counter` on.
template <class = void>
[[gnu::noinline]] inline void philox_fill(philox_words& words, std::uint64_t counter,
                                          std::uint64_t key) {
  auto& [a, b, c, d] = words;
  for (std::size_t i = 0; i < philox_lanes; ++i) {
    a[i] = static_cast<std::uint32_t>(counter + i);
    b[i] = static_cast<std::uint32_t>((counter + i) >> 32);
    c[i] = d[i] = 0;
  }
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < philox_lanes; ++i) philox_round(a[i], b[i], c[i], d[i], key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

/// Box and Muller (1958) over the words of a group of blocks: `z[0], z[1]` from words 0 and 1, and
/// `z[2], z[3]` from words 2 and 3. Tails reach 6.6 standard deviations.
template <class = void>
inline void box_muller(const philox_words& words,
                       std::array<std::array<float, philox_lanes>, 4>& z) {
  std::array<float, philox_lanes> radius;
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    for (std::size_t i = 0; i < philox_lanes; ++i) {
      const float u = static_cast<float>(static_cast<std::int32_t>(words[pair][i] >> 1)) + 0.5f;
      radius[i] = -2.0f * plain_log(u * 0x1p-31f);
    }
    for (auto& r : radius) r = std::sqrt(r);
    for (std::size_t i = 0; i < philox_lanes; ++i) {
      const auto [sine, cosine] = plain_sincos(words[pair + 1][i]);
      z[pair][i] = radius[i] * cosine;
      z[pair + 1][i] = radius[i] * sine;
    }
  }
}

/// The upper 64 bits of the 128-bit product.
constexpr std::uint64_t multiply_high(std::uint64_t x, std::uint64_t y) {
  constexpr std::uint64_t mask = 0xFFFFFFFFu;
  const auto low = (x & mask) * (y & mask);
  const auto middle = (x >> 32) * (y & mask) + (low >> 32);
  const auto other = (x & mask) * (y >> 32) + (middle & mask);
  return (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
}

/// Fills `out` a group of blocks at a time. The last, partial group uses the same code, so that an
/// element's bits do not depend on its position.
template <class T, class Convert>
void philox_each(T* out, std::int64_t n, std::uint64_t seed, std::uint64_t offset,
                 const Convert& convert) {
  constexpr std::int64_t group = philox_lanes * philox_elements(sizeof(T));
  philox_words words;
  std::array<T, static_cast<std::size_t>(group)> values;
  for (std::int64_t i = 0; i < n; i += group, offset += philox_lanes) {
    philox_fill(words, offset, seed);
    convert(words, values);
    std::copy_n(values.begin(), std::min(group, n - i), out + i);
  }
}

}  // namespace detail

/// Fills `out[0..n)` with values uniform in [0, 1). Element e is a function of `seed` and of the
/// counter `offset + e / 4` (`e / 2` for double), so a chunk that starts at such an element may be
/// filled on its own with its own offset.
template <std::floating_point T>
void fill_uniform(T* out, std::int64_t n, std::uint64_t seed, std::uint64_t offset) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "fill_uniform: float or double");
  detail::philox_each(out, n, seed, offset, [](const auto& words, auto& values) {
    for (std::size_t i = 0; i < detail::philox_lanes; ++i)
      if constexpr (sizeof(T) == 4) {
        for (std::size_t w = 0; w < 4; ++w) values[4 * i + w] = uniform01(words[w][i]);
      } else {
        values[2 * i] = uniform01(words[0][i], words[1][i]);
        values[2 * i + 1] = uniform01(words[2][i], words[3][i]);
      }
  });
}

/// Fills `out[0..n)` with standard normal values; counters as in `fill_uniform`.
template <std::floating_point T>
void fill_normal(T* out, std::int64_t n, std::uint64_t seed, std::uint64_t offset) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "fill_normal: float or double");
  detail::philox_each(out, n, seed, offset, [](const auto& words, auto& values) {
    if constexpr (sizeof(T) == 4) {
      std::array<std::array<float, detail::philox_lanes>, 4> z;
      detail::box_muller(words, z);
      for (std::size_t i = 0; i < detail::philox_lanes; ++i)
        for (std::size_t w = 0; w < 4; ++w) values[4 * i + w] = z[w][i];
    } else {
      for (std::size_t i = 0; i < detail::philox_lanes; ++i) {
        const double u = uniform01(words[0][i], words[1][i]) + 0x1p-53;
        const double angle = 2 * std::numbers::pi * uniform01(words[2][i], words[3][i]);
        const double radius = std::sqrt(-2 * std::log(u));
        values[2 * i] = radius * std::cos(angle);
        values[2 * i + 1] = radius * std::sin(angle);
      }
    }
  });
}

/// Fills `out[0..n)` with integers in [low, high), `low < high`; counters as in `fill_uniform` by
/// the size of `T`. Lemire's multiplication: off uniform by at most (high - low) / 2^32, or by
/// (high - low) / 2^64 for 64-bit integers.
template <std::integral T>
void fill_integers(T* out, std::int64_t n, T low, T high, std::uint64_t seed,
                   std::uint64_t offset) {
  const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const auto base = static_cast<std::uint64_t>(low);
  detail::philox_each(out, n, seed, offset, [=](const auto& words, auto& values) {
    for (std::size_t i = 0; i < detail::philox_lanes; ++i)
      if constexpr (sizeof(T) < 8) {
        for (std::size_t w = 0; w < 4; ++w)
          values[4 * i + w] = static_cast<T>(base + ((words[w][i] * range) >> 32));
      } else {
        const auto scaled = [&](std::uint64_t high_word, std::uint64_t low_word) {
          return static_cast<T>(base + detail::multiply_high(high_word << 32 | low_word, range));
        };
        values[2 * i] = scaled(words[0][i], words[1][i]);
        values[2 * i + 1] = scaled(words[2][i], words[3][i]);
      }
  });
}

template <class>
void fill_permutation(std::int64_t* out, std::int64_t n, std::uint64_t seed, std::uint64_t offset) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = i;
  for (std::int64_t i = n - 1; i > 0; --i) {
    const auto position = static_cast<std::uint64_t>(i);
    const auto words = philox4x32(offset + position / 2, seed);
    const auto w = 2 * static_cast<std::size_t>(position % 2);
    const auto random = std::uint64_t{words[w]} << 32 | words[w + 1];
    std::swap(out[i], out[detail::multiply_high(random, position + 1)]);
  }
}
XLA_INSTANCE(void fill_permutation<void>(std::int64_t*, std::int64_t, std::uint64_t,
                                         std::uint64_t));

}  // namespace xla
