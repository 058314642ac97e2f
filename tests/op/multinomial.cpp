// SPDX-License-Identifier: Apache-2.0
#include "xla/op/multinomial.hpp"

#include <set>

#include "support/modes.hpp"
#include "xla/op/derived/softmax.hpp"

using test::numbers;

namespace {

/// How often each place was drawn, against what the weights say, within five standard deviations.
void check_shares(const std::vector<std::int64_t>& drawn, const std::vector<double>& weights) {
  std::vector<double> count(weights.size());
  for (auto i : drawn) ++count.at(static_cast<std::size_t>(i));
  double total = 0;
  for (double w : weights) total += w;
  const auto n = static_cast<double>(drawn.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double p = weights[i] / total;
    INFO("place " << i);
    CHECK(std::abs(count[i] - n * p) <= 5 * std::sqrt(n * p * (1 - p)));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("multinomial draws as often as the weights say", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  xla::manual_seed(7);
  const std::vector<double> weights{1, 0, 2, 0.5, 4, 0, 0.25};
  const auto row = xla::tensor<T>({1, 0, 2, 0.5, 4, 0, 0.25});
  check_shares(multinomial(row, 20000, true).to_vector(), weights);
  const auto rows = expand(row, {20000, 7});
  const auto one = multinomial(rows, 1);
  CHECK(one.sizes() == test::sizes_t{20000, 1});
  check_shares(one.to_vector(), weights);
  check_shares(multinomial(rows * 1e-30, 1, true).to_vector(), weights);
  // The first of several without replacement is drawn as a single one is; the second from the rest.
  const auto two = multinomial(rows, 2).to_vector();
  std::vector<std::int64_t> first, second_after_4;
  for (std::size_t i = 0; i < two.size(); i += 2) {
    CHECK(two[i] != two[i + 1]);
    first.push_back(two[i]);
    if (two[i] == 4) second_after_4.push_back(two[i + 1]);
  }
  check_shares(first, weights);
  check_shares(second_after_4, {1, 0, 2, 0.5, 0, 0, 0.25});
}

TEST_CASE("multinomial without replacement takes every place that can be taken") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{{0, 1e-38f, 1}, {3e38f, 3e38f, 0}}});
  const auto y = multinomial(x, 2);
  CHECK(y.sizes() == test::sizes_t{1, 2, 2});
  const auto v = y.to_vector();
  CHECK(std::set{v[0], v[1]} == std::set<std::int64_t>{1, 2});
  CHECK(std::set{v[2], v[3]} == std::set<std::int64_t>{0, 1});
  CHECK(multinomial(xla::tensor<float>({{5.f}}), 1).item() == 0);
  CHECK(multinomial(xla::zeros<float>({0, 3}), 2).sizes() == test::sizes_t{0, 2});
}

TEST_CASE("multinomial draws the same in every mode") {
  auto all = [](auto& x) {
    const auto p = softmax(x, -1);
    const auto one = multinomial(p, 1), some = multinomial(p, 3), many = multinomial(p, 9, true);
    const auto row = multinomial(p[0], 2);
    return std::tuple(one, some, many, row);
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({1, 3}));
}

TEST_CASE("multinomial refuses what are no probabilities, in every mode") {
  const xla::eager_mode_guard guard;
  const float inf = std::numeric_limits<float>::infinity();
  auto compiled = xla::compile([](auto& x) { return multinomial(x, 2); });
  for (const float bad : {-1.f, inf, std::nanf("")}) {
    auto x = xla::tensor<float>({{1, 2, 3}, {1, bad, 1}});
    const auto words = test::contains("multinomial: the probability at position 4 is negative");
    CHECK_THROWS_WITH(compiled(x), words);
    xla::eager_mode(true);
    CHECK_THROWS_WITH(multinomial(x, 2), words);
    CHECK_THROWS_WITH(multinomial(x, 2, true), words);
    xla::eager_mode(false);
    CHECK_THROWS_WITH(multinomial(x, 1).to_vector(), words);
  }
  xla::eager_mode(true);
  auto x = xla::tensor<float>({{1, 1, 0}, {0, 0, 1}});
  const auto few = test::contains("multinomial: row 1 has 1 probabilities above 0 and needs 2");
  CHECK_THROWS_WITH(multinomial(x, 2), few);
  CHECK_THROWS_WITH(compiled(x), few);
  CHECK_THROWS_WITH(multinomial(x * 0, 5, true),
                    test::contains("row 0 has 0 probabilities above 0"));
  CHECK_THROWS_WITH(multinomial(x, 4), test::contains("cannot take 4 samples of 3 probabilities"));
  CHECK_THROWS_WITH(multinomial(x, 0), test::contains("num_samples is at least 1"));
  auto narrow = numbers<float>({2, 1});
  CHECK_THROWS_WITH(
      compiled(narrow),
      test::contains("multinomial: axis 1 of argument 0 is 1 and has to be at least 2"));
}
