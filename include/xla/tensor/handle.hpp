// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "xla/graph/graph.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

/// An op among creation ops that has met no argument yet, so that no graph is known to hold it. No
/// member has an initialiser: at run time, where handles hold none, they cost nothing.
struct floating_op {
  const op_info* op;
  dtype type;
  std::int8_t rank, arity;
  int in[3];
  extent dims[max_rank];
  std::int64_t attr;
  extent size;
  double value;

  constexpr void set(const node& n) {
    op = n.op;
    type = n.type;
    rank = n.rank;
    arity = n.arity;
    for (int i = 0; i < n.arity; ++i) in[i] = n.in[i];
    for (int i = 0; i < n.rank; ++i) dims[i] = n.dims[i];
    attr = n.attr;
    size = n.size;
    value = n.value;
  }
  constexpr bool same(const node& n) const {
    bool equal = op == n.op && type == n.type && rank == n.rank && arity == n.arity &&
                 attr == n.attr && size == n.size && !n.op->impure &&
                 std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(n.value);
    for (int i = 0; equal && i < arity; ++i) equal = in[i] == n.in[i];
    for (int i = 0; equal && i < rank; ++i) equal = dims[i] == n.dims[i];
    return equal;
  }
  constexpr node get() const {
    node n;
    n.op = op;
    n.type = type;
    n.rank = rank;
    n.arity = arity;
    for (int i = 0; i < arity; ++i) n.in[i] = in[i];
    for (int i = 0; i < rank; ++i) n.dims[i] = dims[i];
    n.attr = attr;
    n.size = size;
    n.value = value;
    return n;
  }
};

/// What every tensor is underneath, in all modes. In constant evaluation it owns nothing: it names
/// a node (or slot) of a graph, or carries up to twelve floating ops. At run time it shares an
/// impl, or refers to a cell.
class handle {
 public:
  static constexpr int max_floating = 12;

  constexpr handle() {}
  constexpr handle(const handle& o) { copy_value(o); }
  constexpr handle(handle&& o) noexcept {
    if (__builtin_is_constant_evaluated()) copy_value(o);
    else steal(o);
  }
  constexpr handle& operator=(const handle& o) {
    if (this != &o) {
      if (!__builtin_is_constant_evaluated()) drop();
      copy_value(o);
    }
    return *this;
  }
  constexpr handle& operator=(handle&& o) noexcept {
    if (this != &o) {
      if (__builtin_is_constant_evaluated()) copy_value(o);
      else {
        drop();
        steal(o);
      }
    }
    return *this;
  }
  constexpr ~handle() {
    if (!__builtin_is_constant_evaluated()) drop();
  }

  // ---- constant evaluation

  constexpr graph* owner() const { return graph_; }
  constexpr int slot_index() const { return slot_; }
  /// The node that the handle names now, or -1.
  constexpr int node_index() const { return slot_ >= 0 ? graph_->slots[slot_].current : node_; }
  /// The slot that holds this value's gradient, or -1.
  constexpr int gradient_slot() const {
    return slot_ >= 0 ? slot_ : graph_ ? slot_of(graph_->nodes[node_]) : -1;
  }
  constexpr void name_node(graph* g, int index) {
    poison();
    graph_ = g;
    node_ = index;
    slot_ = -1;
    floating_ = 0;
  }
  constexpr void name_slot(graph* g, int index) {
    poison();
    graph_ = g;
    slot_ = index;
    node_ = -1;
    floating_ = 0;
  }
  /// The node of this value in g; floating ops are recorded there.
  constexpr int lift(graph* g) const {
    if (graph_) return node_index();
    if (floating_ == 0) throw std::logic_error("xla: an empty tensor was used");
    int at[max_floating] = {};
    for (int i = 0; i < floating_; ++i) {
      node n = ops_[i].get();
      for (int k = 0; k < n.arity; ++k) n.in[k] = at[n.in[k]];
      at[i] = g->add(n);
    }
    return at[floating_ - 1];
  }
  /// Becomes the floating op n of the given floating inputs.
  constexpr void float_op(node n, const handle* const* inputs = nullptr, int count = 0) {
    poison();
    for (int k = 0; k < count; ++k) {
      const handle& h = *inputs[k];
      int at[max_floating] = {};
      for (int i = 0; i < h.floating_; ++i) {
        node m = h.ops_[i].get();
        for (int j = 0; j < m.arity; ++j) m.in[j] = at[m.in[j]];
        at[i] = float_once(m);
      }
      n.in[k] = at[h.floating_ - 1];
    }
    float_last(n);
  }
  constexpr node floating_result() const { return ops_[floating_ - 1].get(); }

  // ---- run time

  impl* value() const noexcept { return cell_ ? cell_->value() : impl_; }
  cell* place() const noexcept { return cell_; }
  /// Takes over a reference.
  void adopt(impl* owned) noexcept {
    drop();
    impl_ = owned;
  }
  void refer(cell* owned) noexcept {
    drop();
    cell_ = owned;
  }
  /// Takes the place of another handle, which is left empty.
  void steal_place(handle& o) noexcept {
    if (!o.cell_) return;
    drop();
    cell_ = std::exchange(o.cell_, nullptr);
  }
  /// Gives the impl away when this handle is the one place that refers to it.
  impl* take() noexcept { return std::exchange(impl_, nullptr); }

  // ---- both

  /// True for a parameter or buffer: assigning writes there.
  constexpr bool is_place() const {
    return __builtin_is_constant_evaluated() ? slot_ >= 0 : cell_ != nullptr;
  }
  constexpr bool defined() const {
    if (__builtin_is_constant_evaluated()) return graph_ != nullptr || floating_ > 0;
    return value() != nullptr;
  }
  constexpr shape dims() const {
    if (__builtin_is_constant_evaluated()) {
      if (graph_) return graph_->nodes[node_index()].dims_shape();
      if (floating_ == 0) throw std::logic_error("xla: an empty tensor was used");
      return floating_result().dims_shape();
    }
    return value() ? value()->dims : shape{};
  }
  constexpr size_table* table() const {
    if (__builtin_is_constant_evaluated() && graph_) return &graph_->sizes;
    return nullptr;
  }

 protected:
  // What was made in constant evaluation holds the address of a dead object, which no constant may:
  // a tensor or model with static storage is therefore made again at run time, where it gets its
  // elements. Without it such a model would exist, but have no weights.
  constexpr void poison() {
    if (__builtin_is_constant_evaluated()) {
      const char automatic = 0;
      mark(automatic);
    }
  }

 private:
  constexpr int float_last(const node& n) {
    if (floating_ == max_floating)
      throw std::length_error("xla: over twelve ops on constants only: start from zeros_like(x)");
    ops_[floating_].set(n);
    return floating_++;
  }
  // Inputs that are the same op of the same values take one place.
  constexpr int float_once(const node& n) {
    for (int i = 0; i < floating_; ++i)
      if (ops_[i].same(n)) return i;
    return float_last(n);
  }
  constexpr void mark(const char& c) { automatic_ = &c; }
  constexpr void copy_value(const handle& o) {
    if (__builtin_is_constant_evaluated()) {
      graph_ = o.graph_;
      node_ = o.graph_ ? o.node_index() : -1;
      slot_ = -1;
      floating_ = o.floating_;
      for (int i = 0; i < floating_; ++i) ops_[i].set(o.ops_[i].get());
      automatic_ = o.automatic_;
    } else {
      impl_ = o.value();
      if (impl_) impl_->retain();
    }
  }
  void steal(handle& o) noexcept {
    impl_ = o.cell_ ? o.value() : std::exchange(o.impl_, nullptr);
    if (o.cell_ && impl_) impl_->retain();
  }
  void drop() noexcept {
    if (impl_ || cell_)
      let_go(std::exchange(impl_, nullptr), std::exchange(cell_, nullptr));
  }

  graph* graph_ = nullptr;
  impl* impl_ = nullptr;
  cell* cell_ = nullptr;
  const void* automatic_ = nullptr;
  int node_ = -1;
  int slot_ = -1;
  int floating_ = 0;
  floating_op ops_[max_floating];
};

}  // namespace xla::detail
