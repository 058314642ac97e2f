// SPDX-License-Identifier: Apache-2.0
#include "xla/op/functional_copy.hpp"

#include "support/modes.hpp"
#include "xla/nn/loss.hpp"
#include "xla/op/tanh.hpp"
#include "xla/transform/backward.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

struct Curve {
  xla::Parameter<double, 2> in{{1, 5}}, out{{5, 1}};
  xla::Parameter<double, 1> bias{{5}};
  xla::Buffer<double, 1> calls{{1}};
  constexpr auto operator()(const xla::Tensor<double, 2>& x) const {
    calls.copy_(calls.detach() + 1);
    return matmul(tanh(matmul(x, in) + bias), out);
  }
  XLA_MODULE(in, out, bias, calls)
};

Curve curve() {
  Curve m;
  m.in.copy_(numbers<double>({1, 5}, 1) / 4);
  m.out.copy_(numbers<double>({5, 1}, 2) / 4);
  m.bias.copy_(numbers<double>({5}, 3) / 4);
  return m;
}

/// Steps down the support loss on parameters that stay functions of the model's.
constexpr auto adapted(const Curve& m, const xla::Tensor<double, 2>& x,
                       const xla::Tensor<double, 2>& y, int steps) {
  auto fast = xla::functional_copy(m);
  for (int i = 0; i < steps; ++i) {
    const auto loss = mse_loss(fast(x), y);
    const auto [in, out, bias] =
        grad(loss, std::tie(fast.in, fast.out, fast.bias), {.create_graph = true});
    fast.in.copy_(fast.in - in * 0.3);
    fast.out.copy_(fast.out - out * 0.3);
    fast.bias.copy_(fast.bias - bias * 0.3);
  }
  return fast;
}

}  // namespace

TEST_CASE("gradients of second order through a functional copy: meta-learning") {
  auto meta = [](auto& m, auto& x, auto& y, auto& query, auto& answer) {
    const auto fast = adapted(m, x, y, 2);
    auto loss = mse_loss(fast(query), answer);
    loss.backward();
    return std::tuple(loss, fast.calls + 0, fast.in + 0);
  };
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({7, 1}, 4) / 4, y = numbers<double>({7, 1}, 5);
  const auto query = numbers<double>({6, 1}, 6) / 4, answer = numbers<double>({6, 1}, 7);
  Curve m = curve();
  const auto start = m.in.to_vector();
  check_modes(meta, m, x, y, query, answer);
  const auto [loss, calls, in] = meta(m, x, y, query, answer);
  CHECK(m.in.to_vector() == start);
  CHECK(in.to_vector() != start);
  CHECK(calls.item() == 3);
  CHECK(m.calls.item() == 0);

  const auto check = [&](auto& p, auto gradient) {
    const auto home = p.to_vector();
    using P = std::remove_reference_t<decltype(p)>;
    const auto at = [&](std::size_t i, double change) {
      auto v = home;
      v[i] += change;
      const auto flat = xla::from_blob(v.data(), {static_cast<std::int64_t>(v.size())});
      p.copy_(xla::detail::with_shape<xla::op::reshape, P::rank>(flat, p.dims()));
      return mse_loss(adapted(m, x, y, 2)(query), answer).item();
    };
    const auto found = gradient.to_vector();
    for (std::size_t i = 0; i < home.size(); ++i)
      CHECK(found[i] == Approx((at(i, 1e-5) - at(i, -1e-5)) / 2e-5).epsilon(1e-6).margin(1e-8));
    at(0, 0);
  };
  check(m.in, m.in.grad());
  check(m.out, m.out.grad());
  check(m.bias, m.bias.grad());
}

TEST_CASE("a functional copy's parameters are values: what is written stays in it") {
  auto f = [](auto& m, auto& x) {
    auto fast = xla::functional_copy(m);
    fast.in.copy_(m.in * 3);
    fast.in.copy_(fast.in * 2);
    auto again = xla::functional_copy(fast);
    again.out.copy_(m.out * m.out);
    auto loss = sum(fast(x)) + sum(again(x)) + sum(fast.bias);
    fast.bias.zero_grad();
    loss.backward();
    return loss;
  };
  const xla::eager_mode_guard eager;
  Curve m = curve();
  check_modes(f, m, numbers<double>({3, 1}) / 4);
  const auto x = numbers<double>({3, 1}) / 4;
  f(m, x);
  const auto in = m.in.grad(), out = m.out.grad();
  m.in.zero_grad();
  m.out.zero_grad();
  (sum(matmul(tanh(matmul(x, m.in * 6) + m.bias), m.out)) +
   sum(matmul(tanh(matmul(x, m.in * 6) + m.bias), m.out * m.out)))
      .backward();
  check_equal(in, {1, 5}, m.in.grad().to_vector(), 1e-12);
  check_equal(out, {5, 1}, m.out.grad().to_vector(), 1e-12);
}

TEST_CASE("gradients do not flow home through a copy") {
  auto learn = [](auto& teacher, auto& average, auto& x) {
    xla::for_each_parameter(teacher, [](auto& p) { p.zero_grad(); });
    auto student = teacher;
    auto moved = std::move(student);
    auto weight = teacher.bias;
    const auto none = [](auto& p) { return p.grad().defined() ? 1.0 : 0.0; };
    auto loss = mse_loss(moved(x), teacher(x).detach()) + sum(moved(x)) + sum(weight * weight);
    loss.backward();
    const double reached = none(teacher.in) + none(teacher.bias);
    moved.in.copy_(moved.in.detach() - moved.in.grad() * 0.1);
    moved.bias += weight.grad();
    average = moved;
    auto second = sum(average(x)) * sum(teacher(x));
    second.backward();
    return std::tuple(loss, second, moved.in.grad() + 0, moved.in + 0,
                      xla::zeros_like(loss) + reached);
  };
  const xla::eager_mode_guard eager;
  Curve m = curve(), average = curve();
  average.in.zero_();
  const auto x = numbers<double>({3, 1}) / 4;
  check_modes(learn, m, average, x);
  const auto [loss, second, gradient, in, reached] = learn(m, average, x);
  CHECK(reached.item() == 0);
  CHECK(m.in.grad().defined());
  CHECK(average.in.to_vector() == in.to_vector());
  const auto moved = m.in - 0.1 * gradient;
  check_equal(in, {1, 5}, moved.to_vector(), 1e-12);
}

TEST_CASE("an in-place write to a named value of a parameter stays part of the graph") {
  auto f = [](auto& w) {
    xla::Tensor<double, 1> t = w;
    t *= 3;
    t += 1;
    auto loss = sum(t * t);
    loss.backward();
    return loss;
  };
  const xla::eager_mode_guard eager;
  auto w = test::parameter(xla::tensor<double>({1, 2}));
  check_modes(f, w);
  f(w);
  check_equal(w.grad(), {2}, std::vector<double>{24, 42});
}

TEST_CASE("a functional copy is no argument of a compiled function; its copy is") {
  const xla::eager_mode_guard eager;
  Curve m = curve();
  auto fast = xla::functional_copy(m);
  auto x = numbers<double>({3, 1}) / 4;
  auto run = xla::compile([](auto& model, auto& x) { return sum(model(x)); });
  CHECK_THROWS_WITH(run(fast, x), test::contains("functional_copy(): make that in the body"));
  Curve plain = fast;
  CHECK(run(plain, x).item() == sum(m(x)).item());
  sum(plain(x)).backward();
  CHECK(plain.in.grad().defined());
  CHECK_FALSE(m.in.grad().defined());
}
