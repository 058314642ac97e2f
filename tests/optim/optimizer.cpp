// SPDX-License-Identifier: Apache-2.0
// The optimizers against PyTorch's formulas, by plain loops in double.
#include "xla/optim/optimizer.hpp"

#include "support/modes.hpp"
#include "xla/optim/adamw.hpp"
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

template <template <class> class Optimizer, class Options, class Rule>
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
  optimizer.step();
  CHECK(model.w.to_vector() == before);
  CHECK(&optimizer.model() == &model);
  sum(model.w).backward();
  optimizer.step();
  CHECK(model.w.to_vector()[0] == before[0] - 1);
  optimizer.zero_grad();
  CHECK_FALSE(model.w.grad().defined());
}
