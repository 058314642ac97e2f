// SPDX-License-Identifier: Apache-2.0
#pragma once

// The random numbers of each step of a loop: they begin where those of the previous step end. The
// native loops and StableHLO's both use it, so that all backends draw the same numbers.

#include <cstdint>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/plan/sized.hpp"

namespace xla::detail {

/// Per loop, by its number, the enclosing loop.
template <class In>
[[XLA_PLANS]] list<int> loops_around(const dependent<In, sized_program>& p) {
  list<int> around;
  for (int v = 0; v < p.random.size(); ++v) {
    const node& n = p.source.values[v];
    if (!is<op::loop>(n)) continue;
    const int number = n.attributes<op::loop>().number;
    while (around.size() <= number) around.push_back(0);
    around[number] = n.loop;
  }
  return around;
}
/// The random ops of a loop's steps and of nested loops, among the values of this range.
template <class In>
[[XLA_PLANS]] list<int> draws_of_steps(const dependent<In, sized_program>& p, int loop) {
  list<int> draws;
  if (p.counters.empty()) return draws;
  const list<int> around = loops_around<In>(p);
  for (int v = 0; v < p.random.size(); ++v) {
    const node& n = p.source.values[v];
    if (!draws_again(n)) continue;
    int l = n.loop;
    while (l != loop && l != 0) l = l < around.size() ? around[l] : 0;
    if (l == loop) draws.push_back(p.random[v]);
  }
  return draws;
}
/// For a loop that draws: where the random numbers of its first step end.
template <class In>
[[XLA_PLANS]] std::int64_t end_of_step(const dependent<In, sized_program>& p, int loop) {
  std::int64_t end = 0;
  for (int v = 0; v < p.random.size(); ++v) {
    const node& n = p.source.values[v];
    if (n.loop != loop) continue;
    if (draws_again(n)) {
      end =
          p.counters[p.random[v]] + static_cast<std::int64_t>(random_counters(p.shapes[v], n.type));
    } else if (is<op::loop>(n)) {
      const auto inner = n.attributes<op::loop>();
      const list<int> draws = draws_of_steps<In>(p, inner.number);
      if (draws.empty()) continue;
      const std::int64_t begin = p.counters[draws[0]], steps = value_at(p.symbols, inner.trip);
      end = begin + (end_of_step<In>(p, inner.number) - begin) * (steps > 0 ? steps : 0);
    }
  }
  return end;
}

}  // namespace xla::detail
