// SPDX-License-Identifier: Apache-2.0
#include "xla/optim/clip.hpp"

#include "support/weights.hpp"
#include "xla/op/abs.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/state/metrics.hpp"

using test::check_equal;
using test::numbers;
namespace optim = xla::optim;

TEST_CASE("clip_grad_norm_ scales all gradients by one factor, as PyTorch's does") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 7}, 3);
  for (const auto& [most, want] :
       {std::pair{2.5, &reference::clip_norm_low}, std::pair{1e6, &reference::clip_norm_high}}) {
    auto model = test::make_weights();
    test::weights_loss(model, x).backward();
    const auto norm = optim::clip_grad_norm_(model, most);
    test::check_stored(norm, {want->front()}, 1e-6);
    test::check_stored(model.w.grad(), {want->begin() + 1, want->begin() + 36});
    test::check_stored(model.b.grad(), {want->begin() + 36, want->end()});
  }
}

TEST_CASE("clipping leaves alone what has no gradient") {
  const xla::eager_mode_guard eager;
  auto model = test::make_weights();
  CHECK(optim::clip_grad_norm_(model, 1).item() == 0);
  optim::clip_grad_value_(model, 1);
  CHECK_FALSE(model.w.grad().defined());
  sum(model.b * 3).backward();
  CHECK(optim::clip_grad_norm_(model, 1).item() == Approx(3 * std::sqrt(7.)));
  CHECK(model.b.grad().to_vector()[0] == Approx(1 / std::sqrt(7.)));
  CHECK_FALSE(model.w.grad().defined());
}

TEST_CASE("clip_grad_value_ bounds every element") {
  const xla::eager_mode_guard eager;
  auto model = test::make_weights();
  auto x = numbers<float>({5, 7}, 3);
  test::weights_loss(model, x).backward();
  const auto before = model.w.grad();
  optim::clip_grad_value_(model, 0.75);
  check_equal(model.w.grad(), clamp(before, -0.75, 0.75));
  CHECK(max(abs(model.b.grad())).item() <= 0.75f);
}

TEST_CASE("clipping in a step is the same in every mode; another bound is no other graph") {
  auto step = [](auto& model, auto& x, auto& most) {
    test::weights_loss(model, x).backward();
    auto norm = optim::clip_grad_norm_(model, most);
    optim::clip_grad_value_(model, 0.1);
    return norm;
  };
  test::check_modes(step, test::make_weights(), numbers<float>({5, 7}, 3), xla::Scalar(2.5));

  const xla::eager_mode_guard eager;
  auto model = test::make_weights();
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  auto compiled = xla::compile([](auto& m, const auto& v, auto& most, auto& o) {
    o.zero_grad();
    test::weights_loss(m, v).backward();
    auto norm = optim::clip_grad_norm_(m, most);
    o.step();
    return norm;
  });
  const auto x = numbers<float>({5, 7}, 3);
  xla::Scalar most = 0.5;
  compiled(model, x, most, optimizer);
  const auto graphs = xla::counter_value("UncachedCompile");
  const float from = compiled(model, x, most, optimizer).item();
  most = 1e-6;
  const float to = compiled(model, x, most, optimizer).item();
  CHECK(to < from);
  CHECK(compiled(model, x, most, optimizer).item() == Approx(to));
  CHECK(xla::counter_value("UncachedCompile") == graphs);
}

TEST_CASE("clipping a module of double parameters") {
  const xla::eager_mode_guard eager;
  struct {
    xla::Parameter<double, 1> p{{3}};
    XLA_MODULE(p)
  } model;
  sum(model.p * 4).backward();
  CHECK(optim::clip_grad_norm_(model, 2).item() == Approx(4 * std::sqrt(3.)));
  CHECK(sum(model.p.grad() * model.p.grad()).item() == Approx(4));
}
