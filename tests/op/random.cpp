// SPDX-License-Identifier: Apache-2.0
#include "xla/op/random.hpp"

#include "support/modes.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/derived/dropout.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/trigonometric.hpp"
#include "xla/run/state/fork_rng.hpp"

using test::check_equal;
using test::numbers;

namespace {

template <class T>
void moments(const xla::Tensor<T, 1>& x, double& mean, double& variance) {
  const T* p = x.data();
  const std::int64_t n = x.numel();
  mean = variance = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += static_cast<double>(p[i]) / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(p[i]) - mean;
    variance += d * d / static_cast<double>(n);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("random numbers have the distribution they promise", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  xla::manual_seed(2);
  double mean = 0, variance = 0;
  const auto u = xla::rand<T>({100003});
  moments(u, mean, variance);
  CHECK(mean == Approx(0.5).margin(0.005));
  CHECK(variance == Approx(1.0 / 12).margin(0.002));
  CHECK(min(u).item() >= 0);
  CHECK(max(u).item() < 1);
  const auto z = xla::randn<T>({100003});
  moments(z, mean, variance);
  CHECK(mean == Approx(0).margin(0.02));
  CHECK(variance == Approx(1).margin(0.02));
  CHECK(max(abs(z)).item() < 7);
}

TEST_CASE("the same seed gives the same numbers; the next call gives others") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto a = xla::rand<float>({17}), b = xla::rand<float>({17});
  CHECK(a.to_vector() != b.to_vector());
  xla::manual_seed(3);
  check_equal(xla::rand<float>({17}), a);
  const auto state = xla::get_rng_state();
  check_equal(xla::rand<float>({17}), b);
  xla::set_rng_state(state);
  check_equal(xla::rand<float>({17}), b);
  xla::manual_seed(4);
  CHECK(xla::rand<float>({17}).to_vector() != a.to_vector());
  check_equal(xla::rand<float>({0, 3}), {0, 3}, {});
  CHECK(xla::randn<double>({1, 1}).sizes() == test::sizes_t{1, 1});
}

TEST_CASE("draws in fork_rng() do not affect later ones, in both modes and after an exception") {
  const xla::eager_mode_guard mode(GENERATE(true, false));
  xla::manual_seed(3);
  const auto before = xla::get_rng_state();
  const auto drawn = xla::fork_rng([] { return xla::rand<float>({17}); });
  CHECK(xla::get_rng_state() == before);
  CHECK_THROWS_AS(xla::fork_rng([] {
                    xla::manual_seed(4);
                    xla::rand<float>({17}).to_vector();
                    throw std::runtime_error("mine");
                  }),
                  std::runtime_error);
  CHECK(xla::get_rng_state() == before);
  check_equal(xla::rand<float>({17}), drawn);
}

TEST_CASE("random numbers do not depend on the mode") {
  auto all = [](auto& x) {
    const auto u = rand_like(x);
    const auto n = randn_like(x);
    const auto w = rand_like(sum(x, {0}));
    const auto dropped = where(u < 0.5, x * 2, 0);
    return std::tuple(u, n, w, dropped, n + u);
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({33, 17}));
  test::check_modes(all, numbers<float>({0, 3}));
}

TEST_CASE(
    "draws that have names come in their order in every mode; two in one expression, in any") {
  auto named = [](auto& x) {
    const auto a = rand_like(x), b = rand_like(x);
    const auto c = dropout(tanh(x), 0.5f), d = dropout(sin(x), 0.5f);
    return std::tuple(a - b, c + d);
  };
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({7, 13});
  test::check_modes(named, x);

  auto unnamed = [](auto& x) { return rand_like(x) - rand_like(x); };
  xla::manual_seed(5);
  const auto first = std::get<0>(named(x)), second = first * -1;
  const auto is_one_of_both = [&](const auto& run) {
    xla::manual_seed(5);
    const auto found = run(x).to_vector();
    return found == first.to_vector() || found == second.to_vector();
  };
  CHECK(is_one_of_both(unnamed));
  auto compiled = xla::compile(unnamed);
  CHECK(is_one_of_both([&](auto& t) { return compiled(t); }));
}

TEST_CASE("a compiled step draws new numbers at each call") {
  const xla::eager_mode_guard eager;
  auto noise = xla::compile([](auto& x) { return rand_like(x); });
  auto x = xla::zeros<float>({17});
  xla::manual_seed(5);
  const auto a = noise(x), b = noise(x);
  CHECK(a.to_vector() != b.to_vector());
  xla::manual_seed(5);
  check_equal(rand_like(x), a);
  check_equal(rand_like(x), b);
}
