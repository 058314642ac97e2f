// SPDX-License-Identifier: Apache-2.0
// parity [<text or folder>…]: a small character model learns a text in float32 and in autocast,
// with the same weights and batches, from three seeds; prints the losses on what is held out. The
// text is this library's README and headers unless told.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <xla/nn/decoder.hpp>
#include <xla/xla.hpp>

#include "../examples/train_decoder/text.hpp"
#include "measure.hpp"

#ifndef BENCH_TEXT_DIR  // nobody has said where
#define BENCH_TEXT_DIR "."
#endif

namespace {

// As in nanoGPT's example, with half of its layers: what counts is how far two of them are apart.
constexpr xla::nn::DecoderConfig config = [] {
  auto c = xla::nn::char_decoder;
  c.vocabulary = 256;
  c.layers = 2;
  return c;
}();
constexpr std::int64_t steps = 600, batch = 12, length = 64, warmup = 50, most_batches = 200;
constexpr std::uint64_t seeds = 3;

using Model = xla::nn::Decoder<config>;
using Optimizer = xla::optim::AdamW<Model>;

constexpr auto loss_of = [](auto& model, auto& tokens, auto& targets) {
  const auto logits = model(tokens);
  return xla::cross_entropy(xla::reshape(logits, {-1, logits.size(2)}), xla::flatten<0>(targets));
};
constexpr auto train_step = [](auto& model, auto& tokens, auto& targets, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = loss_of(model, tokens, targets);
  loss.backward();
  xla::optim::clip_grad_norm_(model, 1.0);
  optimizer.step();
  return loss;
};

/// Up along a line, then down to a twentieth: at the full rate to the end, and without clipping,
/// what rounding changes grows with each step that overshoots.
double rate_at(std::int64_t step) {
  const double rise = double(step + 1) / warmup, fall = 1 - double(step) / steps;
  return 1e-3 * std::min(rise, 1.0) * std::max(fall, 0.05);
}

struct corpus {
  std::vector<std::int64_t> tokens;
  std::span<const std::int64_t> learnt() const { return all().first(tokens.size() / 10 * 9); }
  std::span<const std::int64_t> held_out() const { return all().subspan(tokens.size() / 10 * 9); }
  std::span<const std::int64_t> all() const { return tokens; }
};

/// The mean losses of the last 50 steps and of what is held out.
struct losses {
  double trained = 0, held_out = 0;
};

template <class Train, class Evaluate>
losses train(const corpus& text, std::uint64_t seed, Train&& step, Evaluate&& evaluate) {
  xla::manual_seed(seed);
  Model model;
  Optimizer optimizer{model, {}};
  losses out;
  std::int64_t i = 0;
  for (const auto& [tokens, targets] : RandomBatches{text.learnt(), batch, length, seed, 0}) {
    optimizer.options.lr = rate_at(i);
    const double loss = step(model, tokens, targets, optimizer).item();
    if (i >= steps - 50) out.trained += loss / 50;
    if (++i == steps) break;
  }
  model.eval();
  const auto batches = spaced_batches(text.held_out(), most_batches, batch, length);
  xla::no_grad([&] {
    for (const auto& [tokens, targets] : batches)
      out.held_out += double(evaluate(model, tokens, targets).item());
  });
  out.held_out /= static_cast<double>(batches.size());
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  xla::eager_mode(true);
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (paths.empty()) paths = {BENCH_TEXT_DIR "/README.md", BENCH_TEXT_DIR "/include"};
  const corpus text{to_tokens(read_texts(paths))};
  if (std::ssize(text.held_out()) <= batch * length) {
    std::cerr << argv[0] << ": a text of " << text.tokens.size()
              << " bytes is too short: a tenth of it has to be longer than a batch\n";
    return 2;
  }
  auto step = xla::compile(train_step, {.name = "step"});
  auto rounded_step = xla::compile(xla::autocast(train_step), {.name = "step_autocast"});
  auto evaluate = xla::compile(loss_of, {.name = "evaluate"});
  auto rounded_evaluate = xla::compile(xla::autocast(loss_of), {.name = "evaluate_autocast"});
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const losses plain = train(text, seed, step, evaluate);
    const losses rounded = train(text, seed, rounded_step, rounded_evaluate);
    bench::record{"parity"}
        .add("seed", static_cast<double>(seed))
        .add("float32_trained", plain.trained)
        .add("autocast_trained", rounded.trained)
        .add("float32", plain.held_out)
        .add("autocast", rounded.held_out)
        .add("difference", rounded.held_out - plain.held_out)
        .print();
  }
}
