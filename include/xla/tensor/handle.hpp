// SPDX-License-Identifier: Apache-2.0
#pragma once

// The untyped core of every tensor: a node of a graph in constant evaluation, a counted reference
// at run time. Programs use Tensor and State; ops, loops and gradients work on handles.

#include <bit>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "xla/graph/graph.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

/// Ops that were made from numbers alone and belong to no graph yet ("floating"). Inputs are
/// positions in the list. They move into a graph when they meet a tensor of one.
struct floating_list {
  static constexpr int most = 12;
  node* ops;
  input_lists lists;
  int count = 0;

  constexpr explicit floating_list(int room) : ops(new node[static_cast<std::size_t>(room)]) {}
  constexpr floating_list(const floating_list& o) : floating_list(o.count) {
    for (; count < o.count; ++count) ops[count] = o.ops[count];
    lists.append(o.lists.all, o.lists.count);
  }
  floating_list& operator=(const floating_list&) = delete;
  constexpr ~floating_list() {
    delete[] ops;
    delete[] lists.all;
  }

  constexpr int add(const node& n) {
    if (count == most)
      throw std::length_error("xla: over twelve ops on constants only: start from zeros_like(x)");
    ops[count] = n;
    return count++;
  }
  /// Adds an op, unless the list already has the same op of the same inputs.
  constexpr int add_once(const node& n) {
    for (int i = 0; i < count; ++i)
      if (same(ops[i], n)) return i;
    return add(n);
  }

 private:
  constexpr bool same(const node& a, const node& b) const {
    if (a.op->impure || !same_record(a, b)) return false;
    const int *const x = lists.of(a), *const y = lists.of(b);
    for (int k = 0; k < a.arity; ++k)
      if (x[k] != y[k]) return false;
    return true;
  }
};

/// The untyped core of every tensor, in all modes. In constant evaluation it names a node (or slot)
/// of a graph, or owns up to twelve floating ops. At run time it shares an impl, or refers to a
/// cell.
class handle {
 public:
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
    else if (form_ == form::ops) forget();
  }

  // ---- constant evaluation

  constexpr graph* owner() const { return graph_; }
  constexpr int slot_index() const { return form_ == form::slot ? index_ : -1; }
  /// The node that the handle names, or -1.
  constexpr int node_index() const {
    if (form_ == form::slot) return graph_->current_of(index_);
    return form_ == form::node ? index_ : -1;
  }
  /// The slot that holds this value's gradient, or -1.
  constexpr int gradient_slot() const {
    if (form_ == form::slot && !graph_->slots[index_].functional) return index_;
    return graph_ ? graph_->leaf_slot(node_index()) : -1;
  }
  /// The same for an argument tensor, or one on which the body has called requires_grad_().
  constexpr int collecting_slot() const {
    const int slot = form_ == form::node ? gradient_slot() : -1;
    if (slot < 0) return -1;
    const slot_kind kind = graph_->slots[slot].kind;
    return kind == slot_kind::tensor || kind == slot_kind::inner ? slot : -1;
  }
  /// Whether it needs a gradient if argument tensors do.
  constexpr bool input_grad() const { return graph_ && graph_->nodes[node_index()].input_grad; }
  constexpr void name_node(graph* g, int index) {
    if (__builtin_is_constant_evaluated()) name(form::node, g, index);
    else g->tensors->name(*g->tensors, index, *this);
  }
  constexpr void name_slot(graph* g, int index) { name(form::slot, g, index); }
  /// The node of this value in g. Floating ops are added to g; a value of another graph is refused.
  constexpr int lift(graph* g) const {
    if (!__builtin_is_constant_evaluated()) return g->tensors->node_of(*g->tensors, *this);
    if (graph_) return graph_ == g ? node_index() : stand_in(*g);
    if (form_ == form::empty) throw std::logic_error("xla: an empty tensor was used");
    int at[floating_list::most] = {};
    for (int i = 0; i < floating_; ++i) {
      const node n = placed(i, at, g->lists);
      if (is<op::data>(n))
        g->sizes.refused.set(
            "xla: a compiled body cannot read numbers from memory: make the tensor outside and "
            "pass it, or keep it in a buffer of the model");
      at[i] = g->add(n);
    }
    return at[floating_ - 1];
  }
  /// Becomes the floating op n of floating inputs.
  constexpr void float_op(node n, const handle* const* inputs = nullptr, int count = 0) {
    forget();
    form_ = form::empty;
    poison();
    if (count == 0 ? keep_number(n) : count == 1 && keep_number(n, *inputs[0])) return;
    int room = 1;
    for (int i = 0; i < count; ++i) room += inputs[i]->floating_;
    floating_list all(room);
    all.lists.open(n, count);
    for (int i = 0; i < count; ++i) {
      const int in = inputs[i]->append_to(all);
      all.lists.of(n)[i] = in;
    }
    all.add(n);
    keep(all);
  }
  constexpr node floating_result() const { return floating_at(floating_ - 1); }

  // ---- run time

  impl* value() const noexcept { return cell_ ? cell_->value() : impl_; }
  cell* get_cell() const noexcept { return cell_; }
  /// Takes over a reference from the caller.
  void adopt(impl* owned) noexcept {
    drop();
    impl_ = owned;
  }
  void refer(cell* owned) noexcept {
    drop();
    cell_ = owned;
    cell_->keeper = this;
  }
  /// Takes over the cell of another handle, which is left empty.
  void steal_cell(handle& o) noexcept {
    if (!o.cell_) return;
    drop();
    cell_ = std::exchange(o.cell_, nullptr);
    cell_->keeper = this;
  }
  /// Keeps its own cell, and takes over the content of another handle's cell; that handle becomes
  /// empty.
  void take_contents(handle& o) noexcept { move_contents(*cell_, std::exchange(o.cell_, nullptr)); }
  /// Releases the impl to the caller if this handle has the only reference.
  impl* take() noexcept { return std::exchange(impl_, nullptr); }

  // ---- both modes

  /// True for a parameter or buffer, which has a cell or slot: assignment writes to it.
  constexpr bool is_cell() const {
    return __builtin_is_constant_evaluated() ? form_ == form::slot : cell_ != nullptr;
  }
  constexpr bool defined() const {
    if (__builtin_is_constant_evaluated()) return form_ != form::empty;
    return value() != nullptr;
  }
  [[gnu::noinline]] constexpr shape dims() const {
    if (__builtin_is_constant_evaluated()) {
      if (graph_) return graph_->nodes[node_index()].dims_shape();
      if (form_ == form::empty) throw std::logic_error("xla: an empty tensor was used");
      return floating_result().dims_shape();
    }
    return value() ? value()->dims_shape() : shape{};
  }
  /// The same for an op in a graph with this symbol table.
  constexpr shape dims_for(size_table* sizes) const {
    if (!__builtin_is_constant_evaluated()) return dims();
    return graph_ && &graph_->sizes != sizes ? refuse_in(*sizes) : dims();
  }
  constexpr dtype element_type() const {
    if (!__builtin_is_constant_evaluated()) return value()->type;
    return graph_ ? graph_->nodes[node_index()].type : floating_result().type;
  }
  /// 0 in constant evaluation, which involves a single device.
  constexpr int device_number() const {
    if (__builtin_is_constant_evaluated()) return 0;
    return value() ? value()->device : 0;
  }
  constexpr size_table* table() const {
    if (__builtin_is_constant_evaluated() && graph_) return &graph_->sizes;
    return nullptr;
  }
  /// Whether the value is a slice of xs in a body of scan() that is being run or recorded.
  constexpr bool scanned() const {
    if (!__builtin_is_constant_evaluated()) return value() && value()->scanned;
    return graph_ && graph_->nodes[node_index()].scanned;
  }
  constexpr void set_scanned(bool on) const {
    if (!__builtin_is_constant_evaluated()) value()->scanned = on;
    else if (form_ == form::node) graph_->nodes[node_index()].scanned = on;
  }

 protected:
  // A handle made in constant evaluation would contain the address of a dead object, which a
  // constant must not. So a tensor or model with static storage is constructed again at run time,
  // where it gets its elements. Without this such a model would exist, but have no weights.
  constexpr void poison() {
    if (__builtin_is_constant_evaluated()) {
      const char automatic = 0;
      mark(automatic);
    }
  }

 private:
  enum class form : std::uint8_t { empty, node, slot, number, ops };
  static constexpr int few = 4;  // axes that are stored inline

  constexpr void mark(const char& c) { automatic_ = &c; }
  // Symbolic sizes of another graph are undefined in this one; after the refusal they are replaced
  // by 1.
  [[gnu::cold]] constexpr shape refuse_in(size_table& sizes) const {
    sizes.refused.set(
        "xla: a tensor that belongs to another graph was used: what is recorded there is no value "
        "here; pass it as an argument, or record both in one graph");
    shape ones = dims();
    for (int i = 0; i < ones.rank; ++i) ones[i] = 1;
    return ones;
  }
  [[gnu::cold]] constexpr int stand_in(graph& g) const {
    node n;
    n.op = &builtin<op::constant>;
    n.type = element_type();
    n.set_shape(refuse_in(g.sizes));
    n.set<op::constant>({});
    return g.add(n);
  }
  constexpr void name(form f, graph* g, int index) {
    if (form_ == form::ops) forget();
    poison();
    form_ = f;
    graph_ = g;
    index_ = index;
  }
  // g++ 12 copies a temporary bit by bit if it is an operand of ?:, an argument or an element of a
  // list, and destroys both. So ops belong to the handle at whose address they were created.
  constexpr void forget() {
    if (form_ == form::ops && automatic_ == this) delete ops_;
  }
  constexpr void keep(const floating_list& ops) {
    floating_list* const own = new floating_list(ops);
    forget();
    form_ = form::ops;
    graph_ = nullptr;
    automatic_ = this;
    ops_ = own;
    floating_ = static_cast<std::int8_t>(own->count);
  }
  // A number, and a number to which one op gives a shape, are stored in the handle itself. Most
  // constants are these; it makes them cheap, and safe when g++ 12 copies them. Numbers that could
  // not be read back exactly are stored as a list.
  constexpr bool keep_number(const node& n) {
    if (n.rank > few) return false;
    start_number(n, 1);
    first_ = n.op;
    second_ = nullptr;
    const auto c = n.attributes<op::constant>();
    number_ = is_fraction(n.type) ? std::bit_cast<std::int64_t>(c.value) : c.whole;
    return kept(n);
  }
  constexpr bool keep_number(const node& n, const handle& x) {
    if (n.rank > few || x.form_ != form::number || x.floating_ != 1 || x.rank_ != 0) return false;
    if (n.type != x.type_) return false;
    start_number(n, 2);
    first_ = x.first_;
    second_ = n.op;
    number_ = x.number_;
    return kept(n);
  }
  constexpr void start_number(const node& n, int ops) {
    form_ = form::number;
    graph_ = nullptr;
    floating_ = static_cast<std::int8_t>(ops);
    type_ = n.type;
    rank_ = n.rank;
    for (int i = 0; i < n.rank; ++i) dims_[i] = static_cast<std::uint16_t>(n.dims[i]);
  }
  constexpr bool kept(const node& n) {
    if (same_record(floating_result(), n)) return true;
    form_ = form::empty;
    return false;
  }
  // g++ 12 prints its name when the temporary that it copied is gone.
  constexpr node gcc_12_lost_this_constant_choose_it_with_if(int i) const { return ops_->ops[i]; }
  constexpr node floating_at(int i) const {
    if (form_ == form::ops)
      return automatic_ == this ? ops_->ops[i] : gcc_12_lost_this_constant_choose_it_with_if(i);
    node n;
    n.type = type_;
    if (i == 0) {
      n.op = first_;
      if (!is_fraction(type_)) n.set<op::constant>({static_cast<double>(number_), number_});
      else n.set<op::constant>({.value = std::bit_cast<double>(number_)});
    } else {
      n.op = second_;
      n.arity = 1;
      n.in[0] = 0;
    }
    if (i == floating_ - 1) {
      n.rank = rank_;
      for (int k = 0; k < rank_; ++k) n.dims[k] = dims_[k];
    }
    return n;
  }
  // Op i of the list, for a graph in which the earlier ops have the nodes `at`; further inputs go
  // to the graph's lists.
  constexpr node placed(int i, const int* at, input_lists& to) const {
    node n = floating_at(i);
    if (n.arity > few_inputs) to.own(n, ops_->lists);
    int* const in = to.of(n);
    for (int k = 0; k < n.arity; ++k) in[k] = at[in[k]];
    return n;
  }
  constexpr int append_to(floating_list& all) const {
    int at[floating_list::most] = {};
    for (int i = 0; i < floating_; ++i) at[i] = all.add_once(placed(i, at, all.lists));
    return at[floating_ - 1];
  }
  constexpr void copy_value(const handle& o) {
    if (!__builtin_is_constant_evaluated()) {
      impl_ = o.value();
      if (impl_) impl_->retain();
    } else if (o.form_ == form::ops) {
      keep(*o.ops_);
    } else {
      if (form_ == form::ops) forget();
      form_ = o.form_ == form::slot ? form::node : o.form_;
      graph_ = o.graph_;
      automatic_ = o.automatic_;
      if (form_ == form::node) index_ = o.node_index();
      else if (form_ == form::number) copy_number(o);
    }
  }
  constexpr void copy_number(const handle& o) {
    floating_ = o.floating_;
    type_ = o.type_;
    rank_ = o.rank_;
    for (int i = 0; i < rank_; ++i) dims_[i] = o.dims_[i];
    first_ = o.first_;
    second_ = o.second_;
    number_ = o.number_;
  }
  void steal(handle& o) noexcept {
    impl_ = o.cell_ ? o.value() : std::exchange(o.impl_, nullptr);
    if (o.cell_ && impl_) impl_->retain();
  }
  void drop() noexcept {
    if (impl_ || cell_)
      release_target(std::exchange(impl_, nullptr), std::exchange(cell_, nullptr));
  }

  // impl_ and cell_ are used at run time, the rest in constant evaluation.
  graph* graph_ = nullptr;
  union {
    impl* impl_ = nullptr;
    const op_info* first_;
  };
  union {
    cell* cell_ = nullptr;
    const op_info* second_;
  };
  union {
    floating_list* ops_;
    std::int64_t number_;
  };
  const void* automatic_ = nullptr;
  int index_;
  form form_ = form::empty;
  std::int8_t floating_, rank_;
  dtype type_;
  std::uint16_t dims_[few];
};

}  // namespace xla::detail
