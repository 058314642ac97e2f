// SPDX-License-Identifier: Apache-2.0
// backward() of what a compiled function returned: PyTorch's way of training a compiled model.
#include "support/modes.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::numbers;
namespace nn = xla::nn;
namespace optim = xla::optim;

namespace {

struct Mlp {
  nn::Linear fc1{7, 9};
  nn::BatchNorm1d norm{9};
  nn::Dropout drop{0.25};
  nn::Linear fc2{9, 5};
  constexpr auto operator()(xla::Tensor<float, 2> x) const {
    return fc2(drop(norm(xla::relu(fc1(x)))));
  }
  XLA_MODULE(fc1, norm, drop, fc2)
};

constexpr auto forward = [](auto& model, auto& x) { return model(x); };
constexpr auto loss_of = [](auto& y, auto& target) { return xla::cross_entropy(y, target); };
auto compiled_forward = xla::compile(forward);
auto compiled_loss = xla::compile(loss_of);

/// Some steps of training, forward by f and the loss by g; what all of it has become.
test::snapshot train(Mlp& model, auto&& f, auto&& g) {
  optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  test::snapshot all;
  for (int i = 0; i < 4; ++i) {
    auto x = numbers<float>({i < 2 ? 6 : 4, 7}, i);
    if (i % 2 == 1) x.requires_grad_();
    auto target = xla::randint(0, 5, {x.size(0)});
    optimizer.zero_grad();
    auto y = f(model, x);
    CHECK(y.requires_grad());
    auto loss = g(y, target);
    loss.backward();
    optimizer.step();
    CHECK(x.grad().defined() == (i % 2 == 1));
    if (x.grad().defined()) all.add(x.grad());
    all.add(loss);
  }
  all.add(model);
  all.add(xla::rand<float>({3}));
  return all;
}

/// The same from a fresh model, in a mode.
test::snapshot train(bool eager, bool evaluates, auto&& f, auto&& g) {
  const xla::eager_mode_guard guard(eager);
  xla::manual_seed(5);
  Mlp model;
  if (evaluates) model.eval();
  return train(model, f, g);
}

// What it is given is changed before gradients are asked for: it writes x and count.
constexpr auto busy = [](auto& p, auto& x, auto& scale, auto& count) {
  count.copy_(count.detach() + 1);
  const auto wave = [](auto& a, auto& b) { return xla::tanh(a * b) + xla::rand_like(b); };
  const auto y = xla::checkpoint(wave, p, x) * scale.template as<float>();
  const auto s = xla::sum(x * p) * count / x.size(0);
  x = x + 1;
  return std::pair(y, s);
};
auto compiled_busy = xla::compile(busy);

test::snapshot run_busy(bool eager, auto&& f) {
  const xla::eager_mode_guard guard(eager);
  xla::manual_seed(3);
  auto p = test::parameter(numbers<float>({3, 4}, 1));
  auto x = numbers<float>({3, 4}, 2);
  xla::Scalar scale = 2;
  xla::Buffer<float, 0> count = 3.0f;
  auto [y, s] = f(p, x, scale, count);
  auto z = sum(y * y) + s;
  test::snapshot all;
  all.add(std::tuple(y, s, x));
  p.copy_(p.detach() * 0);
  count.copy_(count.detach() * 0);
  scale = 7;
  x = x * 0;
  z.backward();
  all.add(p.grad());
  return all;
}

}  // namespace

TEST_CASE("a compiled model trains by backward() and step() outside, as an eager one") {
  const auto trained = train(true, false, forward, loss_of);
  const auto evaluated = train(true, true, forward, loss_of);
  const auto predict = [](Mlp& m, auto& x) { return xla::compile(m)(x); };
  for (const bool eager : {true, false}) {
    CHECK(train(eager, false, compiled_forward, loss_of).difference(trained) == "");
    CHECK(train(eager, false, compiled_forward, compiled_loss).difference(trained) == "");
    CHECK(train(eager, true, predict, loss_of).difference(evaluated) == "");
  }
}

TEST_CASE("backward() outside sees what the call was given, whatever was written since") {
  const auto want = run_busy(true, busy);
  CHECK(run_busy(true, compiled_busy).difference(want) == "");
  CHECK(run_busy(false, compiled_busy).difference(want) == "");
}

TEST_CASE("backward() outside goes through attention, also of what needs no gradient") {
  const auto weighed = [](auto& p, auto& x, auto& seen) {
    return xla::scaled_dot_product_attention(x, x, x, seen) * p;
  };
  auto compiled = xla::compile(weighed);
  const auto run = [](bool eager, bool follows, auto&& f) {
    const xla::eager_mode_guard guard(eager);
    auto p = test::parameter(numbers<float>({1, 2, 3, 4}, 1));
    auto x = numbers<float>({1, 2, 3, 4}, 2);
    auto seen = numbers<float>({3, 3}, 3) > 0;
    if (follows) x.requires_grad_();
    sum(f(p, x, seen)).backward();
    test::snapshot all;
    all.add(p.grad());
    if (follows) all.add(x.grad());
    return all;
  };
  for (const bool follows : {false, true}) {
    const auto want = run(true, follows, weighed);
    CHECK(run(true, follows, compiled).difference(want) == "");
    CHECK(run(false, follows, compiled).difference(want) == "");
  }
}

TEST_CASE("results of a compiled function have gradients like eager tensors") {
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard guard(eager);
    auto cube = xla::compile([](auto& a) { return a * a * a; });
    auto x = xla::tensor<double>({2, -3});
    CHECK(!cube(x).requires_grad());
    x.requires_grad_();
    const auto first = xla::grad(sum(cube(x)), x, {.create_graph = true});
    test::check_equal(first, {2}, {12, 27});
    test::check_equal(xla::grad(sum(first), x), {2}, {12, -18});
    CHECK(!xla::no_grad([&] { return cube(x); }).requires_grad());

    auto loss = sum(cube(x));
    loss.backward();
    CHECK_THROWS_WITH(loss.backward(), contains("a second time"));

    nn::Linear model{2, 1};
    model.weight.requires_grad_(false);
    auto data = xla::ones<float>({1, 2});
    sum(xla::compile(model)(data)).backward();
    CHECK(!model.weight.grad().defined());
    CHECK(model.bias.grad().defined());
    model.bias.requires_grad_(false);
    CHECK(!xla::compile(model)(data).requires_grad());
  }
}

TEST_CASE("a result outlives the function and the model, and chains of them are no recursion") {
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({1, 2});
  x.requires_grad_();
  for (const bool compiled : {false, true}) {
    const auto y = [&] {
      nn::Linear model{2, 2};
      return compiled ? xla::compile(model)(x) : model(x);
    }();
    sum(y).backward();
    CHECK(x.grad().defined());
  }

  auto cell = xla::compile([](auto& h) { return h * 0.5; });
  auto h = x + 0;
  for (int i = 0; i < 100'000; ++i) h = cell(h);
  CHECK(h.requires_grad());
}

TEST_CASE("values that a compiled body detaches or does not record have no gradient outside") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& a) { return a * exp(a).detach(); });
  auto x = xla::tensor<float>({0, 1, 2});
  x.requires_grad_();
  sum(f(x)).backward();
  test::check_equal(x.grad(), exp(x).detach());
  auto g = xla::compile([](auto& a) { return a * xla::no_grad(a, [&] { return exp(a); }); });
  x.zero_grad();
  sum(g(x)).backward();
  test::check_equal(x.grad(), exp(x).detach());
}
