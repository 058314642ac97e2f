// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pass that chooses the memory order of every value's axes, so that convolutions find channels
// innermost. Eager mode follows the same preferences op by op (run/execute/with_layouts.hpp).

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/op/layout_rule.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"
#include "xla/shape/layout.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// Gives every value a layout, from ops and their attributes alone. A preferred order propagates
/// through later ops as far as these accept any order, which layout_rule says. Other ops, and
/// values that leave the graph, are row-major; where two preferences meet a copy is inserted.
///
/// After the pass a node's dims are in memory order, the outermost first: a copy is a permute,
/// regions traverse memory in order, and later passes need not know layouts.
template <class Prefer = natural_order>
class layout_pass {
 public:
  constexpr explicit layout_pass(pass_state& s, Prefer prefer = {}) : s_(s), prefer_(prefer) {}
  layout_pass(const layout_pass&) = delete;

  constexpr void run() {
    const int count = g_.count, segment = g_.segment;
    for (int i = 0; i < count; ++i) {
      moved_[i] = copy_[i] = -1;
      if (s_.live[i]) old_[i] = g_.nodes[i];
    }
    g_.count = 0;
    for (int i = 0; i < count; ++i)
      if (s_.live[i]) emit(i);
    for (int i = 0; i < s_.roots.result_count; ++i) leave(s_.to[s_.roots.results[i]]);
    for (int i = 0; i < s_.roots.write_count; ++i) leave(s_.to[s_.roots.writes[i].value]);
    g_.segment = segment;
    s_.renumber(moved_);
    s_.for_orders = std::move(for_order_);
    s_.orders = order_;
  }

 private:
  /// Whether a node is a loop, or hands values into its steps or out of them.
  static constexpr bool is_of_loop(const node& n) {
    return n.op->loops_steps ||
           (n.op->kind == op_kind::output && !is<op::output>(n) && n.arity > 0);
  }
  constexpr layout order_of(int i) const { return order_[moved_[i]]; }
  constexpr void leave(int i) { moved_[i] = in_layout(i, {}); }
  constexpr int add(const node& n, layout order) {
    g_.segment = n.segment;
    const int at = g_.add(n);
    if (at == capacity_) {
      owned_array<layout> more(2 * static_cast<std::size_t>(capacity_));
      for (int i = 0; i < at; ++i) more.get()[i] = order_[i];
      for_order_ = std::move(more);
      order_ = for_order_.get();
      capacity_ *= 2;
    }
    order_[at] = order;
    return at;
  }

  constexpr void emit(int i) {
    node n = old_[i];
    const int count = n.arity;
    const auto many = static_cast<std::size_t>(count);
    owned_array<laid_out> for_in;
    owned_array<layout> more_layouts;
    laid_out few_in[few_inputs];
    layout few_layouts[few_inputs + 1];
    laid_out* const in = count > few_inputs ? for_in.renew(many) : few_in;
    layout* const order = count > few_inputs ? more_layouts.renew(many + 1) : few_layouts;
    for (int k = 0; k < count; ++k) {
      const int from = g_.inputs(n)[k];
      in[k] = {&old_[from], order_of(from)};
    }
    const bool seen =
        layout_rule(n, in, count, order).choose([&](const op_record&, layout natural) {
          return prefer_(old_[i], natural);
        });
    if (seen && n.op->kind == op_kind::library) n.op = as_reshape;
    if (g_.loop_count != 0 && is_of_loop(n))
      g_.rules_of_loops->layouts(g_, n, in, g_.nodes[moved_[g_.inputs(n)[0]]], order_, order);
    read(n, order);
    for (int& before : n.after)
      if (before >= 0) before = moved_[before];
    n.set_shape(in_memory(n.dims_shape(), order[count]));
    moved_[i] = add(n, order[count]);
  }
  /// Makes a node read its inputs in their chosen layouts.
  constexpr void read(node& n, const layout* order) {
    const bool all = n.op->accepts == axes_rule::broadcast;
    const int rank = n.rank;
    int* const in = g_.inputs(n);  // nodes of old_ are not requested again
    for (int k = 0; k < n.arity; ++k)
      in[k] = all ? aligned(in[k], rank, order[k]) : in_layout(in[k], order[k]);
  }

  /// The node with the value of old node i in an order.
  constexpr int in_layout(int i, layout order) {
    if (order_of(i) == order || old_[i].rank == 0) return moved_[i];
    if (copy_[i] < 0 || !(order_[copy_[i]] == order))
      copy_[i] = reordered(moved_[i], old_[i].dims_shape(), order_of(i), order);
    return copy_[i];
  }
  /// The same for the operand of an elementwise op, whose result has this many axes in that order.
  /// Axes of size 1 are added at their positions in that order.
  constexpr int aligned(int i, int rank, layout order) {
    const node& n = old_[i];
    if (n.rank == 0 || n.rank == rank || order.is_row_major()) return in_layout(i, order);
    shape full;
    for (int k = n.rank; k < rank; ++k) full.push(1);
    for (int k = 0; k < n.rank; ++k) full.push(n.dims[k]);
    return reordered(in_layout(i, {}), full, {}, order);
  }
  /// Node i, of these sizes, copied to another order; or an alias, if the memory is the same.
  constexpr int reordered(int i, const shape& dims, layout from, layout to) {
    node n;
    n.type = g_.nodes[i].type;
    n.gradient = g_.nodes[i].gradient;
    n.segment = g_.nodes[i].segment;
    n.arity = 1;
    n.in[0] = i;
    n.op = as_reshape;
    n.set_shape(in_memory(dims, from));
    const bool same = same_layout(dims, from, to);
    if (!same && g_.nodes[i].rank != dims.rank) n.in[0] = add(n, from);
    n.set_shape(in_memory(dims, to));
    if (same) return add(n, to);
    copy_into<Prefer>(n, dims.rank, from, to);
    return add(n, to);
  }
  static constexpr const op_info* as_reshape = &info_of<op::reshape, float, float, op_parts::facts>;

  pass_state& s_;
  Prefer prefer_;
  graph& g_ = s_.g;
  int capacity_ = 2 * g_.count + 16;
  const owned_array<node> for_old_{s_.room()};
  const owned_array<int> for_moved_{s_.room()}, for_copy_{s_.room()};
  owned_array<layout> for_order_{static_cast<std::size_t>(capacity_)};
  node* const old_ = for_old_.get();     // before the pass
  int* const moved_ = for_moved_.get();  // per old node: its number
  int* const copy_ = for_copy_.get();    // per old node: the last copy in another order, or -1
  layout* order_ = for_order_.get();     // per node
};

template <class In>
constexpr void propagate_layouts(pass_state& s) {
  layout_pass<dependent<In, natural_order>>(s).run();
}

/// Registers that an op prefers an order; this links the pass's code.
constexpr void lay_out(pass_state& s) {
  for (int i = s.g.after_leaves(); i < s.g.count; ++i)
    if (s.live[i] && s.g.nodes[i].op->layouts) return s.g.nodes[i].op->layouts(s);
}

}  // namespace xla::detail
