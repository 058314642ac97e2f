// SPDX-License-Identifier: Apache-2.0
#pragma once

// A schedule that looks at a metric and lowers the rate when it stops improving.

#include <algorithm>
#include <limits>

#include "xla/optim/schedule/schedule.hpp"

namespace xla::optim {

struct ReduceLROnPlateauOptions {
  bool maximize = false;  ///< the metric should grow instead of fall
  double factor = 0.1;
  int patience = 10;
  double threshold = 1e-4;
  bool relative = true;  ///< the threshold is relative to the best metric, else a difference
  int cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;  ///< smaller changes are ignored
};

/// Multiplies the rate by factor if a metric has not improved for more than patience steps.
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
