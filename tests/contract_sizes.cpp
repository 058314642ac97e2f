// SPDX-License-Identifier: Apache-2.0
// Sizes known at run time only, and what a compiled function may return.
#include <limits>

#include "support/modes.hpp"
#include "xla/xla.hpp"

using Catch::Matchers::Contains;
using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

struct Parts {
  xla::Tensor<float, 2> product;
  std::array<xla::Tensor<float, 1>, 2> sums;
  XLA_MODULE(product, sums)
};

struct Net {
  xla::nn::Linear fc{3, 2};
  XLA_MODULE(fc)
};

}  // namespace

TEST_CASE("sizes of arguments are numbers to compute with, the same in every mode") {
  auto all = [](auto& x) {
    const xla::Size n = x.size(0), m = x.size(1);
    return std::tuple(reshape(x, {n * m}), reshape(x, {m, n}) * m, x / (n * 2), x + (n + m - 1),
                      xla::full<float>({n + 1, m * 2}, n), xla::arange<float>(n * m / m),
                      sum(x) / x.numel(), xla::zeros<std::int64_t>({m, n + m}));
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<float>({1, 1}));
  check_modes(all, numbers<float>({3, 2}));
}

TEST_CASE("two unknown sizes that meet must be equal; the sentence names expand") {
  const xla::eager_mode_guard eager;
  auto add = xla::compile([](auto& a, auto& b) { return a + b; });
  auto a = numbers<float>({4, 3}, 1), b = numbers<float>({4, 3}, 2), one = numbers<float>({1, 3}, 3);
  check_equal(add(a, b), a + b);
  check_equal(add(one, one), one + one);
  CHECK_THROWS_AS(add(a, one), xla::shape_error);
  CHECK_THROWS_WITH(add(one, a),
                    Contains("add: axis 0 of argument 0 is 1, axis 0 of argument 1 is 4") &&
                        Contains("they have to be equal") &&
                        Contains("expand_as(x, y) or expand(x, {y.size(0), -1}), x being argument 0"));
  auto column = numbers<float>({4, 1}, 3);
  auto loss = xla::compile([](auto& a, auto& b) { return mse_loss(a, b); });
  CHECK_THROWS_WITH(loss(a, column),
                    Contains("expand(x, {-1, y.size(1)}), x being argument 1 (contract_sizes.cpp:"));
  auto two = numbers<float>({2, 3});
  CHECK_THROWS_WITH(add(b, two), !Contains("expand"));
  check_equal(add(a, b), a + b);
  auto spread = xla::compile([](auto& x, auto& y) { return x + expand(y, {x.size(0), -1}); });
  auto row = xla::compile([](auto& x, auto& y) { return x + unsqueeze(y, 0); });
  auto v = numbers<float>({3}, 4);
  check_equal(row(a, v), a + v);
  CHECK_THROWS_AS(spread(a, b = numbers<float>({2, 3})), xla::shape_error);
}

TEST_CASE("a size that is 1 only at run time broadcasts by expand, which names what it refuses") {
  auto times = [](auto& a, auto& b) {
    auto y = a * expand(b, {a.size(0), a.size(1)});
    sum(y * y).backward();
    return std::tuple(y, expand(b, {2, -1, a.size(1)}) + 1, expand_as(sum(b, {0}), a));
  };
  const xla::eager_mode_guard eager;
  auto a = numbers<float>({4, 3}, 1);
  auto compiled = xla::compile(times);
  for (const auto& b : {numbers<float>({4, 3}, 2), numbers<float>({4, 1}, 3),
                        numbers<float>({1, 3}, 4), numbers<float>({1, 1}, 5)}) {
    check_modes(times, a, test::parameter(b));
    auto p = test::parameter(b), q = p;
    check_equal(std::get<0>(compiled(a, p)), std::get<0>(times(a, q)));
    check_equal(p.grad(), q.grad());
  }
  check_modes(times, numbers<float>({0, 3}), test::parameter(numbers<float>({0, 1})));
  check_modes(times, numbers<float>({1, 1}), test::parameter(numbers<float>({1, 1})));
  for (const auto& b : {numbers<float>({2, 3}), numbers<float>({4, 2}), numbers<float>({0, 3}),
                        numbers<float>({8, 3})}) {
    auto p = test::parameter(b);
    CHECK_THROWS_WITH(compiled(a, p), Contains("expand: only sizes that are 1 grow"));
  }
}

TEST_CASE("a size that a model's type fixes is named with the argument that differs") {
  const xla::eager_mode_guard eager;
  Net net;
  auto x = numbers<float>({6, 3});
  auto one = numbers<float>({1}), two = numbers<float>({2});
  auto scaled = xla::compile([](auto& m, auto& x, auto& b) { return m.fc(x) * b; });
  check_equal(scaled(net, x, two), net.fc(x) * two);
  CHECK_THROWS_WITH(scaled(net, x, one),
                    Contains("argument 2 is (1,), but the function needs (2,)") &&
                        Contains("expand_as(x, y) or expand(x, {2}), x being argument 2: mul"));
  auto spread = [](auto& m, auto& x, auto& b) {
    const auto y = m.fc(x);
    return y * unsqueeze(expand(b, {x.size(0)}), 1) + expand_as(b, y);
  };
  auto compiled = xla::compile(spread);
  check_equal(compiled(net, x, one), spread(net, x, one));
  auto wrong = xla::compile(
      [](auto& m, auto& x, auto& b) { return m.fc(x) * unsqueeze(expand(b, {x.size(0)}), 1) + b; });
  CHECK_THROWS_WITH(wrong(net, x, one), Contains("argument 2 is (1,)"));
}

TEST_CASE("a size that becomes negative is refused when the signature is made") {
  const xla::eager_mode_guard eager;
  auto shorter = xla::compile([](auto& x) { return xla::arange<float>(x.size(0) - 2); });
  auto three = xla::zeros<float>({3}), two = xla::zeros<float>({2}), one = xla::zeros<float>({1});
  check_equal(shorter(three), {1}, std::vector<float>{0});
  check_equal(shorter(two), {0}, {});
  CHECK_THROWS_AS(shorter(one), xla::shape_error);
}

TEST_CASE("results may be arguments, constants, views of one another, and the same twice") {
  auto all = [](auto& x, auto& p) {
    const auto old = p.detach();
    const auto y = x * 2;
    p += 1;
    return std::tuple(x, x, y, y, reshape(y, {-1}), flatten(x), old, p.detach(),
                      xla::ones<float>({2, 2}), xla::tensor(3.f), reshape(p.detach(), {1, -1}),
                      transpose(x), transpose(x));
  };
  auto p = xla::Parameter<float, 1>::like(numbers<float>({5}));
  check_modes(all, numbers<float>({4, 3}), p);
  check_modes(all, numbers<float>({1, 1}), p);
  check_modes(all, numbers<float>({0, 3}), p);
}

TEST_CASE("results that are kept survive later calls") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x, auto& p) {
    p += x;
    return std::tuple(p.detach(), x * 2, xla::ones<float>({2}), x);
  });
  auto p = xla::Buffer<float, 1>::like(numbers<float>({3}));
  auto x = xla::tensor<float>({1, 2, 3});
  auto first = f(x, p);
  auto y = xla::tensor<float>({10, 20, 30});
  auto second = f(y, p);
  check_equal(std::get<0>(first), {3}, std::vector<float>{1, 2, 3});
  check_equal(std::get<0>(second), {3}, std::vector<float>{11, 22, 33});
  check_equal(std::get<1>(first), {3}, std::vector<float>{2, 4, 6});
  check_equal(std::get<2>(first), {2}, std::vector<float>{1, 1});
  check_equal(std::get<3>(first), x);
  std::get<2>(first) += xla::ones<float>({2});
  check_equal(std::get<2>(f(x, p)), {2}, std::vector<float>{1, 1});
}

TEST_CASE("cells that exchange their values in a compiled step") {
  auto turn = [](auto& a, auto& b, auto& c) {
    const auto held = a.detach();
    a.copy_(b.detach());
    b.copy_(c.detach());
    c.copy_(held);
    return sum(a * 2 + b);
  };
  auto cell = [](std::uint64_t seed) {
    const xla::eager_mode_guard eager;
    auto p = xla::Parameter<float, 2>::like(numbers<float>({4, 5}));
    p.copy_(numbers<float>({4, 5}, seed));
    return p;
  };
  check_modes(turn, cell(1), cell(2), cell(3));
  auto same = [](auto& a, auto& b, auto& c) {
    a.copy_(c * 1.5);
    b.copy_(a.detach());
    a += b;
    c.copy_(a.detach());
    return a.detach();
  };
  check_modes(same, cell(1), cell(2), cell(3));
}

TEST_CASE("structs, arrays and nothing as results") {
  const xla::eager_mode_guard eager;
  auto parts = xla::compile([](auto& x) {
    return Parts{matmul(x, transpose(x)), {sum(x, {0}), sum(x, {1})}};
  });
  auto x = numbers<float>({4, 3});
  const auto p = parts(x);
  check_equal(p.product, matmul(x, transpose(x)));
  check_equal(p.sums[0], sum(x, {0}));
  check_equal(p.sums[1], sum(x, {1}));
  auto count = xla::Buffer<std::int64_t, 0>::like(xla::tensor<std::int64_t>(0));
  auto add_one = xla::compile([](auto& c) { c += xla::tensor<std::int64_t>(1); });
  for (int i = 0; i < 3; ++i) add_one(count);
  CHECK(count.item() == 3);
}

TEST_CASE("arguments that the body does not use") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& a, auto&, auto& c) { return a + c; });
  auto a = numbers<float>({3}, 1), c = numbers<float>({3}, 2);
  auto unused = numbers<double>({2, 2, 2});
  check_equal(f(a, unused, c), a + c);
  check_equal(f(a, unused = numbers<double>({1, 1, 1}), c), a + c);
}

TEST_CASE("sizes that overflow are refused when they are asked for") {
  const bool traced = GENERATE(false, true);
  const xla::eager_mode_guard mode(!traced);
  constexpr std::int64_t large = std::int64_t{1} << 33, most = std::int64_t{1} << 62;
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max(), begin = -end - 1;
  const auto x = xla::ones<float>({4}), none = xla::ones<float>({0});
  const auto one = xla::ones<float>({1, 1});
  const auto refused = [](auto&& run, const char* by) {
    CHECK_THROWS_AS(run(), xla::shape_error);
    CHECK_THROWS_WITH(run(), Catch::Matchers::StartsWith(by));
  };
  refused([&] { return xla::zeros<float>({large, large}); }, "full");
  refused([&] { return xla::rand<float>({most + 4}); }, "rand");
  refused([&] { return xla::from_blob(x.data(), {large, large}); }, "from_blob");
  refused([&] { return xla::from_blob(static_cast<const float*>(nullptr), {3}); }, "from_blob");
  refused([&] { return xla::Parameter<float, 2>{{large, large}}; }, "xla");
  refused([&] { return xla::expand(one, {large, large}); }, "expand");
  refused([&] { return xla::reshape(none, {large, large}); }, "reshape");
  refused([&] { return xla::unflatten(x, 0, {large, large, -1}); }, "unflatten");
  refused([&] { return xla::arange(most); }, "arange");
  refused([&] { return xla::arange(begin, end); }, "arange");
  refused([&] { return xla::arange<double>(0., 1e300, 1e-300); }, "arange");
  refused([&] { return xla::repeat(x, {most}); }, "repeat");
  refused([&] { return xla::repeat_interleave(x, most, 0); }, "repeat_interleave");
  refused([&] { return xla::repeat_interleave(x, -2, 0); }, "repeat_interleave");
  refused([&] { return xla::pad(x, {{most, most}}); }, "pad");
  refused([&] { return xla::one_hot(xla::arange(3), most); }, "arange");
  refused(
      [&] {
        return xla::matmul(xla::zeros<float>({most, 0}), xla::zeros<float>({0, most}));
      },
      "matmul");
  refused([&] { return x.size(0) * most; }, "xla: 4 * 4611686018427387904 is not a size");
  refused([&] { return x.size(0) / xla::Size(0); }, "xla: 4 / 0 is not a size");

  CHECK(xla::zeros<float>({0, most}).numel() == 0);
  CHECK(xla::arange(begin, end, most).to_vector() ==
        std::vector<std::int64_t>{begin, -most, 0, most});
  CHECK(xla::slice(x, 0, 0, end, end).numel() == 1);
  CHECK(xla::slice(x, 0, begin, xla::none, begin).numel() == 0);
  CHECK(xla::roll(xla::arange(5), begin, 0).to_vector() ==
        std::vector<std::int64_t>{3, 4, 0, 1, 2});
  const auto square = xla::ones<bool>({3, 3});
  for (const std::int64_t d : {std::int64_t{1} << 40, end}) {
    CHECK(xla::sum(xla::cast<float>(xla::tril(square, d))).item() == 9);
    CHECK(xla::sum(xla::cast<float>(xla::triu(square, d))).item() == 0);
    CHECK(xla::sum(xla::tril(xla::ones<float>({3, 3}), -d)).item() == 0);
    CHECK(xla::sum(xla::triu(xla::ones<float>({3, 3}), -d)).item() == 9);
  }
}

TEST_CASE("sizes that overflow are refused when a compiled function meets them") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 2});
  const auto refused = [&](auto f, const char* by) {
    auto g = xla::compile(f);
    CHECK_THROWS_AS(g(x), xla::shape_error);
    CHECK_THROWS_WITH(g(x), Contains(by));
  };
  constexpr std::int64_t large = std::int64_t{1} << 40, most = std::int64_t{1} << 62;
  refused([](auto& x) { return xla::full<float>({x.size(0) * large, large}, 1); }, "expand");
  refused([](auto& x) { return x.size(0) * most / 2 + x; }, "is not a size");
  refused([](auto& x) { return xla::repeat(x, {most / 8, 1}); }, "more than 2^59 elements");
  refused([](auto& x) { return xla::pad(x, {{most, most - 1}, {0, 0}}); }, "is not a size");
  refused([](auto& x) { return xla::arange<float>(x.size(1) * (most / 4)); }, "arange");
}
