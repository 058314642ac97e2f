// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/weights.hpp"
#include "xla/run/state/metrics.hpp"

namespace test {

/// The model of tests/reference/optim.py, what ten steps start with, and their comparison.
struct weights_of_rules {
  static Weights make() { return make_weights(); }
  static xla::Tensor<float, 2> data() { return numbers<float>({5, 7}, 3); }
  static constexpr auto loss = [](auto& model, auto& x) { return weights_loss(model, x); };
  static void check(const Weights& m, const std::vector<double>& want) { check_weights(m, want); }
};

/// Ten steps of an optimizer in every mode against stored numbers: one compiled step and one traced
/// graph serve all the options in turn.
template <template <class...> class Optimizer, class Options, class Of = weights_of_rules,
          class... Rule, class... Tag>
void check_rule(std::initializer_list<std::pair<Options, const std::vector<double>*>> cases,
                Tag... tag) {
  const xla::eager_mode_guard guard;
  static constexpr auto step_fn = [](auto& model, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    Of::loss(model, x).backward();
    optimizer.step();
  };
  const auto x = Of::data();
  auto compiled = xla::compile([](auto& m, const auto& v, auto& o) { step_fn(m, v, o); });
  xla::sync();  // what the test before has recorded would be part of the first graph
  const auto graphs = xla::counter_value("UncachedCompile").value_or(0);
  for (const auto& [options, want] : cases) {
    auto train = [&, options = options, want = want](auto run) {
      auto model = Of::make();
      Optimizer<decltype(model), Rule...> optimizer(model, options, tag...);
      for (int i = 0; i < 10; ++i) run(model, x, optimizer);
      Of::check(model, *want);
      snapshot s;
      s.add(model);
      optimizer.visit_state([&](auto& state, auto) { s.add(state); });
      return s;
    };
    xla::eager_mode(true);
    const auto eager = train(step_fn);
    CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
    xla::eager_mode(false);
    CHECK(train(step_fn).difference(eager) == "");
  }
  CHECK(xla::counter_value("UncachedCompile").value_or(0) == graphs + 2);
}

}  // namespace test
