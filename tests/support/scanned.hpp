// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "xla/loop/scan_layers.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/sgd.hpp"

namespace test {

/// Losses of some steps of a new model, what these leave, and what the model says then.
template <class Model>
snapshot train_and_answer(bool eager, auto&& step, const auto& answer, const auto&... inputs) {
  const xla::eager_mode_guard mode(eager);
  xla::manual_seed(3);
  Model model;
  xla::optim::SGD optimizer{model, {.lr = 0.05}};
  snapshot s;
  for (int i = 0; i < 3; ++i) s.add(step(model, inputs..., optimizer));
  s.append(state_of(model, optimizer));
  model.eval();
  answer(s, model, inputs...);
  return s;
}

/// Loop, a model whose layers are a loop, has the states of Steps, whose layers are called one by
/// one, and its bits in eager and in traced mode. Returns these.
template <class Loop, class Steps>
snapshot check_scanned(const auto& step, const auto& answer, const auto&... inputs) {
  Loop loop;
  const Steps steps;
  CHECK(xla::load_state_dict(loop, xla::state_dict(steps)).empty());
  const auto expected = train_and_answer<Steps>(true, step, answer, inputs...);
  CHECK(train_and_answer<Loop>(true, step, answer, inputs...).difference(expected) == "");
  CHECK(train_and_answer<Loop>(false, step, answer, inputs...).difference(expected) == "");
  return expected;
}

}  // namespace test
