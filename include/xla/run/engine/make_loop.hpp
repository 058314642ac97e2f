// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/instance.hpp"
#include "xla/run/plan/loop_steps.hpp"

namespace xla::detail {

/// What a loop_maker calls; run/engine/loops.hpp defines it.
template <class In = void>
loop_steps* make_loop(const later<In, basic_sized_program<void>>& p, const step& s,
                      const region_kernel* kernels, const engine* by,
                      std::unique_ptr<loop_steps>& others);
template <class In = void>
void shorten_body(basic_shortener<void>& by, step& loop);
template <class In = void>
void repeat_draws(later<In, basic_sized_program<void>>& p, int value);
template <class In = void>
list<char> find_step_axes(const program& p);
template <class In = void>
std::uint64_t family_of(const list<char>& step_axes, const list<shape>& slots,
                        const list<char>& absent);
template <class In = void>
int find_leaver(const list<later<In, basic_kept_executable<void>>>& all, std::uint64_t family);

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/engine/loop_signatures.hpp"
#include "xla/run/engine/loops.hpp"
#endif
