// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by all optimizers: parameters, state, groups, transactional steps. A new optimizer is a
// rule for one parameter, as in sgd.hpp.

#include "xla/base/dependent.hpp"
#include "xla/base/option.hpp"
#include "xla/module.hpp"
#include "xla/op/cast.hpp"
#include "xla/optim/group.hpp"
#include "xla/optim/rates.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/run/trace/repeated_rules.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/run/trace/sync.hpp"
#include "xla/tensor/assigned.hpp"

namespace xla::optim {

/// The model type of an optimizer whose arguments are no model; using it stops the build with an
/// error sentence.
template <class...>
struct not_a_model {};

template <class Whole, bool Clips>
class ZeroRedundancy;

/// The base of all optimizers. Rule is a struct of hyper-parameters (Scalar) with
///   static constexpr int states: tensors kept for each parameter, 0 at the start;
///   begin(count) -> what all updates of a step share; count is the number of the step, from 1, in
///   the parameters' element type;
///   update(shared, parameter, gradient, state...): the new values, in place;
/// and, each of which may be missing:
///   check(): throws where a hyper-parameter makes no sense;
///   shared_states: names of numbers that all parameters share, each 0 at the start; begin(count,
///   number...) gets them as buffers, in place. Every group has its own;
///   elementwise = false: the new value of an element depends on others, so that a part of a
///   parameter cannot be updated alone;
///   one_along(axis, rank, k): whether the k-th tensor kept for a parameter of that rank has
///   size 1 along an axis, and not the parameter's; state_rank and state_like(parameter): the same
///   for a fixed number of axes, how many, and a buffer of zeros.
/// The optimizer refers to its model, which must outlive it, and follows it when it is moved:
/// return std::pair{std::move(model), std::move(optimizer)} is fine. It cannot be copied, as the
/// copy would train the same model. Its state exists from the start, so that the first step has the
/// same graph as all others. It takes a model, a part() of one, or several:
/// optim::SGD{std::tie(actor, critic), {.lr = 1e-3}}, or a tuple of parts. group() gives parameters
/// other hyper-parameters. In a compiled step each model is found among the arguments by its type.
/// Several models of one type belong to their optimizers in order; further ones, such as a target
/// network, are not trained.
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
  static constexpr int state_rank = [] {
    if constexpr (requires { Rule::state_rank; }) return Rule::state_rank;
    else return dynamic_rank;
  }();
  using state_type = std::array<Buffer<value_type, state_rank>, Rule::states>;
  static constexpr std::size_t shared_states = [] {
    if constexpr (requires { Rule::shared_states; }) return std::size(Rule::shared_states);
    else return std::size_t{0};
  }();

  [[gnu::cold]] constexpr explicit Optimizer(const holder& model, Rule rule = {})
      : options(rule), model_(model) {
    check_argument<module_type>();
    for (Rule& o : group_options) o = rule;
    if (__builtin_is_constant_evaluated()) return;
    if constexpr (requires { rule.check(); }) rule.check();
    model_.follow();
    xla::check_disjoint(model_.get());
    xla::check_assigned(model_.get());
    std::size_t i = 0;
    for_each_parameter(model_.get(), [&](auto& p) {
      if (i == 0) begin_numbers(p);
      begin_state(p, state_[i++]);
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

  /// Updates every parameter that has a gradient, or none if that throws. An error if none has a
  /// gradient although one could.
  constexpr void step() {
    check_gradients(model_.get());
    const auto step_all = [this] {
      update_all<true>([](auto& p, std::size_t) { return p.grad(); });
    };
    if (__builtin_is_constant_evaluated()) step_all();
    else transaction(step_all), end_of_update<dependent<Rule, void>>();
  }

  /// The same with other learning rates than options.lr, for this step alone. They are tensors,
  /// which may differ from step to step of a loop, as with a schedule. One number is for all
  /// parameters, including those of groups, like setting group['lr'] of each of param_groups in
  /// PyTorch. A tensor of one axis, an array or a tuple has one for the parameters in no group,
  /// then one for each group. lr_factor(factor) multiplies the current rates.
  template <class Rates>
  constexpr void step(const Rates& lr) {
    step_with(lr, [this] { step(); });
  }

  constexpr decltype(auto) model() const { return model_.get(); }
  constexpr const holder& target() const { return model_; }
  /// Calls f(state, path) for the step count, the numbers that parameters share, and each tensor
  /// kept for a parameter: "step", "mu_product", for the first group "mu_product.0",
  /// "fc1.weight.0".
  template <class F>
  constexpr void visit_state(F&& f, const tree_path& path = {}) {
    f(steps_, tree_path(&path, "step"));
    if constexpr (shared_states > 0)
      for (std::size_t g = 0; g <= groups; ++g)
        for (std::size_t k = 0; k < shared_states; ++k) {
          const tree_path named(&path, Rule::shared_states[k]);
          if (g == 0) f(shared_[0][k], named);
          else f(shared_[g][k], tree_path(&named, static_cast<std::int64_t>(g - 1)));
        }
    std::size_t i = 0;
    const auto visit_state_of = [&](auto& p, const tree_path& at) {
      std::int64_t k = 0;
      for (auto& s : state_[i]) f(s, state_path(at, p, k++, one_along));
      ++i;
    };
    visit_states<true>(model_.get(), visit_state_of, path);
  }

  Rule options;
  std::array<Rule, groups> group_options;
  /// The rates from which schedules start, overall and per group: those when the first schedule was
  /// made. None before.
  std::array<double, groups + 1> initial_lr{};
  bool has_initial_lr = false;

 protected:
  /// Runs a step with other learning rates.
  template <class Rates, class Step>
  constexpr void step_with(const Rates& lr, const Step& step) {
    const auto rates = rates_of(lr);
    const struct until_then {
      Optimizer& of;
      Scalar before[groups + 1];
      constexpr explicit until_then(Optimizer& o) : of(o) {
        for (std::size_t g = 0; g <= groups; ++g) before[g] = o.lr_of(g);
      }
      constexpr ~until_then() {
        for (std::size_t g = 0; g <= groups; ++g) of.lr_of(g) = before[g];
      }
    } kept(*this);
    for (std::size_t g = 0; g <= groups; ++g) lr_of(g) = Scalar::held_by(rates[g]);
    step();
  }

 private:
  template <class, bool>
  friend class ZeroRedundancy;
  constexpr Scalar& lr_of(std::size_t group) {
    if constexpr (groups > 0)
      if (group > 0) return group_options[group - 1].lr;
    return options.lr;
  }
  /// The rates of step(lr) for each group.
  template <class Rates>
  constexpr auto rates_of(const Rates& lr) {
    if constexpr (detail::is_lr_factor<Rates>) {
      detail::learning_rates<value_type, groups + 1> all;
      const auto factor = cast<value_type>(lr.factor);
      for (std::size_t g = 0; g <= groups; ++g)
        all[g] = lr_of(g).template as<value_type>() * factor;
      return all;
    } else {
      static_assert(
          requires { detail::rates_of<value_type, groups + 1>(lr); },
          "xla::optim: step(lr) takes a learning rate as a tensor without axes; a tensor of one "
          "axis, an array or a tuple of one per group; or lr_factor(factor)");
      return detail::rates_of<value_type, groups + 1>(lr);
    }
  }
  static constexpr bool elementwise = [] {
    if constexpr (requires { Rule::elementwise; }) return Rule::elementwise;
    else return true;
  }();
  static constexpr state_path::axis_test one_along = [] {
    if constexpr (requires { &Rule::one_along; }) return &Rule::one_along;
    else return state_path::axis_test{};
  }();

  static void begin_state(const auto& p, state_type& state) {
    int k = 0;
    for (auto& s : state) {
      if constexpr (state_rank != dynamic_rank) s = Rule::state_like(p);
      else if constexpr (!requires { &Rule::one_along; }) s.begin_like(p);
      else s.begin_like(p, [k](int axis, int rank) { return one_along(axis, rank, k); });
      ++k;
    }
  }
  /// Zeros on a parameter's device.
  void begin_numbers(const auto& p) {
    steps_.begin_like(p);
    for (auto& group : shared_)
      for (auto& number : group) number.begin_like(p);
  }
  /// Counts the step, and updates every parameter for which gradient(parameter, number) is defined.
  template <bool Repeats = false, class Gradient>
  constexpr void update_all(const Gradient& gradient) {
    auto& steps = as_dependent<Rule>(steps_);
    steps.copy_(steps.detach() + 1);
    update_all<Repeats>(gradient, cast<value_type>(steps.detach()),
                        std::make_index_sequence<groups>{});
  }
  template <bool Repeats, class Gradient, std::size_t... G>
  constexpr void update_all(const Gradient& gradient_of, const Tensor<value_type, 0>& count,
                            std::index_sequence<G...>) {
    constexpr std::make_index_sequence<shared_states> all;
    using begun_type = decltype(begin(options, count, shared_[0], all));
    const begun_type begun[] = {begin(options, count, shared_[0], all),
                                begin(group_options[G], count, shared_[G + 1], all)...};
    std::size_t i = 0;
    const auto update_alone = [&](auto& p) {
      auto& state = state_[i];
      const auto gradient = gradient_of(p, i);
      const std::size_t group = group_of(i++);
      if (!gradient.defined()) return;
      update(group == 0 ? options : group_options[group - 1], begun[group], p, gradient.detach(),
             state, std::make_index_sequence<Rule::states>{});
    };
    if constexpr (Repeats && elementwise)
      if (__builtin_is_constant_evaluated()) return update_with_repeats(begun, i, update_alone);
    for_each_parameter(model_.get(), update_alone);
  }
  /// In a captured step the rules for the parameters of equal blocks are recorded once.
  template <class Shared, class F>
  [[gnu::cold]] constexpr void update_with_repeats(const Shared* begun, std::size_t& i,
                                                   const F& update_alone) {
    repeated_rules repeats;
    repeats.find(model_.get(), Rule::states + 1,
                 [](int k) { return static_cast<int>(group_of(static_cast<std::size_t>(k))); });
    for_each_parameter(model_.get(), [&](auto& p) {
      if (!repeats.holds(static_cast<int>(i))) return update_alone(p);
      const std::size_t group = group_of(i);
      update_repeated(repeats, group == 0 ? options : group_options[group - 1], begun[group], p,
                      i++);
    });
  }
  /// The rule for a block's parameter, recorded by the first block.
  template <class Shared, class P>
  [[gnu::cold]] constexpr void update_repeated(const repeated_rules& repeats, const Rule& rule,
                                               const Shared& shared, P& p, std::size_t at) {
    const int i = static_cast<int>(at);
    const auto state_of = [this](int k, int s) -> auto& {
      return state_[static_cast<std::size_t>(k)][static_cast<std::size_t>(s)];
    };
    if (repeats.begins(i)) {
      P one(p);
      state_type state(state_[at]);
      stand_for(one, repeats.input(i, [&](int k) { return repeats.slot_of(k); }));
      for (int s = 0; s < Rule::states; ++s)
        stand_for(state[static_cast<std::size_t>(s)],
                  repeats.input(i, [&](int k) { return state_of(k, s).slot_index(); }));
      update(rule, shared, one, repeats.gradient(i, p), state,
             std::make_index_sequence<Rule::states>{});
      repeats.made(i, 0) = one.node_index();
      for (int s = 0; s < Rule::states; ++s)
        repeats.made(i, s + 1) = state[static_cast<std::size_t>(s)].node_index();
    }
    auto& own = state_[at];
    repeats.write(i, [&](int k) {
      return k == 0 ? p.slot_index() : own[static_cast<std::size_t>(k - 1)].slot_index();
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
  using shared_type = std::array<Buffer<value_type, 0>, shared_states>;
  template <std::size_t... I>
  static constexpr auto begin(const Rule& rule, const Tensor<value_type, 0>& count,
                              [[maybe_unused]] shared_type& shared, std::index_sequence<I...>) {
    return rule.begin(count, shared[I]...);
  }
  template <class Shared, class P, class G, std::size_t... I>
  static constexpr void update(const Rule& rule, const Shared& shared, P& p, const G& gradient,
                               state_type& state, std::index_sequence<I...>) {
    rule.update(shared, p, gradient, state[I]...);
  }

  holder model_;
  Buffer<float, 0> steps_;
  std::array<shared_type, groups + 1> shared_;
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
