// SPDX-License-Identifier: Apache-2.0
// The optimizers against PyTorch's formulas, by plain loops in double.
#include "xla/optim/optimizer.hpp"

#include "support/modes.hpp"
#include "xla/optim/adagrad.hpp"
#include "xla/optim/adam.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/lion.hpp"
#include "xla/optim/rmsprop.hpp"
#include "xla/optim/sgd.hpp"

using test::check_equal;
using test::numbers;

namespace {

struct Weights {
  xla::Parameter<float, 2> w{{5, 7}};
  xla::Parameter<float, 1> b{{7}};
  XLA_MODULE(w, b)
};

Weights make_weights() {
  Weights m;
  m.w.copy_(numbers<float>({5, 7}, 1));
  m.b.copy_(numbers<float>({7}, 2));
  return m;
}

/// A loss whose gradient is w - x for w and 2 b for b.
constexpr auto step_fn = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto d = model.w - x;
  auto loss = sum(d * d) * 0.5 + sum(model.b * model.b);
  loss.backward();
  optimizer.step();
  return loss;
};

constexpr int steps = 10;

/// The parameters after some steps, each updated by rule(p, g, step, first moment, second moment).
template <class Rule>
std::pair<std::vector<float>, std::vector<float>> expected(Rule rule) {
  auto run = [&](const std::vector<float>& start, auto gradient) {
    std::vector<double> p(start.begin(), start.end()), m(p.size()), v(p.size());
    for (int t = 1; t <= steps; ++t)
      for (std::size_t i = 0; i < p.size(); ++i) rule(p[i], gradient(p[i], i), t, m[i], v[i]);
    return std::vector<float>(p.begin(), p.end());
  };
  const auto x = numbers<float>({5, 7}, 3).to_vector();
  return {run(numbers<float>({5, 7}, 1).to_vector(),
              [&](double p, std::size_t i) { return p - static_cast<double>(x[i]); }),
          run(numbers<float>({7}, 2).to_vector(), [](double p, std::size_t) { return 2 * p; })};
}

template <template <class...> class Optimizer, class Options, class Rule>
void check_optimizer(Options options, Rule rule) {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({5, 7}, 3);
  auto train = [&](auto run) {
    auto model = make_weights();
    Optimizer<Weights> optimizer(model, options);
    for (int i = 0; i < steps; ++i) run(model, x, optimizer);
    const auto [w, b] = expected(rule);
    check_equal(model.w, {5, 7}, w, 2e-6);
    check_equal(model.b, {7}, b, 2e-6);
    test::snapshot s;
    s.add(model);
    optimizer.visit_state([&](auto& state, auto) { s.add(state); });
    return s;
  };
  const auto eager = train(step_fn);
  auto compiled = xla::compile(step_fn);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step_fn).difference(eager) == "");
}

}  // namespace

TEST_CASE("SGD with momentum and weight decay") {
  check_optimizer<xla::optim::SGD>(
      xla::optim::SGDOptions{.lr = 0.05, .momentum = 0.8, .weight_decay = 0.1},
      [](double& p, double g, int, double& v, double&) {
        v = 0.8 * v + g + 0.1 * p;
        p -= 0.05 * v;
      });
}

TEST_CASE("plain SGD") {
  check_optimizer<xla::optim::SGD>(
      xla::optim::SGDOptions{.lr = 0.3},
      [](double& p, double g, int, double&, double&) { p -= 0.3 * g; });
}

TEST_CASE("AdamW") {
  check_optimizer<xla::optim::AdamW>(
      xla::optim::AdamWOptions{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1},
      [](double& p, double g, int t, double& m, double& v) {
        p -= 0.05 * 0.1 * p;
        m = 0.8 * m + 0.2 * g;
        v = 0.99 * v + 0.01 * g * g;
        const double mean = m / (1 - std::pow(0.8, t)),
                     root = std::sqrt(v / (1 - std::pow(0.99, t)));
        p -= 0.05 * mean / (root + 1e-8);
      });
}

TEST_CASE("AdamW with its defaults") {
  check_optimizer<xla::optim::AdamW>(xla::optim::AdamWOptions{}, [](double& p, double g, int t,
                                                                    double& m, double& v) {
    p -= 1e-3 * 1e-2 * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double mean = m / (1 - std::pow(0.9, t)), root = std::sqrt(v / (1 - std::pow(0.999, t)));
    p -= 1e-3 * mean / (root + 1e-8);
  });
}

TEST_CASE("an optimizer updates through a model that is shared, and has no gradient before") {
  const xla::eager_mode_guard eager;
  auto model = make_weights();
  xla::optim::SGD optimizer{model, {.lr = 1}};
  const auto before = model.w.to_vector();
  CHECK_THROWS_AS(optimizer.step(), xla::error);
  CHECK(model.w.to_vector() == before);
  CHECK(&optimizer.model() == &model);
  sum(model.w).backward();
  optimizer.step();
  CHECK(model.w.to_vector()[0] == before[0] - 1);
  optimizer.zero_grad();
  CHECK_FALSE(model.w.grad().defined());
}

namespace {
struct Trainer {
  Weights model = make_weights();
  xla::optim::SGD<Weights> optimizer{model, {.lr = 0.1}};
};
}  // namespace

TEST_CASE("an optimizer follows its model where it is moved") {
  const auto make = [] {
    Trainer t;
    return std::pair{std::move(t.model), std::move(t.optimizer)};
  };
  auto x = numbers<float>({5, 7}, 3);
  auto compiled = xla::compile(step_fn);
  Trainer stays;
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    auto [model, optimizer] = make();
    Trainer first, moved = std::move(first);
    step_fn(stays.model, x, stays.optimizer);
    step_fn(model, x, optimizer);
    compiled(moved.model, x, moved.optimizer);
    xla::sync();
    check_equal(model.w, eager ? stays.model.w : model.w);
    check_equal(moved.model.w, model.w);
    CHECK(model.w.to_vector() != make_weights().w.to_vector());
    CHECK_THROWS_AS(first.optimizer.step(), xla::error);
  }
}

TEST_CASE("an optimizer whose model is gone says so") {
  const xla::eager_mode_guard guard;
  auto model = std::make_unique<Weights>(make_weights());
  xla::optim::SGD optimizer{*model, {.lr = 0.1}}, other{*model, {.lr = 0.1}};
  model.reset();
  CHECK_THROWS_WITH(optimizer.step(), test::contains("is gone"));
  CHECK_THROWS_WITH(other.zero_grad(), test::contains("is gone"));
}

TEST_CASE("a model that takes over a temporary keeps its optimizer, with its momentum") {
  auto x = numbers<float>({5, 7}, 3);
  auto compiled = xla::compile(step_fn);
  const auto train = [&](auto step, auto renew) {
    auto model = make_weights();
    xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
    step(model, x, optimizer);
    for (int i = 0; i < 3; ++i) {
      renew(model);
      CHECK_FALSE(model.w.grad().defined());
      step(model, x, optimizer);
    }
    auto moved = std::move(model);
    step(moved, x, optimizer);
    return moved.w.to_vector();
  };
  const auto copied = [](auto& model) {
    const auto fresh = make_weights();
    model = fresh;
  };
  const auto temporary = [](auto& model) { model = make_weights(); };
  const xla::eager_mode_guard eager(true);
  const auto want = train(step_fn, copied);
  CHECK(train(step_fn, temporary) == want);
  CHECK(train([&](auto&... a) { compiled(a...); }, temporary) == want);
  const xla::eager_mode_guard traced(false);
  CHECK(train(step_fn, temporary) == want);
}

TEST_CASE("a model and its optimizer are assigned together") {
  const auto make = [](float shift) {
    Trainer t;
    t.model.w.copy_(t.model.w.detach() + shift);
    return std::pair{std::move(t.model), std::move(t.optimizer)};
  };
  auto x = numbers<float>({5, 7}, 3);
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    auto [model, optimizer] = make(0);
    for (const float shift : {1.f, 2.f}) {
      std::tie(model, optimizer) = make(shift);
      auto [want, other] = make(shift);
      step_fn(model, x, optimizer);
      step_fn(want, x, other);
      check_equal(model.w, want.w);
    }
    auto [a, for_a] = make(1);
    auto [b, for_b] = make(2);
    std::swap(a, b);
    step_fn(b, x, for_a);
    step_fn(a, x, for_b);
    CHECK(a.w.to_vector() != b.w.to_vector());
    xla::sync();
  }
}

TEST_CASE("a model that gets another's values keeps its optimizer, and no gradient") {
  auto x = numbers<float>({5, 7}, 3);
  auto compiled = xla::compile(step_fn);
  const auto check = [&](auto step) {
    Trainer t;
    step(t.model, x, t.optimizer);
    auto best = t.model;
    best.b.requires_grad_(false);
    step(t.model, x, t.optimizer);
    t.model = best;
    CHECK(t.model.w.to_vector() == best.w.to_vector());
    CHECK_FALSE(t.model.w.grad().defined());
    CHECK_FALSE(t.model.b.requires_grad());
    step(t.model, x, t.optimizer);
    CHECK(t.model.w.to_vector() != best.w.to_vector());
    CHECK(t.model.b.to_vector() == best.b.to_vector());
    return t.model.w.to_vector();
  };
  xla::eager_mode_guard mode(true);
  const auto want = check(step_fn);
  CHECK(check([&](auto&... a) { compiled(a...); }) == want);
  const xla::eager_mode_guard traced(false);
  CHECK(check(step_fn) == want);
}

TEST_CASE("a step that no gradient has reached is refused: the model was taken by value") {
  const auto by_value = [](auto model, auto& x, auto& optimizer) {
    return step_fn(model, x, optimizer);
  };
  auto x = numbers<float>({5, 7}, 3);
  Trainer t;
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    CHECK_THROWS_WITH(by_value(t.model, x, t.optimizer), test::contains("finds no gradient"));
    step_fn(t.model, x, t.optimizer);
    CHECK_NOTHROW(t.optimizer.step());
    xla::sync();
  }
}

TEST_CASE("hyper-parameters outside their ranges are refused") {
  using namespace xla::optim;
  auto m = make_weights();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH((SGD{m, {.lr = -0.5}}), "optim::SGD: lr is -0.5, and has to be at least 0");
  CHECK_THROWS_AS((SGD{m, {.lr = nan}}), xla::error);
  CHECK_THROWS_AS((SGD{m, {.momentum = -1}}), xla::error);
  CHECK_THROWS_AS((SGD{m, {.weight_decay = -1}}), xla::error);
  CHECK_THROWS_AS((SGD{m, {.nesterov = true}}), xla::error);
  CHECK_THROWS_AS((SGD{m, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}}), xla::error);
  CHECK_NOTHROW(SGD{m, {.momentum = 0.9, .nesterov = true}});
  CHECK_THROWS_WITH((Adam{m, {.beta1 = 1}}),
                    "optim::Adam: beta1 is 1, and has to be from 0 to below 1");
  CHECK_THROWS_AS((Adam{m, {.eps = -1}}), xla::error);
  CHECK_THROWS_AS((AdamW{m, {.beta2 = -0.1}}), xla::error);
  CHECK_THROWS_AS((RMSprop{m, {.alpha = 1.5}}), xla::error);
  CHECK_THROWS_AS((Adagrad{m, {.lr_decay = -1}}), xla::error);
  CHECK_THROWS_AS((Lion{m, {.beta2 = 2}}), xla::error);
  CHECK_THROWS_AS(clip_grad_norm_(m, -1), xla::error);
  CHECK_THROWS_AS(clip_grad_value_(m, nan), xla::error);
}
