// SPDX-License-Identifier: Apache-2.0
#include "xla/kernel/random/philox.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include "catch.hpp"

namespace {

// Known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
constexpr bool known_answers() {
  constexpr std::uint32_t f = 0xffffffff;
  return xla::philox4x32({0, 0, 0, 0}, {0, 0}) ==
             xla::philox_counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} &&
         xla::philox4x32({f, f, f, f}, {f, f}) ==
             xla::philox_counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd} &&
         xla::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xa4093822, 0x299f31d0}) ==
             xla::philox_counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
}
static_assert(known_answers());

constexpr bool conversions() {
  return xla::uniform01(0) == 0.0f && xla::uniform01(0xffffffff) == 1.0f - 0x1p-24f &&
         xla::uniform01(0x80000000) == 0.5f && xla::uniform01(0, 0) == 0.0 &&
         xla::uniform01(0xffffffff, 0xffffffff) == 1.0 - 0x1p-53;
}
static_assert(conversions());

constexpr bool blocks() {
  return xla::philox_blocks(0, 4) == 0 && xla::philox_blocks(1, 4) == 1 &&
         xla::philox_blocks(4, 4) == 1 && xla::philox_blocks(5, 4) == 2 &&
         xla::philox_blocks(5, 8) == 3 && xla::philox_blocks(5, 1) == 2;
}
static_assert(blocks());

static_assert(xla::detail::multiply_high(~0ull, ~0ull) == ~0ull - 1);
static_assert(xla::detail::multiply_high(1ull << 63, 6) == 3);
static_assert(xla::detail::multiply_high(0x123456789abcdef0, 0xfedcba9876543210) ==
              0x121fa00ad77d7422);

struct moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

template <class T>
moments moments_of(const std::vector<T>& values) {
  moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n;
  for (const double v : values) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    m.skewness += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skewness /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

// The greatest distance between the sample's distribution and that of the normal (Kolmogorov).
template <class T>
double distance_to_normal(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = 0.5 * std::erfc(-static_cast<double>(values[i]) / std::sqrt(2.0));
    const double seen = (static_cast<double>(i) + 0.5) / static_cast<double>(values.size());
    worst = std::max(worst, std::abs(expected - seen));
  }
  return worst;
}

enum class kind { uniform, normal };

template <class T>
std::vector<T> filled(kind k, std::int64_t n, std::uint64_t seed, std::uint64_t offset) {
  std::vector<T> out(static_cast<std::size_t>(n));
  if (k == kind::uniform)
    xla::fill_uniform(out.data(), n, seed, offset);
  else
    xla::fill_normal(out.data(), n, seed, offset);
  return out;
}

}  // namespace

TEST_CASE("philox4x32 gives the published answers at run time") {
  CHECK(known_answers());
  CHECK(conversions());
  CHECK(blocks());
  CHECK(xla::philox4x32(0x85a308d3'243f6a88, 0x299f31d0'a4093822) ==
        xla::philox4x32({0x243f6a88, 0x85a308d3, 0, 0}, {0xa4093822, 0x299f31d0}));
}

TEST_CASE("fill_uniform takes its words from the counters it names") {
  const std::uint64_t seed = 42, offset = 0xffffffff;  // the low word of the counter wraps
  const auto floats = filled<float>(kind::uniform, 100, seed, offset);
  for (std::size_t e = 0; e < 100; ++e)
    REQUIRE(floats[e] == xla::uniform01(xla::philox4x32(offset + e / 4, seed)[e % 4]));
  const auto doubles = filled<double>(kind::uniform, 100, seed, offset);
  for (std::size_t e = 0; e < 100; ++e) {
    const auto words = xla::philox4x32(offset + e / 2, seed);
    REQUIRE(doubles[e] == xla::uniform01(words[2 * (e % 2)], words[2 * (e % 2) + 1]));
  }
}

TEMPLATE_TEST_CASE("a value depends on seed, offset and element only", "", float, double) {
  const auto k = GENERATE(kind::uniform, kind::normal);
  constexpr std::int64_t per_block = xla::philox_elements(sizeof(TestType));
  const auto whole = filled<TestType>(k, 1003, 7, 5);
  for (const std::int64_t n : {1, 2, 3, 63, 64, 65, 127, 1000}) {
    const auto part = filled<TestType>(k, n, 7, 5);
    REQUIRE(std::memcmp(part.data(), whole.data(), part.size() * sizeof(TestType)) == 0);
  }
  for (const std::int64_t first : {4, 20, 68, 500}) {
    const auto block = static_cast<std::uint64_t>(first / per_block);
    const auto part = filled<TestType>(k, 1003 - first, 7, 5 + block);
    REQUIRE(std::memcmp(part.data(), whole.data() + first, part.size() * sizeof(TestType)) == 0);
  }
  CHECK(filled<TestType>(k, 8, 8, 5) != filled<TestType>(k, 8, 7, 5));
  CHECK(filled<TestType>(k, 0, 7, 5).empty());
}

TEMPLATE_TEST_CASE("uniform values have the moments of [0, 1)", "", float, double) {
  const auto values = filled<TestType>(kind::uniform, 1 << 20, 123, 0);
  for (const auto v : values) REQUIRE((v >= 0 && v < 1));
  const auto m = moments_of(values);
  CHECK(m.mean == Approx(0.5).margin(1.5e-3));  // 5 standard errors
  CHECK(m.variance == Approx(1.0 / 12).margin(4e-4));
  CHECK(m.skewness == Approx(0).margin(8e-3));
  CHECK(m.kurtosis == Approx(1.8).margin(8e-3));
}

TEMPLATE_TEST_CASE("normal values have the moments of the standard normal", "", float, double) {
  const auto values = filled<TestType>(kind::normal, 1 << 20, 123, 0);
  for (const auto v : values) REQUIRE(std::isfinite(v));
  const auto m = moments_of(values);
  CHECK(m.mean == Approx(0).margin(5e-3));
  CHECK(m.variance == Approx(1).margin(7e-3));
  CHECK(m.skewness == Approx(0).margin(1.2e-2));
  CHECK(m.kurtosis == Approx(3).margin(2.4e-2));
  CHECK(distance_to_normal(values) < 2.0e-3);
  double product = 0;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2)
    product += static_cast<double>(values[i]) * static_cast<double>(values[i + 1]);
  CHECK(product / (1 << 19) == Approx(0).margin(7e-3));
}

TEST_CASE("the plain logarithm, sine and cosine agree with the library's") {
  double log_error = 0, angle_error = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const auto word = xla::philox4x32(i, 1)[0];
    const float u = (static_cast<float>(word >> 1) + 0.5f) * 0x1p-31f;
    const double log = std::log(static_cast<double>(u));
    log_error = std::max(log_error, std::abs(xla::detail::plain_log(u) - log) / (1e-3 - log));
    const auto [sine, cosine] = xla::detail::plain_sincos(word);
    const double angle = 2 * std::numbers::pi * 0x1p-32 * word;
    angle_error = std::max(angle_error, std::abs(sine - std::sin(angle)));
    angle_error = std::max(angle_error, std::abs(cosine - std::cos(angle)));
  }
  CHECK(log_error < 2e-7);
  CHECK(angle_error < 2e-7);
  CHECK(xla::detail::plain_log(1.0f) == 0.0f);
  CHECK(xla::detail::plain_log(0x1p-32f) == Approx(-22.18071));
  CHECK(xla::detail::plain_sincos(0).sine == 0.0f);
  CHECK(xla::detail::plain_sincos(0x40000000).sine == 1.0f);
  CHECK(xla::detail::plain_sincos(0x80000000).cosine == -1.0f);
  CHECK(xla::detail::plain_sincos(0xC0000000).sine == -1.0f);
}

TEST_CASE("the extreme words give finite normals") {
  xla::detail::philox_words words;
  std::array<std::array<float, xla::detail::philox_lanes>, 4> z;
  for (const std::uint32_t word : {0x0u, 0xffffffffu}) {
    for (auto& lane : words) lane.fill(word);
    xla::detail::box_muller(words, z);
    for (const auto& lane : z) {
      CHECK(std::isfinite(lane[0]));
      CHECK(std::abs(lane[0]) < 6.7f);
    }
  }
}

TEMPLATE_TEST_CASE("integers fill their interval evenly", "", std::int8_t, std::int32_t,
                   std::int64_t, std::uint64_t) {
  constexpr std::int64_t n = 100'000;
  std::vector<TestType> values(n);
  const auto low = static_cast<TestType>(std::is_signed_v<TestType> ? -5 : 5);
  xla::fill_integers(values.data(), n, low, static_cast<TestType>(low + 10), 9, 0);
  std::array<int, 10> count{};
  for (const auto v : values) {
    REQUIRE((v >= low && v - low < 10));
    ++count[static_cast<std::size_t>(v - low)];
  }
  for (const int c : count) CHECK(std::abs(c - 10'000) < 500);

  using limits = std::numeric_limits<TestType>;
  xla::fill_integers(values.data(), 1000, limits::min(), limits::max(), 9, 0);
  double mean = 0;
  for (std::size_t i = 0; i < 1000; ++i)
    mean += (static_cast<double>(values[i]) / 2 - static_cast<double>(limits::min()) / 2) / 1000;
  CHECK(mean / (std::ldexp(1.0, limits::digits + std::is_signed_v<TestType>) / 4) ==
        Approx(1).margin(0.1));
}

TEST_CASE("a permutation holds every number once, and every order is as likely") {
  std::vector<std::int64_t> order(1000), sorted(1000);
  xla::fill_permutation(order.data(), 1000, 3, 0);
  for (std::size_t i = 0; i < 1000; ++i) sorted[static_cast<std::size_t>(order[i])] = 1;
  for (const auto seen : sorted) REQUIRE(seen == 1);
  std::array<int, 27> count{};
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    std::array<std::int64_t, 3> three;
    xla::fill_permutation(three.data(), 3, 3, i * xla::philox_blocks(3, 8));
    ++count[static_cast<std::size_t>(9 * three[0] + 3 * three[1] + three[2])];
  }
  for (const int c : count) CHECK((c == 0 || std::abs(c - 10'000) < 500));
  CHECK(std::count(count.begin(), count.end(), 0) == 21);
  xla::fill_permutation(order.data(), 0, 3, 0);
}
