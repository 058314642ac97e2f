// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules that go up and down within a run: OneCycleLR, CyclicLR. They step after every batch.

#include <cmath>
#include <numbers>
#include <string_view>

#include "xla/optim/schedule/schedule.hpp"

namespace xla::optim {

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
    if (o.cycle_momentum && !this->has_momentum)
      throw runtime_error(
          "OneCycleLR: the optimizer has neither momentum nor beta1: cycle_momentum = false");
    start();
    this->begin_from_rates();
  }
  void begin() { start(); }
  void start() {
    this->set_epoch(0);
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
      if (o_.cycle_momentum) this->set_momentum(options, momentum);
    });
  }
  OneCycleLROptions o_;
};

struct CyclicLROptions {
  double base_lr = 0;
  double max_lr = 0;
  int step_size_up = 2000;
  int step_size_down = 0;                ///< 0: step_size_up
  std::string_view mode =
      "triangular";  ///< or "triangular2", halving each cycle's height, or "exp_range"
  double gamma = 1;  ///< the factor of "exp_range" for the height at each step
  bool cycle_momentum = true;            ///< momentum, or beta1, goes the other way
  double base_momentum = 0.8;
  double max_momentum = 0.9;
};

/// From base_lr to max_lr and back, again and again; step() after every batch. Smith (2017).
template <class Optimizer>
class CyclicLR : public Schedule<Optimizer> {
 public:
  CyclicLR(Optimizer& optimizer, CyclicLROptions o) : Schedule<Optimizer>(optimizer), o_(o) {
    if (!(o.base_lr >= 0 && o.max_lr >= 0))
      throw runtime_error("CyclicLR: base_lr and max_lr are at least 0");
    if (o.step_size_up < 1 || o.step_size_down < 0)
      throw runtime_error("CyclicLR: step_size_up is at least 1, and step_size_down at least 0");
    if (o.mode != "triangular" && o.mode != "triangular2" && o.mode != "exp_range")
      throw runtime_error("CyclicLR: mode is triangular, triangular2 or exp_range");
    if (o.cycle_momentum && !this->has_momentum)
      throw runtime_error(
          "CyclicLR: the optimizer has neither momentum nor beta1: cycle_momentum = false");
    if (o.step_size_down == 0) o_.step_size_down = o.step_size_up;
    start();
  }
  void begin() { start(); }
  void start() {
    this->set_epoch(0);
    apply(0);
  }
  void step() { apply(this->next_epoch()); }

 private:
  void apply(int t) {
    const int all = o_.step_size_up + o_.step_size_down, cycle = t / all, at = t % all;
    const double height = at <= o_.step_size_up ? static_cast<double>(at) / o_.step_size_up
                                                : static_cast<double>(all - at) / o_.step_size_down;
    const double part = height * scale(cycle, t);
    this->change_options([&](auto& options) {
      options.lr = o_.base_lr + (o_.max_lr - o_.base_lr) * part;
      if (o_.cycle_momentum)
        this->set_momentum(options, o_.max_momentum - (o_.max_momentum - o_.base_momentum) * part);
    });
  }
  double scale(int cycle, int t) const {
    if (o_.mode == "triangular2") return std::pow(0.5, cycle);
    return o_.mode == "exp_range" ? std::pow(o_.gamma, t) : 1;
  }
  CyclicLROptions o_;
};

}  // namespace xla::optim
