// SPDX-License-Identifier: Apache-2.0
#pragma once

// while_loop(): repeats a body while a condition on its carry holds, as jax.lax.while_loop.
// Gradients do not pass through it; a loop of known length is fori_loop() or scan().

#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/scan.hpp"

namespace xla {

/// Options of xla::while_loop.
struct WhileLoopOptions {
  /// The largest number of steps; -1: unknown. If given, the body may draw random numbers: the loop
  /// consumes those of this many steps, however many run.
  Size max_steps = -1;
};

namespace detail {

/// The condition and the body of while_loop() with results of known types.
template <class Carry, class Condition, class Body>
struct tested_body {
  const Condition& condition;
  const Body& body;

  constexpr Tensor<bool, 0> go_on(const Carry& carry) const {
    auto holds = condition(carry);
    constexpr bool is_bool =
        std::is_same_v<typename result_of<decltype(holds)>::type, Tensor<bool, 0>>;
    static_assert(is_bool,
                  "xla::while_loop: the condition must return one bool: a tensor of bool without "
                  "axes, as any() and all() do");
    if constexpr (is_bool) return holds;
    else return {};
  }
  constexpr Carry next(const Carry& carry) const {
    auto made = body(carry);
    using Made = typename result_of<std::remove_cvref_t<decltype(made)>>::type;
    using Same = decltype(require_same_carry<loop_function::while_loop, Carry, Made>());
    if constexpr (Same::value) return made;
    else return carry;
  }
  /// As the body of a loop whose first carry says whether there is another step.
  constexpr auto operator()(const std::tuple<Tensor<bool, 0>, Carry>& now, int) const {
    const Carry made = next(std::get<1>(now));
    const std::tuple<Tensor<bool, 0>, Carry> yielded(go_on(made), made);
    return step_results<std::tuple<Tensor<bool, 0>, Carry>, int>(yielded, 0);
  }
};

/// Whether the options give a number of steps.
constexpr bool is_count(const Size& n) { return n.table() || n.extent() >= 0; }

template <class Carry, class Tested>
constexpr Carry while_captured(graph& g, const Tested& steps, const Carry& init, Size most,
                               loop_call of, bool again) {
  using Tuple = std::tuple<Tensor<bool, 0>, Carry>;
  const Tuple first(steps.go_on(init), init);
  const auto nothing = [](const auto&...) { return 0; };
  const bool bounded = is_count(most);
  loop_capture<Tuple> loop(g, of, bounded ? most.extent() : 1, false,
                           {.tested = true, .bounded = bounded});
  if (again) loop.recorded_before();
  return std::get<1>(loop.run(steps, first, nothing, nothing).first);
}

/// The gradient rule of a while_loop() whose steps ran one by one: an error.
template <class In>
void refuse_gradient_of_while(gradient_scope&) {
  throw std::logic_error(no_gradient_of_while);
}
template <class In>
inline constexpr op_info function_behind_while = function_with(&refuse_gradient_of_while<In>);

/// Consumes the random numbers of steps that did not run: as many per step as the steps that ran.
/// If none ran, one step is recorded, and not run, to find out.
template <class In>
class steps_to_draw {
 public:
  explicit steps_to_draw(std::int64_t most) : max_(most), from_(get_rng_state<In>()) {}

  void end(std::int64_t steps, const auto& step) const {
    const std::int64_t left = max_ - steps;
    if (left <= 0) return;
    const rng_state now = get_rng_state<In>();
    const std::uint64_t each =
        steps > 0 ? (now.offset - from_.offset) / std::uint64_t(steps) : taken_by(step);
    if (each > 0) set_rng_state<In>({now.seed, now.offset + each * std::uint64_t(left)});
  }

 private:
  std::uint64_t taken_by(const auto& step) const {
    const eager_mode_guard traced(!has_traced_mode);
    const dry_run<In> nothing;
    step();
    return get_rng_state<In>().offset - from_.offset;
  }

  std::int64_t max_;
  rng_state from_;
};

/// The carry inside a step: gradients stop here.
template <class Carry>
Carry begun(Carry all) {
  each_tensor(all, [](auto& t) {
    if (t.requires_grad()) t = t.detach();
  });
  return all;
}
/// Wraps the result of a while_loop() so that backward() through it is refused.
template <class Carry>
Carry behind_while(const Carry& init, Carry made) {
  list<handle> in;
  list<char> wanted;  // also for initial values, which are the results if no step runs
  bool wants = false;
  each_tensor(init, [&](const auto& t) {
    wanted.push_back(t.requires_grad());
    in.push_back(t);
  });
  each_tensor(made, [&, k = 0](const auto& t) mutable {
    in.push_back(t);
    wants |= wanted[k++] |= t.requires_grad();
  });
  if (!wants || !grad_enabled()) return made;
  using In = dependent<Carry, void>;
  list<const handle*> all;
  for (const handle& h : in) all.push_back(&h);
  const handle function = function_of<In>(function_behind_while<In>, {}, all.data(), all.size());
  each_tensor(made, [&, k = 0](auto& t) mutable {
    using T = std::remove_cvref_t<decltype(t)>;
    if (wanted[k]) t = result_of_function<T>(t.detach(), function, k);
    ++k;
  });
  return made;
}

/// Runs step by step. Only the last step's intermediate values are kept. most: the limit on steps;
/// -1: none.
template <class Carry, class Tested>
Carry while_stepwise(const Tested& steps, const Carry& init, std::int64_t most, call_site site) {
  const auto go_on = [&](const Carry& now, std::int64_t step) {
    return in_body(site, step, [&] { return steps.go_on(now).item(); });
  };
  Carry made = init, now = begun(made);
  bool more = go_on(now, 0);
  const steps_to_draw<dependent<Carry, void>> draws(most);
  std::int64_t step = 0;
  for (; more && step != most; more = go_on(now, step)) {
    made = in_body(site, step, [&] { return steps.next(now); });
    check_carry<Carry>(now, made, site);
    now = begun(made);
    ++step;
  }
  draws.end(step, [&] { return steps.go_on(steps.next(now)); });
  return behind_while(init, std::move(made));
}

/// As one loop if the condition and the body can be recorded, else step by step.
template <class Carry, class Tested>
Carry while_at_run_time(const Tested& steps, const Carry& init, std::int64_t most, call_site site) {
  using Tuple = std::tuple<Tensor<bool, 0>, Carry>;
  const auto body = [&](const Tuple& now, int) {
    const Carry made = steps.next(std::get<1>(now));
    return std::pair(Tuple(steps.go_on(made), made), std::tuple<>());
  };
  const auto record = [&] {
    dry_run<dependent<Carry, void>> trial;
    const Carry from = begun(init);
    const Tuple first(in_body(site, -1, [&] { return steps.go_on(from); }), from);
    const traced_steps of{.trip = most < 0 ? 1 : most, .tested = true, .bounded = most >= 0};
    auto loop = record_body_over(body, first, {}, of, site, [](traced_loop&) { return 0; });
    if (loop) trial.keep();
    return loop;
  };
  if constexpr (has_traced_mode)
    if (records_ops())
      if (const auto loop = record())
        return behind_while(init, std::get<1>(results_of<Tuple, std::tuple<>>(*loop).first));
  return while_stepwise<Carry>(steps, init, most, site);
}

}  // namespace detail

/// Repeats body(carry) -> carry as long as condition(carry), one bool, holds. The first carry is
/// init, which is the result if the condition does not hold at first. Carries are like those of
/// scan(). In a compiled function and in traced mode it is a loop. Eager mode reads the condition
/// before each step. So does traced mode if the condition or body reads elements, calls backward(),
/// or draws without max_steps. It has no gradient: a backward() that reaches it is refused. If the
/// number of steps is known, use scan() or fori_loop(), which have gradients. options.max_steps
/// limits the number of steps; then the body may draw random numbers.
template <class Condition, class Body, class Init>
constexpr auto while_loop(const Condition& condition, const Body& body, const Init& init,
                          const WhileLoopOptions& options = {}, caller loc = here()) {
  using Carry = typename detail::carried_as<Init>::type;
  const detail::loop_call of{detail::loop_function::while_loop, loc};
  const detail::tested_body<Carry, Condition, Body> steps{condition, body};
  const Carry first = init;
  const Size& most = options.max_steps;
  if (!most.table() && most.extent() < -1)
    detail::size_scope{nullptr, of.site()}.fail(
        detail::text("max_steps is ") << most.extent() << "; it is a number of steps, or -1");
  if (!__builtin_is_constant_evaluated())
    return detail::while_at_run_time<Carry>(steps, first, most.extent(), of.site());
  detail::graph* g = detail::graph_of(first);
  const bool again = !g;
  if (again) {  // constants only: the tensors around the body determine the graph
    const auto made = steps(std::tuple(steps.go_on(first), first), 0);
    g = detail::graph_of(made.first);
  }
  if (!g)
    throw std::logic_error(
        "xla::while_loop: all arguments are constant; start from "
        "zeros_like(x) of a tensor x");
  return detail::while_captured<Carry>(*g, steps, first, most, of, again);
}

}  // namespace xla
