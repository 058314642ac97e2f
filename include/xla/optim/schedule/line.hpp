// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules by a straight line or a constant, for warm-up and decay.

#include <cmath>

#include "xla/optim/schedule/schedule.hpp"

namespace xla::optim {

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int total_iters = 5;
};

/// The starting rate times factor, and from total_iters steps on the rate itself.
template <class Optimizer>
class ConstantLR : public Schedule<Optimizer> {
 public:
  explicit ConstantLR(Optimizer& optimizer, ConstantLROptions o = {})
      : Schedule<Optimizer>(optimizer), o_(o) {
    if (!(o.factor > 0 && o.factor <= 1))
      throw runtime_error("ConstantLR: factor is above 0 and at most 1");
    if (o.total_iters < 1) throw runtime_error("ConstantLR: total_iters is at least 1");
    begin();
  }
  void begin() { this->begin_scaled(o_.factor); }
  void start() { this->start_at(o_.factor); }
  void step() {
    if (this->next_epoch() == o_.total_iters)
      this->change_lr([&](double lr, double) { return lr / o_.factor; });
  }

 private:
  ConstantLROptions o_;
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
    begin();
  }
  void begin() { this->begin_scaled(o_.start_factor); }
  void start() { this->start_at(o_.start_factor); }
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

struct PolynomialLROptions {
  int total_iters = 5;
  double power = 1;
};

/// Down to 0 in total_iters steps: the starting rate times (1 - epoch / total_iters)^power.
template <class Optimizer>
class PolynomialLR : public Schedule<Optimizer> {
 public:
  explicit PolynomialLR(Optimizer& optimizer, PolynomialLROptions o = {})
      : Schedule<Optimizer>(optimizer), o_(o) {
    if (o.total_iters < 1) throw runtime_error("PolynomialLR: total_iters is at least 1");
    if (!(o.power >= 0)) throw runtime_error("PolynomialLR: power is at least 0");
  }
  void start() { this->start_at(1); }
  void step() {
    const int t = this->next_epoch();
    if (t > o_.total_iters) return;
    const double factor = std::pow(left(t) / left(t - 1), o_.power);
    this->change_lr([&](double lr, double) { return lr * factor; });
  }

 private:
  double left(int t) const { return 1 - static_cast<double>(t) / o_.total_iters; }
  PolynomialLROptions o_;
};

}  // namespace xla::optim
