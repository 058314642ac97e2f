// SPDX-License-Identifier: Apache-2.0
#pragma once

// The training of a language model: steps over pieces of the text, validation, the learning rate.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <xla/ext/pretrained.hpp>
#include <xla/ext/safetensors.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "models.hpp"
#include "options.hpp"
#include "text.hpp"

constexpr std::tuple<> detached(const std::tuple<>& none) { return none; }
constexpr Features detached(const Features& h) { return h.detach(); }
constexpr auto detached(const std::pair<Features, Features>& state) {
  return std::pair(state.first.detach(), state.second.detach());
}

/// The mean loss of the predictions, and the state after the piece.
inline constexpr auto loss_fn = [](auto& model, auto& data, auto& target, auto& hidden) {
  const auto [logits, last] = model(data, hidden);
  return std::pair(xla::cross_entropy(xla::flatten<0, 1>(logits), xla::flatten(target)), last);
};
inline constexpr auto evaluate_fn = [](auto& model, auto& data, auto& target, auto& hidden) {
  model.eval();
  return loss_fn(model, data, target, hidden);
};
/// One step. The state is detached: gradients end where the piece begins.
inline constexpr auto train_fn = [](auto& model, auto& data, auto& target, auto& hidden, auto& clip,
                                    auto& optimizer) {
  optimizer.zero_grad();
  auto [loss, last] = loss_fn(model, data, target, hidden);
  loss.backward();
  xla::optim::clip_grad_norm_(model, clip);
  optimizer.step();
  return std::pair(loss, detached(last));
};

/// Trains a model on a corpus and measures its perplexity on what is held out.
template <class Model>
class Trainer {
 public:
  Trainer(const Options& o, const Corpus& corpus)
      : o_(o),
        model_(corpus.size(), o.dropout),
        optimizer_{model_, {.lr = o.lr}},
        clip_(o.clip),
        train_(batchify(corpus.train, o.batch_size), o.bptt),
        valid_(batchify(corpus.valid, 10), o.bptt),
        test_(batchify(corpus.test, 10), o.bptt) {
    if (!o.weights.empty()) xla::models::load(model_, o.weights);
    model_.train();
    std::printf("%s: %lld parameters; %zu tokens to learn from, %lld different ones\n",
                o.model.c_str(), static_cast<long long>(xla::parameter_count(model_)),
                corpus.train.size(), static_cast<long long>(corpus.size()));
  }

  void run() {
    const auto report = train();
    Model& best = best_ ? *best_ : model_;
    const double loss = evaluate(best, test_);
    std::printf("%lld steps in %.1f s; valid ppl %.2f (best %.2f); test loss %.4f, ppl %.2f\n",
                static_cast<long long>(report.step), report.seconds, report.validation, report.best,
                loss, std::exp(loss));
    if (!o_.save.empty()) xla::ext::write_safetensors(o_.save, {xla::state_dict(best), {}});
  }

 private:
  using State = typename Model::state;

  xla::training::report train() {
    State hidden = Model::first_state(o_.batch_size);
    const auto step = [&](auto& model, auto& data, auto& target) {
      const auto [loss, last] = step_(model, data, target, hidden, clip_, optimizer_);
      hidden = last;
      return loss;
    };
    double best = INFINITY;
    xla::training::options how;
    how.epochs = o_.epochs;
    how.steps = o_.steps;
    how.mode = xla::training::run_mode::eager;  // of what is around the compiled step
    how.log_every = o_.log_interval;
    how.line.unit = "tokens";
    how.items_per_sample = o_.batch_size;
    how.validate = [this] { return std::exp(evaluate(model_, valid_)); };
    how.validation_name = "valid ppl";
    how.log_line = [this](const auto& at) { return line(at); };
    how.checkpoint = [this](const auto&) { best_.emplace(model_); };
    how.after_epoch = [&](const auto& at) {
      hidden = Model::first_state(o_.batch_size);
      // A quarter of the rate from an epoch on that did not help.
      if (at.validation >= best) optimizer_.options.lr = optimizer_.options.lr.value() / 4;
      best = at.best;
    };
    return xla::training::fit(model_, step, train_, how);
  }

  std::string line(const xla::training::moment& at) const {
    char text[160];
    const int size = std::snprintf(text, sizeof text,
                                   "epoch %lld, batch %lld/%lld, lr %.4g, loss %.4f, ppl %.2f",
                                   static_cast<long long>((at.step - 1) / train_.size() + 1),
                                   static_cast<long long>((at.step - 1) % train_.size() + 1),
                                   static_cast<long long>(train_.size()),
                                   optimizer_.options.lr.value(), at.loss, std::exp(at.loss));
    const auto rest = static_cast<std::size_t>(size);
    if (std::isfinite(at.validation))
      std::snprintf(text + rest, sizeof text - rest, ", valid ppl %.2f", at.validation);
    return text;
  }

  /// Nats per token.
  double evaluate(Model& model, const Pieces& pieces) {
    State hidden = Model::first_state(10);
    double sum = 0;
    for (const auto& [data, target] : pieces) {
      const auto [loss, last] = evaluate_(model, data, target, hidden);
      hidden = last;
      sum += static_cast<double>(data.size(0)) * static_cast<double>(loss.item());
    }
    return sum / static_cast<double>(pieces.rows());
  }

  Options o_;
  Model model_;
  std::optional<Model> best_;
  xla::optim::SGD<Model> optimizer_;
  xla::Scalar clip_;
  Pieces train_, valid_, test_;
  decltype(xla::compile(train_fn)) step_ = xla::compile(train_fn, {.name = "language_model_train"});
  decltype(xla::compile(evaluate_fn)) evaluate_ =
      xla::compile(evaluate_fn, {.name = "language_model_evaluate"});
};

/// Whether the weights are tied is part of a model's type.
template <class Model, class TiedModel>
void run_model(const Options& o) {
  const Corpus corpus(o.data, o.bytes);
  xla::manual_seed(o.seed);
  if (!o.tied) return Trainer<Model>(o, corpus).run();
#ifdef XLA_EXAMPLE_TESTED
  throw xla::runtime_error("--tied: a build with tests leaves it out");
#else
  Trainer<TiedModel>(o, corpus).run();
#endif
}
