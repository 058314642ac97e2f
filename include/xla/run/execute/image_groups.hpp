// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the groups of run/plan/image_groups.hpp. Programs of headers alone have none, to stay small:
// the runtime's run.cpp includes this, and epilogue.hpp calls it.

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/execute/epilogue.hpp"
#include "xla/run/plan/image_groups.hpp"

namespace xla::detail {

/// Takes one image after the other through the steps of a group.
template <class In>
void run_images(const dependent<In, plan>& p, const step_group& g, void* const* table,
                std::byte* arena) {
  each_slice<In>(g, arena, [&](std::byte* memory, std::int64_t image) {
    for (int i = g.first; i <= g.last; ++i) {
      const ready_step& s = p.steps[i];
      void *pointers[kernel::max_operands], *of_map[kernel::max_operands];
      slice_pointers<In>(p, s, table, memory, image, pointers);
      const shape* const shapes = &p.slice_shapes[s.first_slice];
      buffer* const cache_owner =
          s.cache_owner < 0 ? nullptr : static_cast<buffer*>(table[s.cache_owner]);
      const auto run = [&](const kernel::epilogue* after) {
        run_on<In>(p, s, pointers, shapes, nullptr, after, cache_owner);
      };
      if (i == g.last || !p.on_parts(i + 1)) {
        run(nullptr);
        continue;
      }
      const ready_step& map = p.steps[++i];
      slice_pointers<In>(p, map, table, memory, image, of_map);
      if (run_in_registers(p, s, pointers, shapes, cache_owner, map, of_map)) continue;
      run_with_map<In>(p, map, of_map, [&](const kernel::epilogue& after) { run(&after); });
    }
  });
}

template <class In>
void find_images(plan_steps& steps) {
  dependent<In, image_finder>(steps.of, steps.once, &run_images<In>).run();
}
XLA_INSTANCE(void find_images<void>(plan_steps&));

}  // namespace xla::detail
