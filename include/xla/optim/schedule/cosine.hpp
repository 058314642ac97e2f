// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules that follow a cosine, with and without restarts. The base class is schedule.hpp.

#include <cmath>
#include <numbers>

#include "xla/optim/schedule/schedule.hpp"

namespace xla::optim {

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
  void start() { this->start_at(1); }
  void step() {
    const int t = this->next_epoch();
    // Computed from the current rate, so that other schedules act as well. At the lowest point the
    // ratio of two rates is undefined, so the formula from the starting rate is used.
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

struct CosineAnnealingWarmRestartsOptions {
  int T_0 = 1;
  int T_mult = 1;  ///< each restart is this many times as long as the one before
  double eta_min = 0;
};

/// Half a cosine from the starting rate to eta_min in T_0 steps, and again from the start.
/// Loshchilov and Hutter (2017). step(epoch) takes a fraction of an epoch: after each batch epoch +
/// i / batches.
template <class Optimizer>
class CosineAnnealingWarmRestarts : public Schedule<Optimizer> {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, CosineAnnealingWarmRestartsOptions o)
      : Schedule<Optimizer>(optimizer), o_(o), length_(o.T_0) {
    if (o.T_0 < 1 || o.T_mult < 1)
      throw runtime_error("CosineAnnealingWarmRestarts: T_0 and T_mult are at least 1");
  }
  void start() {
    this->start_at(1);
    at_ = 0;
    length_ = o_.T_0;
  }
  void step() {
    this->next_epoch();
    if (++at_ >= length_) {
      at_ -= length_;
      length_ *= o_.T_mult;
    }
    apply();
  }
  void step(double epoch) {
    if (!(epoch >= 0))
      throw runtime_error("CosineAnnealingWarmRestarts: step() takes an epoch of at least 0");
    this->set_epoch(static_cast<int>(epoch));
    double done = 0;
    for (length_ = o_.T_0; epoch >= done + length_; length_ *= o_.T_mult) done += length_;
    at_ = epoch - done;
    apply();
  }
  template <class F>
  void visit_progress(F&& f) {
    Schedule<Optimizer>::visit_progress(f);
    f("T_cur", at_);
    f("T_i", length_);
  }

 private:
  void apply() {
    const double height = (1 + std::cos(std::numbers::pi * at_ / length_)) / 2;
    this->change_lr([&](double, double base) { return o_.eta_min + (base - o_.eta_min) * height; });
  }
  CosineAnnealingWarmRestartsOptions o_;
  double at_ = 0;
  int length_;
};

}  // namespace xla::optim
