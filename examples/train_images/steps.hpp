// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xla/xla.hpp>

// What runs on the model, each a function of its own that runs in any mode.

constexpr auto train_fn = [](auto& model, auto& images, auto& classes, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = xla::cross_entropy(model(images), classes);
  loss.backward();
  optimizer.step();
  return loss;
};

/// The class that each image seems to have.
constexpr auto classify_fn = [](auto& model, auto& images) {
  model.eval();
  const auto seems = xla::argmax(model(images), 1);
  model.train();
  return seems;
};

template <class Train, class Classify>
struct Functions {
  Train train;
  Classify classify;
};
template <class Train, class Classify>
Functions(Train, Classify) -> Functions<Train, Classify>;

inline auto compiled_functions() {
  return Functions{xla::compile(train_fn, {.name = "train"}),
                   xla::compile(classify_fn, {.name = "classify"})};
}
inline auto plain_functions() { return Functions{train_fn, classify_fn}; }
