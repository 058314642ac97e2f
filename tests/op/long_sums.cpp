// SPDX-License-Identifier: Apache-2.0
// Sums of a million floats against double: chains are short and what blocks lose is kept, in every
// mode. PyTorch 2.13 is within 1.2e-7 on the first numbers here.
#include "support/modes.hpp"
#include "xla/op/derived/cross_entropy.hpp"
#include "xla/op/derived/distance_loss.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/scan.hpp"

namespace {

constexpr std::int64_t count = 1'000'000, columns = 10, rows = count / columns;

/// x (count), m (rows, columns) and b (columns).
struct Sums {
  constexpr auto operator()(auto& x, auto& m, auto& b, auto& target) const {
    b.requires_grad_();
    const auto bias = xla::grad(xla::sum((m + b) * m), b);
    const auto at_end = xla::matmul(xla::reshape(x, {1, -1}), xla::reshape(x, {-1, 1}));
    return std::tuple(xla::sum(x), xla::mean(x * x), xla::mse_loss(x, x * 2), xla::norm(x),
                      xla::var(x), xla::logsumexp(x), xla::cumsum(x, 0), xla::sum(m, {0}), bias,
                      xla::flatten(at_end), xla::cross_entropy(m, target));
  }
};

void check_near(double got, double want, double tolerance = 2.5e-7) {
  INFO(got << " instead of " << want);
  CHECK(std::abs(got - want) <= tolerance * std::abs(want));
}

void check_sums(const std::vector<float>& v) {
  const auto x = xla::from_blob(v.data(), {count});
  const auto m = xla::reshape(x, {rows, columns});
  const auto b = xla::zeros<float>({columns});
  const auto target = xla::zeros<std::int64_t>({rows});
  test::check_modes(Sums{}, x, m, b, target);

  double sum = 0, squares = 0, exps = 0, first_column = 0, spread = 0, entropy = 0, row = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double e = v[i];
    sum += e;
    squares += e * e;
    exps += std::exp(e - v[0]);
    if (i % columns == 0) first_column += e, row = 0;
    row += std::exp(e - v[i / columns * columns]);
    if (i % columns == columns - 1) entropy += std::log(row) / rows;
  }
  for (double e : v) spread += (e - sum / count) * (e - sum / count) / (count - 1);
  const xla::eager_mode_guard eager;
  auto own = b.detach();
  const auto [total, mean, mse, norm, var, log_sum, running, by_column, bias, product, loss] =
      Sums{}(x, m, own, target);
  check_near(total.item(), sum);
  check_near(mean.item(), squares / count);
  check_near(mse.item(), squares / count);
  check_near(norm.item(), std::sqrt(squares));
  check_near(var.item(), spread);
  check_near(log_sum.item(), std::log(exps) + v[0]);
  check_near(running.data()[count - 1], sum, 6e-8);
  check_near(by_column.data()[0], first_column);
  check_near(bias.data()[0], first_column);
  check_near(loss.item(), entropy);
  // What a micro-kernel adds up before it is a block is longer.
  check_near(product.data()[0], squares, 3e-6);
}

}  // namespace

TEST_CASE("sums of a million floats are as exact as PyTorch's, in every mode") {
  const xla::eager_mode_guard eager;
  const auto noise = test::numbers<float>({count});
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = i % 2 ? 0.1f : 0.3f;
  check_sums(v);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 100 + noise.data()[i];
  check_sums(v);
}

TEST_CASE("the variance of numbers far from 0 in relation to their spread, with its gradient") {
  const xla::eager_mode_guard eager;
  std::vector<float> v(5000);
  const auto noise = test::numbers<float>({5000});
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 1e4f + 0.01f * noise.data()[i];
  const auto x = xla::reshape(xla::from_blob(v.data(), {5000}), {5, 1000});
  auto all = [](auto& a) {
    a.requires_grad_();
    const auto y = xla::var(a, {1});
    return std::tuple(y, xla::std(a, {0}), xla::grad(xla::sum(y), a));
  };
  test::check_modes(all, x);
  auto own = x.detach();
  const auto [var, std, gradient] = all(own);
  double mean = 0, spread = 0;
  for (int i = 0; i < 1000; ++i) mean += v[static_cast<std::size_t>(i)] / 1000.0;
  for (int i = 0; i < 1000; ++i) spread += std::pow(v[static_cast<std::size_t>(i)] - mean, 2) / 999;
  check_near(var.data()[0], spread);
  CHECK(std::abs(gradient.data()[7] - 2 * (v[7] - mean) / 999) < 1e-10);
  CHECK(xla::var(xla::full<float>({1000}, 0.1f)).item() >= 0);
}

TEST_CASE("long sums of infinities, and of none") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity();
  auto all = [](auto& a) {
    return std::tuple(xla::sum(a, {0}), xla::sum(a, {1}), xla::sum(-a, {0}), xla::sum(a));
  };
  auto ones = xla::ones<float>({5000, 3});
  test::check_modes(all, ones);
  ones[4000][1] = inf;
  test::check_modes(all, ones);
  CHECK(xla::sum(ones, {0}).data()[0] == 5000);
  CHECK(xla::sum(ones, {0}).data()[1] == inf);
  CHECK(xla::sum(ones).item() == inf);
  ones[4500][1] = -inf;
  test::check_modes(all, ones);
  CHECK(std::isnan(xla::sum(ones, {0}).data()[1]));
  CHECK(std::isnan(xla::sum(ones).item()));
}
