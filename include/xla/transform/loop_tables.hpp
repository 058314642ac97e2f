// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds stacked tensors that no step has to copy, because loops can read or write the parts in
// place. lower_loops.hpp uses it while a graph becomes a program.

#include "xla/base/owned_array.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/slice.hpp"
#include "xla/transform/pass.hpp"

namespace xla::detail {

/// The stacks of a graph that need not be materialised, of two kinds. The first stacks tensors of
/// equal sizes, and only steps of loops read it, one slice each: they read the tensors in place.
/// The second stacks values of a loop's steps, and only its slices are read: the steps write these
/// directly. So the parameters of equal blocks are not copied for a loop over them, nor are their
/// gradients. Loops of a program use it when its steps are numbered.
class loop_tables {
 public:
  [[gnu::cold]] constexpr explicit loop_tables(const pass_state& s)
      : s_(s),
        g_(s.g),
        stacks_(s.room()),
        all_rows_(s.room()),
        stack_of_(stacks_.get()),
        rows_(all_rows_.get()) {
    int stacks = 0;
    for (int i = 0; i < g_.count; ++i) stacks += find(i);
    if (stacks == 0) return;
    for (int i = g_.after_leaves(); i < g_.count; ++i)
      if (s_.live[i]) check_uses(i);
    for (int i = 0; i < s_.roots.result_count; ++i) refuse(s_.roots.results[i]);
    for (int i = 0; i < s_.roots.write_count; ++i) refuse(s_.roots.writes[i].value);
  }

  /// The stack of tensors that a node is, in any shape; -1 if it is not a skipped one.
  constexpr int tensors_of(int node) const { return of(node, true); }
  /// The stack of step values that a node is, in any shape, or a slice of; -1 if there is none.
  constexpr int steps_of(int node) const { return of(node, false); }
  /// Whether a node's step is skipped: another step makes its value, or none has to.
  constexpr bool left_out(int node) const {
    if (stack_of_[node] == 0) return false;
    return tensors_of(node) == node || (is_row(node) && steps_of(node) >= 0);
  }

 private:
  static constexpr int refused = -1;
  constexpr int stack(int node) const { return stack_of_[node] - 1; }
  constexpr bool is_row(int node) const { return is<op::slice>(g_.nodes[node]); }
  constexpr int of(int node, bool tensors) const {
    const int at = stack(node);
    if (at < 0 || rows_[at] == refused) return -1;
    return is<op::concat>(g_.nodes[at]) == tensors ? at : -1;
  }
  constexpr bool row_by_row(int node) const { return !s_.orders || s_.orders[node] == layout{}; }

  constexpr bool find(int i) {
    const node& n = g_.nodes[i];
    stack_of_[i] = rows_[i] = 0;
    if (n.arity == 0 || !s_.live[i]) return false;
    if (n.op->kind == op_kind::alias) {
      if (row_by_row(i)) stack_of_[i] = stack_of_[n.in[0]];
      return false;
    }
    if ((!is_of_tensors(n) && !is_of_steps(n)) || !row_by_row(i)) return false;
    stack_of_[i] = i + 1;
    return true;
  }
  constexpr bool is_of_tensors(const node& n) const {
    if (!is<op::concat>(n) || n.attributes<op::concat>().axis != 0) return false;
    const int* const in = g_.inputs(n);
    const node& first = g_.nodes[in[0]];
    for (int k = 0; k < n.arity; ++k) {
      const node& part = g_.nodes[in[k]];
      if (is_number(part) || !same_dims(part, first) || !row_by_row(in[k])) return false;
    }
    return true;
  }
  constexpr bool is_of_steps(const node& n) const {
    if (!is<op::steps>(n) || !is_known(n.dims[0])) return false;
    const extent every = n.attributes<op::steps>().every;
    const node& loop = g_.nodes[n.in[0]];
    return every == 0 && loop.arity == 2 * loop.attributes<op::loop>().carries;
  }

  constexpr void refuse(int node) {
    const int root = s_.to[node], at = stack(root);
    if (at >= 0 && !is_row(root)) rows_[at] = refused;
  }
  /// The slices of step values must come with rising step numbers, none of them twice.
  constexpr void check_uses(int i) {
    const node& n = g_.nodes[i];
    const int* const in = g_.inputs(n);
    for (int k = 0; k < n.arity; ++k) {
      if (stack_of_[in[k]] == 0) continue;
      const int at = stack(in[k]);
      if (is_row(in[k]) || stack(i) == at || rows_[at] == refused) continue;
      int& row = rows_[at];
      if (is<op::concat>(g_.nodes[at])) {
        const bool reads = is<op::step_slice>(n) && n.arity == 1 && row_by_row(i) &&
                           g_.nodes[in[k]].dims[0] == g_.nodes[at].arity;
        if (!reads) row = refused;
        continue;
      }
      const int number = row_of(n, g_.nodes[in[k]], g_.nodes[at]);
      if (number < row || !row_by_row(i)) {
        row = refused;
      } else {
        row = number + 1;
        stack_of_[i] = at + 1;
      }
    }
  }
  /// The number of the step whose value a node is; -1: it is another part.
  static constexpr int row_of(const node& n, const node& all, const node& stack) {
    if (!is<op::slice>(n)) return -1;
    const auto about = n.attributes<op::slice>();
    const extent start = about.start;
    if (about.axis != 0 || about.step != 1 || !is_known(start)) return -1;
    const extent rows = stack.dims[0], length = n.dims[0];
    if (!is_known(length) || length == 0 || all.dims[0] != rows * length) return -1;
    return start % length == 0 ? static_cast<int>(start / length) : -1;
  }

  const pass_state& s_;
  const graph& g_;
  owned_array<int> stacks_, all_rows_;
  int* const stack_of_;  // per node: the stack that it is or is a slice of, counted from 1
  int* const rows_;      // per stack: the first row without a slice so far, or refused
};

}  // namespace xla::detail
