// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of functions by which graphs, plans and gradients reach the code of loops. Recording a
// loop refers to it, so that programs without loops have none of that code.

#include "xla/run/backend/make_loop.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/transform/batch_products.hpp"
#include "xla/transform/forward.hpp"
#include "xla/transform/loop_backward.hpp"
#include "xla/transform/loop_gradient_uses.hpp"
#include "xla/transform/loop_layouts.hpp"
#include "xla/transform/loop_values.hpp"
#include "xla/transform/lower_loops.hpp"

namespace xla::detail {

/// The functions of a loop_maker; run/trace/loop_as_function.hpp defines them.
template <class = void>
void replay_loop(const loop_of_call& of);

template <class In>
constexpr loop_maker make_loop_maker() {
  loop_maker all{&make_loop<dependent<In, void>>,    &prune_body<dependent<In, void>>,
                 &repeat_draws<dependent<In, void>>, &find_family<dependent<In, void>>,
                 &make_rows<dependent<In, void>>,    nullptr};
  if constexpr (keeps_forward && has_traced_mode) all.replay = &replay_loop<dependent<In, void>>;
  return all;
}
template <class In>
inline constexpr loop_maker makes_loops = make_loop_maker<In>();
template <class In>
inline constexpr plan_hooks loops_in_plans{.loops = &make_loops<dependent<In, void>>,
                                           .join = &join_updates<dependent<In, void>>,
                                           .overwrites = &loop_overwrites<dependent<In, void>>,
                                           .put_input = &put_input<dependent<In, void>>};
/// The op, by whether its steps draw, check, and exchange with other replicas.
template <class In, bool Draws, bool Checks, bool Exchanges>
inline constexpr loop_info loop_with =
    info_of_loop(makes_loops<In>, loops_in_plans<In>, Draws, Checks, Exchanges);
template <class In>
inline constexpr recorded_loop_rules loops_of_graphs{
    {.level = &level_in_loops,
     .range = &range_of_loop,
     .set_stage = &stage_in_loops,
     .verify = &verify_loops,
     .refuse_leaks = &refuse_leaks,
     .lower = &loop_lowering::run,
     .order = &loop_body_order::order,
     .homes = &loop_body_order::find_homes,
     .outside = &loop_body_order::outside,
     .step = &loop_backward::step,
     .sum = &loop_backward::sum,
     .replaced = &loop_backward::replaced,
     .read = &loop_backward::read,
     .read_results = &loop_backward::read_results,
     .end_at_arguments = &end_at_arguments,
     .batch_products = &batch_products::run,
     .layouts = &loop_layouts,
     .gradient_use = &loop_gradient_user::use,
     .minus_zeros = &minus_zeros<In>,
     .block = &block_of<In>,
     .add_numbers = &add_numbers<In>,
     .join_blocks = &join_blocks<In>,
     .find_repeats = &find_repeats,
     .repeat_input = &repeat_input_of,
     .repeat_result = &repeat_result_of,
     .repeat_sum = &repeat_sum_of,
     .write_row = &write_row_of,
     .name_row = &name_row_of,
     .row_use = &loop_gradient_user::row_use,
     .count_repeated = &count_repeated,
     .of = {{{&loop_with<In, false, false, false>, &loop_with<In, false, false, true>},
             {&loop_with<In, false, true, false>, &loop_with<In, false, true, true>}},
            {{&loop_with<In, true, false, false>, &loop_with<In, true, false, true>},
             {&loop_with<In, true, true, false>, &loop_with<In, true, true, true>}}}},
    &join_matrices<In>,
    &reshape_of<In>};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/trace/loop_as_function.hpp"
#endif
