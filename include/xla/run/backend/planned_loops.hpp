// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of a loop_maker, called while a program is planned: they make the loops
// (loops.hpp), find what they overwrite, prune their bodies and count their random numbers.

#include <cstdint>
#include <memory>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/run/backend/loop_draws.hpp"
#include "xla/run/backend/loops.hpp"
#include "xla/run/backend/make_loop.hpp"
#include "xla/run/backend/stack_places.hpp"
#include "xla/run/plan/loop_body.hpp"

namespace xla::detail {

template <class In>
[[XLA_PLANS]] loop_steps* make_loop(const dependent<In, sized_program>& p, const step& s,
                                    const region_kernel* kernels, const backend* by,
                                    std::unique_ptr<loop_steps>& others) {
  auto made = std::make_unique<dependent<In, basic_loop<In>>>(p, s, kernels, by);
  made->next = std::move(others);
  others = std::move(made);
  return others.get();
}
XLA_INSTANCE(loop_steps* make_loop<void>(const sized_program&, const step&, const region_kernel*,
                                         const backend*, std::unique_ptr<loop_steps>&));

template <class In>
[[XLA_PLANS]] void make_loops(plan_steps& steps) {
  dependent<In, plan>& p = steps.of;
  for (int i = 0; i < p.source.count.steps; ++i) {
    const step& s = p.step_at(i);
    if (s.kind != step_kind::library || !p.source.values[s.value].op->loops_steps) continue;
    loop_steps* const loop =
        make_steps(*p.source.values[s.value].op, p, s, steps.kernels, nullptr, p.bodies);
    loop->of = &s;
    if (const int g = p.group_of[i]; g >= 0)
      static_cast<dependent<In, basic_loop<In>>*>(loop)->run_between(p, p.groups[g]);
    p.own_bytes += loop->bytes();
  }
  dependent<In, basic_stack_placer<void>>(p).run();
}
XLA_INSTANCE(void make_loops<void>(plan_steps&));

template <class In>
[[XLA_PLANS]] bool loop_overwrites(const dependent<In, plan>& p, int i, int value, int old) {
  const step& s = p.step_at(i);
  int k = 0;
  while (p.source.outputs[s.first_output + k] != value) ++k;
  return p.loop_of(s)->overwrites(p, k, old);
}
XLA_INSTANCE(bool loop_overwrites<void>(const plan&, int, int, int));

template <class In>
[[XLA_PLANS]] void prune_body(basic_pruner<void>& by, step& loop) {
  dependent<In, basic_loop_body<In>>::prune(by, loop);
}
XLA_INSTANCE(void prune_body<void>(basic_pruner<void>&, step&));

/// All steps of a loop have consecutive numbers of their own.
template <class In>
[[XLA_PLANS]] void repeat_draws(dependent<In, sized_program>& p, int v) {
  const node& n = p.source.values[v];
  const auto about = n.attributes<op::loop>();
  const list<int> draws = draws_of_steps<In>(p, about.number);
  if (draws.empty()) return;
  const std::int64_t begin = p.counters[draws[0]], steps = value_at(p.symbols, about.trip);
  p.random_counters = begin + (steps > 0 ? calculated<'*'>(p.random_counters - begin, steps) : 0);
}
XLA_INSTANCE(void repeat_draws<void>(sized_program&, int));

}  // namespace xla::detail
