// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/reshape.hpp"
#include "xla/shape/layout.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// A permute that is there for the order of what it makes. Elements are copied as they are, so that
/// their size is enough.
template <class T>
inline constexpr op_info copy_info = [] {
  op_info copy = info_of<op::permute, T, T, op_parts::kernel>;
  copy.name = "copy";
  return copy;
}();

/// In which order an elementwise op makes its result; natural is that of what it reads.
struct natural_order {
  constexpr layout operator()(const node&, layout natural) const { return natural; }
};

/// Gives every value a layout, from ops and their attributes alone. An order that an op wishes for
/// goes on through the elementwise ops, and sums over the last axis, that read what it makes; other
/// ops, and what leaves the graph, are row-major; where two wishes meet stands a copy.
///
/// From here on a node's dims are as they lie in memory, the outermost first: a copy is a permute,
/// regions walk memory in its order, and nothing behind the pass has to know of layouts.
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
  using orders = layout[4];  // of the inputs, then of the result

  constexpr layout order_of(int i) const { return order_[moved_[i]]; }
  constexpr void leave(int i) { moved_[i] = lying(i, {}); }
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
    orders lie{};
    choose(n, lie);
    const bool map = n.op->kind == op_kind::map;
    for (int k = 0; k < n.arity; ++k)
      n.in[k] = map ? aligned(n.in[k], n.rank, lie[3]) : lying(n.in[k], lie[k]);
    for (int& before : n.after)
      if (before >= 0) before = moved_[before];
    n.set_shape(in_memory(n.dims_shape(), lie[3]));
    moved_[i] = add(n, lie[3]);
  }

  constexpr void choose(node& n, orders& lie) const {
    const op_kind kind = n.op->kind;
    if (n.op->arrange) return n.op->arrange(n, lie, lie[3]);
    if (n.arity == 0 || n.op->impure) return;
    const layout first = order_of(n.in[0]);
    const int last = n.rank - 1;
    if (kind == op_kind::map) {
      for (int k = 0; k < n.arity && lie[3].is_row_major(); ++k)
        if (same_dims(old_[n.in[k]], n)) lie[3] = order_of(n.in[k]);
      lie[3] = prefer_(n, lie[3]);
    } else if (is<op::detach>(n) || (kind == op_kind::reduce && last >= 0 &&
                                     n.attributes<op::reduction>().axes == axis_set::one(last) &&
                                     first.axis(last) == last)) {
      lie[0] = lie[3] = first;
    }
  }

  /// The node that has the value of old node i in an order.
  constexpr int lying(int i, layout order) {
    if (order_of(i) == order || old_[i].rank == 0) return moved_[i];
    if (copy_[i] < 0 || !(order_[copy_[i]] == order))
      copy_[i] = reordered(moved_[i], old_[i].dims_shape(), order_of(i), order);
    return copy_[i];
  }
  /// The same as the operand of an elementwise op, whose result has so many axes in that order. To
  /// this axes of size 1 are added, in memory where they would lie.
  constexpr int aligned(int i, int rank, layout order) {
    const node& n = old_[i];
    if (n.rank == 0 || n.rank == rank || order.is_row_major()) return lying(i, order);
    shape full;
    for (int k = n.rank; k < rank; ++k) full.push(1);
    for (int k = 0; k < n.rank; ++k) full.push(n.dims[k]);
    return reordered(lying(i, {}), full, {}, order);
  }
  /// Node i, of these sizes, copied into another order; or seen as if, where it is the same.
  constexpr int reordered(int i, const shape& dims, layout from, layout to) {
    node n;
    n.type = g_.nodes[i].type;
    n.gradient = g_.nodes[i].gradient;
    n.segment = g_.nodes[i].segment;
    n.arity = 1;
    n.in[0] = i;
    n.op = &info_of<op::reshape, float, float, op_parts::facts>;
    n.set_shape(in_memory(dims, from));
    const bool same = lie_alike(dims, from, to);
    if (!same && g_.nodes[i].rank != dims.rank) n.in[0] = add(n, from);
    n.set_shape(in_memory(dims, to));
    if (same) return add(n, to);
    n.op = copy_of(n.type);
    axis_order places;
    for (int k = 0; k < dims.rank; ++k) places.push(place_of(from, to.axis(k)));
    n.set<op::permute>({places});
    return add(n, to);
  }
  static constexpr int place_of(layout order, int axis) {
    int place = 0;
    while (order.axis(place) != axis) ++place;
    return place;
  }
  /// Whether two orders differ in the places of axes of size 1 alone.
  static constexpr bool lie_alike(const shape& dims, layout a, layout b) {
    for (int i = 0, k = 0;; ++i, ++k) {
      while (i < dims.rank && dims[a.axis(i)] == 1) ++i;
      while (k < dims.rank && dims[b.axis(k)] == 1) ++k;
      if (i == dims.rank || k == dims.rank) return true;
      if (a.axis(i) != b.axis(k)) return false;
    }
  }
  static constexpr const op_info* copy_of(dtype type) {
    switch (size_of(type)) {
      case 1: return &copy_info<bool>;
      case 2: return &copy_info<bfloat16>;
      case 4: return &copy_info<float>;
      default: return &copy_info<std::int64_t>;
    }
  }

  pass_state& s_;
  Prefer prefer_;
  graph& g_ = s_.g;
  int capacity_ = 2 * g_.count + 16;
  const owned_array<node> for_old_{s_.room()};
  const owned_array<int> for_moved_{s_.room()}, for_copy_{s_.room()};
  owned_array<layout> for_order_{static_cast<std::size_t>(capacity_)};
  node* const old_ = for_old_.get();     // as they were
  int* const moved_ = for_moved_.get();  // per old node: its number
  int* const copy_ = for_copy_.get();    // per old node: the last copy in another order, or -1
  layout* order_ = for_order_.get();     // per node
};

template <class>
constexpr void spread_layouts(pass_state& s) {
  layout_pass<>(s).run();
}

/// Where an op wishes for an order; it brings the code along.
constexpr void lay_out(pass_state& s) {
  for (int i = 0; i < s.g.count; ++i)
    if (s.live[i] && s.g.nodes[i].op->layouts) return s.g.nodes[i].op->layouts(s);
}

}  // namespace xla::detail
