// SPDX-License-Identifier: Apache-2.0
#pragma once

// The passes rows and fuse: they put ops into regions that one kernel computes. kernel/fused/ has
// these kernels; steps that are not elementwise or reductions stay by themselves.

#include "xla/base/compiler.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/reduce.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// An outside value that a region reads, in a linked list.
struct region_read {
  int node = -1, next = -1;
};

/// Whether a node sums over all axes but the last. Such a sum is added up row by row in the region
/// that computes or reads its input; the result is complete only after all rows. For rows known to
/// be short it does not pay.
constexpr bool sums_columns(const node& n) {
  constexpr std::int64_t shortest = 16;
  if (!is<op::sum>(n) || n.rank < 2 ||
      n.attributes<op::sum>().axes != axis_set::range(0, n.rank - 1))
    return false;
  if (n.type != dtype::float32 && n.type != dtype::float64) return false;
  return !is_known(n.dims[n.rank - 1]) || n.dims[n.rank - 1] >= shortest;
}

/// Whether a shape has one value per row of a space.
[[gnu::cold]] constexpr bool row_of(const node& n, const shape& space) {
  if (n.rank == 0 || n.rank != space.rank || n.dims[n.rank - 1] != 1) return false;
  for (int i = 0; i < n.rank - 1; ++i)
    if (n.dims[i] != space.dims[i]) return false;
  return true;
}
/// An op with an index along the last axis, one per row of x, whose rows are longer.
[[gnu::cold]] constexpr bool has_index_per_row(const graph& g, const node& n, const node& x) {
  return (n.type == dtype::float32 || n.type == dtype::float64) && x.rank > 0 &&
         n.attributes<op::indexed>().axis == x.rank - 1 && x.dims[x.rank - 1] != 1 &&
         row_of(g.nodes[n.in[1]], x.dims_shape());
}
/// The element of each row that an index names: read or computed with the rows.
[[gnu::cold]] constexpr bool looks_up(const graph& g, const node& n) {
  return is<op::gather>(n) && has_index_per_row(g, n, g.nodes[n.in[0]]);
}
/// A number added to one element of each row: added when the rows are computed.
[[gnu::cold]] constexpr bool adds_in_row(const graph& g, const node& n) {
  return is<op::scatter_add>(n) && has_index_per_row(g, n, n) &&
         row_of(g.nodes[n.in[2]], n.dims_shape());
}

/// Finds the regions of a graph in one sweep. A node joins the region of one of its inputs, or one
/// that reads the same value, or merges several. Stages keep steps free of cycles: the stage of a
/// step is greater than those of its inputs. A region's stage may grow only until another step
/// reads it; then it is settled.
struct fuser {
  // A region's values are numbered within a micro_op, so their number is limited.
  static constexpr int max_nodes = 40;
  static constexpr int max_reads = 20;

  const graph& g;
  const bool* live;
  const bool* rare;    ///< see find_rare()
  const bool rows;     ///< regions may contain reductions
  const bool columns;  ///< or sums of columns alone
  int* region_of;      ///< per node: its region, or -1
  int* stage;          ///< per node without region: the stage at which its value exists
  region* regions;
  region_read* reads;  ///< room for every input of every node
  int* reader;         ///< per node: the region that last read it element by element, or -1
  int* user;           ///< per node: the first region that reads it, or -1
  bool* stored;        ///< per node: something outside its region reads it
  /// Per node: computed from constants and sizes alone; these have the first stages.
  bool* fixed;
  int count = 0, read_count = 0, last_fixed = 0;

  constexpr int find(int r) const {
    for (int up = regions[r].merged_into; up >= 0; up = regions[r].merged_into) r = up;
    return r;
  }
  constexpr int region_at(int node) const {
    const int r = region_of[node];
    return r < 0 ? -1 : find(r);
  }
  constexpr int stage_at(int node) const {
    const int r = region_of[node];
    return r < 0 ? stage[node] : regions[find(r)].stage;
  }

  /// The one element type besides bool that a map computes in; false if there are two. bfloat16
  /// counts as float, as which registers hold it.
  [[gnu::cold]] constexpr bool main_type(const node& n, dtype& main) const {
    main = n.type;
    for (int k = 0; k < n.arity; ++k) {
      const dtype t = g.nodes[n.in[k]].type;
      if (t == dtype::boolean || t == main) continue;
      if ((t == dtype::float32 && main == dtype::bfloat16) ||
          (t == dtype::bfloat16 && main == dtype::float32)) {
        main = dtype::float32;
        continue;
      }
      if (main != dtype::boolean) return false;
      main = t;
    }
    return true;
  }
  [[gnu::cold]] constexpr bool reduces_last_axis(const node& n) const {
    if (n.rank == 0 || n.attributes<op::reduction>().axes != axis_set::one(n.rank - 1))
      return false;
    return g.nodes[n.in[0]].dims[n.rank - 1] != 1;
  }
  [[gnu::cold]] constexpr bool reduces_in_region(const node& n) const {
    return (rows && reduces_last_axis(n)) || (columns && sums_columns(n));
  }
  constexpr bool fits(const region& r, const node& n, dtype main) const {
    if (main != r.main && main != dtype::boolean && r.main != dtype::boolean) return false;
    return same_dims(n, r.space) || (rows && r.reduces && row_of(n, r.space));
  }

  constexpr bool is_rare(int i) const { return rare && rare[i]; }

  [[gnu::cold]] constexpr void sweep() {
    find_users();
    sweep(false);
    if (rare) sweep(true);
    join_columns();
  }
  [[gnu::cold]] constexpr void sweep(bool those) {
    for (int i = g.after_leaves(); i < g.count; ++i) {
      if (!live[i] || is_rare(i) != those) continue;
      const node& n = g.nodes[i];
      const op_kind kind = n.op->kind;
      if (kind == op_kind::leaf) continue;  // it exists from the start
      dtype main{};
      if (kind == op_kind::map && main_type(n, main)) place({i, n, main, false});
      else if (kind == op_kind::reduce && reduces_in_region(n))
        place({i, g.nodes[n.in[0]], n.type, true});
      else if (rows && looks_up(g, n)) place({i, g.nodes[n.in[0]], n.type, true});
      else if (rows && adds_in_row(g, n)) place({i, n, n.type, true});
      else if (g.loop_count != 0) g.rules_of_loops->set_stage(*this, i);
      else alone(i);
    }
  }
  /// A sum of columns joins the step that reads its input, if that step is of the same stage or an
  /// earlier one.
  [[gnu::cold]] constexpr void join_columns() {
    for (int i = g.after_leaves(); i < g.count; ++i) {
      const int own = region_of[i];
      if (!live[i] || own < 0 || regions[own].nodes != 1 || !sums_columns(g.nodes[i])) continue;
      const int other = reader[g.nodes[i].in[0]];
      const int r = other < 0 ? -1 : find(other);
      if (r < 0 || r == own || regions[own].merged_into >= 0) continue;
      region& to = regions[r];
      if (!(to.space == regions[own].space) || to.main != g.nodes[i].type) continue;
      if (to.rare != regions[own].rare || to.loop != regions[own].loop) continue;
      if (to.stage > regions[own].stage || to.nodes + 1 > max_nodes) continue;
      if (after_others(g.nodes[i], r) > to.stage) continue;
      region_of[i] = r;
      ++to.nodes;
      to.reduces = to.read_outside = true;
      regions[own].nodes = 0;
    }
  }
  [[gnu::cold]] constexpr void find_users() {
    const int first = g.after_leaves();
    for (int i = 0; i < g.count; ++i) {
      region_of[i] = reader[i] = user[i] = -1;
      stored[i] = fixed[i] = false;
      stage[i] = 0;
      if (i < first) continue;
      fixed[i] = !is<op::input>(g.nodes[i]) && is_fixed(g.nodes[i]);
      if (!fixed[i]) continue;
      stage[i] = depth(g.nodes[i]);
      if (live[i] && stage[i] > last_fixed) last_fixed = stage[i];
    }
    for (int i = g.count - 1; i >= first; --i) {
      const node& n = g.nodes[i];
      const int arity = n.arity;
      if (arity == 0 || !live[i]) continue;
      const int* const in = g.inputs(n);
      for (int k = 0; k < arity; ++k)
        if (!rare || rare[i] == rare[in[k]]) user[in[k]] = i;
    }
  }

  [[gnu::cold]] constexpr bool is_fixed(const node& n) const {
    if (n.arity == 0) return is<op::constant>(n) || is<op::size>(n);
    if (n.loop != 0) return false;
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k)
      if (!fixed[in[k]]) return false;
    return !n.op->impure && !n.op->alone_is_input && !waits(n);
  }

  [[gnu::cold]] constexpr int depth(const node& n) const {
    int d = 0;
    const int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k)
      if (stage[in[k]] >= d) d = stage[in[k]] + (n.op->kind == op_kind::alias ? 0 : 1);
    return d;
  }
  constexpr int first_stage(int i) const { return fixed[i] ? 1 : last_fixed + 1; }

  [[gnu::cold]] constexpr void alone(int i) {
    const node& n = g.nodes[i];
    const int arity = n.arity;
    const op_kind kind = n.op->kind;
    const bool makes_value =
        kind == op_kind::library || kind == op_kind::reduce || kind == op_kind::map;
    const int* const in = g.inputs(n);
    for (int k = 0; k < arity; ++k) {
      read_from_outside(in[k]);
      const int after = stage_at(in[k]) + (makes_value ? 1 : 0);
      if (after > stage[i]) stage[i] = after;
    }
    if (const int after = wait_for_others(n, -1) - (makes_value ? 0 : 1); after > stage[i])
      stage[i] = after;
    if (makes_value && stage[i] < first_stage(i)) stage[i] = first_stage(i);
  }

  [[gnu::cold]] constexpr void read_from_outside(int node) {
    stored[node] = true;
    if (const int r = region_at(node); r >= 0) regions[r].read_outside = true;
  }

  /// The first stage after all nodes that a node waits for without reading them, as seen from
  /// region r. The stages of those nodes are settled from now on.
  [[gnu::cold]] constexpr int wait_for_others(const node& n, int r) {
    if (!waits(n)) return 0;
    for (int before : n.after)
      if (const int other = before < 0 ? -1 : region_at(before); other >= 0 && other != r)
        regions[other].read_outside = true;
    return after_others(n, r);
  }
  static constexpr bool waits(const node& n) { return n.after[0] >= 0 || n.after[1] >= 0; }
  [[gnu::cold]] constexpr int after_others(const node& n, int r) const {
    int first = 0;
    if (!waits(n)) return first;
    for (int before : n.after)
      if (before >= 0 && (r < 0 || region_at(before) != r) && stage_at(before) + 1 > first)
        first = stage_at(before) + 1;
    return first;
  }

  /// A node for which a region is being searched.
  struct candidate {
    int index;
    const node& walks;  ///< the node whose shape the region iterates over
    dtype main;
    bool reduce;  ///< it is a reduction, or needs a row region for another reason
  };

  /// Puts a node into an existing region, or into a new one.
  [[gnu::cold]] constexpr void place(const candidate& c) {
    int target = find_region(c);
    if (target < 0) {
      target = count++;
      regions[target] = {};
      regions[target].space = c.walks.dims_shape();
      regions[target].rare = is_rare(c.index);
      regions[target].loop = g.nodes[c.index].loop;
    }
    region& r = regions[target];
    const node& n = g.nodes[c.index];
    region_of[c.index] = target;
    ++r.nodes;
    if (r.main == dtype::boolean) r.main = c.main;
    if (c.reduce) r.reduces = true;
    if (r.stage < first_stage(c.index)) r.stage = first_stage(c.index);
    const int arity = n.arity;
    for (int k = 0; k < arity; ++k) {
      const int in = n.in[k];
      if (region_at(in) == target) continue;
      read_from_outside(in);
      add_read(target, in);
      if (same_dims(g.nodes[in], r.space)) reader[in] = target;
      if (const int after = stage_at(in) + 1; after > r.stage) r.stage = after;
    }
    if (const int after = wait_for_others(n, target); after > r.stage) r.stage = after;
  }

  /// The latest region that the node may join, with others that merge into it; -1: none.
  [[gnu::cold]] constexpr int find_region(const candidate& c) {
    const node& n = g.nodes[c.index];
    int near[8], found = 0, target = -1;
    auto consider = [&](int r, bool parallel) XLA_COLD_LAMBDA {
      if (r < 0) return;
      r = find(r);
      for (int k = 0; k < found; ++k)
        if (near[k] == r) return;
      if ((parallel && !runs_in_parallel(r, c.index, target)) || !may_enter(r, c)) return;
      near[found++] = r;
      if (target < 0 || regions[r].stage > regions[target].stage) target = r;
    };
    const int arity = n.arity;
    for (int k = 0; k < arity; ++k)
      if (const int r = region_of[n.in[k]]; r >= 0) consider(r, false);
    for (int k = 0; k < arity; ++k)
      if (const int r = reader[n.in[k]]; r >= 0 && same_dims(g.nodes[n.in[k]], c.walks))
        consider(r, true);
    // A node that waits for a gradient is needed where that gradient is read.
    if (n.after[0] >= 0 && same_dims(g.nodes[n.after[0]], c.walks))
      consider(reader[n.after[0]], true);
    const int first = target;
    for (int k = 0; k < found; ++k)
      if (near[k] != first) merge(target, near[k], c);
    return target;
  }

  /// Whether an unsettled region runs in the stage where the node would run alone, or in the node's
  /// present region: then neither delays the other.
  [[gnu::cold]] constexpr bool runs_in_parallel(int r, int i, int target) const {
    const node& n = g.nodes[i];
    int earliest = first_stage(i);
    if (const int after = after_others(n, -1); after > earliest) earliest = after;
    for (int k = 0; k < n.arity; ++k) {
      const bool there = target >= 0 && region_at(n.in[k]) == target;
      if (const int after = stage_at(n.in[k]) + (there ? 0 : 1); after > earliest) earliest = after;
    }
    return !regions[r].read_outside && regions[r].stage == earliest;
  }
  [[gnu::cold]] constexpr bool may_enter(int r, const candidate& c) const {
    const region& to = regions[r];
    const node& n = g.nodes[c.index];
    if (to.rare != is_rare(c.index) || to.loop != n.loop) return false;
    if (c.reduce) {
      if (!same_dims(c.walks, to.space) || (to.main != c.main && to.main != dtype::boolean))
        return false;
    } else if (!fits(to, n, c.main)) {
      return false;
    }
    for (int k = 0; k < n.arity; ++k)
      if (sums_columns(g.nodes[n.in[k]]) && region_at(n.in[k]) == r) return false;
    if (to.nodes + 1 > max_nodes || to.reads + unread(r, n) > max_reads) return false;
    // A region that others wait for keeps its stage, so the node's inputs must have earlier stages.
    if (!to.read_outside) return true;
    if (to.stage < first_stage(c.index)) return false;
    for (int k = 0; k < n.arity; ++k)
      if (region_at(n.in[k]) != r && stage_at(n.in[k]) >= to.stage) return false;
    return after_others(n, r) <= to.stage && !belongs_later(r, c.index);
  }

  /// Whether a settled region would store nothing more for the node, while users of the node cannot
  /// join that region: then the node is better placed with its users.
  [[gnu::cold]] constexpr bool belongs_later(int r, int i) const {
    for (int k = 0; k < g.nodes[i].arity; ++k)
      if (region_at(g.nodes[i].in[k]) == r && !stored[g.nodes[i].in[k]]) return false;
    int next = user[i];
    for (int hop = 0; hop < 4 && next >= 0; ++hop, next = user[next]) {
      const node& n = g.nodes[next];
      if (n.op->kind != op_kind::map) return false;
      for (int k = 0; k < n.arity; ++k)
        if (n.in[k] < i && region_at(n.in[k]) != r && stage_at(n.in[k]) >= regions[r].stage)
          return true;
    }
    return false;
  }

  constexpr bool reads_already(int r, int node) const {
    for (int at = regions[r].first_read; at >= 0; at = reads[at].next)
      if (reads[at].node == node) return true;
    return false;
  }
  /// How many more values region r would read if the node joined it.
  [[gnu::cold]] constexpr int unread(int r, const node& n) const {
    int more = 0;
    for (int k = 0; k < n.arity; ++k) more += region_at(n.in[k]) != r && !reads_already(r, n.in[k]);
    return more;
  }
  [[gnu::cold]] constexpr void add_read(int r, int node) {
    if (reads_already(r, node)) return;
    reads[read_count] = {node, regions[r].first_read};
    regions[r].first_read = read_count++;
    ++regions[r].reads;
  }

  /// Merges region b into a, if no path between them leads through other steps, and there is still
  /// room for the node.
  [[gnu::cold]] constexpr void merge(int a, int b, const candidate& c) {
    region &x = regions[a], &y = regions[b];
    const bool types = x.main == y.main || x.main == dtype::boolean || y.main == dtype::boolean;
    if (!(x.space == y.space) || !types || x.nodes + y.nodes + 1 > max_nodes) return;
    if (x.read_outside && y.stage > x.stage) return;
    if (y.read_outside && x.stage > y.stage) return;
    if (x.reads + y.reads + 3 > max_reads && reads_together(a, b, c) > max_reads) return;
    x.nodes += y.nodes;
    x.reduces |= y.reduces;
    x.read_outside |= y.read_outside;
    if (x.main == dtype::boolean) x.main = y.main;
    if (y.stage > x.stage) x.stage = y.stage;
    y.merged_into = a;
    join_reads(a, b);
  }
  [[gnu::cold]] constexpr int reads_together(int a, int b, const candidate& c) const {
    int n = 0;
    for (int at = regions[a].first_read; at >= 0; at = reads[at].next)
      n += region_at(reads[at].node) != b;
    for (int at = regions[b].first_read; at >= 0; at = reads[at].next)
      n += region_at(reads[at].node) != a && !reads_already(a, reads[at].node);
    for (int k = 0; k < g.nodes[c.index].arity; ++k) {
      const int in = g.nodes[c.index].in[k], r = region_at(in);
      n += r != a && r != b && !reads_already(a, in) && !reads_already(b, in);
    }
    return n;
  }
  // The cells of both lists in one list, without those that are now inside or were in both.
  [[gnu::cold]] constexpr void join_reads(int a, int b) {
    const int lists[] = {regions[a].first_read, regions[b].first_read};
    regions[a].first_read = -1;
    regions[a].reads = 0;
    for (int from : lists)
      for (int at = from, next = -1; at >= 0; at = next) {
        next = reads[at].next;
        if (region_at(reads[at].node) == a || reads_already(a, reads[at].node)) continue;
        reads[at].next = regions[a].first_read;
        regions[a].first_read = at;
        ++regions[a].reads;
      }
  }
};

/// Allows reductions over the last axis, and sums over the others, to join regions if there are
/// kernels for them. The pass fuse does the rest.
[[gnu::cold]] constexpr void fuse_rows(pass_state& s) {
  s.fuses_rows = s.row_kernels;
  s.fuses_columns = s.row_kernels || s.sums_tiles;
}

[[gnu::cold]] constexpr void fuse(pass_state& s) {
  const std::size_t n = s.room();
  s.region_of = s.for_region_of.renew(n);
  s.stage = s.for_stage.renew(n);
  std::size_t placed = 1;  // nodes that may be in a region
  for (int i = s.g.after_leaves(); i < s.g.count; ++i) {
    const op_kind kind = s.g.nodes[i].op->kind;
    placed += kind == op_kind::map || kind == op_kind::reduce || kind == op_kind::library;
  }
  s.regions = s.for_regions.renew(placed);
  const owned_array<region_read> reads(few_inputs * placed);
  const owned_array<int> reader(n), user(n);
  const owned_array<bool> flags(2 * n);
  const owned_array<bool> rare = s.find_rare();
  fuser f{s.g,         s.live,      rare.get(),     s.fuses_rows, s.fuses_columns,
          s.region_of, s.stage,     s.regions,      reads.get(),  reader.get(),
          user.get(),  flags.get(), flags.get() + n};
  f.sweep();
  // From now on every node names its region itself.
  for (int i = s.g.after_leaves(); i < s.g.count; ++i)
    if (const int r = s.region_of[i]; r >= 0) s.region_of[i] = f.find(r);
  s.region_count = f.count;
}

}  // namespace xla::detail
