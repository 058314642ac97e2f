// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/rotary.hpp"

#include <numbers>

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;

TEMPLATE_TEST_CASE("rotary embedding turns pairs by their position", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-13;
  auto reference = [](const T* x, std::int64_t batch, std::int64_t sequence, std::int64_t width,
                      double theta) {
    std::vector<T> out;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t p = 0; p < sequence; ++p, x += width)
        for (std::int64_t c = 0; c < width; ++c) {
          const std::int64_t half = width / 2, i = c % half;
          const double angle = double(p) * std::pow(theta, -2.0 * double(i) / double(width));
          const double sine = c < half ? -std::sin(angle) : std::sin(angle);
          out.push_back(static_cast<T>(double(x[c]) * std::cos(angle) +
                                       double(x[(c + half) % width]) * sine));
        }
    return out;
  };
  for (auto [batch, sequence, width] : {std::tuple{3, 7, 6}, {1, 1, 2}, {2, 33, 16}, {0, 5, 4}}) {
    const auto x = numbers<T>({batch, sequence, width});
    check_equal(rotary_embedding(x), {batch, sequence, width},
                reference(x.data(), batch, sequence, width, 10000), tolerance);
    check_equal(rotary_embedding(x, 500), {batch, sequence, width},
                reference(x.data(), batch, sequence, width, 500), tolerance);
  }
}

TEST_CASE("scaled turns are those of Llama 3, or slower by one factor") {
  const xla::eager_mode_guard eager;
  const xla::RotaryScaling llama{.factor = 8,
                                 .low_freq_factor = 1,
                                 .high_freq_factor = 4,
                                 .original_max_position_embeddings = 100};
  const auto frequency = [](const xla::RotaryScaling& s, double was) {
    const double wave = 2 * std::numbers::pi / was, tokens = s.original_max_position_embeddings;
    if (wave < tokens / s.high_freq_factor) return was;
    if (wave > tokens / s.low_freq_factor) return was / s.factor;
    const double kept =
        (tokens / wave - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    return (1 - kept) * was / s.factor + kept * was;
  };
  // Pairs that keep their turns, that are between, and that turn 8 times slower.
  std::vector<double> turns;
  for (int i = 0; i < 8; ++i) turns.push_back(std::pow(200.0, -i / 8.0));
  CHECK(frequency(llama, turns[2]) == turns[2]);
  CHECK(frequency(llama, turns[4]) < turns[4]);
  CHECK(frequency(llama, turns[4]) > turns[4] / 8);
  CHECK(frequency(llama, turns[7]) == turns[7] / 8);
  for (const auto& scaling : {llama, xla::RotaryScaling{.factor = 4}}) {
    const auto x = numbers<double>({3, 16});
    const auto got = rotary_embedding(x, 200, scaling).to_vector();
    for (std::size_t p = 0; p < 3; ++p)
      for (std::size_t i = 0; i < 8; ++i) {
        const double angle = double(p) * frequency(scaling, turns[i]);
        const double a = x.data()[p * 16 + i], b = x.data()[p * 16 + 8 + i];
        CHECK(std::abs(got[p * 16 + i] - (a * std::cos(angle) - b * std::sin(angle))) < 1e-13);
        CHECK(std::abs(got[p * 16 + 8 + i] - (b * std::cos(angle) + a * std::sin(angle))) < 1e-13);
      }
  }
  check_equal(rotary_embedding(numbers<float>({5, 8}), 100, xla::RotaryScaling{}),
              rotary_embedding(numbers<float>({5, 8}), 100), 0);
  CHECK_THROWS_WITH(rotary_embedding(numbers<float>({5, 8}), 100, {.low_freq_factor = 4}),
                    test::contains("rotary_embedding: a RotaryScaling has a factor above 0"));
}

TEST_CASE("products of turned rows depend on the distance of their positions only") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<double>({1, 8}, 1), k = numbers<double>({1, 8}, 2);
  auto product = [&](double p, double distance) {
    return sum(rotary_embedding(q, xla::full<double>({1}, p)) *
               rotary_embedding(k, xla::full<double>({1}, p + distance)))
        .item();
  };
  for (double distance : {0.0, 1.0, 5.0}) {
    CHECK(std::abs(product(0, distance) - product(117, distance)) < 1e-10);
    CHECK(std::abs(product(0, distance) - product(0, distance + 1)) > 1e-3);
  }
  check_equal(rotary_embedding(q, xla::full<double>({1}, 0)), q, 0);
}

TEST_CASE("an odd width is refused") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(rotary_embedding(numbers<float>({2, 5})),
                    test::contains("rotary_embedding: the width 5 cannot be halved"));
}

TEST_CASE("rotary embedding in every mode") {
  auto turn = [](auto& x) {
    auto y = rotary_embedding(x) +
             rotary_embedding(x, 100, {.factor = 8, .original_max_position_embeddings = 40});
    sum(y * y * y).backward();
    return y;
  };
  for (auto [n, d] : {std::pair{7, 6}, {1, 2}, {20, 16}})
    test::check_modes(turn, test::parameter(numbers<float>({2, 3, n, d})));
  test::check_gradient([](auto& x) { return rotary_embedding(x, 10); }, numbers<double>({2, 3, 4}));
}
