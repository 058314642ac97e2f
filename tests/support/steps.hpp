// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/cross_entropy.hpp"

namespace test {

/// The contract's step function, word for word.
inline constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn,
                                   auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(data);
  auto loss = loss_fn(logits, target);
  loss.backward();
  optimizer.step();
  return loss;
};

/// The same for a model of classes, whose loss is not an argument.
inline constexpr auto class_step = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(data), target);
  loss.backward();
  optimizer.step();
  return loss;
};

}  // namespace test
