// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares what planned_loops.hpp and loop_signatures.hpp define, for the table of functions that
// programs with loops hand to plans (run/trace/loop_rules.hpp).

#include "xla/base/instance.hpp"
#include "xla/run/plan/loop_steps.hpp"

namespace xla::detail {

/// The functions of a loop_maker; run/backend/planned_loops.hpp defines them.
template <class In = void>
loop_steps* make_loop(const dependent<In, basic_sized_program<void>>& p, const step& s,
                      const region_kernel* kernels, const backend* by,
                      std::unique_ptr<loop_steps>& others);
/// For all loops of a plan.
template <class In = void>
void make_loops(plan_steps& steps);
/// Groups steps with the loops between whose steps they can run.
template <class In = void>
void join_updates(plan_steps& steps);
template <class In = void>
bool loop_overwrites(const dependent<In, basic_plan<void>>& p, int i, int value, int old);
template <class In = void>
void prune_body(basic_pruner<void>& by, step& loop);
template <class In = void>
void repeat_draws(dependent<In, basic_sized_program<void>>& p, int value);
template <class In = void>
void find_family(const program& p, list<char>& step_axes,
                 const list<dependent<In, basic_cached_executable<void>>>& all,
                 const list<shape>& slots, const list<char>& absent, position_in_family& found);
template <class In = void>
void make_rows(program& p, const program*& ops, list<char>& step_axes);

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/backend/join_updates.hpp"
#include "xla/run/backend/loop_signatures.hpp"
#include "xla/run/backend/planned_loops.hpp"
#include "xla/run/backend/whole_program.hpp"
#endif
