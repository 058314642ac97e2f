// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules made of others, one after the other or all at once, and next_lr(), the rates of the
// next steps as one tensor.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xla/op/create.hpp"
#include "xla/optim/schedule/schedule.hpp"

namespace xla::optim {

/// A schedule whose step() needs no argument, unlike ReduceLROnPlateau's.
template <class S>
concept stepped_alone = requires(S& s) { s.step(); };

/// Schedules of one optimizer. All refer to the same starting rates.
template <class Optimizer, class... Each>
class ScheduleList : public Schedule<Optimizer> {
  static_assert((stepped_alone<Each> && ...),
                "xla::optim: a list has schedules whose step() takes nothing, not "
                "ReduceLROnPlateau");

 public:
  template <class F>
  void visit_progress(F&& f) {
    Schedule<Optimizer>::visit_progress(f);
    for_each([&](auto& schedule, std::size_t i) {
      schedule.visit_progress([&](const char* name, auto& number) {
        f(("schedulers." + std::to_string(i) + "." + name).c_str(), number);
      });
    });
  }

 protected:
  ScheduleList(Optimizer& optimizer, std::tuple<Each...> all)
      : Schedule<Optimizer>(optimizer), all_(std::move(all)) {
    for_each([&](auto& schedule, std::size_t) {
      if (schedule.optimizer_ != this->optimizer_)
        throw runtime_error("xla::optim: the schedules of a list are all of one optimizer");
    });
  }
  /// Calls f(schedule, number).
  void for_each(const auto& f) {
    std::apply([&f, i = std::size_t{0}](auto&... each) mutable { (f(each, i++), ...); }, all_);
  }

 private:
  std::tuple<Each...> all_;
};

struct SequentialLROptions {
  std::vector<int> milestones;  ///< the steps at which the next schedule begins
};

/// One schedule after the other. Each begins with the optimizer's initial rate, except
/// MultiplicativeLR, which begins with the current rate times f(0):
///   optim::SequentialLR schedule{optimizer,
///                                std::tuple{optim::LinearLR{optimizer, {.start_factor = 0.1}},
///                                           optim::CosineAnnealingLR{optimizer, {.T_max = 95}}},
///                                {.milestones = {5}}};
template <class Optimizer, class... Each>
class SequentialLR : public ScheduleList<Optimizer, Each...> {
 public:
  SequentialLR(Optimizer& optimizer, std::tuple<Each...> all, SequentialLROptions o)
      : ScheduleList<Optimizer, Each...>(optimizer, std::move(all)), o_(std::move(o)) {
    if (o_.milestones.size() + 1 != sizeof...(Each))
      throw runtime_error("SequentialLR: there is one milestone less than schedules");
    for (std::size_t i = 1; i < o_.milestones.size(); ++i)
      if (o_.milestones[i - 1] >= o_.milestones[i])
        throw runtime_error("SequentialLR: milestones ascend");
    start();
  }
  void begin() { start(); }
  void start() {
    this->start_at(1);
    this->for_each([](auto& schedule, std::size_t i) {
      if (i == 0) schedule.begin();
    });
  }
  void step() {
    const int t = this->next_epoch();
    const auto& m = o_.milestones;
    const auto next = std::upper_bound(m.begin(), m.end(), t);
    take_turn(static_cast<std::size_t>(next - m.begin()), next != m.begin() && *(next - 1) == t);
  }

 private:
  void take_turn(std::size_t which, bool begins) {
    this->for_each([&](auto& schedule, std::size_t i) {
      if (i != which) return;
      if (!begins) schedule.step();
      else if constexpr (requires { schedule.take_over(); }) schedule.take_over();
      else schedule.start();
    });
  }
  SequentialLROptions o_;
};

/// Several schedules at once, whose factors multiply.
template <class Optimizer, class... Each>
class ChainedScheduler : public ScheduleList<Optimizer, Each...> {
 public:
  ChainedScheduler(Optimizer& optimizer, std::tuple<Each...> all)
      : ScheduleList<Optimizer, Each...>(optimizer, std::move(all)) {}
  void step() {
    this->next_epoch();
    this->for_each([](auto& schedule, std::size_t) { schedule.step(); });
  }
};

/// The learning rates of the next steps, for a loop that makes several of a schedule's steps in one
/// call: the optimizer's current rate, then the rate after each schedule.step(). The schedule
/// advances by as many steps. The result has one axis; for an optimizer with groups it is (steps,
/// rates), with the rate of parameters in no group first, so that each row is an argument of
/// optimizer.step(lr):
///   const auto rates = optim::next_lr(schedule, xs.size(0));
///   train(model, optimizer, xs, rates);
template <stepped_alone S>
auto next_lr(S& schedule, std::int64_t steps) {
  using Optimizer = typename S::optimizer_type;
  using T = typename Optimizer::value_type;
  constexpr std::size_t count = Optimizer::groups + 1;
  if (steps < 0) throw runtime_error("xla::optim::next_lr: the number of steps is at least 0");
  std::vector<T> rates;
  rates.reserve(static_cast<std::size_t>(steps) * count);
  for (std::int64_t i = 0; i < steps; ++i) {
    for (const double rate : schedule.last_lrs()) rates.push_back(static_cast<T>(rate));
    schedule.step();
  }
  if constexpr (count == 1) return from_blob(rates.data(), {steps});
  else return from_blob(rates.data(), {steps, static_cast<std::int64_t>(count)});
}

}  // namespace xla::optim
