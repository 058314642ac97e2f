// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules that change at given epochs or by a function.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "xla/optim/schedule/schedule.hpp"

namespace xla::optim {

/// The starting rate times f(epoch), a function of the user's.
template <class Optimizer, class F>
class LambdaLR : public Schedule<Optimizer> {
 public:
  LambdaLR(Optimizer& optimizer, F f) : Schedule<Optimizer>(optimizer), f_(std::move(f)) {
    start();
  }
  void begin() { start(); }
  void start() { this->start_at(f_(0)); }
  void step() {
    const double factor = f_(this->next_epoch());
    this->change_lr([&](double, double base) { return base * factor; });
  }

 private:
  F f_;
};

/// The rate times f(epoch) at every step.
template <class Optimizer, class F>
class MultiplicativeLR : public Schedule<Optimizer> {
 public:
  MultiplicativeLR(Optimizer& optimizer, F f) : Schedule<Optimizer>(optimizer), f_(std::move(f)) {}
  void start() { this->start_at(1); }
  /// Begins after another schedule, with the rate that it has reached.
  void take_over() {
    this->set_epoch(0);
    this->scale_lr(f_(0));
  }
  void step() { this->scale_lr(f_(this->next_epoch())); }

 private:
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
  void start() { this->start_at(1); }
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

/// The rate times gamma at each milestone; a repeated milestone counts twice.
template <class Optimizer>
class MultiStepLR : public Schedule<Optimizer> {
 public:
  MultiStepLR(Optimizer& optimizer, MultiStepLROptions o)
      : Schedule<Optimizer>(optimizer), o_(std::move(o)) {
    if (!(o_.gamma > 0)) throw runtime_error("MultiStepLR: gamma is above 0");
  }
  void start() { this->start_at(1); }
  void step() {
    const auto times = std::count(o_.milestones.begin(), o_.milestones.end(), this->next_epoch());
    const double factor = std::pow(o_.gamma, times);
    this->scale_lr(factor);
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
  void start() { this->start_at(1); }
  void step() {
    this->next_epoch();
    this->change_lr([&](double lr, double) { return lr * o_.gamma; });
  }

 private:
  ExponentialLROptions o_;
};

}  // namespace xla::optim
