// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out whether the steps of a loop compute the rows of a batch independently of each other,
// and makes the body's program for some of the rows. loops.hpp runs each part on a thread.

#include <algorithm>
#include <cstdint>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/plan/sized.hpp"

namespace xla::detail {

/// The values of a loop's body that have a row for each row of the batch, along their first axis.
/// Row i of a carry's next value depends on row i of carries and slices, and on values outside of
/// the loop, such as weights, alone. So the rows can be divided among threads, which then wait for
/// each other once per loop, and bits stay the same.
template <class In>
class basic_batch_rows {
 public:
  /// of: a loop's body; per_step: per slot, whether it is a slice or a carry; carries come last.
  [[XLA_PLANS]] basic_batch_rows(const dependent<In, sized_program>& of, const list<char>& per_step,
                                 int carries)
      : of_(of), p_(of.source) {
    const int slots = p_.count.slots, first = slots - carries;
    if (carries == 0 || p_.slots[first].leaf < 0) return;
    const shape& s = of_.shapes[p_.slots[first].leaf];
    if (s.rank == 0 || s[0] < 2) return;
    rows_ = s[0];
    rows_of_.assign(p_.count.values, false);
    read_.assign(p_.count.values, false);
    for (int i = 0; i < slots; ++i)
      if (const int v = p_.slots[i].leaf; v >= 0 && per_step[i]) {
        rows_of_[v] = has_rows(v);
        if (i >= first && !rows_of_[v]) rows_ = 0;
      }
    while (rows_ > 0 && !follow_steps()) {}
  }

  /// How many there are; 0: the steps do not compute them independently.
  std::int64_t count() const { return rows_; }
  /// Whether each row of the batch has its own elements of value v.
  bool is_divided(int v) const { return v >= 0 && rows_of_[v]; }
  /// Whether a step of the body reads value v, or copies it to what is saved.
  bool is_read(int v) const { return read_[v]; }
  /// Bytes of a row of v; 0: it has none.
  std::int64_t bytes(int v) const { return is_divided(v) ? of_.bytes(v) / rows_ : 0; }
  /// The fewest rows of a part: products of fewer sum in an order of their own.
  std::int64_t fewest() const { return fewest_; }
  /// Elements times ops that a step computes.
  std::int64_t work() const { return work_; }
  /// Bytes of the matrices by which a step multiplies.
  std::int64_t matrices() const { return matrices_; }

  /// Makes a loop's body and layout those for so many rows. spaces: memory that outlives them.
  [[XLA_PLANS]] void take_rows(auto& layout, dependent<In, sized_program>& part, std::int64_t rows,
                               list<shape>& spaces) const {
    for (int v = 0; v < p_.count.values; ++v)
      if (rows_of_[v]) part.shapes[v][0] = rows;
    for (int i = 0; i < p_.count.slots; ++i)
      if (is_divided(p_.slots[i].leaf)) part.slot_shapes[i][0] = rows;
    spaces.assign(p_.count.spaces, {});
    for (int i = 0; i < p_.count.steps; ++i) {
      const step& s = p_.steps[i];
      if (s.space < 0) continue;
      shape space = value_at(of_.symbols, p_.spaces[s.space]);
      if (is_divided(p_.outputs[s.first_output])) space[0] = rows;
      spaces[s.space] = space;
    }
    part.source.spaces = spaces.begin();
    for (int k = 0; k < layout.carries.size(); ++k)
      layout.carries[k].bytes = part.bytes(part.source.writes[k].value);
  }

 private:
  const node& value(int v) const { return p_.values[v]; }
  bool has_rows(int v) const { return of_.shapes[v].rank > 0 && of_.shapes[v][0] == rows_; }

  /// False: a slot turned out to have rows, and what its readers are is to be found again. Sets
  /// rows_ to 0 if a step needs other rows.
  [[XLA_PLANS]] bool follow_steps() {
    work_ = matrices_ = 0;
    more_ = false;
    space_divided_.assign(p_.count.spaces, -1);
    for (int i = 0; i < p_.count.steps && !more_; ++i)
      if (!follow(p_.steps[i]) && !more_) rows_ = 0;
    if (more_) return false;
    for (int i = 0; i < p_.count.writes; ++i) leave(p_.writes[i].value);
    for (int i = 0; i < p_.count.results; ++i) leave(p_.results[i]);
    return true;
  }
  void need(bool ok) {
    if (!ok) rows_ = 0;
  }
  /// A value that a step passes on, or saves. It may be a slot, which is then copied.
  void leave(int v) {
    need(divided(v));
    read_[unaliased(v)] = true;
  }
  /// The same elements under another shape have rows of the same elements if they have as many.
  bool divided(int v) {
    if (value(v).op->kind != op_kind::alias) return rows_of_[v];
    const bool is = divided(p_.inputs_of(v)[0]);
    if (is) need(has_rows(v));
    rows_of_[v] = is;
    return is;
  }
  int unaliased(int v) const {
    while (value(v).op->kind == op_kind::alias) v = p_.inputs_of(v)[0];
    return v;
  }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }

  [[XLA_PLANS]] bool follow(const step& s) {
    if (s.check || s.exchanges || s.body > 0 || s.kind > step_kind::row || s.outputs == 0)
      return false;
    bool any = false;
    for (int k = 0; k < s.inputs; ++k) {
      any |= divided(input(s, k));
      read_[unaliased(input(s, k))] = true;
    }
    const bool region = s.space >= 0;
    if (!any && !region) return false;  // each thread would compute it
    shape space;
    bool ok = true;
    if (region) {
      space = value_at(of_.symbols, p_.spaces[s.space]);
      work_ += detail::count(space) * s.ops;
      signed char& is = space_divided_[s.space];
      ok = is < 0 || is == any;
      is = any;
    }
    if (!any) return ok;
    ok = ok && (region ? space.rank > (s.kind == step_kind::row) && space[0] == rows_ &&
                             all_along(s, space)
                       : divides(s));
    for (int k = 0; k < s.outputs; ++k) {
      const int v = p_.outputs[s.first_output + k];
      rows_of_[v] = true;
      ok = ok && has_rows(v) && (!region || of_.shapes[v].rank == space.rank);
    }
    return ok;
  }
  /// Whether all inputs of a step over this space have the rows as its first axis, or do not vary
  /// along it.
  [[XLA_PLANS]] bool all_along(const step& s, const shape& space) {
    for (int k = 0; k < s.inputs; ++k) {
      const shape& x = of_.shapes[input(s, k)];
      const bool along = x.rank == space.rank && x[0] == rows_;
      if (divided(input(s, k)) ? !along : along && !divide_slot(input(s, k))) return false;
    }
    return true;
  }
  /// A value from outside that is read row by row has rows, too: a mask.
  bool divide_slot(int v) {
    v = unaliased(v);
    if (!is<op::input>(value(v)) || !has_rows(v)) return false;
    rows_of_[v] = more_ = true;
    return true;
  }

  /// Whether the step of an op with a kernel of its own computes each row of its result from the
  /// same row of its divided inputs.
  [[XLA_PLANS]] bool divides(const step& s) {
    const node& n = value(s.value);
    const op_info& op = *n.op;
    if (op.impure || op.results > 1 || s.outputs > 1) return false;
    const shape& out = of_.shapes[s.value];
    if (op.kind == op_kind::reduce) {
      work_ += of_.bytes(input(s, 0));
      return !n.template attributes<op::reduction>().axes.has(0);
    }
    work_ += 8 * detail::count(out);
    if (is<op::concat>(op) || is<op::slice>(op)) {
      const int axis = is<op::concat>(op) ? int{n.template attributes<op::concat>().axis}
                                          : int{n.template attributes<op::slice>().axis};
      for (int k = 0; k < s.inputs; ++k)
        if (!divided(input(s, k)) && !divide_slot(input(s, k))) return false;
      return axis != 0;
    }
    if (is<op::slice_scatter>(op))
      return n.template attributes<op::slice_scatter>().axis != 0 && all_along(s, out);
    if (!is<op::matmul>(op)) return false;
    const auto a = n.template attributes<op::matmul>();
    if (a.precision != precision::float32 || a.half_a || a.half_b) return false;
    const shape& left = of_.shapes[input(s, 0)];
    work_ += detail::count(out) * left[left.rank - (a.transpose_a ? 2 : 1)] / 8;
    if (out.rank > 2) return all_along(s, out);
    matrices_ += of_.bytes(input(s, 1));
    fewest_ = std::max<std::int64_t>(fewest_, a.of_steps ? 1 : own_order + 1);
    return !a.transpose_a && divided(input(s, 0)) && !divided(input(s, 1));
  }

  static constexpr std::int64_t own_order = 4;  ///< kernel::gemm()
  const dependent<In, sized_program>& of_;
  const program& p_;
  std::int64_t rows_ = 0, work_ = 0, matrices_ = 0, fewest_ = 1;
  list<char> rows_of_, read_;  // per value
  list<signed char> space_divided_;
  bool more_ = false;  // another slot has rows
};

}  // namespace xla::detail
