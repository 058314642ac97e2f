// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/base/list.hpp"
#include "xla/run/call/stages.hpp"
#include "xla/run/plan/lowered.hpp"
#include "xla/transform/print.hpp"

namespace xla::detail {

// A captured graph at run time, to take through the passes one by one.
template <class In>
std::string print_stage(const graph_view& from, Stage stage) {
  list<node> nodes(from.nodes, from.nodes + from.count);
  list<slot> slots(from.slots, from.slots + from.slot_count);
  list<symbol> symbols(from.symbols, from.symbols + from.symbol_count);
  list<equality> equalities(from.equalities, from.equalities + from.equality_count);
  list<int> results(from.results, from.results + from.result_count);
  list<write> writes(from.writes, from.writes + from.write_count);
  graph g;
  g.nodes = nodes.data();
  g.slots = slots.data();
  g.count = g.capacity = from.count;
  g.slot_count = g.slot_capacity = from.slot_count;
  g.sizes.symbols = symbols.data();
  g.sizes.equalities = equalities.data();
  g.sizes.symbol_count = g.sizes.symbol_capacity = from.symbol_count;
  g.sizes.equality_count = g.sizes.equality_capacity = from.equality_count;
  g.sizes.owner = &g;
  if (stage == Stage::captured) return print(g);
  if (stage == Stage::lowered) {
    later<In, lowered_graph> lowered;
    lowered.build(g, {results.data(), from.result_count, writes.data(), from.write_count}, {});
    return print(lowered.view());
  }
  list<int> to(nodes.size() + 1);
  simplify(g, to.data());
  if (stage == Stage::shared) share(g, to.data());
  list<char> live(nodes.size() + 1);
  static_assert(sizeof(bool) == 1);
  bool* mask = reinterpret_cast<bool*>(live.data());
  for (int r : results) mask[to[r]] = true;
  for (const write& w : writes) mask[to[w.value]] = true;
  mark_live(g, to.data(), mask);
  return print(g, mask);
}
XLA_INSTANCE(std::string print_stage<void>(const graph_view&, Stage));

}  // namespace xla::detail
