// SPDX-License-Identifier: Apache-2.0
// Frozen parameters: requires_grad_(false) means the same in every mode, whenever it is said.
#include "support/mlp.hpp"
#include "xla/optim/average.hpp"
#include "xla/xla.hpp"

using test::batch;
using test::Mlp;
using test::mode;
namespace optim = xla::optim;

namespace {

void freeze(auto& layer, bool frozen = true) {
  layer.weight.requires_grad_(!frozen);
  layer.bias.requires_grad_(!frozen);
}

constexpr auto loss_of = [](auto& model, auto& b) {
  return xla::nn::CrossEntropyLoss{}(model(b.data), b.target);
};
struct Batch {
  xla::Tensor<float, 2> data;
  xla::Tensor<std::int64_t, 1> target;
  XLA_MODULE(data, target)
};
Batch make_batch(std::uint64_t seed = 0) {
  const batch b(8, seed);
  return {b.data, b.target};
}

// Everything that reads a gradient or what is made of it: norms, moments, decay, averages, a
// parameter that is changed again after its update, and one that is used again.
constexpr auto rich_step = [](auto& model, auto& b, auto& optimizer, auto& average) {
  optimizer.zero_grad();
  auto loss = loss_of(model, b);
  loss.backward();
  auto norm = optim::clip_grad_norm_(model, 0.05);
  optimizer.step();
  xla::no_grad(model,
               [&] { model.fc1.weight.copy_(clamp(model.fc1.weight.detach(), -0.2f, 0.2f)); });
  average.update();
  return std::tuple(loss, norm, sum(model.fc1(b.data)), model.fc2.bias.detach());
};

/// What some steps leave behind in a mode; between them the first layer freezes and thaws.
template <class Optimizer>
test::snapshot train(mode m, auto& run) {
  const xla::eager_mode_guard guard(m != mode::traced);
  xla::manual_seed(3);
  Mlp model;
  Optimizer optimizer{model};
  optimizer.options.lr = 0.1;
  optimizer.options.weight_decay = 0.1;
  optim::ExponentialMovingAverage average{model, {.decay = 0.5}};
  test::snapshot all;
  for (std::uint64_t i = 0; i < 6; ++i) {
    if (i == 2) freeze(model.fc1);
    if (i == 3) model.fc2.bias.requires_grad_(false);
    if (i == 4) freeze(model.fc1, false);
    const auto before = model.fc1.weight.detach();
    auto b = make_batch(i);
    auto result = run(model, b, optimizer, average);
    if (m == mode::traced) xla::sync();
    all.add(result);
    all.append(test::state_of(model, optimizer, average));
    const bool frozen = i == 2 || i == 3;
    CHECK(model.fc1.weight.grad().defined() == !frozen);
    CHECK((sum(abs(model.fc1.weight.detach() - clamp(before, -0.2f, 0.2f))).item() == 0) == frozen);
  }
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("a frozen parameter is left alone, the same in every mode", "", optim::SGD<Mlp>,
                   optim::AdamW<Mlp>) {
  const auto eager = train<TestType>(mode::eager, rich_step);
  CHECK(train<TestType>(mode::traced, rich_step).difference(eager) == "");
  auto compiled = xla::compile(rich_step);
  const auto graphs = test::count_of("UncachedCompile");
  CHECK(train<TestType>(mode::compiled, compiled).difference(eager) == "");
  CHECK(test::count_of("UncachedCompile") == graphs + 4);
  CHECK(train<TestType>(mode::compiled, compiled).difference(eager) == "");
  CHECK(test::count_of("UncachedCompile") == graphs + 4);
}

TEST_CASE("values that only a frozen parameter's gradient needs are not computed") {
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  batch b(64);
  auto step = xla::compile(test::step_fn);
  const auto all = step.memory_analysis(model, b.data, b.target, loss_fn, optimizer);
  freeze(model.fc1);
  const auto less = step.memory_analysis(model, b.data, b.target, loss_fn, optimizer);
  // Of the outputs: weight, bias, their moments and gradients.
  CHECK(all.outputs - less.outputs == 3 * 4 * (17 * 33 + 33));
}

TEST_CASE("a body may freeze and thaw, and what it said holds afterwards") {
  auto step = [](auto& model, auto& b, auto& optimizer) {
    model.fc1.weight.requires_grad_(false);
    model.fc2.bias.requires_grad_(true);
    optimizer.zero_grad();
    auto loss = loss_of(model, b);
    loss.backward();
    optimizer.step();
    model.fc1.bias.requires_grad_(false);
    return loss;
  };
  auto run = [&](mode m) {
    const xla::eager_mode_guard guard(m != mode::traced);
    xla::manual_seed(3);
    Mlp model;
    optim::AdamW optimizer{model, {.lr = 0.1, .weight_decay = 0.1}};
    model.fc2.bias.requires_grad_(false);
    auto compiled = xla::compile(step);
    test::snapshot all;
    for (std::uint64_t i = 0; i < 3; ++i) {
      auto b = make_batch(i);
      auto loss = m == mode::compiled ? compiled(model, b, optimizer) : step(model, b, optimizer);
      if (m == mode::traced) xla::sync();
      all.add(loss);
      all.append(test::state_of(model, optimizer));
      CHECK_FALSE(model.fc1.weight.requires_grad());
      CHECK_FALSE(model.fc1.bias.requires_grad());
      CHECK(model.fc2.weight.requires_grad());
      CHECK(model.fc2.bias.requires_grad());
    }
    return all;
  };
  const auto eager = run(mode::eager);
  CHECK(run(mode::traced).difference(eager) == "");
  CHECK(run(mode::compiled).difference(eager) == "");
}

TEST_CASE("an update without gradient is none, whether it was frozen or not reached") {
  auto apply = [](auto& model, auto& optimizer) {
    auto norm = optim::clip_grad_norm_(model, 0.05);
    optimizer.step();
    return norm;
  };
  auto run = [&](mode m) {
    const xla::eager_mode_guard guard(m != mode::traced);
    xla::manual_seed(3);
    Mlp model;
    optim::AdamW optimizer{model, {.lr = 0.1, .weight_decay = 0.1}};
    auto compiled = xla::compile(apply);
    test::snapshot all;
    for (int i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      freeze(model.fc1, i == 1);
      const auto b = make_batch();
      auto loss = i == 2 ? sum(model.fc1(b.data)) : loss_of(model, b);
      loss.backward();
      auto norm = m == mode::compiled ? compiled(model, optimizer) : apply(model, optimizer);
      if (m == mode::traced) xla::sync();
      all.add(norm);
      all.append(test::state_of(model, optimizer));
    }
    return all;
  };
  const auto eager = run(mode::eager);
  CHECK(run(mode::traced).difference(eager) == "");
  CHECK(run(mode::compiled).difference(eager) == "");
}

TEST_CASE("a step that makes no sense without a gradient says so, and changes nothing") {
  const xla::eager_mode_guard eager;
  Mlp model;
  auto b = make_batch();
  auto largest = xla::compile([](auto& m, auto& x) {
    auto loss = loss_of(m, x);
    loss.backward();
    return xla::maximum(max(abs(m.fc1.bias.grad())), max(abs(m.fc2.bias.grad())));
  });
  largest(model, b);
  model.fc1.bias.requires_grad_(false);
  auto before = test::state_of(model);
  CHECK_THROWS_WITH(largest(model, b), test::contains("argument 0.fc1.bias") &&
                                           test::contains("has one from before") &&
                                           test::contains("zero_grad()"));
  CHECK(test::state_of(model).difference(before) == "");
  model.fc1.bias.zero_grad();
  before = test::state_of(model);
  CHECK_THROWS_WITH(largest(model, b),
                    test::contains("argument 0.fc1.bias") && test::contains("gradient_part"));
  freeze(model.fc1);
  freeze(model.fc2);
  for (auto* p : {&model.fc1.weight, &model.fc2.weight}) p->zero_grad();
  model.fc2.bias.zero_grad();
  optim::SGD optimizer{model};
  auto step = [](auto& m, auto& x, auto& o) {
    o.zero_grad();
    loss_of(m, x).backward();
    o.step();
  };
  before = test::state_of(model, optimizer);
  CHECK_THROWS_WITH(step(model, b, optimizer), test::contains("requires a gradient"));
  CHECK_THROWS_WITH(xla::compile(step)(model, b, optimizer), test::contains("requires a gradient"));
  CHECK(test::state_of(model, optimizer).difference(before) == "");
}
