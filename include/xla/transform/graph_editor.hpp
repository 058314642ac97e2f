// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks and bookkeeping behind xla::Graph while a custom pass edits a graph. The library's
// passes do not use it: they work on pass_state directly (pass.hpp).

#include "xla/base/error.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/rule.hpp"
#include "xla/transform/use_lists.hpp"
#include "xla/transform/verify.hpp"

namespace xla::detail {

/// A graph while a custom pass changes it. Inputs may temporarily be later nodes; finish() restores
/// an order. The first error is stored as a sentence; at run time it is also thrown.
class graph_editor {
  constexpr bool there(int i) const { return i >= old_ || (s_.to[i] == i && s_.live[i]); }
  // clang evaluates a template where it is defined before its use.
  template <class F>
  constexpr void each_root(F f) const {
    for (int i = 0; i < s_.roots.result_count; ++i) f(s_.roots.results[i]);
    for (int i = 0; i < s_.roots.write_count; ++i) f(s_.roots.writes[i].value);
  }
  template <class F>
  constexpr void each_before(const node& n, const F& f) const {
    const int* const in = g_.inputs(n);
    for (int k = 0; k < n.arity; ++k) f(in[k]);
    for (int before : n.after)
      if (before >= 0) f(before);
    if (!is<op::loop>(n)) return;
    const int loop = n.attributes<op::loop>().number;
    for (int i = 0; i < g_.count; ++i)
      if (there(i) && in_loop(g_, g_.nodes[i].loop, loop)) f(i);
  }

 public:
  static constexpr int max_inputs = few_inputs;  ///< of a node that is added

  /// Why the pass may not change the graph, if it may not.
  constexpr graph_editor(pass_state& s, std::string_view pass, const text& why_not)
      : s_(s),
        g_(s.g),
        pass_(pass),
        why_not_(why_not),
        old_(s.g.count),
        for_shown_(s.room()) {
    bool* const shown = for_shown_.get();
    s.mark_needed(shown);
    for (int i = 0; i < old_; ++i) shown[i] = shown[i] && there(i);
  }
  graph_editor(const graph_editor&) = delete;

  constexpr graph& g() const { return g_; }
  constexpr const text& wrong() const { return wrong_; }
  constexpr bool shown(int i) const { return i >= old_ || for_shown_.get()[i]; }
  constexpr bool is_root(int i) const {
    bool found = false;
    each_root([&](const int& root) { found |= root == i; });
    return found;
  }
  [[gnu::cold]] constexpr void refuse(const text& sentence) {
    if (wrong_.empty()) wrong_ << "xla: the pass " << pass_ << ": " << sentence;
    if (!__builtin_is_constant_evaluated()) throw runtime_error(std::string(wrong_.view()));
  }

  [[gnu::cold]] constexpr void replace(int node, int by) {
    if (!wrong_.empty()) return;
    const detail::node &was = g_.nodes[node], &is = g_.nodes[by];
    if (was.type != is.type || !same_sizes(was, is))
      return refuse(text("%") << node << " is replaced by %" << by
                              << " of another element type or other sizes");
    if (was.op->results > 1 || is.op->results > 1)
      return refuse(text("%") << node << " or %" << by << " has several results");
    for (int i : {node, by})
      if (is_loop_part(i, i == node))
        return refuse(text("%") << i << " (" << g_.nodes[i].op->name << ") is part of a loop");
    if (!in_loop(g_, was.loop, is.loop))
      return refuse(
          text("%") << node << " is replaced by %" << by
                    << ", which each step of a loop makes, and which would be used outside of it");
    if (!change() || node == by) return;
    find_made_of(by, node);
    for (int u = uses().take(node); u >= 0;) {
      const auto [reader, operand, next] = uses_[u];
      const bool keeps = uses_.marked(reader);
      if (!keeps) g_.inputs(g_.nodes[reader])[operand] = by;
      uses_.give(u, keeps ? node : by);
      u = next;
    }
    each_root([&](int& root) {
      if (root == node) root = by;
    });
  }
  /// The users of each node.
  constexpr use_lists& uses() {
    uses_.follow(g_);
    return uses_;
  }

  /// The type and shape of an op with this many inputs; if it chooses, after a mask.
  [[gnu::cold]] constexpr int add(node n, const int* in, int count, int takes, dtype reads,
                                  bool mask) {
    n.type = n.op->result;
    if (!change() || !fits(n, in, count, takes, reads, mask)) return append(n);
    n.arity = count;
    shape_rule rule{{&g_.sizes, {n.op->name, unknown_caller}}, n, {}, count};
    for (int k = 0; k < count; ++k) {
      const node& from = g_.nodes[n.in[k] = in[k]];
      rule.in[k] = from.dims_shape();
      n.gradient |= from.gradient;
    }
    n.set_shape(n.op->shape_of(rule));
    if (g_.sizes.refused.failed()) refuse(g_.sizes.refused.why);
    return append(n);
  }
  [[gnu::cold]] constexpr int add_number(dtype type, double value, std::int64_t whole) {
    change();
    node n;
    n.op = &builtin<op::constant>;
    n.type = type;
    n.set<op::constant>({value, whole});
    return append(n);
  }

  /// Puts each node after its inputs again; a sentence if that is impossible.
  [[gnu::cold]] constexpr const text& finish() {
    if (!wrong_.empty()) g_.count = old_;  // observers of the graph see no more than before
    if (!changed_ || !wrong_.empty()) return wrong_;
    const owned_array<int> for_moved(s_.room());
    int* const moved = for_moved.get();
    if (!number(moved) || !keeps_effects(moved)) return wrong_;
    const owned_array<node> for_nodes(s_.room());
    node* const nodes = for_nodes.get();
    for (int i = 0; i < g_.count; ++i) nodes[i] = g_.nodes[i];
    int count = 0;
    for (int i = 0; i < g_.count; ++i) {
      if (moved[i] < 0) continue;
      node& n = g_.nodes[moved[i]] = nodes[i];
      int* const in = g_.inputs(n);
      for (int k = 0; k < n.arity; ++k) in[k] = moved[in[k]];
      for (int& before : n.after)
        if (before >= 0) before = moved[before];
      ++count;
    }
    const int all = g_.count;
    s_.to = s_.for_to.renew(s_.room());
    for (int i = 0; i < all; ++i) s_.to[i] = i;
    g_.count = count;
    s_.renumber(moved);
    refuse_illegal();
    return wrong_;
  }

 private:
  /// A loop itself, or the arguments of its steps: neither can be replaced.
  constexpr bool is_loop_part(int i, bool replaced) const {
    return is<op::loop>(g_.nodes[i]) || (replaced && given_by_loop(g_.nodes[i]) != 0);
  }
  /// Marks the nodes on which a replacement depends. Old nodes depend on earlier ones alone, so
  /// those up to the replaced one are skipped; until an old node's replacement is a later one.
  [[gnu::cold]] constexpr void find_made_of(int by, int node) {
    uses().mark_made_of(g_, by, [this, node](int i) {
      if (i < old_ && i <= node) return !later_;
      later_ |= i < old_;
      return false;
    });
  }
  constexpr bool same_sizes(const node& a, const node& b) const {
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank; ++i)
      same = g_.sizes.find(a.dims[i]) == g_.sizes.find(b.dims[i]);
    return same;
  }
  constexpr int append(node& n) {
    n.segment = g_.segment = 0;
    return g_.add(n);
  }

  /// Before the first change: roots become their replacements.
  [[gnu::cold]] constexpr bool change() {
    if (!why_not_.empty()) refuse(why_not_);
    if (!changed_ && wrong_.empty())
      each_root([this](int& root) { root = s_.to[root]; });
    changed_ = true;
    return wrong_.empty();
  }
  [[gnu::cold]] constexpr bool fits(const node& n, const int* in, int count, int takes, dtype reads,
                                    bool mask) {
    const op_info& op = *n.op;
    if (count != takes)
      refuse(text(op.name) << " takes " << takes << (takes == 1 ? " input, not " : " inputs, not ")
                           << count);
    for (int k = 0; wrong_.empty() && k < count; ++k)
      if (const dtype type = g_.nodes[in[k]].type, wants = mask && k == 0 ? dtype::boolean : reads;
          type != wants)
        refuse(text(op.name) << " of " << name_of(wants) << " is added to %" << in[k]
                             << ", which is " << name_of(type));
    return wrong_.empty();
  }

  /// moved[i]: the position of node i after all its inputs, else in the order of the numbers; -1:
  /// it is removed. False if a node would come after itself.
  [[gnu::cold]] constexpr bool number(int* moved) {
    std::size_t edges = s_.room();
    for (int i = 0; i < g_.count; ++i) {
      edges += static_cast<std::size_t>(g_.nodes[i].arity) + 2;
      if (is<op::loop>(g_.nodes[i])) edges += s_.room();
    }
    const owned_array<int> for_stack(edges);
    int* const stack = for_stack.get();
    constexpr int unseen = -1, open = -2;
    int next = 0;
    for (int i = 0; i < g_.count; ++i) moved[i] = unseen;
    for (int i = 0; i < g_.count; ++i) {
      int depth = 0;
      if (there(i)) stack[depth++] = i;
      while (depth > 0) {
        const int top = stack[depth - 1];
        if (moved[top] == unseen) {
          moved[top] = open;
          each_before(g_.nodes[top], [&](int before) {
            if (moved[before] == open)
              refuse(text("%") << before << " would depend on itself through %" << top);
            else if (moved[before] == unseen) stack[depth++] = before;
          });
          if (!wrong_.empty()) return false;
        } else {
          if (moved[top] == open) moved[top] = next++;
          --depth;
        }
      }
    }
    return true;
  }

  /// Nodes with effects keep their order.
  [[gnu::cold]] constexpr bool keeps_effects(const int* moved) {
    int last = -1;
    for (int i = 0; i < old_; ++i) {
      const node& n = g_.nodes[i];
      if (moved[i] < 0 || !(draws_again(n) || n.op->exchanges || of_a_slot(n))) continue;
      if (moved[i] < last) {
        refuse(text("%") << i << " (" << n.op->name << ") would come after what follows it in the "
                         << "step: it has an effect");
        return false;
      }
      last = moved[i];
    }
    return true;
  }
  static constexpr bool of_a_slot(const node& n) {
    const bool may = is<op::detach>(n) || is<op::updated>(n) || is<op::gradient_part>(n);
    return may && n.attributes<op::of_slot>().slot >= 0;
  }
  [[gnu::cold]] constexpr void refuse_illegal() {
    if (const text why = verify(s_); !why.empty()) refuse(why);
  }

  pass_state& s_;
  graph& g_;
  const std::string_view pass_;
  const text& why_not_;
  bool changed_ = false;
  bool later_ = false;  // an old node's replacement is an earlier one
  const int old_;       // the original nodes
  owned_array<bool> for_shown_;
  use_lists uses_;
  text wrong_{};
};

}  // namespace xla::detail
