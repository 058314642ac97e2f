// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"

/// Learning-rate schedules by PyTorch's names and formulas: objects beside the loop that change
/// optimizer.options.lr at step(), usually once an epoch. A rate is an input of a compiled step, so
/// that changing it compiles nothing. Groups of parameters have their own rates, which are
/// scheduled alike, each from its own start. They refer to the optimizer, which must outlive them.
/// A checkpoint takes them beside it; make all of them first, then load.
namespace xla::optim {

/// What schedules share: the optimizer, its rates at the start, and the number of steps taken.
/// Several on one optimizer multiply, as those of PyTorch do, where each only scales the rate.
template <class Optimizer>
class Schedule {
 public:
  int last_epoch() const { return epoch_; }
  /// The rate of parameters in no group.
  double last_lr() const { return optimizer_->options.lr.value(); }
  /// Calls f(name, number) for what a checkpoint keeps; the rate itself is the optimizer's.
  template <class F>
  void visit_progress(F&& f) {
    f("last_epoch", epoch_);
    f("base_lr", base_[0]);
    for (std::size_t i = 1; i < all; ++i) f(("base_lr." + std::to_string(i - 1)).c_str(), base_[i]);
  }

 protected:
  explicit Schedule(Optimizer& optimizer) : optimizer_(&optimizer) {
    auto* base = base_.data();
    change_options([&](auto& options) { *base++ = options.lr.value(); });
  }
  int next_epoch() { return ++epoch_; }
  /// Each rate becomes f(rate, rate at the start).
  template <class F>
  void change_lr(const F& f) {
    const auto* base = base_.data();
    change_options([&](auto& options) { options.lr = f(options.lr.value(), *base++); });
  }
  /// Calls f(options) for those of the optimizer, then of its groups.
  template <class F>
  void change_options(const F& f) {
    f(optimizer_->options);
    if constexpr (all > 1)
      for (auto& options : optimizer_->group_options) f(options);
  }

 private:
  static constexpr std::size_t all = 1 + [] {
    if constexpr (requires { Optimizer::groups; }) return Optimizer::groups;
    else return std::size_t{0};
  }();
  Optimizer* optimizer_;
  std::array<double, all> base_;
  int epoch_ = 0;
};

/// The starting rate times f(epoch), a function of the user's.
template <class Optimizer, class F>
class LambdaLR : public Schedule<Optimizer> {
 public:
  LambdaLR(Optimizer& optimizer, F f) : Schedule<Optimizer>(optimizer), f_(std::move(f)) { set(0); }
  void step() { set(this->next_epoch()); }

 private:
  void set(int epoch) {
    const double factor = f_(epoch);
    this->change_lr([&](double, double base) { return base * factor; });
  }
  F f_;
};

struct StepLROptions {
  int step_size = 1;
  double gamma = 0.1;
};

/// The rate times gamma every step_size steps.
template <class Optimizer>
class StepLR : public Schedule<Optimizer> {
 public:
  StepLR(Optimizer& optimizer, StepLROptions o) : Schedule<Optimizer>(optimizer), o_(o) {
    if (o.step_size < 1) throw runtime_error("StepLR: step_size is at least 1");
    if (!(o.gamma > 0)) throw runtime_error("StepLR: gamma is above 0");
  }
  void step() {
    if (this->next_epoch() % o_.step_size == 0)
      this->change_lr([&](double lr, double) { return lr * o_.gamma; });
  }

 private:
  StepLROptions o_;
};

struct MultiStepLROptions {
  std::vector<int> milestones;
  double gamma = 0.1;
};

/// The rate times gamma at each milestone; one that is named twice counts twice.
template <class Optimizer>
class MultiStepLR : public Schedule<Optimizer> {
 public:
  MultiStepLR(Optimizer& optimizer, MultiStepLROptions o)
      : Schedule<Optimizer>(optimizer), o_(std::move(o)) {
    if (!(o_.gamma > 0)) throw runtime_error("MultiStepLR: gamma is above 0");
  }
  void step() {
    const auto times = std::count(o_.milestones.begin(), o_.milestones.end(), this->next_epoch());
    const double factor = std::pow(o_.gamma, times);
    this->change_lr([&](double lr, double) { return lr * factor; });
  }

 private:
  MultiStepLROptions o_;
};

struct ExponentialLROptions {
  double gamma = 0.9;
};

/// The rate times gamma at every step.
template <class Optimizer>
class ExponentialLR : public Schedule<Optimizer> {
 public:
  ExponentialLR(Optimizer& optimizer, ExponentialLROptions o)
      : Schedule<Optimizer>(optimizer), o_(o) {
    if (!(o.gamma > 0)) throw runtime_error("ExponentialLR: gamma is above 0");
  }
  void step() {
    this->next_epoch();
    this->change_lr([&](double lr, double) { return lr * o_.gamma; });
  }

 private:
  ExponentialLROptions o_;
};

struct CosineAnnealingLROptions {
  int T_max = 1;
  double eta_min = 0;
};

/// Half a cosine from the starting rate to eta_min in T_max steps, and back. Loshchilov and Hutter
/// (2017), without restarts.
template <class Optimizer>
class CosineAnnealingLR : public Schedule<Optimizer> {
 public:
  CosineAnnealingLR(Optimizer& optimizer, CosineAnnealingLROptions o)
      : Schedule<Optimizer>(optimizer), o_(o) {
    if (o.T_max < 1) throw runtime_error("CosineAnnealingLR: T_max is at least 1");
    if (!(o.eta_min >= 0)) throw runtime_error("CosineAnnealingLR: eta_min is at least 0");
  }
  void step() {
    const int t = this->next_epoch();
    // From the rate as it is, so that other schedules act too; at its lowest it tells nothing.
    const bool lowest = (t - 1 - o_.T_max) % (2 * o_.T_max) == 0;
    this->change_lr([&](double lr, double base) {
      const double low = o_.eta_min, top = base - low;
      if (lowest) return lr + top * (1 - std::cos(std::numbers::pi / o_.T_max)) / 2;
      return height(t) / height(t - 1) * (lr - low) + low;
    });
  }

 private:
  double height(int t) const { return 1 + std::cos(std::numbers::pi * t / o_.T_max); }
  CosineAnnealingLROptions o_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int total_iters = 5;
};

/// Warm-up: the starting rate times a factor that goes from start_factor, at once, to end_factor in
/// total_iters steps.
template <class Optimizer>
class LinearLR : public Schedule<Optimizer> {
 public:
  explicit LinearLR(Optimizer& optimizer, LinearLROptions o = {})
      : Schedule<Optimizer>(optimizer), o_(o) {
    if (!(o.start_factor > 0)) throw runtime_error("LinearLR: start_factor is above 0");
    if (o.total_iters < 1) throw runtime_error("LinearLR: total_iters is at least 1");
    this->change_lr([&](double lr, double) { return lr * o_.start_factor; });
  }
  void step() {
    const int t = this->next_epoch();
    if (t <= o_.total_iters)
      this->change_lr([&](double lr, double) { return lr * factor(t) / factor(t - 1); });
  }

 private:
  double factor(int t) const {
    return o_.start_factor + (o_.end_factor - o_.start_factor) * t / o_.total_iters;
  }
  LinearLROptions o_;
};

struct OneCycleLROptions {
  double max_lr = 0;
  int total_steps = 0;
  double pct_start = 0.3;
  bool cosine = true;          ///< anneal along a cosine, else along a line
  bool cycle_momentum = true;  ///< momentum, or beta1, goes the other way
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
};

/// Up to max_lr in the first pct_start of total_steps, then down far below the start; step() after
/// every batch. Smith and Topin (2019). More than total_steps are an xla::error.
template <class Optimizer>
class OneCycleLR : public Schedule<Optimizer> {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLROptions o) : Schedule<Optimizer>(optimizer), o_(o) {
    if (!(o.max_lr > 0)) throw runtime_error("OneCycleLR: max_lr is above 0");
    if (o.total_steps < 1) throw runtime_error("OneCycleLR: total_steps is at least 1");
    if (!(o.pct_start >= 0 && o.pct_start <= 1))
      throw runtime_error("OneCycleLR: pct_start is between 0 and 1");
    apply(0);
  }
  void step() {
    if (this->last_epoch() >= o_.total_steps)
      throw runtime_error("OneCycleLR: step() more often than total_steps says");
    apply(this->next_epoch());
  }

 private:
  void apply(int t) {
    const double start = o_.max_lr / o_.div_factor, peak = o_.pct_start * o_.total_steps - 1;
    const double end = o_.total_steps - 1;
    if (t <= peak) {
      const double part = peak > 0 ? t / peak : 1;
      set(anneal(start, o_.max_lr, part), anneal(o_.max_momentum, o_.base_momentum, part));
    } else {
      const double part = end > peak ? (t - peak) / (end - peak) : 1;
      set(anneal(o_.max_lr, start / o_.final_div_factor, part),
          anneal(o_.base_momentum, o_.max_momentum, part));
    }
  }
  double anneal(double from, double to, double part) const {
    if (!o_.cosine) return from + (to - from) * part;
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
  }
  void set(double lr, double momentum) {
    this->change_options([&](auto& options) {
      options.lr = lr;
      if (!o_.cycle_momentum) return;
      if constexpr (requires { options.beta1; }) options.beta1 = momentum;
      else if constexpr (requires { options.momentum; }) options.momentum = momentum;
    });
  }
  OneCycleLROptions o_;
};

struct ReduceLROnPlateauOptions {
  bool maximize = false;  ///< the metric should grow
  double factor = 0.1;
  int patience = 10;
  double threshold = 1e-4;
  bool relative = true;  ///< the threshold is a part of the best metric, else a difference
  int cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;  ///< smaller changes are left out
};

/// The rate times factor when a metric has been no better for more than patience steps.
template <class Optimizer>
class ReduceLROnPlateau : public Schedule<Optimizer> {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions o = {})
      : Schedule<Optimizer>(optimizer), o_(o) {
    if (!(o.factor > 0 && o.factor < 1))
      throw runtime_error("ReduceLROnPlateau: factor is above 0 and below 1");
    if (o.patience < 0 || o.cooldown < 0 || !(o.min_lr >= 0))
      throw runtime_error("ReduceLROnPlateau: patience, cooldown and min_lr are at least 0");
    best_ = (o.maximize ? -1 : 1) * std::numeric_limits<double>::infinity();
  }
  void step(double metric) {
    this->next_epoch();
    if (better(metric)) {
      best_ = metric;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (resting_ > 0) {
      --resting_;
      bad_ = 0;
    }
    if (bad_ <= o_.patience) return;
    this->change_lr([&](double lr, double) {
      const double lower = std::max(lr * o_.factor, o_.min_lr);
      return lr - lower > o_.eps ? lower : lr;
    });
    resting_ = o_.cooldown;
    bad_ = 0;
  }
  double best() const { return best_; }
  template <class F>
  void visit_progress(F&& f) {
    Schedule<Optimizer>::visit_progress(f);
    f("best", best_);
    f("num_bad_epochs", bad_);
    f("cooldown_counter", resting_);
  }

 private:
  bool better(double metric) const {
    const double sign = o_.maximize ? 1 : -1;
    const double bar =
        o_.relative ? best_ * (1 + sign * o_.threshold) : best_ + sign * o_.threshold;
    return o_.maximize ? metric > bar : metric < bar;
  }
  ReduceLROnPlateauOptions o_;
  double best_;
  int bad_ = 0, resting_ = 0;
};

}  // namespace xla::optim
