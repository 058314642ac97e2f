// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::Graph and xla::Node, the graph as a custom pass sees it: safe to edit, for one pass at a
// time. passes.hpp at the top of include/xla includes it.

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>

#include "xla/op/matmul.hpp"
#include "xla/transform/graph_editor.hpp"

namespace xla {

class Graph;

/// An op of a graph, as a pass sees it, until the pass ends.
class Node {
 public:
  /// No node: for a variable that is set later.
  constexpr Node() = default;

  /// The op's name, as Compiled::graph() prints it: "mul".
  constexpr std::string_view op() const { return record().op->name; }
  /// Whether it is that op: node.is<xla::op::mul>().
  template <class Op>
  constexpr bool is() const {
    return detail::is<Op>(record());
  }
  /// The op's attributes, whose fields have names: node.attributes<xla::op::matmul>().transpose_b.
  template <class Op>
  constexpr typename Op::attributes attributes() const {
    if (is<Op>()) return record().template attributes<Op>();
    misuse(text() << "is " << op() << ", and has no attributes of " << Op::name);
    return {};
  }
  /// The value of a constant; empty for any other op. In a graph recorded at run time the numbers
  /// of a step are inputs.
  constexpr std::optional<double> constant_value() const {
    if (!is<op::constant>()) return {};
    return attributes<op::constant>().value;
  }

  /// Element type and number of axes of the result.
  constexpr dtype type() const { return record().type; }
  constexpr int rank() const { return record().rank; }
  /// The size of an axis, counted from the end if negative; -1: each call decides it.
  constexpr std::int64_t size(int axis) const {
    const int at = axis < 0 ? axis + rank() : axis;
    if (at < 0 || at >= rank()) {
      misuse(text() << "has " << rank() << " axes, and none of number " << axis);
      return -1;
    }
    const detail::extent e = editor_->g().sizes.find(record().dims[at]);
    return detail::is_known(e) ? e : -1;
  }

  class Inputs;
  class Users;
  /// Its inputs, in the op's order.
  constexpr Inputs inputs() const;
  /// The nodes that read it, each once, in no particular order. Replace it after a loop over them,
  /// not within.
  constexpr Users users() const;
  /// The loop in whose steps it runs, by a number from 1 on; 0: none. See xla/loop.hpp.
  constexpr int loop() const { return record().loop; }
  constexpr int input_count() const { return record().arity; }
  constexpr Node input(int k) const {
    if (k >= 0 && k < input_count()) return Node(editor_, editor_->g().inputs(record())[k]);
    misuse(text() << "has " << input_count() << " inputs, and none of number " << k);
    return *this;
  }

  /// Its number in the graph, as Compiled::graph() prints it; nodes that the pass adds have the
  /// highest numbers.
  constexpr int index() const { return index_; }
  friend constexpr bool operator==(const Node&, const Node&) = default;

 private:
  friend Graph;
  friend Inputs;
  friend Users;
  using text = detail::text;
  constexpr Node(detail::graph_editor* editor, int index) : editor_(editor), index_(index) {}
  constexpr const detail::node& at(int i) const { return editor_->g().nodes[i]; }
  constexpr const detail::node& record() const {
    if (!editor_)
      throw runtime_error("xla::Node: this one was made by Node() and is no node of a graph");
    return at(index_);
  }
  [[gnu::cold]] constexpr void misuse(const text& sentence) const {
    editor_->refuse(text("%") << index_ << ' ' << sentence);
  }

  detail::graph_editor* editor_ = nullptr;
  int index_ = -1;
};

namespace detail {
/// Over a range that has operator[], first() and after(i), which are -1 at its end.
template <class Range>
class node_iterator {
 public:
  using value_type = Node;
  using difference_type = std::ptrdiff_t;
  constexpr node_iterator(const Range& of, int at) : of_(&of), at_(at) {}
  constexpr Node operator*() const { return (*of_)[at_]; }
  constexpr node_iterator& operator++() {
    at_ = of_->after(at_);
    return *this;
  }
  friend constexpr bool operator==(const node_iterator&, const node_iterator&) = default;

 private:
  const Range* of_;
  int at_;
};
template <class Range>
class node_range {
 public:
  constexpr auto begin() const { return node_iterator<Range>(self(), self().first()); }
  constexpr auto end() const { return node_iterator<Range>(self(), -1); }
  constexpr bool empty() const { return self().first() < 0; }
  constexpr int size() const {
    int size = 0;
    for (int i = self().first(); i >= 0; i = self().after(i)) ++size;
    return size;
  }

 private:
  friend Range;
  constexpr node_range() = default;
  constexpr const Range& self() const { return static_cast<const Range&>(*this); }
};
}  // namespace detail

class Node::Inputs : public detail::node_range<Inputs> {
 public:
  constexpr Node operator[](int k) const { return node_.input(k); }

 private:
  friend Node;
  friend class detail::node_range<Inputs>;
  friend class detail::node_iterator<Inputs>;
  constexpr explicit Inputs(Node node) : node_(node), count_(node.input_count()) {}
  constexpr int first() const { return after(-1); }
  constexpr int after(int k) const { return k + 1 < count_ ? k + 1 : -1; }
  Node node_;
  int count_;
};
constexpr auto Node::inputs() const -> Inputs { return Inputs(*this); }

class Node::Users : public detail::node_range<Users> {
 private:
  friend Node;
  friend class detail::node_range<Users>;
  friend class detail::node_iterator<Users>;
  constexpr explicit Users(Node of) : of_(of) {}
  constexpr Node operator[](int u) const { return {of_.editor_, reader(u)}; }
  constexpr int first() const { return shown(uses().first(of_.index_)); }
  constexpr int after(int u) const { return shown(uses()[u].next); }

  constexpr const detail::use_lists& uses() const { return of_.editor_->uses(); }
  constexpr int reader(int u) const { return uses()[u].reader; }
  /// The first from here on whose reader is needed and has not been visited.
  constexpr int shown(int u) const {
    while (u >= 0 && (!of_.editor_->shown(reader(u)) || met(u))) u = uses()[u].next;
    return u;
  }
  constexpr bool met(int until) const {
    for (int u = uses().first(of_.index_); u != until; u = uses()[u].next)
      if (reader(u) == reader(until)) return true;
    return false;
  }
  Node of_;
};
constexpr auto Node::users() const -> Users {
  record();
  return Users(*this);
}

/// The graph of a step on its way to a program, which a pass can inspect and change.
class Graph {
 public:
  constexpr explicit Graph(detail::graph_editor& editor) : editor_(&editor) {}

  /// The ops that the step needs, each after its inputs. A loop over them does not visit nodes that
  /// it adds.
  class Nodes : public detail::node_range<Nodes> {
   private:
    friend Graph;
    friend class detail::node_range<Nodes>;
    friend class detail::node_iterator<Nodes>;
    constexpr Nodes(detail::graph_editor* editor, int count) : editor_(editor), count_(count) {}
    constexpr Node operator[](int i) const { return {editor_, i}; }
    constexpr int first() const { return after(-1); }
    constexpr int after(int i) const {
      do ++i;
      while (i < count_ && !editor_->shown(i));
      return i < count_ ? i : -1;
    }
    detail::graph_editor* editor_;
    int count_;
  };
  constexpr Nodes nodes() const { return {editor_, editor_->g().count}; }
  /// Whether the step returns the node's result, or writes it to a parameter, buffer or gradient.
  constexpr bool is_output(Node node) const {
    return own(node) && editor_->is_root(node.index());
  }

  /// Replaces `node` by `by` in all its uses: nodes that read it, and the step's results and
  /// writes. The nodes on which `by` depends continue to use `node`, so that `by` may read it. Both
  /// have the same element type and sizes. An unused node is removed when the library's pass dead
  /// runs.
  constexpr void replace(Node node, Node by) {
    if (own(node) && own(by)) editor_->replace(node.index(), by.index());
  }

  /// A new op: graph.add<xla::op::add, float>({x, y}). T is the element type of the result, In that
  /// of the inputs: graph.add<xla::op::lt, bool, float>({x, y}). Elementwise ops, also of your own,
  /// reductions and op::matmul can be added. Ops that draw random numbers, check values or exchange
  /// with replicas cannot.
  template <class Op, element T, element In = T>
  constexpr Node add(std::initializer_list<Node> inputs) {
    if constexpr (detail::has_attributes<Op>)
      return add<Op, T, In>(inputs, typename Op::attributes{});
    else return add<Op, T, In, std::nullptr_t>(inputs, nullptr);
  }
  /// The same for an op with attributes: graph.add<xla::op::matmul, float>({x, y}, {.transpose_b =
  /// true}), graph.add<xla::op::sum, float>({x}, {.axes = {0, 1}}).
  template <class Op, element T, element In = T, class Attributes = typename Op::attributes>
  constexpr Node add(std::initializer_list<Node> inputs, const Attributes& attributes) {
    constexpr detail::op_kind kind = Op::kind;
    static_assert(kind == detail::op_kind::map || kind == detail::op_kind::reduce ||
                      std::is_same_v<Op, op::matmul>,
                  "xla::Graph::add: a pass adds elementwise ops, reductions and op::matmul");
    static_assert(!std::is_same_v<In, bfloat16> || !detail::computes<Op>,
                  "xla::Graph::add: ops compute in float; add xla::op::cast to bfloat16 and back");
    static_assert(makes<Op, T, In>,
                  "xla::Graph::add<Op, T, In>: from In the op makes other elements than T: "
                  "comparisons make bool, and all ops but op::cast keep the element type");
    detail::node n;
    n.op = &detail::info_of<Op, T, In>;
    const detail::size_scope scope{&editor_->g().sizes, Op::name};
    if constexpr (detail::has_attributes<Op>)
      n.attr = detail::pack(attributes, scope);
    int in[detail::graph_editor::max_inputs] = {};
    int count = 0;
    for (Node i : inputs) {
      if (own(i) && count < detail::graph_editor::max_inputs) in[count] = i.index();
      ++count;
    }
    if constexpr (kind == detail::op_kind::reduce) refuse_axes(Op::name, attributes.axes, in[0]);
    if constexpr (std::is_same_v<Op, op::matmul>) refuse_operands(attributes, in);
    constexpr bool mask = requires { Op::chooses; };
    return {editor_, editor_->add(n, in, count, takes<Op, T, In>, dtype_of<In>, mask)};
  }
  /// A number, which broadcasts.
  template <element T>
  constexpr Node constant(T value) {
    const std::int64_t whole = std::is_integral_v<T> ? static_cast<std::int64_t>(value) : 0;
    return {editor_, editor_->add_number(dtype_of<T>, static_cast<double>(value), whole)};
  }

  /// Refuses the graph: a compiled function does not build, sync() throws runtime_error. The first
  /// sentence counts.
  constexpr void refuse(std::string_view sentence) { editor_->refuse(sentence); }

 private:
  using text = detail::text;
  template <class Op, class T, class In>
  static constexpr int takes = [] {
    if constexpr (std::is_same_v<Op, op::matmul>) return 2;
    else if constexpr (requires { detail::kernel_of<Op, T, In>::arity; })
      return detail::kernel_of<Op, T, In>::arity;
    else return 1;
  }();
  template <class Op, class T, class In>
  static constexpr bool makes = [] {
    if constexpr (requires { Op::converts; }) return true;
    else if constexpr (requires { detail::kernel_of<Op, T, In>::makes_out; })
      return detail::kernel_of<Op, T, In>::makes_out;
    else return std::is_same_v<T, In>;
  }();

  /// Whether a node is of this graph.
  constexpr bool own(Node node) const {
    if (node.editor_ == editor_) return true;
    editor_->refuse(node.editor_ ? "a node belongs to another graph"
                                 : "a node was made by Node() and is no node of a graph");
    return false;
  }
  constexpr void refuse_axes(std::string_view op, detail::axis_set axes, int in) {
    const int rank = editor_->g().nodes[in].rank;
    for (int axis = rank; axis < 32; ++axis)
      if (axes.has(axis))
        editor_->refuse(text(op) << " over axis " << axis << " of %" << in << ", which has "
                                 << rank);
  }
  constexpr void refuse_operands(const op::matmul::attributes& a, const int* in) {
    for (int k = 0; k < 2; ++k)
      if (const int rank = editor_->g().nodes[in[k]].rank; rank < 2)
        editor_->refuse(text("matmul of %") << in[k] << ", which has fewer than 2 axes");
    if (a.half_a || a.half_b) editor_->refuse("half_a and half_b are for the library's passes");
  }
  detail::graph_editor* editor_;
};

}  // namespace xla
