// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "decoder_task.hpp"
#include "heap.hpp"
#include "measure.hpp"
#include "serve.hpp"

// decoder <compiled|traced|eager> <threads>: answers `run N` with the time of N steps and the loss.
// decoder <mode> <threads> memory: prints what a training step needs beside the optimizer's state.
namespace bench {

/// A model and its optimizer, and the first weights to return to.
template <xla::nn::DecoderConfig C, template <class...> class Optimizer>
class decoder_training {
 public:
  decoder_training(std::int64_t batch, std::int64_t sequence)
      : ring_(make_text(16, batch, sequence, C.vocabulary)) {}

  /// From the first weights: `warm` steps, then n timed ones.
  template <class Step>
  turn run(Step&& step, int n) {
    constexpr int warm = 2;  // as in peers/decoder_task.py
    xla::nn::Decoder<C> model;
    set_decoder_weights(model);
    Optimizer<xla::nn::Decoder<C>> optimizer{model, {.lr = 1e-4}};
    train(step, model, optimizer, 0, warm);
    const double start = now();
    const float last = train(step, model, optimizer, warm, warm + n);
    return {(now() - start) * 1e9, last};
  }

  /// Prints the bytes of parameters and optimizer, and the most that steps take beside them; to be
  /// called before anything is compiled or planned.
  template <class Step>
  int memory(std::string_view mode, Step&& step) {
    const heap counted;
    const long long before = counted.live();
    xla::nn::Decoder<C> model;
    set_decoder_weights(model);
    Optimizer<xla::nn::Decoder<C>> optimizer{model, {.lr = 1e-4}};
    const long long state = counted.live();
    counted.forget();
    train(step, model, optimizer, 0, 3);
    std::cout << R"({"name": "xla )" << mode << R"(", "state": )" << state - before
              << R"(, "step": )" << counted.most() - state << "}" << std::endl;
    return 0;
  }

 private:
  template <class Step, class Model, class Adam>
  float train(Step& step, Model& model, Adam& optimizer, int first, int last) {
    xla::nn::CrossEntropyLoss loss_fn;
    xla::Tensor<float, 0> loss;
    for (int i = first; i < last; ++i) {
      const auto& [tokens, next] = ring_[static_cast<std::size_t>(i) % ring_.size()];
      loss = step(model, tokens, next, loss_fn, optimizer);
    }
    return loss.item();
  }

  std::vector<text_batch> ring_;
};

template <xla::nn::DecoderConfig C, template <class...> class Optimizer>
int serve_decoder(int argc, char** argv, std::int64_t batch, std::int64_t sequence) {
  const std::string_view mode = argc > 1 ? argv[1] : "compiled";
  xla::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  xla::eager_mode(mode != "traced");
  decoder_training<C, Optimizer> training{batch, sequence};
  const bool weigh = argc > 3 && std::string_view(argv[3]) == "memory";
  const auto with = [&](auto&& step) {
    if (weigh) return training.memory(mode, step);
    training.run(step, 1);
    return serve(mode, [&](int n) { return training.run(step, n); });
  };
  if (mode == "compiled") return with(xla::compile(decoder_step, {.name = "decoder_step"}));
  if (mode == "eager") return with(decoder_step);
  if (mode == "traced")
    return with([](auto& model, auto& tokens, auto& next, auto& loss_fn, auto& optimizer) {
      auto loss = decoder_step(model, tokens, next, loss_fn, optimizer);
      xla::sync();
      return loss;
    });
  std::cerr << argv[0] << ": the mode is compiled, traced or eager\n";
  return 2;
}

}  // namespace bench
