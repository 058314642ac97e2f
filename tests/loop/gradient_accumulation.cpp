// SPDX-License-Identifier: Apache-2.0
// Gradients of microbatches are added up in one set, and are those of steps written out.
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/cross_entropy.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"
#include "xla/optim/sgd.hpp"

using test::numbers;

namespace {

struct mlp {
  xla::nn::Linear first{8, 16}, second{16, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return second(xla::tanh(first(x)));
  }
  XLA_MODULE(first, second)
};

constexpr auto accumulate = [](auto& model, auto& xs, auto& ys, auto& seen) {
  const auto step = [&](const auto& x, const auto& y, const auto& count) {
    return std::tuple(xla::mean(xla::square(model(x) - y)), count + 10);
  };
  return xla::gradient_accumulation(step, std::tuple(xs, ys), model, std::tuple(seen));
};

}  // namespace

TEST_CASE("gradients of microbatches are the same in every mode") {
  constexpr auto from_none = [](auto& model, auto& xs, auto& ys, auto& seen) {
    xla::for_each_parameter(model, [](auto& p) { p.zero_grad(); });
    return accumulate(model, xs, ys, seen);
  };
  for (std::int64_t steps : {1, 2, 6})
    test::check_modes(from_none, mlp(), numbers<float>({steps, 3, 8}), numbers<float>({steps, 3, 4}),
                      xla::tensor<std::int64_t>(0));
}

TEST_CASE("they are those of steps written out, and come to what was there") {
  mlp model;
  auto compiled = xla::compile(accumulate);
  const auto xs = numbers<float>({4, 3, 8}), ys = numbers<float>({4, 3, 4});
  auto seen = xla::tensor<std::int64_t>(2);
  test::snapshot expected, got;
  for (bool loop : {false, true}) {
    const xla::eager_mode_guard eager(!loop);
    mlp m = model;
    (sum(m.first.weight) + sum(m.first.bias) + sum(m.second.weight) + sum(m.second.bias)).backward();
    auto x = xs, y = ys;
    if (loop) {
      const auto [loss, count] = compiled(m, x, y, seen);
      CHECK(count.item() == 42);
      got.add(loss);
      got.add(m);
      continue;
    }
    auto total = xla::tensor(0.0f);
    for (int i = 0; i < 4; ++i) {
      auto loss = xla::mean(xla::square(m(select(x, 0, i)) - select(y, 0, i))) / 4.0f;
      loss.backward();
      total = total + loss.detach();
    }
    expected.add(total);
    expected.add(m);
  }
  CHECK(got.difference(expected) == "");
}

TEST_CASE("one step of the optimizer for all, and frozen parameters get none") {
  constexpr auto train = [](auto& model, auto& opt, auto& xs, auto& ys) {
    opt.zero_grad();
    const auto step = [&](const auto& x, const auto& y) {
      return xla::mean(xla::square(model(x) - y));
    };
    const auto [loss] = xla::gradient_accumulation(step, std::tuple(xs, ys), model);
    opt.step();
    return loss;
  };
  auto compiled = xla::compile(train);
  const mlp start;
  for (bool frozen : {false, true}) {
    test::snapshot seen[2];
    for (bool eager : {true, false}) {
      const xla::eager_mode_guard mode(eager);
      mlp m = start;
      if (frozen) m.first.weight.requires_grad_(false);
      xla::optim::SGD opt{m, {.lr = 0.1f, .momentum = 0.9f}};
      auto xs = numbers<float>({4, 3, 8}), ys = numbers<float>({4, 3, 4});
      for (int i = 0; i < 3; ++i) seen[eager].add(eager ? train(m, opt, xs, ys) : compiled(m, opt, xs, ys));
      seen[eager].add(m);
      CHECK(m.first.weight.grad().defined() == !frozen);
    }
    CHECK(seen[0].difference(seen[1]) == "");
  }
}
