// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// A set of nodes that one kernel computes in one pass. All walk the same space; a reduction over
/// the space's last axis, and what follows from it row by row, may be among them.
struct region {
  shape space;
  dtype main = dtype::boolean;
  bool reduces = false;
  bool read_outside = false;  ///< another step waits for it: its stage is settled
  int stage = 0;              ///< later than the stage of everything it reads
  int nodes = 0;
  int inputs = 0;  ///< an upper bound
  int merged_into = -1;
};

struct fuse_options {
  bool maps = true;  ///< fuse elementwise ops
  bool rows = true;  ///< fuse reductions with them
};

/// Finds the regions of a graph in one sweep. A node joins a region of one of its inputs, or merges
/// several; stages keep the steps free of cycles: every step's stage is greater than those of what
/// it reads, and grows only while no other step reads it.
struct fuser {
  static constexpr int max_nodes = 40;
  static constexpr int max_inputs = 14;

  const graph& g;
  const bool* live;
  const fuse_options options;
  int* region_of;  ///< per node: its region, or -1
  int* stage;      ///< per node without region: when its value is there
  region* regions;
  int count = 0;

  constexpr int find(int r) const {
    while (regions[r].merged_into >= 0) r = regions[r].merged_into;
    return r;
  }
  constexpr int region_at(int node) const {
    return region_of[node] < 0 ? -1 : find(region_of[node]);
  }
  constexpr int stage_at(int node) const {
    const int r = region_at(node);
    return r < 0 ? stage[node] : regions[r].stage;
  }

  /// The one element type besides bool that a map computes with; false when there are two.
  constexpr bool main_type(const node& n, dtype& main) const {
    main = n.type;
    for (int k = 0; k < n.arity; ++k) {
      const dtype t = g.nodes[n.in[k]].type;
      if (t == dtype::boolean || t == main) continue;
      if (main != dtype::boolean) return false;
      main = t;
    }
    return true;
  }
  static constexpr shape row_shape(shape s) {
    s.dims[s.rank - 1] = 1;
    return s;
  }
  constexpr bool reduces_last_axis(const node& n) const {
    if (n.rank == 0 || n.attr != std::int64_t{1} << (n.rank - 1)) return false;
    return g.nodes[n.in[0]].dims[n.rank - 1] != 1;
  }
  constexpr bool fits(const region& r, const node& n, dtype main) const {
    if (main != r.main && main != dtype::boolean && r.main != dtype::boolean) return false;
    const shape s = n.dims_shape();
    return s == r.space || (r.reduces && s.rank > 0 && s == row_shape(r.space));
  }

  constexpr void sweep() {
    for (int i = 0; i < g.count; ++i) {
      region_of[i] = -1;
      stage[i] = 0;
      if (!live[i]) continue;
      const node& n = g.nodes[i];
      dtype main{};
      if (options.maps && n.op->kind == op_kind::map && main_type(n, main))
        place(i, n.dims_shape(), main, false);
      else if (options.rows && n.op->kind == op_kind::reduce && reduces_last_axis(n))
        place(i, g.nodes[n.in[0]].dims_shape(), n.type, true);
      else alone(i);
    }
  }

  constexpr void alone(int i) {
    const node& n = g.nodes[i];
    const bool makes_value = n.op->kind == op_kind::library || n.op->kind == op_kind::reduce ||
                             n.op->kind == op_kind::map;
    for (int k = 0; k < n.arity; ++k) {
      if (const int r = region_at(n.in[k]); r >= 0) regions[r].read_outside = true;
      const int after = stage_at(n.in[k]) + (makes_value ? 1 : 0);
      if (after > stage[i]) stage[i] = after;
    }
    if (makes_value && stage[i] == 0) stage[i] = 1;
  }

  /// Puts node i, which walks space, into a region: new, or one of its inputs'.
  constexpr void place(int i, const shape& space, dtype main, bool reduce) {
    int home = -1;
    for (int k = 0; k < g.nodes[i].arity; ++k)
      home = join(home, g.nodes[i].in[k], i, space, main, reduce);
    if (home >= 0 && !may_enter(home, i)) home = -1;
    if (home < 0) {
      home = count++;
      regions[home] = {};
      regions[home].space = space;
      regions[home].stage = 1;
    }
    region& r = regions[home];
    region_of[i] = home;
    ++r.nodes;
    if (r.main == dtype::boolean) r.main = main;
    if (reduce) r.reduces = true;
    for (int k = 0; k < g.nodes[i].arity; ++k) {
      const int in = g.nodes[i].in[k];
      const int other = region_at(in);
      if (other == home) continue;
      ++r.inputs;
      if (other >= 0) regions[other].read_outside = true;
      if (const int after = stage_at(in) + 1; after > r.stage) r.stage = after;
    }
  }

  /// The home of node i after considering the region of one input.
  constexpr int join(int home, int input, int i, const shape& space, dtype main, bool reduce) {
    const int r = region_at(input);
    if (r < 0 || r == home) return home;
    const region& candidate = regions[r];
    const bool match = reduce ? candidate.space == space &&
                                    (candidate.main == main || candidate.main == dtype::boolean) &&
                                    g.nodes[input].dims_shape() == space
                              : fits(candidate, g.nodes[i], main);
    if (!match || candidate.nodes + 1 > max_nodes || candidate.inputs + 3 > max_inputs) return home;
    return home < 0 ? r : merge(home, r);
  }

  /// A region whose value others wait for keeps its stage: what the node reads must be earlier.
  constexpr bool may_enter(int r, int i) const {
    if (!regions[r].read_outside) return true;
    for (int k = 0; k < g.nodes[i].arity; ++k) {
      const int in = g.nodes[i].in[k];
      if (region_at(in) != r && stage_at(in) >= regions[r].stage) return false;
    }
    return true;
  }

  /// Two regions as one, where no path between them can lead through other steps.
  constexpr int merge(int a, int b) {
    region &x = regions[a], &y = regions[b];
    const bool sizes = x.nodes + y.nodes + 1 <= max_nodes && x.inputs + y.inputs + 3 <= max_inputs;
    const bool types = x.main == y.main || x.main == dtype::boolean || y.main == dtype::boolean;
    if (!(x.space == y.space) || !sizes || !types) return a;
    if (x.read_outside && y.read_outside) return a;
    if (x.read_outside && y.stage > x.stage) return a;
    if (y.read_outside && x.stage > y.stage) return a;
    x.nodes += y.nodes;
    x.inputs += y.inputs;
    x.reduces |= y.reduces;
    x.read_outside |= y.read_outside;
    if (x.main == dtype::boolean) x.main = y.main;
    if (y.stage > x.stage) x.stage = y.stage;
    y.merged_into = a;
    return a;
  }
};

}  // namespace xla::detail
