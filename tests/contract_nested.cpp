// SPDX-License-Identifier: Apache-2.0
// A compiled function that is called in the body of another one becomes part of its graph.
#include "support/modes.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/relu.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/state/metrics.hpp"
#include "xla/run/trace/backward.hpp"

using test::numbers;

namespace {

constexpr auto wave = [](auto& x) { return relu(x * 2 - 1) + x; };
auto compiled_wave = xla::compile(wave);

constexpr auto halves = [](auto x) { return std::pair(x * 0.5, x[0]); };
auto compiled_halves = xla::compile(halves);

constexpr auto train = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto y = model(x);
  auto loss = sum(y * y);
  loss.backward();
  optimizer.step();
  return loss;
};
auto compiled_train = xla::compile(train);

std::int64_t runs() {
  return xla::counter_value("CachedCompile").value_or(0) +
         xla::counter_value("UncachedCompile").value_or(0);
}

}  // namespace

TEST_CASE("a global compiled function runs inside another one's graph") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 7});
  auto outer = xla::compile([](auto& a) {
    auto b = compiled_wave(a);
    const auto [half, row] = compiled_halves(b);
    return half + row;
  });
  const auto y = wave(x);
  const auto before = runs();
  test::check_equal(outer(x), y * 0.5 + xla::Tensor<float, 1>(y[0]));
  CHECK(runs() == before + 1);
  test::check_equal(compiled_wave(x), y);
}

TEST_CASE("a compiled function is an argument of another one, compiled or not") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 7});
  auto inner = xla::compile([](auto& a) { return softmax(a, -1); });
  const auto body = [](auto& f, auto& a) {
    auto b = a + 1;
    return f(b) * f(a);
  };
  auto outer = xla::compile(body);
  const auto before = runs();
  const auto y = outer(inner, x);
  CHECK(runs() == before + 1);
  test::check_equal(body(inner, x), y);
  CHECK(runs() == before + 3);
  test::check_equal(softmax(x + 1, -1) * softmax(x, -1), y);
}

TEST_CASE("gradients flow through, and state is written") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({4, 3});
  auto twice = xla::compile([](auto& model, auto& a, auto& optimizer) {
    const auto first = compiled_train(model, a, optimizer);
    return first + compiled_train(model, a, optimizer);
  });
  xla::manual_seed(3);
  xla::nn::Linear model{3, 2};
  auto other = model;
  xla::optim::SGD optimizer{model, {.lr = 0.01, .momentum = 0.9}};
  xla::optim::SGD same{other, {.lr = 0.01, .momentum = 0.9}};
  const auto loss = twice(model, x, optimizer);
  const auto first = train(other, x, same);
  test::check_equal(loss, first + train(other, x, same));
  test::check_equal(model.weight, other.weight);
  auto p = test::parameter(x);
  auto gradient = xla::compile([](auto& q) {
    auto y = q * q;
    sum(compiled_wave(y)).backward();
  });
  gradient(p);
  auto q = test::parameter(x);
  auto y = q * q;
  sum(wave(y)).backward();
  test::check_equal(p.grad(), q.grad());
}
