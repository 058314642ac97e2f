// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a map on the parts of a convolution's result as they become complete. planned.hpp calls it
// for the pairs that run/plan/epilogues.hpp has found.

#include <optional>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/kernel/fused/epilogue.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/execute/tile.hpp"
#include "xla/run/plan/epilogues.hpp"

namespace xla::detail {

/// Runs the first step of a group, and the second, a map, on the parts of what it makes.
template <class In>
void run_with_epilogue(const later<In, plan>& p, const step_group& g, void* const* table) {
  const ready_step& map = p.steps[g.last];
  void* pointers[kernel::max_operands];
  for (int k = 0; k < map.operands; ++k) pointers[k] = table[p.operands[map.first_operand + k]];
  later<In, std::optional<tile_region>> region;
  kernel::tile_kernel kernel{map.kernel.map};
  if (!map.kernel.map) kernel = region.emplace(p.source, *map.source).kernel();
  const kernel::loop_nest loops = p.loops[map.loops];
  const kernel::map_rows rows(loops, kernel, pointers);
  const auto some = [](const void* self, std::int64_t first, std::int64_t last) {
    static_cast<const kernel::map_rows*>(self)->run(first, last);
  };
  const kernel::epilogue after(rows.rows(), rows.columns(), rows.row_bytes(), some, &rows);
  run_step<In>(p, p.steps[g.first], table, nullptr, &after);
  after.rest(rows.columns() * map.ops);
}

template <class In>
[[gnu::cold]] void find_epilogues(plan_steps& steps) {
  later<In, epilogue_finder>(steps.of, steps.once, &run_with_epilogue<In>).run();
}
XLA_INSTANCE(void find_epilogues<void>(plan_steps&));

}  // namespace xla::detail
