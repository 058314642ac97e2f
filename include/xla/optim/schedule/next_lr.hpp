// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rates of the next several steps as one tensor, for a compiled loop over steps. The schedule
// moves on as if it had been stepped so often.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xla/op/create.hpp"
#include "xla/optim/schedule/sequential.hpp"

namespace xla::optim {

/// The learning rates of the next steps, for a loop that has a schedule's steps in one call: the
/// optimizer's, then what schedule.step() makes of it, and so on. The schedule goes on by as many
/// steps. One axis; of an optimizer with groups (steps, rates), with those of parameters in no
/// group first, so that each row is what optimizer.step(lr) takes:
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
