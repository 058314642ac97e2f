// SPDX-License-Identifier: Apache-2.0
// The contract: one step function, unchanged, in three modes.
#include "support/mlp.hpp"
#include "xla/xla.hpp"

using test::batch;
using test::Mlp;
using test::mode;

namespace {

/// The loss of each step and the state at the end.
template <mode M>
test::snapshot train(int steps) {
  const xla::eager_mode_guard as_told(M == mode::eager);
  xla::manual_seed(42);
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  auto step = [] {
    if constexpr (M == mode::compiled) return xla::compile(test::step_fn, {.name = "mlp_step"});
    else return test::step_fn;
  }();
  test::snapshot s;
  float first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    batch b(i % 3 == 2 ? 7 : 64, static_cast<std::uint64_t>(i % 10));
    auto loss = step(model, b.data, b.target, loss_fn, optimizer);
    if (M == mode::traced) xla::sync();
    s.add(loss);
    (i == 0 ? first : last) = loss.item();
  }
  CHECK(last < first / 4);
  test::snapshot end = test::state_of(model, optimizer);
  s.append(end);
  return s;
}

}  // namespace

TEST_CASE("a hundred steps: the same losses, parameters and momentum in every mode") {
  const auto eager = train<mode::eager>(100);
  CHECK(train<mode::traced>(100).difference(eager) == "");
  CHECK(train<mode::compiled>(100).difference(eager) == "");
}

TEST_CASE("a compiled step has one signature for each shape of batch") {
  const xla::eager_mode_guard eager;
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto step = xla::compile(test::step_fn);
  batch b(64), c(32);
  const auto before = test::count_of("UncachedCompile");
  auto compiled = [&] { return test::count_of("UncachedCompile") - before; };
  step(model, b.data, b.target, loss_fn, optimizer);
  CHECK(compiled() == 1);
  for (int i = 0; i < 3; ++i) step(model, b.data, b.target, loss_fn, optimizer);
  CHECK(compiled() == 1);
  optimizer.options.lr = 0.01;
  step(model, b.data, b.target, loss_fn, optimizer);
  optimizer.options.momentum = 0.01;  // now equal to the rate
  step(model, b.data, b.target, loss_fn, optimizer);
  optimizer.options.weight_decay = 1e-3;
  step(model, b.data, b.target, loss_fn, optimizer);
  CHECK(compiled() == 1);
  step(model, c.data, c.target, loss_fn, optimizer);
  CHECK(compiled() == 2);
  step(model, b.data, b.target, loss_fn, optimizer);
  step(model, c.data, c.target, loss_fn, optimizer);
  CHECK(compiled() == 2);
}

TEST_CASE("a traced step has one graph, from the second step on") {
  const xla::eager_mode_guard traced(false);
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  batch b(48), c(24);  // shapes of no other test: graphs are kept for the process
  xla::sync();
  const auto before = test::count_of("UncachedCompile");
  auto compiled = [&] { return test::count_of("UncachedCompile") - before; };
  auto step = [&](batch& x) {
    auto loss = test::step_fn(model, x.data, x.target, loss_fn, optimizer);
    xla::sync();
  };
  step(b);
  const auto first = compiled();
  CHECK(first >= 1);
  for (int i = 0; i < 3; ++i) step(b);
  CHECK(compiled() == first);
  optimizer.options.lr = 0.01;
  step(b);
  optimizer.options.momentum = 0.01;
  step(b);
  CHECK(compiled() == first);
  step(c);
  CHECK(compiled() == first + 1);
  step(b);
  step(c);
  CHECK(compiled() == first + 1);
}

TEST_CASE("a changed learning rate takes effect, the same in every mode") {
  auto last = [](auto run) {
    xla::manual_seed(1);
    Mlp model;
    xla::nn::CrossEntropyLoss loss_fn;
    xla::optim::SGD optimizer{model, {.lr = 0.1}};
    batch b(16);
    for (double lr : {0.1, 0.5, 0.0, 0.02}) {
      optimizer.options.lr = lr;
      run(model, b.data, b.target, loss_fn, optimizer);
    }
    return test::state_of(model, optimizer);
  };
  const xla::eager_mode_guard guard;
  const auto eager = last(test::step_fn);
  auto compiled = xla::compile(test::step_fn);
  CHECK(last([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(last(test::step_fn).difference(eager) == "");
}

TEST_CASE("modes can be mixed step by step") {
  const xla::eager_mode_guard guard;
  auto compiled = xla::compile(test::step_fn);
  auto train = [&](bool mixed) {
    xla::eager_mode(true);
    xla::manual_seed(3);
    Mlp model;
    xla::nn::CrossEntropyLoss loss_fn;
    xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
    for (std::uint64_t i = 0; i < 12; ++i) {
      batch b(8, i);
      if (mixed && i % 3 == 0) compiled(model, b.data, b.target, loss_fn, optimizer);
      else {
        xla::eager_mode(!mixed || i % 3 == 1);
        test::step_fn(model, b.data, b.target, loss_fn, optimizer);
      }
    }
    return test::state_of(model, optimizer);
  };
  CHECK(train(true).difference(train(false)) == "");
}

TEST_CASE("a compiled module is a function of its inputs that refers to the module") {
  const xla::eager_mode_guard eager;
  Mlp model;
  auto predict = xla::compile(model);
  const batch b(7);
  auto data = b.data;
  test::check_equal(predict(data), model(data));
  model.fc2.bias.copy_(model.fc2.bias.detach() + 1);
  test::check_equal(predict(data), model(data));
  const Mlp& constant = model;
  auto again = xla::compile(constant);
  test::check_equal(again(b.data), model(data));
}
