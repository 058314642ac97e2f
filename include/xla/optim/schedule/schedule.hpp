// SPDX-License-Identifier: Apache-2.0
#pragma once

// The base of learning-rate schedules. Each of the other headers here has some of them;
// schedule.hpp, one folder up, has all.

#include <array>
#include <cstddef>
#include <string>

#include "xla/base/error.hpp"
#include "xla/run/state/recording.hpp"

/// Learning-rate schedules by PyTorch's names and formulas: objects next to the training loop that
/// change optimizer.options.lr at step(), usually once an epoch. A rate is an input of a compiled
/// step, so that changing it compiles nothing. Groups of parameters have their own rates, which are
/// scheduled alike, each from its own initial value. Schedules refer to the optimizer, which must
/// outlive them. A checkpoint stores them with it; make all of them first, then load. For a loop in
/// a compiled function that makes several training steps, next_lr() gives the rates of these steps.
namespace xla::optim {

/// The base of schedules: the optimizer, its initial rates, and the number of steps taken. Several
/// schedules on one optimizer multiply, as in PyTorch, if each only scales the rate.
template <class Optimizer>
class Schedule {
 public:
  using optimizer_type = Optimizer;
  /// The effect on the rate when the schedule starts: in its constructor, or as the first one of a
  /// SequentialLR. Most schedules have none. start() is the same for a schedule whose turn comes
  /// later.
  void begin() { epoch_ = 0; }
  int last_epoch() const { return epoch_; }
  /// The rate of parameters in no group.
  double last_lr() const { return optimizer_->options.lr.value(); }
  /// The same, and then that of each group.
  auto last_lrs() const {
    std::array<double, all> rates;
    read_rates(rates);
    return rates;
  }
  /// Calls f(name, number) for the state that a checkpoint stores; the rate itself is the
  /// optimizer's.
  template <class F>
  void visit_progress(F&& f) {
    f("last_epoch", epoch_);
    f("base_lr", base_[0]);
    for (std::size_t i = 1; i < all; ++i) f(("base_lr." + std::to_string(i - 1)).c_str(), base_[i]);
  }

 protected:
  /// As in PyTorch, every schedule starts from the rates at the optimizer's first schedule.
  explicit Schedule(Optimizer& optimizer) : optimizer_(&optimizer) {
    if constexpr (requires { optimizer.initial_lr; }) {
      if (!optimizer.has_initial_lr) begin_from_rates();
      base_ = optimizer.initial_lr;
    } else {
      read_rates(base_);
    }
  }
  /// From here on the current rates count as the starting rates.
  void begin_from_rates() {
    if constexpr (requires { optimizer_->initial_lr; }) {
      read_rates(optimizer_->initial_lr);
      optimizer_->has_initial_lr = true;
      base_ = optimizer_->initial_lr;
    }
  }
  int next_epoch() {
    set_epoch(epoch_ + 1);
    return epoch_;
  }
  void set_epoch(int epoch) {
    begin_side_effects();
    epoch_ = epoch;
  }
  /// Each rate becomes f(rate, rate at the start).
  template <class F>
  void change_lr(const F& f) {
    const auto* base = base_.data();
    change_options([&](auto& options) { options.lr = f(options.lr.value(), *base++); });
  }
  /// Scales the current rate instead of setting it, so that several schedules multiply.
  void begin_scaled(double factor) {
    epoch_ = 0;
    scale_lr(factor);
  }
  void scale_lr(double factor) {
    change_lr([factor](double lr, double) { return lr * factor; });
  }
  /// Sets each rate to its initial value times a factor, and the epoch to 0.
  void start_at(double factor) {
    epoch_ = 0;
    change_lr([factor](double, double base) { return base * factor; });
  }
  /// Whether the optimizer has momentum, or beta1, for a cycle to change.
  static constexpr bool has_momentum =
      requires(Optimizer& o) { o.options.beta1; } || requires(Optimizer& o) { o.options.momentum; };
  void set_momentum(auto& options, double momentum) {
    if constexpr (requires { options.beta1; }) options.beta1 = momentum;
    else if constexpr (requires { options.momentum; }) options.momentum = momentum;
  }
  /// Calls f(options) for the options of the optimizer, then of its groups.
  template <class F>
  void change_options(const F& f) const {
    f(optimizer_->options);
    if constexpr (all > 1)
      for (auto& options : optimizer_->group_options) f(options);
  }

 private:
  template <class, class...>
  friend class ScheduleList;
  void read_rates(auto& rates) const {
    auto* rate = rates.data();
    change_options([&](auto& options) { *rate++ = options.lr.value(); });
  }
  static constexpr std::size_t all = 1 + [] {
    if constexpr (requires { Optimizer::groups; }) return Optimizer::groups;
    else return std::size_t{0};
  }();
  Optimizer* optimizer_;
  std::array<double, all> base_;
  int epoch_ = 0;
};

}  // namespace xla::optim
