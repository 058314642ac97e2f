// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/init.hpp"

#include "support/moments.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/mode.hpp"

namespace init = xla::nn::init;
using test::check_moments;

TEST_CASE("constants") {
  const xla::eager_mode_guard eager;
  xla::Parameter<float, 2> w({2, 3});
  init::ones_(w);
  CHECK(w.to_vector() == std::vector<float>(6, 1));
  init::constant_(w, 0.25);
  CHECK(w.to_vector() == std::vector<float>(6, 0.25f));
  init::zeros_(w);
  CHECK(w.to_vector() == std::vector<float>(6, 0));
  CHECK(w.requires_grad());
  xla::Buffer<double, 1> b({3});
  init::ones_(b);
  CHECK(b.to_vector() == std::vector<double>(3, 1));
}

TEST_CASE("random initialisers have the bounds and deviations that PyTorch's have") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  xla::Parameter<float, 2> w({100, 300});
  const double root3 = std::sqrt(3.0);
  init::uniform_(w, -1, 3);
  check_moments(w, 1, 4 / std::sqrt(12.0), -1, 3);
  init::normal_(w, 2, 0.5);
  check_moments(w, 2, 0.5);
  double std = 2 * std::sqrt(2.0 / 400);
  init::xavier_uniform_(w, 2);
  check_moments(w, 0, std, -root3 * std, root3 * std);
  init::xavier_normal_(w, 2);
  check_moments(w, 0, std);
  std = std::sqrt(2.0 / 300);
  init::kaiming_uniform_(w);
  check_moments(w, 0, std, -root3 * std, root3 * std);
  init::kaiming_normal_(w, {.mode = init::Fan::out, .nonlinearity = init::Nonlinearity::tanh});
  check_moments(w, 0, 5.0 / 3 / 10);
  init::kaiming_uniform_(w, {.a = std::sqrt(5.0)});  // what Linear starts with
  std = 1 / std::sqrt(900.0);
  check_moments(w, 0, std, -root3 * std, root3 * std);
  xla::Parameter<float, 4> kernel({10, 20, 3, 5});
  CHECK(init::fans(kernel) == std::pair<std::int64_t, std::int64_t>{300, 150});
}

TEST_CASE("trunc_normal_ keeps within its bounds") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  xla::Parameter<float, 2> w({200, 100});
  init::trunc_normal_(w);
  check_moments(w, 0, 0.8796, -2, 2);
  init::trunc_normal_(w, 0, 0.02);
  check_moments(w, 0, 0.02);
  init::trunc_normal_(w, 1, 2, 1, 3);  // half of a bell
  check_moments(w, 1.92, 0.566, 1, 3);
  xla::Parameter<float, 1> none({0});
  init::trunc_normal_(none);
}

TEST_CASE("orthogonal_ makes rows or columns of length gain that are orthogonal to each other") {
  const xla::eager_mode_guard guard;
  xla::manual_seed(4);
  const auto check = [](std::int64_t rows, std::int64_t columns, double gain) {
    INFO(rows << " x " << columns);
    xla::Parameter<double, 2> w({rows, columns});
    init::orthogonal_(w, gain);
    const auto a = w.detach();
    const auto products = rows > columns ? matmul(transpose(a), a) : matmul(a, transpose(a));
    const auto n = std::min(rows, columns);
    test::check_equal(products, xla::eye<double>(n, n) * (gain * gain), 1e-14);
    const double sum = xla::sum(a).item();  // a random turn, not the identity
    if (n > 2) CHECK(std::abs(sum) < 5 * gain * std::sqrt(static_cast<double>(n)));
  };
  check(1, 1, 1);
  check(3, 5, 1);
  check(5, 3, 2);
  check(64, 64, 1);
  check(200, 130, 0.5);
  check(130, 200, 1);
  xla::Parameter<float, 4> kernel({4, 2, 3, 3});
  init::orthogonal_(kernel);
  const auto k = xla::reshape(kernel.detach(), {4, 18});
  test::check_equal(matmul(k, transpose(k)), xla::eye<float>(4, 4), 1e-6);
  xla::Parameter<float, 2> none({0, 3}), first({6, 6}), second({6, 6});
  init::orthogonal_(none);
  xla::manual_seed(5);
  init::orthogonal_(first);
  xla::eager_mode(false);
  xla::manual_seed(5);
  init::orthogonal_(second);
  test::check_equal(first, second);
}

TEST_CASE("the first row of a random turn of the plane points everywhere alike") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(6);
  int quadrant[4] = {}, turned = 0;
  xla::Parameter<float, 2> w({2, 2});
  for (int i = 0; i < 2000; ++i) {
    init::orthogonal_(w);
    const auto v = w.to_vector();
    ++quadrant[(v[0] > 0) * 2 + (v[1] > 0)];
    turned += v[0] * v[3] > v[1] * v[2];
  }
  for (int n : quadrant) CHECK(std::abs(n - 500) < 100);
  CHECK(std::abs(turned - 1000) < 120);
}

TEST_CASE("the normal distribution and its inverse") {
  for (double z : {-37.0, -7.0, -2.0, -0.5, 0.0, 1e-3, 1.0, 5.0})
    CHECK(init::normal_quantile(init::normal_probability(z)) == Approx(z).epsilon(1e-8));
  CHECK(init::normal_probability(1.96) == Approx(0.9750021049));
}

TEST_CASE("gains are PyTorch's") {
  using init::Nonlinearity;
  CHECK(init::calculate_gain(Nonlinearity::linear) == 1);
  CHECK(init::calculate_gain(Nonlinearity::sigmoid) == 1);
  CHECK(init::calculate_gain(Nonlinearity::tanh) == Approx(1.6666666667));
  CHECK(init::calculate_gain(Nonlinearity::relu) == Approx(1.4142135624));
  CHECK(init::calculate_gain(Nonlinearity::leaky_relu) == Approx(1.4141428570));
  CHECK(init::calculate_gain(Nonlinearity::selu) == 0.75);
}
