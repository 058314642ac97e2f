// SPDX-License-Identifier: Apache-2.0
#pragma once

// optimizer_step(): averages gradients over replicas, then steps the optimizer, as torch_xla's
// xm.optimizer_step. With one replica it is a plain step.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/module.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/collectives.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla {

/// Replicas that average gradients among themselves, by ordinals: {{0, 1}, {2, 3}}.
using ReplicaGroups = std::vector<std::vector<std::int64_t>>;

namespace parallel::detail {

/// The group that this replica is in. Throws unless each replica of the world is in one.
inline std::size_t own_group(const ReplicaGroups& groups) {
  std::vector<int> times(static_cast<std::size_t>(world_size()));
  std::size_t own = 0;
  bool all_there = true;
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const auto ordinal : groups[i]) {
      if (ordinal < 0 || ordinal >= world_size()) all_there = false;
      else ++times[static_cast<std::size_t>(ordinal)];
      if (ordinal == global_ordinal()) own = i;
    }
  if (!all_there || std::count(times.begin(), times.end(), 1) != std::ssize(times))
    throw runtime_error("xla::reduce_gradients: each replica of the world, 0 to " +
                        std::to_string(world_size() - 1) + ", has to be in one group");
  return own;
}

/// The sum over a group. An exchange always involves the whole world, so all groups are summed at
/// once; replicas of other groups contribute zeros.
template <class T, int R>
Tensor<T, R> sum_in_group(const Tensor<T, R>& mine, GradientOf of, std::size_t groups,
                          std::size_t own) {
  Tensor<T, R> sum;
  for (std::size_t i = 0; i < groups; ++i) {
    const auto of_group = all_reduce(i == own ? mine : zeros_like(mine), reduce_type::sum, of);
    if (i == own) sum = of_group;
  }
  return sum;
}

/// Whether an optimizer averages gradients over replicas in its own step(), as ZeroRedundancy does.
template <class Optimizer>
inline constexpr bool reduces_by_itself = requires { requires Optimizer::reduces_gradients; };

/// Reduces the last gradients first, because backward() computes them first; the exchange then
/// overlaps with the rest of backward().
template <class Optimizer>
constexpr void reduce_all(Optimizer& optimizer, const auto& reduce) {
  using gradient = Tensor<typename Optimizer::value_type, dynamic_rank>;
  std::array<gradient, static_cast<std::size_t>(Optimizer::parameters)> gradients;
  std::size_t count = 0;
  for_each_parameter(optimizer.model(), [&](auto& p) { gradients[count++] = p.grad(); });
  for (std::size_t i = count; i-- > 0;)
    if (gradients[i].defined())
      gradients[i] = reduce(gradients[i], GradientOf{static_cast<int>(i)});
  count = 0;
  for_each_parameter(optimizer.model(), [&](auto& p) {
    if (const gradient& g = gradients[count++]; g.defined()) p.set_grad(g);
  });
}

}  // namespace parallel::detail

/// Replaces the gradients of an optimizer's model by their mean over all replicas: the sum times 1
/// / world_size(). Call it if something must happen between that and the step, such as clipping by
/// the norm of the whole gradient; `optimizer_step` does both. All replicas have gradients of the
/// same parameters; else all throw `xla::replica_error`, which names a parameter by its position in
/// named_parameters(), from 0 on. With groups the sum is that of the replica's group, and still
/// times 1 / world_size(), as in PyTorch/XLA; groups work in eager and traced mode.
template <class Optimizer>
constexpr void reduce_gradients(Optimizer& optimizer, const ReplicaGroups& groups = {}) {
  const auto mean = [](const auto& gradient, GradientOf parameter) {
    return all_reduce(gradient, reduce_type::mean, parameter);
  };
  if (__builtin_is_constant_evaluated()) {
    if (!groups.empty())
      throw std::logic_error("xla: a compiled body is one for all replicas: it has no groups");
    parallel::detail::reduce_all(optimizer, mean);
  } else if (world_size() > 1) {
    transaction([&] {
      if (groups.empty()) return parallel::detail::reduce_all(optimizer, mean);
      const auto own = parallel::detail::own_group(groups);
      using T = typename Optimizer::value_type;
      const T share = T{1} / static_cast<T>(world_size());
      parallel::detail::reduce_all(optimizer, [&](const auto& gradient, GradientOf parameter) {
        return parallel::detail::sum_in_group(gradient, parameter, groups.size(), own) * share;
      });
    });
  }
}

/// Options of `optimizer_step`.
struct OptimizerStepOptions {
  /// Runs the recorded ops: one step is one graph. Without it the pending graph grows from step to
  /// step until a value is read or sync() is called. It has no effect in a compiled body, which is
  /// one graph anyway, and in eager mode.
  bool barrier = true;
  ReplicaGroups groups = {};  ///< As in `reduce_gradients`; none: one group of all.
};

namespace parallel::detail {

template <class Optimizer>
constexpr void step_together(Optimizer& optimizer, const OptimizerStepOptions& options,
                             const auto& step) {
  if constexpr (!reduces_by_itself<Optimizer>) reduce_gradients(optimizer, options.groups);
  else if (!options.groups.empty())
    throw runtime_error(
        "xla::optimizer_step: a ZeroRedundancy takes the mean of all replicas' gradients: it has "
        "no groups");
  step();
  if (!__builtin_is_constant_evaluated() && options.barrier && !is_eager_mode()) sync();
}

}  // namespace parallel::detail

/// Replaces `optimizer.step()` when several replicas train a model: averages the gradients
/// (reduce_gradients), makes the same step everywhere, and is the barrier that ends a step in
/// traced mode. In a world of one it is `step()` and the barrier.
template <class Optimizer>
constexpr void optimizer_step(Optimizer& optimizer, const OptimizerStepOptions& options = {}) {
  parallel::detail::step_together(optimizer, options, [&] { optimizer.step(); });
}
/// The same with other learning rates than those of the optimizer's options, in place of
/// `optimizer.step(lr)`: a tensor, one per group, or `optim::lr_factor`. All replicas pass the
/// same.
template <class Optimizer, class Rates>
  requires(!std::is_convertible_v<const Rates&, OptimizerStepOptions>)
constexpr void optimizer_step(Optimizer& optimizer, const Rates& lr,
                              const OptimizerStepOptions& options = {}) {
  parallel::detail::step_together(optimizer, options, [&] { optimizer.step(lr); });
}

}  // namespace xla
