// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks a plan after the passes over its steps, and describes an error in one sentence. In debug
// builds and on request; transform/verify.hpp does the same for graphs.

#include <climits>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// The invariants that a pass over the steps must preserve: each step runs once, after the steps
/// that it reads, and among steps that run side by side none reads another's result. Returns a
/// sentence about the first violation, or an empty one.
template <class In>
[[gnu::cold]] text verify(const dependent<In, plan>& p) {
  constexpr int nowhere = -1, later_on = INT_MAX;
  const program& source = p.source;
  list<int> made(source.count.values,
                 nowhere);  // per value: the position of the step that makes it
  for (int i = 0; i < source.count.steps; ++i)
    for (int k = 0; k < source.steps[i].outputs; ++k)
      made[p.base[source.outputs[source.steps[i].first_output + k]]] = later_on;
  list<char> ran(source.count.steps, false);
  for (int i = 0; i < source.count.steps; ++i) {
    const step& s = p.step_at(i);
    text at("step ");
    at << i;
    if (ran[p.order[i]]) return at << " has run before";
    ran[p.order[i]] = true;
    const bool concurrent =
        p.group_of[i] >= 0 && p.waits_for_none(i) && p.groups[p.group_of[i]].threads > 0;
    const int begin = concurrent ? p.begin_of(i) : i;
    if (p.begin_of(i) > i || p.end_of(i) < i) return at << " is outside of its group";
    for (int k = 0; k < s.inputs; ++k)
      if (const int maker = made[p.base[source.inputs[s.first_input + k]]]; maker == later_on)
        return at << " runs before the steps that it reads";
      else if (maker >= begin) return at << " runs side by side with a step that it reads";
    for (int k = 0; k < s.outputs; ++k) made[p.base[source.outputs[s.first_output + k]]] = i;
  }
  return {};
}

}  // namespace xla::detail
