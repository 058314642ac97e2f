// SPDX-License-Identifier: Apache-2.0
// Tensors made of constants alone, in compiled bodies: chosen, copied, kept in things, not used.
#include "support/modes.hpp"
#include "xla/xla.hpp"

using test::check_modes;
using test::numbers;

namespace {

struct pair {
  xla::Tensor<float, 2> a, b;
};

constexpr xla::Tensor<float, 2> same(xla::Tensor<float, 2> x) { return x; }

constexpr xla::Tensor<float, 2> triangle() { return tril(xla::ones<float>({4, 4})); }

}  // namespace

TEST_CASE("constants that nothing uses are dropped") {
  check_modes(
      [](auto& x) {
        (void)tril(xla::ones<float>({4, 4}));
        [[maybe_unused]] const auto unused = tril(xla::ones<float>({4, 4}));
        [[maybe_unused]] auto rebound = xla::eye(4);
        rebound = triangle();
        rebound = x;
        return x + 1;
      },
      numbers<float>({4, 4}));
}

TEST_CASE("a condition chooses between numbers and filled tensors") {
  check_modes(
      [](auto& x) {
        const bool no = x.dim() == 3, yes = !no;
        const auto a = yes ? xla::ones<float>({4, 4}) : xla::zeros<float>({4, 4});
        const auto b = no ? xla::ones<float>({4, 4}) : xla::zeros<float>({4, 4});
        const auto c = yes ? x : xla::zeros<float>({4, 4});
        const auto d = no ? x : xla::full<float>({4, 4}, 0.1);
        const auto e = yes ? xla::full<std::int64_t>({2}, (std::int64_t{1} << 60) + 1)
                           : xla::zeros<std::int64_t>({2});
        const xla::Tensor<float, 0> f = no ? 1.5f : 2.5f;
        xla::Tensor<float, 2> g[] = {xla::ones<float>({4, 4}), d};
        g[1] = yes ? xla::full<float>({4, 4}, -3) : g[0];
        return std::tuple(a, b, c, d, e, f, x * g[0] + g[1] * f);
      },
      numbers<float>({4, 4}));
}

TEST_CASE("a condition chooses between computed constants that are used at once") {
  check_modes(
      [](auto& x) {
        const bool yes = x.dim() == 2;
        const auto m = triangle();
        const auto lvalues = yes ? m : x;
        return std::tuple(x * (yes ? triangle() : xla::eye(4)), same(yes ? m : xla::eye(4)),
                          lvalues * 2);
      },
      numbers<float>({4, 4}));
}

TEST_CASE("computed constants are values") {
  check_modes(
      [](auto& x) {
        auto m = triangle();
        auto n = m;
        n = n * 2;
        const xla::Tensor<float, 2>& bound = tril(xla::ones<float>({4, 4}), 1);
        xla::Tensor<float, 2> list[2];
        list[0] = xla::eye(4);
        list[1] = list[0] + m;
        std::swap(list[0], list[1]);
        pair p{xla::eye(4), n};
        const auto make = [&] { return pair{p.b, triangle()}; };
        const auto [first, second] = make();
        const auto captured = [=](const auto& y) { return y + n; };
        std::vector<xla::Tensor<float, 2>> many;
        for (int i = 0; i < 3; ++i) many.push_back(same(triangle()));
        many.emplace_back(std::move(m));
        return std::tuple(x * n, bound, list[0] - list[1], p.a + p.b, first * second,
                          captured(xla::eye(4)), many[0] + many[2] + many[3] + x);
      },
      numbers<float>({4, 4}));
}

TEST_CASE("constants of sizes and numbers that a handle does not hold itself") {
  check_modes(
      [](auto& x) {
        return std::tuple(xla::zeros<float>({1, 2, 1, 2, 3}), xla::ones<bool>({70000}),
                          xla::full<double>({2, 2}, 1e-300), xla::arange(5),
                          xla::detail::arange_from<float>(5, 3), xla::full<std::uint8_t>({3}, 255),
                          xla::full<float>({3}, -0.0f), xla::ones<xla::bfloat16>({1, 2, 3, 65535}),
                          x);
      },
      numbers<float>({4, 4}));
}

TEST_CASE("twelve ops on constants") {
  check_modes(
      [](auto& x) {
        auto c = xla::ones<float>({4, 4});
        for (int i = 0; i < 10; ++i) c = tanh(c);
        return x + c;
      },
      numbers<float>({4, 4}));
}
