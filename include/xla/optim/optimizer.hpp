// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/later.hpp"
#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/cast.hpp"
#include "xla/optim/group.hpp"
#include "xla/run/state/all_or_nothing.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::optim {

/// What stands for the model where an optimizer is not made as SGD{model, {.lr = 0.1}}.
template <class...>
struct not_a_model {};

template <class Whole, bool Clips>
class ZeroRedundancy;

/// What optimizers share. Rule is a struct of hyper-parameters (Scalar) with
///   static constexpr int states: tensors kept beside each parameter, 0 at the start;
///   begin(count) -> what all updates of a step share; count is the number of the step, from 1, in
///   the parameters' element type;
///   update(shared, parameter, gradient, state...): the new values, in place;
///   check(), which may be missing: throws where a hyper-parameter makes no sense;
///   kept_rank and kept_beside(parameter), which may be missing: where what is kept beside a
///   parameter has another shape, how many axes, and a buffer of zeros.
/// The optimizer refers to its model, which must outlive it, and follows it where it is moved:
/// return std::pair{std::move(model), std::move(optimizer)} is fine. It cannot be copied, as the
/// copy would train the same model. Its state exists from the start, so that the first step is the
/// same graph as all others. It is for a model, a part() of one, or
/// several: optim::SGD{std::tie(actor, critic), {.lr = 1e-3}}, or a tuple of parts. Parameters with
/// other hyper-parameters are a group(). Compiled, each model is found among the step's arguments
/// by its type; several of one type belong to their optimizers in order, and those beyond are not
/// trained (a target network behind its model).
template <class Model, class Rule>
class Optimizer {
  using traits = model_traits<typename ungrouped<Model>::type>;
  using holder = typename traits::holder;
  static constexpr bool fitting = is_argument<typename traits::module>();
  using found_type = parameter_type<typename traits::module>;
  static constexpr bool is_double = std::is_same_v<found_type, double>;
  static_assert(!std::is_void_v<found_type> || !fitting,
                "xla::optim: the model has no parameters; they are what XLA_MODULE names");
  static constexpr bool is_half = std::is_same_v<found_type, bfloat16>;
  static_assert(!is_half,
                "xla::optim: small updates vanish in parameters of bfloat16; train a "
                "model of float, in xla::autocast, and load what was trained");
  static_assert(std::is_void_v<found_type> || std::is_same_v<found_type, float> || is_double ||
                    is_half,
                "xla::optim: parameters are all float or all double; where a model has both, an "
                "optimizer is for a part() with one of them");

 public:
  using optimized_type = Model;
  using rule_type = Rule;
  using model_type = typename ungrouped<Model>::type;
  using module_type = typename traits::module;
  using value_type = std::conditional_t<is_double, double, float>;
  static constexpr int parameters = count_parameters<module_type>();
  static constexpr std::size_t groups = ungrouped<Model>::groups;
  static constexpr int kept_rank = [] {
    if constexpr (requires { Rule::kept_rank; }) return Rule::kept_rank;
    else return dynamic_rank;
  }();
  using state_type = std::array<Buffer<value_type, kept_rank>, Rule::states>;

  [[gnu::cold]] constexpr explicit Optimizer(const holder& model, Rule rule = {})
      : options(rule), model_(model) {
    check_argument<module_type>();
    for (Rule& o : group_options) o = rule;
    if (__builtin_is_constant_evaluated()) return;
    if constexpr (requires { rule.check(); }) rule.check();
    model_.follow();
    xla::check_disjoint(model_.get());
    std::size_t i = 0;
    for_each_parameter(model_.get(), [&](auto& p) {
      if (i == 0) steps_.begin_beside(p);
      for (auto& s : state_[i]) {
        if constexpr (kept_rank == dynamic_rank) s.begin_beside(p);
        else s = Rule::kept_beside(p);
      }
      ++i;
    });
  }
  /// With groups of parameters.
  template <class... Which, class... Change>
    requires(sizeof...(Which) == groups && groups > 0)
  constexpr explicit Optimizer(const holder& model, Rule rule, const Group<Which, Change>&... more)
      : Optimizer(model, rule) {
    static_assert((std::is_invocable_v<const Change&, Rule&> && ...),
                  "xla::optim::group: the second function changes the group's options: "
                  "[](auto& o) { o.weight_decay = 0; }");
    std::size_t i = 0;
    (more.change(group_options[i++]), ...);
    if constexpr (requires { rule.check(); })
      if (!__builtin_is_constant_evaluated())
        for (const Rule& o : group_options) o.check();
  }

  constexpr Optimizer(const Optimizer& o) : options(o.options), model_(o.model_) {
    static_assert(!std::is_same_v<Rule, Rule>,
                  "xla::optim: an optimizer cannot be copied, as the copy would train the same "
                  "model: make one for the other model, SGD{other, ...}; move both, std::move; or "
                  "take it by reference, auto&");
  }
  constexpr Optimizer(Optimizer&&) noexcept = default;
  constexpr Optimizer& operator=(Optimizer&&) noexcept = default;

  /// Drops all gradients.
  constexpr void zero_grad() {
    for_each_parameter(model_.get(), [](auto& p) { p.zero_grad(); });
  }

  /// Updates every parameter that has a gradient; where that throws, none. An error when none has
  /// a gradient, though one could.
  constexpr void step() {
    check_gradients(model_.get());
    const auto step_all = [this] { update_all([](auto& p, std::size_t) { return p.grad(); }); };
    if (__builtin_is_constant_evaluated()) step_all();
    else all_or_nothing(step_all);
  }

  constexpr decltype(auto) model() const { return model_.get(); }
  constexpr const holder& target() const { return model_; }
  /// Calls f(state, path) for the count of steps and for each tensor kept beside a parameter:
  /// "step", "fc1.weight.0".
  template <class F>
  constexpr void visit_state(F&& f, const tree_path& path = {}) {
    f(steps_, tree_path(&path, "step"));
    std::size_t i = 0;
    const auto beside = [&](auto& p, const tree_path& at) {
      std::int64_t k = 0;
      for (auto& s : state_[i]) f(s, kept_path(at, p, k++));
      ++i;
    };
    visit_states<true>(model_.get(), beside, path);
  }

  Rule options;
  std::array<Rule, groups> group_options;

 private:
  template <class, bool>
  friend class ZeroRedundancy;

  /// Counts the step, and updates every parameter for which gradient(parameter, number) is defined.
  template <class Gradient>
  constexpr void update_all(const Gradient& gradient) {
    auto& steps = dependent<Rule>(steps_);
    steps.copy_(steps.detach() + 1);
    update_all(gradient, cast<value_type>(steps.detach()), std::make_index_sequence<groups>{});
  }
  template <class Gradient, std::size_t... G>
  constexpr void update_all(const Gradient& gradient_of, const Tensor<value_type, 0>& count,
                            std::index_sequence<G...>) {
    using shared = decltype(options.begin(count));
    const shared begun[] = {options.begin(count), group_options[G].begin(count)...};
    std::size_t i = 0;
    for_each_parameter(model_.get(), [&](auto& p) {
      auto& state = state_[i];
      const auto gradient = gradient_of(p, i);
      const std::size_t group = group_of(i++);
      if (!gradient.defined()) return;
      update(group == 0 ? options : group_options[group - 1], begun[group], p, gradient.detach(),
             state, std::make_index_sequence<Rule::states>{});
    });
  }
  static constexpr std::size_t group_of([[maybe_unused]] std::size_t parameter) {
    if constexpr (groups == 0) {
      return 0;
    } else {
      constexpr auto& table = groups_of<module_type, Model>;
      static_assert(!table.twice, "xla::optim::group: a parameter is in two groups");
      static_assert(table.none_empty(), "xla::optim::group: no parameter of the model is in it");
      return static_cast<std::size_t>(table.of[parameter]);
    }
  }
  template <class Shared, class P, class G, std::size_t... I>
  static constexpr void update(const Rule& rule, const Shared& shared, P& p, const G& gradient,
                               state_type& state, std::index_sequence<I...>) {
    rule.update(shared, p, gradient, state[I]...);
  }

  holder model_;
  Buffer<float, 0> steps_;
  std::array<state_type, static_cast<std::size_t>(parameters)> state_;
};

template <class... A, class Rule>
class Optimizer<not_a_model<A...>, Rule> {
 public:
  constexpr explicit Optimizer(A&&...) {
    static_assert(sizeof...(A) > 64,
                  "xla::optim: write SGD{model, {.lr = 0.1}}: the model itself, and the options by "
                  "name");
  }
  constexpr void zero_grad() {}
  constexpr void step() {}
  Rule options;
};

}  // namespace xla::optim
