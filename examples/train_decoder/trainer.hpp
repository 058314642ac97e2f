// SPDX-License-Identifier: Apache-2.0
#pragma once

// The training of a decoder: batches, learning rate, validation, checkpoints, the final sample.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <xla/ext/checkpoint.hpp>
#include <xla/io/svg.hpp>
#include <xla/io/terminal.hpp>
#include <xla/parallel.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "options.hpp"
#include "steps.hpp"
#include "text.hpp"

namespace nn = xla::nn;

/// The rate at a step: up along a line in `warmup` steps, then down along half a cosine.
inline double rate_at(const Options& o, std::int64_t step) {
  if (step < o.warmup) return o.lr * static_cast<double>(step + 1) / static_cast<double>(o.warmup);
  const auto done = static_cast<double>(step - o.warmup) /
                    static_cast<double>(std::max<std::int64_t>(1, o.steps - o.warmup));
  const double height = (1 + std::cos(std::numbers::pi * std::min(done, 1.0))) / 2;
  return o.lr * (o.min_lr + (1 - o.min_lr) * height);
}

/// Trains a decoder of one configuration, in the mode of its functions.
template <nn::DecoderConfig C, class Functions>
class Trainer {
 public:
  Trainer(const Options& options, Functions& functions, const std::string& text,
          const xla::io::interrupt_guard& interrupts)
      : o_(options),
        fn_(functions),
        interrupts_(interrupts),
        tokens_(to_tokens(text)),
        optimizer_{model_, {.beta2 = o_.beta2, .weight_decay = o_.weight_decay}},
        max_norm_(o_.clip > 0 ? o_.clip : INFINITY),
        share_(1.0 / static_cast<double>(o_.accumulate)),
        temperature_(o_.temperature),
        top_k_(o_.top_k > 0 ? std::min(o_.top_k, std::int64_t{C.vocabulary}) : C.vocabulary) {
    const std::span<const std::int64_t> all{tokens_};
    const auto cut = all.size() * 9 / 10;
    training_ = all.first(cut);
    held_out_ = all.subspan(cut);
    if (std::ssize(held_out_) <= o_.sequence)
      throw xla::runtime_error(
          "a text of " + std::to_string(all.size()) + " bytes is too short for sequences of " +
          std::to_string(o_.sequence) + ": a tenth of it has to be longer than one");
    xla::broadcast_master_param(model_);
  }

  void run() {
    if (master_) introduce();
    if (!o_.resume.empty()) resume();
    const auto report = train();
    if (!o_.checkpoint.empty() && report.end != xla::training::ending::diverged) save(report.step);
    if (!master_) return;
    summarize(report);
    if constexpr (C.causal)
      if (o_.length > 0) std::printf("--- sample\n%s\n---\n\n", write().c_str());
    std::fputs(xla::metrics_report().c_str(), stdout);
    if (!o_.curve.empty()) save_curve(report);
  }

 private:
  void introduce() {
    std::printf("%s: %lld parameters, %zu bytes of text, %s mode, %s", o_.config.c_str(),
                static_cast<long long>(xla::parameter_count(model_)), tokens_.size(),
                o_.mode.c_str(), o_.autocast ? "autocast, " : "");
    if (xla::world_size() > 1) std::printf("%lld replicas of ", replicas());
    std::printf("%d threads\n", xla::num_threads());
  }

  xla::training::report train() {
    RandomBatches batches{training_, o_.batch * o_.accumulate, o_.sequence, o_.seed, read_before_};
    const auto held_out = spaced_batches(held_out_, o_.eval_batches, o_.batch, o_.sequence);
    const auto step = [this](auto&, auto& tokens, auto& targets) {
      return this->step(tokens, targets);
    };
    xla::training::options how;
    how.steps = o_.steps;
    how.first_step = first_step_;
    how.log_every = o_.log_every;
    how.show = master_;
    how.line.unit = "tokens";
    how.items_per_sample = o_.sequence * xla::world_size();
    how.interruptible = xla::world_size() == 1;
    if (!how.interruptible) how.after_step = [this](const auto&) { return !interrupted(); };
    how.validate = [&] { return validation(held_out); };
    how.validate_every = o_.eval_every;
    how.schedule = [this](const auto& at) { optimizer_.options.lr = rate_at(o_, at.step); };
    if (master_) how.log_line = [this](const auto& at) { return line(at); };
    if (!o_.checkpoint.empty()) how.checkpoint = [this](const auto& at) { save(at.step); };
    how.checkpoint_every = o_.save_every;
    return xla::training::fit(model_, step, batches, how);
  }

  static long long replicas() { return static_cast<long long>(xla::world_size()); }
  /// The sequences that all replicas together read in a step, and have read before one.
  std::int64_t step_sequences() const { return o_.batch * o_.accumulate * xla::world_size(); }
  std::int64_t read_at(std::int64_t step) const {
    return read_before_ + (step - first_step_) * step_sequences();
  }

  /// One update of the weights, from all sequences at once or in `accumulate` parts.
  xla::Tensor<float, 0> step(const Batch::first_type& tokens, const Batch::second_type& targets) {
    if (o_.accumulate == 1) return fn_.train(model_, tokens, targets, optimizer_, max_norm_);
    xla::Tensor<float, 0> loss = 0.f;
    for (std::int64_t i = 0; i < o_.accumulate; ++i) {
      const auto part = [&](const auto& x) { return narrow(x, 0, i * o_.batch, o_.batch); };
      const auto x = part(tokens), y = part(targets);
      loss += fn_.accumulate(model_, x, y, share_);
    }
    return fn_.update(model_, loss, optimizer_, max_norm_);
  }

  /// Whether Ctrl-C was pressed, wherever that was noticed: all end after the same step.
  bool interrupted() {
    const auto here = xla::tensor<float>(interrupts_.interrupted() ? 1 : 0);
    return interrupted_ = xla::all_reduce(here, xla::reduce_type::max).item() > 0;
  }

  /// The mean over the batches. Of n replicas each reads every n-th.
  double validation(const std::vector<Batch>& batches) {
    const auto world = static_cast<std::size_t>(xla::world_size());
    std::vector<double> losses;
    for (auto i = static_cast<std::size_t>(xla::global_ordinal()); i < batches.size(); i += world) {
      const auto& [tokens, targets] = batches[i];
      losses.push_back(static_cast<double>(fn_.evaluate(model_, tokens, targets).item()));
    }
    return xla::mesh_reduce("validation", losses, [&](const auto& of) {
      double sum = 0;
      for (std::size_t i = 0; i < batches.size(); ++i) sum += of[i % world][i / world];
      return sum / static_cast<double>(batches.size());
    });
  }

  std::string line(const xla::training::moment& at) const {
    const auto seen = static_cast<double>(read_at(at.step) * o_.sequence);
    char text[120];
    std::snprintf(text, sizeof text, "epoch: %.2f, step: %lld, loss: %.6f, rate: %.0f tokens/s",
                  seen / static_cast<double>(training_.size()), static_cast<long long>(at.step),
                  at.loss, at.rate);
    return text;
  }

  void summarize(const xla::training::report& report) const {
    const auto steps = report.step - first_step_;
    const auto tokens = static_cast<double>(steps * step_sequences() * o_.sequence);
    std::printf(
        "\n%s%lld steps in %.1f s, %.0f tokens/s; loss %.4f, validation %.4f (best %.4f) nats per "
        "byte\n\n",
        report.end == xla::training::ending::interrupted || interrupted_ ? "interrupted: " : "",
        static_cast<long long>(steps), report.seconds, tokens / report.seconds, report.loss,
        report.validation, report.best);
  }

  /// The prompt and what the model writes after it, token by token. When the cache is full, its
  /// later half is read again.
  std::string write() {
    constexpr int places = C.max_positions > 0 ? C.max_positions : 256;
    nn::KeyValueCache<C, places> cache;
    std::string text = o_.prompt.empty() ? "\n" : o_.prompt;
    const auto last = [&](std::size_t n) {
      return to_tokens(std::string_view{text}.substr(text.size() - std::min(n, text.size())));
    };
    auto unread = last(places);
    const auto end = text.size() + static_cast<std::size_t>(o_.length);
    for (std::size_t read = 0; text.size() < end; unread = last(1)) {
      if (read + unread.size() > places) {
        cache.reset();
        read = 0;
        unread = last(places / 2);
      }
      const auto tokens = xla::from_blob(unread.data(), {1, unread.size()});
      const auto next = fn_.write(model_, cache, tokens, temperature_, top_k_);
      read += unread.size();
      text += static_cast<char>(next.item());
    }
    return text;
  }

  void save(std::int64_t step) {
    xla::save([&] {
      xla::ext::save_checkpoint(o_.checkpoint,
                                {{"step", static_cast<double>(step)},
                                 {"sequences", static_cast<double>(read_at(step))},
                                 {"seed", static_cast<double>(o_.seed)}},
                                model_, optimizer_);
    });
  }
  /// Continues with the seed of the checkpoint, after the sequences that were read, in a world of
  /// any size.
  void resume() {
    const auto numbers = xla::ext::load_checkpoint(o_.resume, model_, optimizer_);
    const auto number = [&](const char* name) {
      const auto at = numbers.find(name);
      if (at == numbers.end())
        throw xla::io_error("'" + o_.resume + "' is a checkpoint of another program: it has no " +
                            name);
      return static_cast<std::int64_t>(at->second);
    };
    first_step_ = number("step");
    read_before_ = number("sequences");
    o_.seed = static_cast<std::uint64_t>(number("seed"));
    if (master_)
      std::printf("goes on after step %lld of %s: %lld sequences read, seed %llu\n",
                  static_cast<long long>(first_step_), o_.resume.c_str(),
                  static_cast<long long>(read_before_), static_cast<unsigned long long>(o_.seed));
  }

  void save_curve(const xla::training::report& report) const {
    const auto series = [](const char* label, const xla::training::curve& curve) {
      return xla::io::chart_series{.label = label, .x = curve.step, .y = curve.value};
    };
    std::ofstream file(o_.curve);
    file << xla::io::to_svg(
        {.title = "Decoder '" + o_.config + "': loss",
         .x_label = "step",
         .y_label = "loss (nats per token)",
         .series = {series("training", report.losses), series("validation", report.validations)}});
    if (!file.flush()) throw xla::io_error("cannot write '" + o_.curve + "'");
    std::printf("\nloss curve: %s\n", o_.curve.c_str());
  }

  Options o_;
  Functions& fn_;
  const xla::io::interrupt_guard& interrupts_;
  std::vector<std::int64_t> tokens_;
  std::span<const std::int64_t> training_, held_out_;
  nn::Decoder<C> model_;
  xla::optim::AdamW<nn::Decoder<C>> optimizer_;
  xla::Scalar max_norm_, share_, temperature_, top_k_;
  std::int64_t first_step_ = 0, read_before_ = 0;  ///< steps, and sequences of all replicas
  const bool master_ = xla::is_master_ordinal();
  bool interrupted_ = false;
};
