// SPDX-License-Identifier: Apache-2.0
#pragma once

// A compiled function's graph as text at a chosen stage, made at run time from a copy of the
// captured graph. The method graph(stage) of compiled functions calls it.

#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/run/call/stages.hpp"
#include "xla/run/plan/lowered.hpp"
#include "xla/transform/bfloat16_storage.hpp"
#include "xla/transform/print.hpp"

namespace xla::detail {

/// A captured graph at run time, to run the passes on it.
template <class In>
struct basic_graph_copy : owned_graph {
  list<node> all_nodes;
  list<slot> all_slots;
  list<symbol> all_symbols;
  list<equality> all_equalities;
  list<loop_range> all_loops;
  list<int> results;
  list<detail::write> writes;

  explicit basic_graph_copy(const graph_view& from)
      : all_nodes(from.nodes, from.nodes + from.count),
        all_slots(from.slots, from.slots + from.slot_count),
        all_symbols(from.symbols, from.symbols + from.symbol_count),
        all_equalities(from.equalities, from.equalities + from.equality_count),
        all_loops(from.loops, from.loops + from.loop_count),
        results(from.results, from.results + from.result_count),
        writes(from.writes, from.writes + from.write_count) {
    nodes = all_nodes.data();
    slots = all_slots.data();
    count = capacity = from.count;
    slot_count = slot_capacity = from.slot_count;
    loops = all_loops.data();
    loop_count = loop_capacity = from.loop_count;
    rules_of_loops = from.rules_of_loops;
    sizes.symbols = all_symbols.data();
    sizes.equalities = all_equalities.data();
    sizes.symbol_count = sizes.symbol_capacity = from.symbol_count;
    sizes.equality_count = sizes.equality_capacity = from.equality_count;
    sizes.owner = this;
    lists.append(from.lists, from.listed);
    store_bfloat16 = &store_as_bfloat16<dependent<In, void>>;
  }
  graph_roots roots() { return {results.data(), results.size(), writes.data(), writes.size()}; }
};

template <class In>
[[noreturn, gnu::cold]] void refuse_stage(std::string_view name, const added_passes* added) {
  dependent<In, std::string> names;
  for (const pass& p : passes) names = join({names, p.name, ", "});
  for (int i = 0; added && i < added->count; ++i) names = join({names, added->names[i], ", "});
  throw runtime_error(join({"xla: no stage of a graph is called \"", name,
                            "\"; there are captured, ", names, "lowered"}));
}

template <class In>
std::string print_stage(const graph_view& from, Stage stage, Passes wanted) {
  dependent<In, basic_graph_copy<In>> g(from);
  dependent<In, pass_state> s(g, g.roots(), true);
  dependent<In, lowered_graph> lowered;
  dependent<In, std::string> shown;
  run_passes(s, wanted, [&](std::string_view name, const pass_state& now) {
    if (name == stage.name) shown = print<In>(now, name == Stage::captured);
  });
  lowered.lower(s, wanted);
  if (stage.name == Stage::lowered) return print<In>(lowered.view());
  if (shown.empty()) refuse_stage<In>(stage.name, wanted.added);
  return shown;
}
XLA_PASS_INSTANCE(std::string print_stage<void>(const graph_view&, Stage, Passes));

}  // namespace xla::detail
