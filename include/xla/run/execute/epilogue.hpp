// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/kernel/epilogue.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/execute/tile.hpp"
#include "xla/run/plan/epilogues.hpp"

namespace xla::detail {

/// A map that runs on rows of the last axis.
template <class In>
struct basic_map_rows {
  kernel::loop_nest loops;
  kernel::tile_kernel kernel;
  void* pointers[kernel::max_operands];
  later<In, std::optional<tile_region>> region;
  std::int64_t rows = 0, columns, row_bytes = 0;

  basic_map_rows(const later<In, plan>& p, const ready_step& map, void* const* table)
      : loops(p.loops[map.loops]), columns(loops.inner()) {
    if (columns > 0) rows = loops.elements / columns;
    for (int k = 0; k < map.operands; ++k) {
      pointers[k] = table[p.operands[map.first_operand + k]];
      if (loops.axes > 1 && loops.strides[k][0] != 0) row_bytes += loops.bytes[k] * columns;
    }
    kernel = {map.kernel.map};
    if (!map.kernel.map) kernel = region.emplace(p.source, *map.source).kernel();
  }
  basic_map_rows(const basic_map_rows&) = delete;
  basic_map_rows& operator=(const basic_map_rows&) = delete;

  static void run(const void* self, std::int64_t first, std::int64_t last) {
    const auto& m = *static_cast<const basic_map_rows*>(self);
    kernel::run_map_rows(m.loops, m.kernel, m.pointers, first, last);
  }
};

/// Runs the first step of a group, and the second, a map, on the parts of what it makes.
template <class In>
void run_with_epilogue(const later<In, plan>& p, const step_group& g, void* const* table) {
  const ready_step& map = p.steps[g.last];
  const basic_map_rows<In> on(p, map, table);
  const kernel::epilogue after(on.rows, on.columns, on.row_bytes, &on.run, &on);
  run_step<In>(p, p.steps[g.first], table, nullptr, &after);
  after.rest(on.columns * map.ops);
}

template <class In>
[[gnu::cold]] void find_epilogues(plan_steps& steps) {
  later<In, epilogue_finder>(steps.of, steps.once, &run_with_epilogue<In>).run();
}
XLA_INSTANCE(void find_epilogues<void>(plan_steps&));

}  // namespace xla::detail
