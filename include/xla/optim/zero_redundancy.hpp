// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wraps an optimizer so that each replica stores and updates only a part of its state, like
// PyTorch's ZeroRedundancyOptimizer. Parameters and gradients stay whole everywhere.

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

#include "xla/op/collectives.hpp"
#include "xla/op/local_shard.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {
namespace detail {

/// A replica's share of a parameter, with the interface of a parameter, so that the rule of an
/// optimizer can update it.
template <class T>
struct parameter_part {
  Tensor<T, 1> value;
  constexpr const Tensor<T, 1>& detach() const { return value; }
  constexpr void copy_(const Tensor<T, 1>& to) { value = to; }
};

/// The rule of an optimizer of which every replica stores and updates a part.
template <class Rule>
struct Sharded : Rule {
  static constexpr int state_rank = 1;
  static_assert(
      !requires { requires !Rule::elementwise; },
      "xla::optim::ZeroRedundancy: cannot distribute this optimizer, whose update of an "
      "element depends on others of its parameter (Adafactor, Muon)");

  constexpr Sharded() = default;
  constexpr Sharded(const Rule& whole) : Rule(whole) {}

  template <class T, int R>
  static Buffer<T, 1> state_like(const Parameter<T, R>& p) {
    const Size world = world_size(), part = (Size(p.numel()) + world - 1) / world;
    return Buffer<T, 1>::like(p, {part});
  }
  template <class T, int R>
  constexpr void update(const auto& shared, Parameter<T, R>& p, const Tensor<T, 1>& gradient,
                        auto&... state) const {
    const auto flat = flatten(p.detach());
    parameter_part<T> mine{local_shard(flat)};
    Rule::update(shared, mine, gradient, state...);
    p.copy_(reshape_as(all_gather(mine.value, 0, flat.size(0)), p));
  }
};

/// The optimizer that ZeroRedundancy derives from, by the type that it wraps.
template <class Whole>
struct sharded {
  static_assert(sizeof(Whole) == 0,
                "xla::optim::ZeroRedundancy: give it an optimizer: "
                "ZeroRedundancy{AdamW{model, {.lr = 1e-3}}}");
};
template <class Whole>
  requires requires { typename Whole::rule_type; }
struct sharded<Whole> {
  using type = Optimizer<typename Whole::optimized_type, Sharded<typename Whole::rule_type>>;
};

}  // namespace detail

/// Options of ZeroRedundancy in addition to its optimizer's.
struct ZeroRedundancyOptions {
  Scalar max_norm;  ///< As in clip_grad_norm_.
};

/// An optimizer whose state is distributed over the replicas of the world: each stores and updates
/// 1/n of every parameter's moments, and the parameters are gathered again. The numbers are those
/// of the optimizer itself after an all-reduce of the gradients, bit for bit:
///   optim::ZeroRedundancy optimizer{optim::AdamW{model, {.lr = 3e-4}}};
/// step() averages the gradients over the replicas while distributing them, so no other average is
/// needed; the parameters' own gradients stay each replica's. A second argument clips them by the
/// norm of all their averages, {.max_norm = 1}. Make it in the world in which it steps, in the
/// function that launch() runs. Rajbhandari et al. (2020), stage 1; PyTorch's
/// ZeroRedundancyOptimizer.
template <class Whole, bool Clips = false>
class ZeroRedundancy : public detail::sharded<Whole>::type {
  using base = typename detail::sharded<Whole>::type;
  using rule = typename Whole::rule_type;
  using T = typename base::value_type;
  using gradients = std::array<Tensor<T, 1>, static_cast<std::size_t>(base::parameters)>;

 public:
  /// optimizer_step() leaves the averaging of gradients to it.
  static constexpr bool reduces_gradients = true;

  using base::base;
  /// Continues from the given optimizer's state, and keeps this replica's part of it.
  explicit ZeroRedundancy(Whole&& whole)
    requires(!Clips)
      : base(whole.target(), whole.options) {
    take(whole);
  }
  ZeroRedundancy(Whole&& whole, ZeroRedundancyOptions o)
    requires Clips
      : base(whole.target(), whole.options), max_norm(o.max_norm) {
    optim::detail::check_bound(max_norm);
    take(whole);
  }

  /// Updates every parameter that has a gradient, by the average over the replicas; none if that
  /// throws.
  constexpr void step() {
    check_gradients(this->model());
    const auto step_all = [this] {
      const auto parts = averages();
      this->update_all([&parts](auto&, std::size_t i) -> auto& { return parts[i]; });
    };
    if (__builtin_is_constant_evaluated()) return step_all();
    if (world_ != world_size())
      throw runtime_error("optim::ZeroRedundancy: made in a world of " + std::to_string(world_) +
                          ", it steps in one of " + std::to_string(world_size()) +
                          ": make it in the function that launch() runs");
    transaction(step_all);
    end_of_update<dependent<Whole, void>>();
  }
  /// The same with other learning rates, like Optimizer::step(lr).
  template <class Rates>
  constexpr void step(const Rates& lr) {
    this->step_with(lr, [this] { step(); });
  }

  /// The optimizer with all of its state, gathered from all replicas, for a checkpoint that one of
  /// them writes. Every replica must call it. ZeroRedundancy{std::move(whole)} continues from the
  /// result, also in a world of another size.
  Whole consolidate() {
    Whole whole(this->target(), rule(this->options));
    for (std::size_t g = 0; g < base::groups; ++g) whole.group_options[g] = this->group_options[g];
    whole.steps_.copy_(this->steps_.detach());
    copy_shared(this->shared_, whole.shared_);
    for (std::size_t i = 0; i < whole.state_.size(); ++i)
      for (std::size_t k = 0; k < whole.state_[i].size(); ++k) {
        const auto& all = whole.state_[i][k];
        const auto flat = all_gather(this->state_[i][k].detach(), 0, Size(all.numel()));
        all.copy_(reshape_as(flat, all));
      }
    return whole;
  }

  template <class F>
  constexpr void visit_state(F&& f, const tree_path& path = {}) {
    base::visit_state(f, path);
    if constexpr (Clips) f(max_norm, tree_path(&path, "max_norm"));
  }

  Scalar max_norm;  ///< If it clips.

 private:
  void take(const Whole& whole) {
    for (std::size_t g = 0; g < base::groups; ++g)
      this->group_options[g] = detail::Sharded<rule>(whole.group_options[g]);
    if (whole.steps_.item() == 0) return;  // its whole state is zeros, and need not be made
    this->steps_.copy_(whole.steps_.detach());
    copy_shared(whole.shared_, this->shared_);
    for (std::size_t i = 0; i < whole.state_.size(); ++i)
      for (std::size_t k = 0; k < whole.state_[i].size(); ++k)
        this->state_[i][k].copy_(local_shard(flatten(whole.state_[i][k].detach())));
  }
  static void copy_shared(const auto& from, auto& to) {
    for (std::size_t g = 0; g < from.size(); ++g)
      for (std::size_t k = 0; k < from[g].size(); ++k) to[g][k].copy_(from[g][k].detach());
  }
  /// This replica's part of each gradient's average. The last parameters' gradients come first.
  constexpr gradients averages() {
    gradients parts;
    std::size_t n = 0;
    for_each_parameter(this->model(), [&](auto& p) {
      if (const auto g = p.grad(); g.defined()) parts[n] = flatten(g.detach());
      ++n;
    });
    for (std::size_t i = n; i-- > 0;)
      if (parts[i].defined())
        parts[i] = reduce_scatter(parts[i], 0, reduce_type::mean, tags::padded,
                                  GradientOf{static_cast<int>(i)});
    if constexpr (Clips) clip(parts);
    return parts;
  }
  constexpr void clip(gradients& parts) {
    Tensor<T, 0> total;
    std::size_t n = 0;
    for_each_parameter(this->model(), [&](auto& p) {
      const auto& g = parts[n++];
      if (!g.defined()) return;
      const Tensor<T, 0> square = gradient_part(p, sum(g * g));
      total = total.defined() ? total + square : square;
    });
    if (!total.defined()) return;
    const auto norm = sqrt(all_reduce(total));
    const auto factor = minimum(max_norm.as<T>() / (norm + 1e-6), 1);
    for (auto& g : parts)
      if (g.defined()) g = g * factor;
  }

  int world_ = __builtin_is_constant_evaluated() ? 1 : world_size();
};
template <class Whole>
ZeroRedundancy(Whole&&) -> ZeroRedundancy<std::remove_cvref_t<Whole>>;
template <class Whole>
ZeroRedundancy(Whole&&, ZeroRedundancyOptions) -> ZeroRedundancy<std::remove_cvref_t<Whole>, true>;

}  // namespace xla::optim
