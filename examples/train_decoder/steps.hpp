// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xla/nn/generate.hpp>
#include <xla/parallel.hpp>
#include <xla/xla.hpp>

namespace nn = xla::nn;

// What runs on the model, each a function of its own that runs in any mode, and on any number of
// replicas: gradients and losses are the means of theirs.

/// The mean loss of predicting each next token.
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
template <class... F>
Functions(F...) -> Functions<F...>;  // clang 16 derives none from the members

/// With Mixed in autocast: products of bfloat16.
template <bool Mixed>
auto compiled_functions() {
  const auto compile = [](auto f, const char* name) {
    if constexpr (Mixed) return xla::compile(xla::autocast(f), {.name = name});
    else return xla::compile(f, {.name = name});
  };
  return Functions{compile(train_fn, "train"), compile(accumulate_fn, "accumulate"),
                   compile(update_fn, "update"), compile(evaluate_fn, "evaluate"),
                   compile(write_fn, "write")};
}
inline auto plain_functions(bool mixed) {
  const auto within = [mixed](auto f) {
    return [=](auto& model, auto&... x) {
      return xla::autocast(model, [&] { return f(model, x...); }, {.enabled = mixed});
    };
  };
  return Functions{within(train_fn), within(accumulate_fn), within(update_fn), within(evaluate_fn),
                   within(write_fn)};
}
