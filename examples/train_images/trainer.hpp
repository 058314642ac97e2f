// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <xla/ext/checkpoint.hpp>
#include <xla/ext/pretrained.hpp>
#include <xla/ext/safetensors.hpp>
#include <xla/io/svg.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "../image_models.hpp"
#include "options.hpp"
#include "pictures.hpp"
#include "steps.hpp"

/// Trains a model on a folder of pictures, in the mode of its functions.
template <class Entry, class Functions>
class Trainer {
  using Model = typename Entry::Model;

 public:
  Trainer(const Options& options, Functions& functions)
      : o_(options),
        fn_(functions),
        folder_(open_folder(o_.pictures, o_, true)),
        model_(make_model()),
        optimizer_{model_, {.weight_decay = o_.weight_decay}} {
    if (!o_.resume.empty()) resume();
  }

  void run() {
    auto [training, held_out] = divide(folder_, o_);
    data::DataLoader loader{training,
                            {.batch_size = o_.batch,
                             .shuffle = true,
                             .seed = o_.seed,
                             .drop_last = true,
                             .prefetch = o_.ahead}};
    if (loader.size() == 0)
      throw xla::runtime_error(std::to_string(training.size()) +
                               " pictures to learn from are fewer than a batch of " +
                               std::to_string(o_.batch));
    if (held_out.size() == 0)
      throw xla::runtime_error("none of the " + std::to_string(folder_.size()) +
                               " pictures is held out: take a larger --share, or another folder "
                               "by --held-out");
    training_pictures_ = training.size();
    if (!o_.resume.empty()) check_resumed("training pictures", training_pictures_);
    std::printf("%s: %zu classes, %lld pictures to learn from, %lld held out\n",
                o_.pictures.c_str(), folder_.classes().size(),
                static_cast<long long>(training.size()), static_cast<long long>(held_out.size()));
    if (first_step_ >= o_.epochs * loader.size()) {
      std::printf("all %lld steps are done: more --epochs go on\n",
                  static_cast<long long>(first_step_));
      return;
    }
    const auto report = train(loader, held_out);
    summarize(report);
    if (report.end != xla::training::ending::diverged) save(report.step);
    save_curves(report);
  }

 private:
  Model make_model() {
    Model model{std::ssize(folder_.classes())};
    if (!o_.weights.empty()) load_weights(model);
    if (o_.freeze) {
      xla::for_each_parameter(model, [](auto& p) { p.requires_grad_(false); });
      xla::for_each_parameter(models::head(model), [](auto& p) { p.requires_grad_(true); });
    }
    xla::for_each_parameter(model, [&](auto& p) {
      if (p.requires_grad()) trained_parameters_ += p.numel();
    });
    std::printf("%s: %lld parameters, %lld of them trained, %s mode, %d threads\n",
                o_.model.c_str(), static_cast<long long>(xla::parameter_count(model)),
                static_cast<long long>(trained_parameters_), o_.mode.c_str(), xla::num_threads());
    return model;
  }

  /// Takes a file's values; a head for another number of classes stays as it begins.
  void load_weights(Model& model) const {
    const auto prefix = models::head_prefix(model);
    const auto report = models::load(model, o_.weights, {.ignore_mismatched_sizes = true});
    model.train();
    for (const auto& name : report.missing_keys) {
      if (!name.starts_with(prefix))
        throw xla::runtime_error("'" + o_.weights + "' has " + name + " of another size");
      std::printf("%s: %s is of another number of classes, and is newly initialised\n",
                  o_.weights.c_str(), name.c_str());
    }
  }

  xla::training::report train(auto& loader, const Pictures& held_out) {
    const auto steps = o_.epochs * loader.size();
    loader.set_epoch(static_cast<std::uint64_t>(first_step_ / loader.size()),
                     first_step_ % loader.size());
    data::DataLoader asked{
        held_out, {.batch_size = o_.batch, .prefetch = o_.ahead}, data::pad_last};
    const auto step = [this](auto&, auto& images, auto& classes) {
      return fn_.train(model_, images, classes, optimizer_);
    };
    xla::training::options how;
    how.steps = steps;
    how.first_step = first_step_;
    how.log_every = o_.log_every;
    how.line.unit = "pictures";
    how.validate = [&] { return accuracy(asked); };
    how.validate_every = loader.size();
    how.validation_name = "accuracy";
    how.higher_is_better = true;
    how.schedule = [&](const auto& at) { optimizer_.options.lr = rate_at(at.step, steps); };
    how.log_line = [&](const auto& at) { return line(at, loader.size()); };
    how.checkpoint = [this](const auto& at) { save(at.step); };
    how.checkpoint_every = o_.save_every > 0 ? o_.save_every : loader.size();
    return xla::training::fit(model_, step, loader, how);
  }

  /// The rate at a step: up along a line in the first part, then down along half a cosine.
  double rate_at(std::int64_t step, std::int64_t steps) const {
    const double all = static_cast<double>(steps), up = std::max(1.0, std::round(o_.warmup * all));
    const double now = static_cast<double>(step);
    if (now < up) return o_.lr * (now + 1) / up;
    const double done = (now - up) / std::max(1.0, all - up);
    const double height = (1 + std::cos(std::numbers::pi * std::min(done, 1.0))) / 2;
    return o_.lr * (o_.min_lr + (1 - o_.min_lr) * height);
  }

  /// The share of held-out pictures that are known, of those that can be read.
  double accuracy(auto& loader) {
    loader.set_epoch(0);
    std::int64_t at = 0, asked = 0, known = 0;
    const auto& pictures = loader.dataset();
    for (auto& [images, classes, mask] : loader) {
      const auto is = classes.to_vector(), seems = fn_.classify(model_, images).to_vector();
      for (std::size_t i = 0; i < is.size() && at < pictures.size(); ++i, ++at) {
        const auto sample = pictures.samples()[static_cast<std::size_t>(at)];
        if (pictures.dataset().is_unreadable(sample)) continue;
        ++asked;
        known += is[i] == seems[i] ? 1 : 0;
      }
    }
    const double share = static_cast<double>(known) / static_cast<double>(asked);
    if (share > best_ && !o_.output.empty()) write_weights();
    best_ = std::max(best_, share);
    return share;
  }

  std::string line(const xla::training::moment& at, std::int64_t batches) const {
    char text[160];
    const double epoch = static_cast<double>(at.step) / static_cast<double>(batches);
    const int size = std::snprintf(text, sizeof text, "epoch: %.2f, step: %lld, loss: %.6f", epoch,
                                   static_cast<long long>(at.step), at.loss);
    const auto rest = static_cast<std::size_t>(size);
    if (std::isfinite(at.validation))
      std::snprintf(text + rest, sizeof text - rest, ", accuracy: %.4f", at.validation);
    return text;
  }

  void summarize(const xla::training::report& report) const {
    const auto steps = report.step - first_step_;
    std::printf(
        "\n%s%lld steps in %.1f s, %.1f pictures/s with all around; loss %.4f, accuracy on "
        "held-out pictures %.2f %% (best %.2f %%)\n",
        report.end == xla::training::ending::interrupted ? "interrupted: " : "",
        static_cast<long long>(steps), report.seconds,
        static_cast<double>(steps * o_.batch) / report.seconds, report.loss,
        100 * report.validation, 100 * best_);
  }

  /// The weights alone, by the model's names (torchvision's; for vision transformers timm's), and
  /// the classes' names with them, one a line.
  void write_weights() {
    xla::ext::write_safetensors(o_.output, {xla::state_dict(model_), {}});
    std::string names;
    for (const auto& name : folder_.classes()) names += name + '\n';
    write_text(o_.output + ".classes.txt", names);
  }

  void save(std::int64_t step) {
    if (o_.checkpoint.empty()) return;
    const auto number = [](auto value) { return static_cast<double>(value); };
    xla::ext::save_checkpoint(o_.checkpoint,
                              {{"step", number(step)},
                               {"seed", number(o_.seed)},
                               {"batch", number(o_.batch)},
                               {"pictures", number(folder_.size())},
                               {"training pictures", number(training_pictures_)},
                               {"trained parameters", number(trained_parameters_)},
                               {"best", best_}},
                              model_, optimizer_);
  }
  void resume() {
    resumed_ = xla::ext::load_checkpoint(o_.resume, model_, optimizer_);
    check_resumed("batch", o_.batch);
    check_resumed("pictures", folder_.size());
    check_resumed("trained parameters", trained_parameters_,
                  o_.freeze ? ": go on without --freeze" : ": go on with --freeze");
    first_step_ = std::llround(resumed_["step"]);
    o_.seed = static_cast<std::uint64_t>(resumed_["seed"]);
    best_ = resumed_["best"];
    std::printf("goes on after step %lld of %s, with its seed %llu\n",
                static_cast<long long>(first_step_), o_.resume.c_str(),
                static_cast<unsigned long long>(o_.seed));
  }
  void check_resumed(const char* name, std::int64_t here, const char* what_to_do = "") {
    const double was = resumed_[name];
    if (was != static_cast<double>(here))
      throw xla::runtime_error("'" + o_.resume + "' was made with another number: " + name +
                               " was " + std::to_string(std::llround(was)) + " and is " +
                               std::to_string(here) + what_to_do);
  }

  static void write_text(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    if (!file.flush()) throw xla::io_error("cannot write '" + path + "'");
  }
  void save_curves(const xla::training::report& report) const {
    if (o_.curves.empty()) return;
    const auto draw = [&](const std::string& what, const xla::training::curve& curve) {
      const auto path = o_.curves + "_" + what + ".svg";
      write_text(path, xla::io::to_svg({.title = o_.model + ": " + what,
                                        .x_label = "step",
                                        .y_label = what,
                                        .series = {{.x = curve.step, .y = curve.value}}}));
      std::printf("%s\n", path.c_str());
    };
    draw("loss", report.losses);
    draw("accuracy", report.validations);
  }

  Options o_;
  Functions& fn_;
  Folder folder_;
  std::int64_t trained_parameters_ = 0;
  Model model_;
  xla::optim::AdamW<Model> optimizer_;
  xla::ext::CheckpointNumbers resumed_ = {};
  std::int64_t first_step_ = 0, training_pictures_ = 0;
  double best_ = -1;
};
