// SPDX-License-Identifier: Apache-2.0
#pragma once

// The decisions of a training loop, such as when to stop and what to print, independent of models
// and tensors. fit() calls it after every step; it runs nothing itself.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/io/progress.hpp"
#include "xla/io/terminal.hpp"
#include "xla/train/options.hpp"

namespace xla::training::detail {

/// The state of a training loop and its decisions, apart from models, steps and tensors.
class supervisor {
 public:
  /// `batches`: per epoch, 0 if unknown.
  supervisor(const options& how, std::int64_t batches) : how_(how), batches_(batches) {
    epochs_ = how.epochs > 0 || how.steps > 0 || how.seconds > 0 ? how.epochs : 1;
    const auto in_epochs = epochs_ * batches;
    total_ = how.steps > 0 && in_epochs > 0 ? std::min(how.steps, in_epochs)
                                            : std::max(how.steps, in_epochs);
    if (how.log_every < 1) throw runtime_error("fit: log_every has to be at least 1");
    report_.step = how.first_step;
    if (how.steps > 0 && how.first_step >= how.steps) end(ending::completed);
    if (how.interruptible) guard_.emplace();
    if (!how.show) return;
    auto line = how.line;
    line.total = total_;
    line.first = how.first_step;
    line_.emplace(std::move(line));
  }

  bool running() const { return !ended_; }
  const report& now() const { return report_; }

  void begin_epoch() { first_of_epoch_ = report_.step; }
  void begin_step() {
    if (how_.schedule) how_.schedule(report_);
  }
  /// Counts a finished step and its samples.
  void end_step(std::int64_t samples) {
    ++report_.step;
    ++unread_;
    step_items_ = samples * how_.items_per_sample;
    items_ += step_items_;
    measure();
  }
  bool wants_loss() const {
    return report_.step == how_.first_step + 1 || unread_ >= how_.log_every || wants_validation();
  }
  bool wants_validation() const {
    return how_.validate && how_.validate_every > 0 && report_.step % how_.validate_every == 0;
  }

  void take_loss(double loss) {
    unread_ = 0;
    report_.loss = loss;
    measure();
    report_.rate = static_cast<double>(items_ - read_items_) / (report_.seconds - read_seconds_);
    read_items_ = items_;
    read_seconds_ = report_.seconds;
    add(report_.losses, loss);
    show("loss", loss);
    if (how_.log) how_.log(report_);
    if (how_.log_line) print(how_.log_line(report_));
    if (!std::isfinite(loss)) end(ending::diverged);
  }

  void take_validation(double value) {
    report_.validation = value;
    add(report_.validations, value);
    show(how_.validation_name, value);
    const double gain = how_.higher_is_better ? value - report_.best : report_.best - value;
    const bool better = std::isnan(report_.best) ? !std::isnan(value) : gain > how_.min_delta;
    if (better) {
      report_.best = value;
      report_.best_step = report_.step;
      worse_ = 0;
      if (how_.checkpoint_every == 0) save();
    } else if (++worse_ == how_.patience) {
      end(ending::early_stop);
    }
  }

  /// The end of a step, when its loss and validation are known.
  void finish_step() {
    if (line_) {
      if (epochs_ > 1) line_->value("epoch", static_cast<double>(report_.epoch + 1));
      if (total_ == 0 && how_.seconds > 0)
        line_->value("seconds left", std::max(0.0, std::round(how_.seconds - report_.seconds)));
      line_->advance(step_items_);
    }
    if (how_.checkpoint_every > 0 && report_.step % how_.checkpoint_every == 0) save();
    if (how_.after_step && !how_.after_step(report_)) end(ending::stopped);
    if (guard_ && guard_->interrupted()) end(ending::interrupted);
    if ((how_.steps > 0 && report_.step >= how_.steps) ||
        (how_.seconds > 0 && report_.seconds >= how_.seconds))
      end(ending::completed);
  }

  /// Whether an epoch that ends now has seen all of its batches.
  bool whole_epoch() const { return report_.step - first_of_epoch_ == batches_; }
  /// The end of an epoch that was processed completely.
  void finish_epoch() {
    if (report_.step == first_of_epoch_) throw runtime_error("fit: the loader gave no batch");
    ++report_.epoch;
    measure();
    if (!how_.validate && how_.checkpoint_every == 0) save();
    if (epochs_ > 0 && report_.epoch >= epochs_) end(ending::completed);
  }
  void after_epoch() {
    if (how_.after_epoch) how_.after_epoch(report_);
  }
  bool wants_epoch_validation() const { return how_.validate && how_.validate_every == 0; }
  /// Whether a last validation is due at the end of the training.
  bool lacks_validation() const {
    const auto& at = report_.validations.step;
    return how_.validate && (at.empty() || at.back() != static_cast<double>(report_.step));
  }

  report finish() {
    measure();
    if (line_) line_->finish();
    return std::move(report_);
  }

 private:
  /// Ends the training; the first reason given is the one reported.
  void end(ending why) {
    if (!std::exchange(ended_, true)) report_.end = why;
  }
  void save() {
    if (how_.checkpoint) how_.checkpoint(report_);
  }
  void add(curve& to, double value) const {
    to.step.push_back(static_cast<double>(report_.step));
    to.value.push_back(value);
  }
  void print(const std::string& line) {
    if (line_) line_->print(line);
    else std::fprintf(how_.line.stream, "%s\n", line.c_str());
  }
  void show(const std::string& name, double value) {
    if (line_) line_->value(name, value);
  }
  /// Updates the time and the fraction done.
  void measure() {
    report_.seconds = std::chrono::duration<double>(clock::now() - start_).count();
    double part = 0;
    const auto share = [&part](auto done, auto all) {
      if (all > 0) part = std::max(part, static_cast<double>(done) / static_cast<double>(all));
    };
    share(report_.step, total_);
    share(report_.epoch, epochs_);
    share(report_.seconds, how_.seconds);
    report_.part = std::min(part, 1.0);
  }

  using clock = std::chrono::steady_clock;
  const options& how_;
  const clock::time_point start_ = clock::now();
  std::int64_t batches_, epochs_ = 0, total_ = 0, unread_ = 0, worse_ = 0, first_of_epoch_ = 0;
  std::int64_t step_items_ = 0, items_ = 0, read_items_ = 0;
  double read_seconds_ = 0;
  bool ended_ = false;
  report report_;
  std::optional<io::interrupt_guard> guard_;
  std::optional<io::progress> line_;
};

}  // namespace xla::training::detail
