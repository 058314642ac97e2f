// SPDX-License-Identifier: Apache-2.0
#include "xla/op/index.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/tanh.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

TEST_CASE("rows of tensors are read by index") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  check_equal(x[0], {3}, std::vector<float>{1, 2, 3});
  check_equal(x[-1], {3}, std::vector<float>{4, 5, 6});
  const auto number = x[1][2];
  CHECK(number.item() == 6);
  CHECK(relu(x)[1][0].item() == 4);
  auto y = x;
  CHECK(y[1][0].item() == 4);
  const xla::Tensor<float, 1> row = y[1];
  check_equal(row, {3}, std::vector<float>{4, 5, 6});
  check_equal(y[0] * y[1] - sum(y[0]), {3}, std::vector<float>{-2, 4, 12});
  CHECK_THROWS_AS(x[2], xla::shape_error);
  CHECK_THROWS_AS(x[-3], xla::shape_error);
  CHECK_THROWS_AS(y[0][3].item(), xla::shape_error);
}

TEST_CASE("partial assignment writes into the tensor, and into no other") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  const auto old = x;
  x[0][0] = 0;
  check_equal(x, {2, 3}, std::vector<float>{0, 2, 3, 4, 5, 6});
  x[1] = xla::tensor<float>({7, 8, 9});
  check_equal(x, {2, 3}, std::vector<float>{0, 2, 3, 7, 8, 9});
  x[0] = 5;
  check_equal(x, {2, 3}, std::vector<float>{5, 5, 5, 7, 8, 9});
  x[0] = x[1];
  check_equal(x, {2, 3}, std::vector<float>{7, 8, 9, 7, 8, 9});
  x[-1][-1] = -1;
  check_equal(x, {2, 3}, std::vector<float>{7, 8, 9, 7, 8, -1});
  check_equal(old, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  auto deep = numbers<std::int64_t>({2, 3, 4});
  auto v = deep.to_vector();
  deep[1][2][3] = 99;
  v[23] = 99;
  check_equal(deep, {2, 3, 4}, v);
  CHECK_THROWS_AS(x[2] = 0, xla::shape_error);
  CHECK_THROWS_AS(x[0] = numbers<float>({2}), xla::shape_error);
}

TEST_CASE("in-place forms of a row write into the tensor") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<float>({{1, 2}, {3, 4}});
  x[0] += xla::tensor<float>({10, 10});
  check_equal(x, {2, 2}, std::vector<float>{11, 12, 3, 4});
  x[1] *= 2;
  check_equal(x, {2, 2}, std::vector<float>{11, 12, 6, 8});
  x[0][1] -= 5;
  check_equal(x, {2, 2}, std::vector<float>{11, 7, 6, 8});
  x[0].copy_(x[1]);
  check_equal(x, {2, 2}, std::vector<float>{6, 8, 6, 8});
  x[1].zero_();
  check_equal(x, {2, 2}, std::vector<float>{6, 8, 0, 0});
}

TEST_CASE("partial assignment to a parameter writes its cell") {
  auto step = [](auto& w, auto& x) {
    w[0][0] = 0;
    auto loss = sum(matmul(x, w));
    loss.backward();
    return loss;
  };
  const xla::eager_mode_guard eager;
  auto p = xla::Parameter<float, 2>::like(numbers<float>({4, 3}));
  p.copy_(numbers<float>({4, 3}));
  check_modes(step, p, numbers<float>({2, 4}));
  p[1] = xla::ones<float>({3});
  CHECK(p.requires_grad());
  sum(p * 2).backward();
  check_equal(p.grad(), {4, 3}, std::vector<float>(12, 2.f));
}

TEST_CASE("partial assignment is seen by what comes later") {
  const xla::eager_mode_guard eager;
  auto x = xla::tensor<float>({{1, 2}, {3, 4}});
  const auto before = matmul(x, x);
  x[0][0] = 0;
  check_equal(matmul(x, x), {2, 2}, std::vector<float>{6, 8, 12, 22});
  check_equal(before, {2, 2}, std::vector<float>{7, 10, 15, 22});
}

TEST_CASE("rows are the same in every mode") {
  auto all = [](auto& x, auto& w) {
    auto y = x;
    const auto before = matmul(y, w);
    y[0][0] = 0;
    y[1] = y[2] * 2;
    const xla::Tensor<float, 1> r = y[1];
    x[2] = 1;
    return std::tuple(before, matmul(y, w), r + 1, y, x * 2);
  };
  check_modes(all, numbers<float>({3, 4}, 1), numbers<float>({4, 2}, 2));
  check_modes(all, numbers<float>({33, 17}, 1), numbers<float>({17, 13}, 2));
}

TEST_CASE("gradients of rows and of partial assignment") {
  test::check_gradient([](const auto& x) { return x[0] * x[1] + x[-1]; }, numbers<double>({3, 4}));
  test::check_gradient(
      [](const auto& x, const auto& v) {
        xla::Tensor<double, 2> y = x * 2;
        y[1] = v * v;
        y[0][2] = 5;
        return y * y;
      },
      numbers<double>({3, 4}, 1), numbers<double>({4}, 2));
}

TEST_CASE("index chooses by numbers and slices") {
  const xla::eager_mode_guard eager;
  using xla::Slice;
  auto x = numbers<float>({4, 5, 6});
  check_equal(x.index(1), select(x, 0, 1));
  check_equal(x.index(Slice(), 2), select(x, 1, 2));
  check_equal(x.index(Slice(1, 3), Slice(), -1), select(slice(x, 0, 1, 3), 2, -1));
  check_equal(x.index(0, Slice(xla::none, xla::none, -2), Slice(2)),
              slice(flip(slice(select(x, 0, 0), 0, 0, 5, 2), {0}), 1, 2));
  check_equal(x.index(Slice(), Slice(), Slice()), x);
  CHECK(x.index(3, 4, 5).item() == x.to_vector().back());
  check_equal(x.index(xla::ellipsis, 3), select(x, 2, 3));
  check_equal(x.index(1, xla::ellipsis, Slice(0, 2)), slice(select(x, 0, 1), 1, 0, 2));
  check_equal(x.index(0, 1, 2, xla::ellipsis), select(select(select(x, 0, 0), 0, 1), 0, 2));
  const auto fixed = x;
  check_equal(fixed.index(Slice(2), 0), select(slice(x, 0, 2), 1, 0));
  check_equal(x[1].index(Slice(2), 0), x.index(1, Slice(2), 0));
  check_equal(x.index(Slice(1, 4), Slice(), 2)[1], x.index(2, Slice(), 2));
  check_equal(x.index(Slice(xla::none, xla::none, -1)).index(Slice(1, 3)),
              flip(x.index(Slice(1, 3)), {0}));
  CHECK_THROWS_AS(x.index(4), xla::shape_error);
  CHECK_THROWS_AS(x.index(0, Slice(), -7), xla::shape_error);
}

TEST_CASE("assigning to an index writes into the tensor") {
  const xla::eager_mode_guard eager;
  using xla::Slice;
  auto x = numbers<float>({4, 5});
  const auto old = x;
  auto want = x.to_vector();
  auto each = [&](auto chosen, auto value) {
    for (int r = 0; r < 4; ++r)
      for (int c = 0; c < 5; ++c)
        if (chosen(r, c)) want[static_cast<std::size_t>(5 * r + c)] = value(r, c);
    check_equal(x, {4, 5}, want);
  };
  x.index(Slice(1, 3), Slice(2)) = 7;
  each([](int r, int c) { return r >= 1 && r < 3 && c >= 2; }, [](int, int) { return 7.f; });
  x.index(Slice(), 0) = xla::tensor<float>({1, 2, 3, 4});
  each([](int, int c) { return c == 0; }, [](int r, int) { return float(r + 1); });
  x.index(Slice(xla::none, xla::none, 2)) = xla::arange<float>(5);
  each([](int r, int) { return r % 2 == 0; }, [](int, int c) { return float(c); });
  x.index(Slice(xla::none, xla::none, -1), Slice(0, 1)) = xla::tensor<float>({{1}, {2}, {3}, {4}});
  each([](int, int c) { return c == 0; }, [](int r, int) { return float(4 - r); });
  x.index(Slice(), Slice()) = xla::tensor(2.f);
  each([](int, int) { return true; }, [](int, int) { return 2.f; });
  x.index(Slice(0, 2)) += xla::arange<float>(5);
  each([](int r, int) { return r < 2; }, [](int, int c) { return float(c + 2); });
  x[2].index(Slice(1, 3)) *= 3;
  each([](int r, int c) { return r == 2 && c >= 1 && c < 3; }, [](int, int) { return 6.f; });
  x.index(Slice(1), 4)[2].fill_(9);
  each([](int r, int c) { return r == 3 && c == 4; }, [](int, int) { return 9.f; });
  check_equal(old, numbers<float>({4, 5}));
  CHECK_THROWS_AS(x.index(Slice(0, 2)) = numbers<float>({3, 5}), xla::shape_error);
  CHECK_THROWS_AS(x.index(Slice(), 1) = numbers<float>({5}), xla::shape_error);
  check_equal(x, {4, 5}, want);
}

TEST_CASE("a part that has a name is a value") {
  auto recur = [](auto& states, auto& x) {
    auto h = states[0];
    for (int i = 0; i < 3; ++i) h = tanh(h + x);
    auto sums = states[1];
    sums += x;
    sums *= 2;
    sums[0] = 5;
    auto kept = states.index(xla::Slice(), 1), zeros = kept;
    states[0] = h * 2;
    zeros.zero_();
    h = states[0];
    auto number = h[0];
    number = 3;
    return std::tuple(h, sums, kept, zeros, number);
  };
  const xla::eager_mode_guard eager;
  check_modes(recur, numbers<float>({2, 3}, 1), numbers<float>({3}, 2));
  auto s = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  auto x = xla::zeros<float>({3});
  const auto [h, sums, kept, zeros, number] = recur(s, x);
  const auto t = tanh(tanh(tanh(xla::tensor<float>({1, 2, 3}))));
  check_equal(h, t * 2);
  check_equal(sums, {3}, std::vector<float>{5, 10, 12});
  check_equal(kept, {2}, std::vector<float>{2, 5});
  check_equal(zeros, {2}, std::vector<float>{0, 0});
  check_equal(s[0], t * 2);
  check_equal(s[1], {3}, std::vector<float>{4, 5, 6});
  CHECK(number.item() == 3);
}

namespace {
constexpr auto first(xla::Tensor<float, 2> t) { return t[0]; }
}  // namespace

TEST_CASE("a part outlives the tensor that it was chosen from") {
  auto f = [](auto& s) {
    auto r = first(s * 2);
    const auto before = r + 0;
    r = r * 2;
    return std::tuple(before, r, first(s)[1]);
  };
  const xla::eager_mode_guard eager;
  auto s = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  const auto [before, r, number] = f(s);
  check_equal(before, {3}, std::vector<float>{2, 4, 6});
  check_equal(r, {3}, std::vector<float>{4, 8, 12});
  CHECK(number.item() == 2);
  check_equal(s, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  check_modes(f, s);
}

TEST_CASE("a part is a tensor argument of a compiled function") {
  auto add = [](auto& a, const auto& b) {
    a += b;
    return sum(a);
  };
  const xla::eager_mode_guard eager;
  auto s = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  auto row = s[0];
  CHECK(xla::compile(add)(row, s[1]).item() == 21);
  check_equal(row, {3}, std::vector<float>{5, 7, 9});
  check_equal(s, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a tensor turned around in its own place") {
  const xla::eager_mode_guard eager;
  auto turn = [](auto& b) {
    b.index(xla::Slice(xla::none, xla::none, -1)) = b.detach();
    return sum(b);
  };
  auto b = xla::Buffer<float, 2>::like(numbers<float>({7, 3}));
  b.copy_(numbers<float>({7, 3}));
  check_modes(turn, b);
  auto f = xla::compile(turn);
  f(b);
  check_equal(b, flip(numbers<float>({7, 3}), {0}));
}

TEST_CASE("buffers and parameters are written through indices in every mode") {
  using xla::Slice;
  auto step = [](auto& cache, auto& w, auto& x) {
    const auto before = cache.detach();
    cache.index(Slice(), Slice(1, 3)) = x;
    cache[-1] += 1;
    w.index(Slice(1), 0).zero_();
    auto loss = sum(matmul(cache, w) * matmul(before, w));
    loss.backward();
    w[0].copy_(w[1] * 2);
    return std::tuple(loss, before, cache.index(Slice(xla::none, xla::none, 2), 1) + 0);
  };
  const xla::eager_mode_guard eager;
  auto cache = xla::Buffer<float, 2>::like(numbers<float>({5, 4}));
  cache.copy_(numbers<float>({5, 4}, 1));
  auto w = xla::Parameter<float, 2>::like(numbers<float>({4, 3}));
  w.copy_(numbers<float>({4, 3}, 2));
  check_modes(step, cache, w, numbers<float>({5, 2}, 3));
}

TEST_CASE("the gradients of what is written through indices") {
  using xla::Slice;
  test::check_gradient(
      [](const auto& x, const auto& v) {
        xla::Tensor<double, 2> y = x * 2;
        y.index(Slice(xla::none, xla::none, 2), Slice(1, 3)) = v * v;
        y.index(Slice(), 3) *= y.index(Slice(), 0);
        y[0] += v[1][0];
        return y * y;
      },
      numbers<double>({3, 4}, 1), numbers<double>({2, 2}, 2));
}

namespace {

/// The last three rows that a layer has seen, newest last.
struct Window {
  xla::Buffer<float, 2> rows{{4, 3}};
  constexpr auto operator()(const xla::Tensor<float, 1>& x) const {
    rows.copy_(roll(rows.detach(), -1, 0));
    rows[-1] = x;
    return rows.index(xla::Slice(), 0);
  }
  XLA_MODULE(rows)
};

}  // namespace

TEST_CASE("a const module writes parts of its buffers, and a compiled one returns parts") {
  const xla::eager_mode_guard eager;
  Window plain, compiled;
  auto run = xla::compile(compiled);
  for (int i = 0; i < 6; ++i) {
    auto x = numbers<float>({3}, static_cast<std::uint64_t>(i));
    const xla::Tensor<float, 1> want = plain(x);
    check_equal(run(x), want);
    check_equal(compiled.rows[3], x);
    check_equal(compiled.rows, plain.rows);
  }
}

TEST_CASE("parts are written in place, unless someone else sees the tensor") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 4});
  const float* place = x.data();
  x[1] = 2;
  x[2][3] += 1;
  x.index(xla::Slice(), xla::Slice(1, 3)) = x.index(xla::Slice(), xla::Slice(2));
  CHECK(x.data() == place);
  const auto old = x;
  const auto values = x.to_vector();
  x[0] = 7;
  CHECK(x.data() != place);
  check_equal(old, {5, 4}, values);
  auto p = xla::Parameter<float, 2>::like(x);
  const float* cell = p.data();
  p[0] = 1;
  CHECK(p.data() == cell);
  auto loss = sum(p * p);
  p[0] = 5;
  loss.backward();
  check_equal(p.grad()[0], {4}, std::vector<float>(4, 2.f));
  CHECK(p[0][0].item() == 5);
  xla::Tensor<float, 2> y = xla::zeros<float>({2, 2});
  auto w = xla::Parameter<float, 1>::like(xla::zeros<float>({2}));
  y[0] = w * 3;
  sum(y).backward();
  check_equal(w.grad(), {2}, std::vector<float>{3, 3});
}

TEST_CASE("a compiled step writes parts of a buffer where it is") {
  const xla::eager_mode_guard eager;
  auto step = xla::compile([](auto& cache, auto& x) {
    cache.index(xla::Slice(1, 3), 0) = x;
    return sum(cache);
  });
  auto cache = xla::Buffer<float, 2>::like(numbers<float>({5, 4}));
  auto x = numbers<float>({2}, 1);
  step(cache, x);
  const float* place = cache.data();
  step(cache, x);
  CHECK(cache.data() == place);
  check_equal(cache.index(xla::Slice(1, 3), 0), x);
}
