// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/scan.hpp"

namespace xla {
namespace detail {

/// The condition and the body of while_loop() with results of known types.
template <class Carry, class Condition, class Body>
struct tested_body {
  const Condition& condition;
  const Body& body;

  constexpr Tensor<bool, 0> go_on(const Carry& carry) const {
    auto holds = condition(carry);
    constexpr bool is_truth =
        std::is_same_v<typename result_of<decltype(holds)>::type, Tensor<bool, 0>>;
    static_assert(is_truth,
                  "xla::while_loop: the condition is one truth, a tensor of bool without "
                  "axes, as any() and all() make it");
    if constexpr (is_truth) return holds;
    else return {};
  }
  constexpr Carry next(const Carry& carry) const {
    auto made = body(carry);
    using Made = typename result_of<std::remove_cvref_t<decltype(made)>>::type;
    using Same = decltype(require_same_carry<loop_function::while_loop, Carry, Made>());
    if constexpr (Same::value) return made;
    else return carry;
  }
  /// As the body of a loop whose first carry is whether there is another step.
  constexpr auto operator()(const std::tuple<Tensor<bool, 0>, Carry>& now, int) const {
    const Carry made = next(std::get<1>(now));
    const std::tuple<Tensor<bool, 0>, Carry> handed_on(go_on(made), made);
    return step_results<std::tuple<Tensor<bool, 0>, Carry>, int>(handed_on, 0);
  }
};

template <class Carry, class Tested>
constexpr Carry while_captured(graph& g, const Tested& steps, const Carry& init, loop_call of,
                               bool again) {
  using Tuple = std::tuple<Tensor<bool, 0>, Carry>;
  const Tuple first(steps.go_on(init), init);
  const auto nothing = [](const auto&...) { return 0; };
  loop_capture<Tuple> loop(g, of, 1, false, {.tested = true});
  if (again) loop.recorded_before();
  return std::get<1>(loop.run(steps, first, nothing, nothing).first);
}

/// backward() that comes to a while_loop() of eager or traced mode.
template <class In>
void refuse_gradient_of_while(gradient_scope&) {
  throw std::logic_error(no_gradient_of_while);
}
template <class In>
inline constexpr op_info function_behind_while = function_with(&refuse_gradient_of_while<In>);

/// Of the last step alone is kept what gradients read, and they do not come further.
template <class Carry, class Tested>
Carry while_stepwise(const Tested& steps, const Carry& init, call_site site) {
  Carry made = init;
  for (std::int64_t step = 0;; ++step) {
    Carry now = made;
    each_tensor(now, [](auto& t) {
      if (t.requires_grad()) t = t.detach();
    });
    if (!in_body(site, step, [&] { return steps.go_on(now).item(); })) break;
    made = in_body(site, step, [&] { return steps.next(now); });
    check_carry<Carry>(now, made, site);
  }
  list<handle> in;
  list<char> wanted;  // of first values, too: where no step runs, they are the results
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
  using In = later<Carry, void>;
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

}  // namespace detail

/// body(carry) -> carry as long as condition(carry), one truth, holds; the first with init as
/// carry, which is the result where it does not hold at first. Carries are as those of scan(). In a
/// compiled function it is a loop; eager and traced mode read the condition before each step. It
/// has no gradient: backward() that comes to it is refused. Where the number of steps is known,
/// scan() or fori_loop() has one.
template <class Condition, class Body, class Init>
constexpr auto while_loop(const Condition& condition, const Body& body, const Init& init,
                          caller who = here()) {
  using Carry = typename detail::carried_as<Init>::type;
  const detail::loop_call of{detail::loop_function::while_loop, who};
  const detail::tested_body<Carry, Condition, Body> steps{condition, body};
  const Carry first = init;
  if (!__builtin_is_constant_evaluated())
    return detail::while_stepwise<Carry>(steps, first, of.site());
  detail::graph* g = detail::graph_of(first);
  const bool again = !g;
  if (again) {  // all constants: what stands around the body says
    const auto made = steps(std::tuple(steps.go_on(first), first), 0);
    g = detail::graph_of(made.first);
  }
  if (!g) throw std::logic_error("xla::while_loop: all is constant; start from zeros_like(x)");
  return detail::while_captured<Carry>(*g, steps, first, of, again);
}

}  // namespace xla
