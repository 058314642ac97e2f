// SPDX-License-Identifier: Apache-2.0
#include "xla/op/gamma.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::numbers;

TEST_CASE("lgamma, digamma and zeta at known points") {
  const xla::eager_mode_guard eager;
  constexpr double inf = std::numeric_limits<double>::infinity(), pi = std::numbers::pi;
  const auto near = [](const auto& x, std::vector<double> y) {
    const auto got = x.to_vector();
    REQUIRE(got.size() == y.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      if (std::isnan(y[i])) CHECK(std::isnan(got[i]));
      else CHECK(got[i] == Approx(y[i]).epsilon(1e-13));
  };
  near(lgamma(xla::tensor<double>({1, 2, 0.5, 5, -0.5, 0, -3, inf})),
       {0, 0, std::log(pi) / 2, std::log(24), std::log(2 * std::sqrt(pi)), inf, inf, inf});
  const double euler = std::numbers::egamma;
  near(xla::digamma(xla::tensor<double>({1, 0.5, 2, -0.5, 0, -2, inf})),
       {-euler, -euler - 2 * std::numbers::ln2, 1 - euler, 2 - euler - 2 * std::numbers::ln2, -inf,
        std::nan(""), inf});
  near(xla::polygamma(1, xla::tensor<double>({1, 0.5, 2})),
       {pi * pi / 6, pi * pi / 2, pi * pi / 6 - 1});
  near(xla::polygamma(3, xla::tensor<double>({1})), {std::pow(pi, 4) / 15});
  near(xla::zeta(4, xla::tensor<double>({1, 2, -1, inf})),
       {std::pow(pi, 4) / 90, std::pow(pi, 4) / 90 - 1, inf, 0});
  near(xla::mvlgamma(xla::tensor<double>({3}), 2),
       {std::log(pi) / 2 + std::log(2.) + std::lgamma(2.5)});
  CHECK_THROWS_WITH(xla::polygamma(-1, xla::tensor<double>({1})),
                    test::contains("polygamma: n is -1, below 0"));
}

TEST_CASE("the gamma functions are the same in every mode, with their gradients") {
  auto all = [](auto& x) { return std::tuple(lgamma(x), xla::digamma(x), xla::polygamma(2, x)); };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  test::check_modes(all, xla::tensor(test::special_values<float>()));
  test::check_gradient(
      [](auto& x) {
        return lgamma(x * x + 1.5) + xla::digamma(x * x + 0.5) * 2 + xla::zeta(3, x * x + 1) +
               xla::mvlgamma(x * 0.25 + 4, 2);
      },
      numbers<double>({3, 5}));
}
