// SPDX-License-Identifier: Apache-2.0
#include "xla/op/integers.hpp"

#include <algorithm>
#include <numeric>

#include "support/modes.hpp"
#include "xla/op/reduce.hpp"

using test::check_equal;
using test::numbers;

TEST_CASE("randint is uniform over its range") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(2);
  const auto x = xla::randint(-3, 4, {70001});
  std::vector<int> times(7);
  for (std::int64_t v : x.to_vector()) {
    REQUIRE((v >= -3 && v < 4));
    ++times[static_cast<std::size_t>(v + 3)];
  }
  for (int n : times) CHECK(n == Approx(10000).margin(400));
  check_equal(xla::randint(5, 6, {7, 13}), xla::full<std::int64_t>({7, 13}, 5));
  CHECK(xla::randint(10, {0, 3}).sizes() == test::sizes_t{0, 3});
  const auto far = xla::randint(std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max(), {1000});
  CHECK(min(far).item() < -(std::int64_t{1} << 62));
  CHECK(max(far).item() > std::int64_t{1} << 62);
  const auto like = randint_like(xla::zeros<float>({1000}), 0, 2);
  CHECK(sum(like).item() == Approx(500).margin(60));
  CHECK_THROWS_WITH(xla::randint(3, 3, {2}), test::contains("randint: there is no number from 3"));
}

TEST_CASE("bernoulli has the probabilities that it is given") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto p = xla::tensor<float>({{0}, {0.25}, {0.5}, {1}});
  const auto x = bernoulli(expand(p, {4, 40000}));
  const auto m = mean(x, {1}).to_vector();
  CHECK(m[0] == 0);
  CHECK(m[1] == Approx(0.25).margin(0.01));
  CHECK(m[2] == Approx(0.5).margin(0.01));
  CHECK(m[3] == 1);
  CHECK(min(x * (1 - x)).item() == 0);
  CHECK(mean(bernoulli_like(xla::zeros<double>({40000}), 0.9)).item() == Approx(0.9).margin(0.01));
}

TEST_CASE("randperm is a permutation, and each is as likely") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(4);
  auto x = xla::randperm(1000).to_vector();
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  CHECK(x != all);
  std::sort(x.begin(), x.end());
  CHECK(x == all);
  std::vector<int> times(6);
  for (int i = 0; i < 6000; ++i) {
    const auto v = xla::randperm(3).to_vector();
    ++times[static_cast<std::size_t>(v[0] * 2 + (v[1] > v[2]))];
  }
  for (int n : times) CHECK(n == Approx(1000).margin(150));
  CHECK(xla::randperm(0).to_vector().empty());
  CHECK(xla::randperm<std::int32_t>(1).to_vector() == std::vector<std::int32_t>{0});
}

TEST_CASE("the same seed gives the same integers; the next call gives others") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(5);
  const auto a = xla::randint(1000, {33}), b = xla::randint(1000, {33});
  const auto p = xla::randperm(33);
  CHECK(a.to_vector() != b.to_vector());
  xla::manual_seed(5);
  check_equal(xla::randint(1000, {33}), a);
  check_equal(xla::randint(1000, {33}), b);
  check_equal(xla::randperm(33), p);
}

TEST_CASE("random integers do not depend on the mode") {
  auto all = [](auto& x) {
    const auto i = randint_like(x, -5, 100);
    const auto p = xla::randperm(x.size(0));
    const auto b = bernoulli_like(x, 0.3), c = bernoulli(b * 0.5 + 0.1);
    const auto j = xla::randint(2, {x.size(1), 3});
    return std::tuple(i, p, b, c, j, i + rand_like(x));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({33, 17}));
  test::check_modes(all, numbers<float>({0, 3}));
}

TEST_CASE("a compiled step draws new integers at each call") {
  const xla::eager_mode_guard eager;
  auto draw = xla::compile([](auto& x) { return randint_like(x, 0, 1000); });
  auto x = xla::zeros<std::int64_t>({17});
  xla::manual_seed(6);
  const auto a = draw(x), b = draw(x);
  CHECK(a.to_vector() != b.to_vector());
  xla::manual_seed(6);
  check_equal(randint_like(x, 0, 1000), a);
  check_equal(randint_like(x, 0, 1000), b);
}
