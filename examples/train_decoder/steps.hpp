// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xla/nn/generate.hpp>
#include <xla/parallel.hpp>
#include <xla/xla.hpp>

namespace nn = xla::nn;

// What runs on the model, each a function of its own that runs in any mode, and on any number of
// replicas: gradients and losses are the means of theirs.

/// The mean loss of telling each next token.
constexpr auto loss_fn = [](auto& model, auto& tokens, auto& targets) {
  const auto logits = model(tokens);
  return xla::cross_entropy(xla::reshape(logits, {-1, logits.size(2)}), xla::flatten<0>(targets));
};

constexpr auto train_fn = [](auto& model, auto& tokens, auto& targets, auto& optimizer,
                             auto& max_norm) {
  optimizer.zero_grad();
  const auto loss = loss_fn(model, tokens, targets);
  loss.backward();
  xla::reduce_gradients(optimizer);
  xla::optim::clip_grad_norm_(model, max_norm);
  optimizer.step();
  return xla::all_reduce(loss, xla::reduce_type::mean);
};

/// The same in parts: adds a share of the gradients, and then updates.
constexpr auto accumulate_fn = [](auto& model, auto& tokens, auto& targets, auto& share) {
  const auto loss = loss_fn(model, tokens, targets) * share;
  loss.backward();
  return loss;
};
constexpr auto update_fn = [](auto& model, auto& loss, auto& optimizer, auto& max_norm) {
  xla::reduce_gradients(optimizer);
  xla::optim::clip_grad_norm_(model, max_norm);
  optimizer.step();
  optimizer.zero_grad();
  return xla::all_reduce(loss, xla::reduce_type::mean);
};

constexpr auto evaluate_fn = [](auto& model, auto& tokens, auto& targets) {
  model.eval();
  const auto loss = loss_fn(model, tokens, targets);
  model.train();
  return loss;
};

/// The token after the last of these, which come next in a cache.
constexpr auto write_fn = [](auto& model, auto& cache, auto& tokens, auto& temperature,
                             auto& top_k) {
  model.eval();
  const auto next = nn::sample(model.next_logits(tokens, cache), temperature, top_k);
  model.train();
  return next;
};

template <class Train, class Accumulate, class Update, class Evaluate, class Write>
struct Functions {
  Train train;
  Accumulate accumulate;
  Update update;
  Evaluate evaluate;
  Write write;
};

inline auto compiled_functions() {
  return Functions{xla::compile(train_fn, {.name = "train"}),
                   xla::compile(accumulate_fn, {.name = "accumulate"}),
                   xla::compile(update_fn, {.name = "update"}),
                   xla::compile(evaluate_fn, {.name = "evaluate"}),
                   xla::compile(write_fn, {.name = "write"})};
}
inline auto plain_functions() {
  return Functions{train_fn, accumulate_fn, update_fn, evaluate_fn, write_fn};
}
