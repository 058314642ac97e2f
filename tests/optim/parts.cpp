// SPDX-License-Identifier: Apache-2.0
// Parameter groups: optimizers of their own for the parts of a model.
#include "support/weights.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/schedule.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/metrics.hpp"

using test::numbers;
namespace optim = xla::optim;

namespace {

struct Big {
  test::Weights body, head;
  XLA_MODULE(body, head)
};

constexpr auto step_fn = [](auto& model, auto& x, auto& slow, auto& fast) {
  slow.zero_grad();
  fast.zero_grad();
  (test::weights_loss(model.body, x) + test::weights_loss(model.head, x)).backward();
  slow.step();
  fast.step();
};

}  // namespace

TEST_CASE("two parts of a model learn at different rates, the same in every mode") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({5, 7}, 3);
  auto train = [&](auto run) {
    Big model{test::make_weights(), test::make_weights()};
    optim::SGD slow{xla::part<&Big::body>(model), {.lr = 0.01}};
    optim::SGD fast{xla::part<&Big::head>(model), {.lr = 0.1}};
    optim::StepLR schedule{fast, {.step_size = 2, .gamma = 0.5}};
    double left = 1, left_fast = 1;  // of b, whose gradient is 2 b
    for (int i = 0; i < 6; ++i) {
      left *= 1 - 2 * 0.01;
      left_fast *= 1 - 2 * fast.options.lr.value();
      run(model, x, slow, fast);
      schedule.step();
    }
    const auto b = numbers<float>({7}, 2);
    test::check_equal(model.body.b, {7}, (b * left).to_vector(), 1e-6);
    test::check_equal(model.head.b, {7}, (b * left_fast).to_vector(), 1e-6);
    test::snapshot s;
    s.add(model);
    return s;
  };
  const auto eager = train(step_fn);
  const auto graphs = xla::counter_value("UncachedCompile").value_or(0);
  auto compiled = xla::compile(step_fn);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  CHECK(xla::counter_value("UncachedCompile").value_or(0) == graphs + 1);
  xla::eager_mode(false);
  CHECK(train(step_fn).difference(eager) == "");
}

TEST_CASE("two optimizers of one model, of different kinds, are both for it") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 7}, 3);
  auto step = [](auto& model, auto& v, auto& a, auto& b) {
    a.zero_grad();
    test::weights_loss(model, v).backward();
    a.step();
    b.step();
  };
  auto model = test::make_weights(), same = test::make_weights(), other = test::make_weights();
  optim::SGD sgd{model, {.lr = 0.1}}, sgd_same{same, {.lr = 0.1}};
  optim::AdamW adam{model, {.lr = 0.1}}, adam_same{same, {.lr = 0.1}}, wrong{other, {.lr = 0.1}};
  auto compiled = xla::compile(step);
  compiled(model, x, sgd, adam);
  step(same, x, sgd_same, adam_same);
  test::check_equal(model.w, same.w);
  CHECK_THROWS_WITH(compiled(model, x, sgd, wrong), test::contains("another model"));
}
