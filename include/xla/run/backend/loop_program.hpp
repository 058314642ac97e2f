// SPDX-License-Identifier: Apache-2.0
#pragma once

// Extracts the body of a loop from a program, as a program of its own with carries as slots.
// loops.hpp plans and runs it; this header runs nothing.

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "xla/graph/loops.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/backend/loop_draws.hpp"

namespace xla::detail {

/// The steps of a loop as a program of their own. Its first slots are values that no step changes:
/// outside values, slices of them, the step's number, and constant carries. Then come the carries
/// that steps write. Its results are the values that are saved for every step. Shapes are those of
/// the surrounding program.
template <class In>
class basic_loop_program {
 public:
  struct slot_source {
    enum kind { whole, slice, before, number } is = whole;
    int operand = 0;          ///< of the loop's step
    std::int64_t stride = 0;  ///< distance between slices, in bytes
    int other = -1;           ///< slice: the index of the first; before: the first step's
    bool reads_next = false;  ///< before: reads the next index instead of the previous one
    int rows = -1;  ///< slice: the index of its operands in read_rows, if they are not one array
  };
  /// Where the value of each step, or of every n steps, is saved; operand -1: nowhere.
  struct saved {
    int operand = -1;
    std::int64_t stride = 0, every = 0;
    bool booleans = false;
    int rows = -1;  ///< the index of its operands in saved_rows, if they are not one array
  };
  struct carried {
    int init = 0;   ///< operands of the loop's step
    int last = -1;  ///< the operand that gets the final value; -1: unused
    std::int64_t bytes = 0;
    saved history;  ///< where the values that steps pass on are saved
  };
  /// A carry that no step changes, and that is read in place.
  struct unchanged {
    int init = 0, last = -1;  ///< operands of the loop's step
    std::int64_t bytes = 0;
  };
  list<slot_source> sources;  ///< per slot that no step writes
  list<carried> carries;      ///< that steps change
  list<saved> results;
  list<unchanged> yielded;
  /// Pairs of operands: a further final value, and the carry that it copies.
  list<std::pair<int, int>> same;
  list<int> read_rows, saved_rows;  ///< operands, one per step; in saved_rows -1: unused
  int decides = -1;                 ///< the operand with the predicate or the number of steps
  list<int> draws;                  ///< random ops of its steps, and of loops in it
  std::int64_t counters = 0;        ///< random numbers that they consume per step

  basic_loop_program(const dependent<In, sized_program>& of, const step& s) : of_(of), s_(s) {}

  [[gnu::cold]] dependent<In, sized_program> make() {
    const program& p = of_.source;
    const auto about = p.values[s_.value].template attributes<op::loop>();
    number_ = about.number;
    operands_.assign(p.count.values, -1);
    for (int k = s_.inputs; k-- > 0;) operands_[input(k)] = k;
    find_carries(about);
    find_slots();
    find_results();
    dependent<In, sized_program> out;
    out.source = p;
    out.symbols = of_.symbols;
    out.shapes = of_.shapes;
    out.world = of_.world;
    out.winograd = of_.winograd;
    out.in_rows = true;
    out.random = of_.random;
    out.counters = of_.counters;
    draws = draws_of_steps<In>(of_, number_);
    if (!draws.empty()) counters = end_of_step<In>(of_, number_) - of_.counters[draws[0]];
    out.in_place.assign(carries.size(), false);
    fill(out);
    // Not slot_of_ = operands_ = {}, which leaks with clang 16.
    for (list<int>* used : {&slot_of_, &operands_}) list<int>().swap(*used);
    return out;
  }
  /// Whether all steps save a value in this operand, or read a slice of it, one after the other.
  [[gnu::cold]] bool is_by_rows(int operand) const {
    const auto saves = [&](const saved& s) {
      return s.operand == operand && s.every <= 1 && s.rows < 0;
    };
    bool any = false;
    for (const carried& c : carries) any |= saves(c.history);
    for (const saved& r : results) any |= saves(r);
    for (const slot_source& s : sources)
      any |= s.operand == operand && (s.is == slot_source::slice || s.is == slot_source::before);
    return any;
  }
  /// The operands of the loop's step for a slot or result of its body: one, or one per step.
  [[gnu::cold]] list<int> operands_of_slot(int i, std::int64_t steps) const {
    const int carry = i - sources.size();
    if (carry >= 0) return row_or_rows(carries[carry].init, -1, {}, steps);
    return row_or_rows(sources[i].operand, sources[i].rows, read_rows, steps);
  }
  [[gnu::cold]] list<int> operands_of_result(int i, std::int64_t steps) const {
    return row_or_rows(results[i].operand, results[i].rows, saved_rows, steps);
  }
  /// Per slot, whether so many steps read the same elements there that it pays to prepare them.
  [[gnu::cold]] list<char> fixed_slots(std::int64_t steps) const {
    constexpr std::int64_t few = 16;
    list<char> fixed(sources.size() + carries.size(), false);
    for (int i = 0; i < sources.size(); ++i)
      fixed[i] = steps > few && sources[i].is == slot_source::whole;
    return fixed;
  }

 private:
  [[gnu::cold]] static list<int> row_or_rows(int operand, int rows, const list<int>& all,
                                             std::int64_t steps) {
    list<int> operands;
    if (rows < 0) operands.push_back(operand);
    for (int i = 0; rows >= 0 && i < steps; ++i) operands.push_back(all[rows + i]);
    return operands;
  }
  const node& value(int v) const { return of_.source.values[v]; }
  int input(int k) const { return of_.source.inputs[s_.first_input + k]; }
  int operand_of(int v) const { return operands_[v]; }
  bool of_this(int v) const { return value(v).template attributes<op::of_loop>().loop == number_; }

  // In a call in which a parameter is frozen, some carries keep their value, or their initial
  // value.
  [[gnu::cold]] void find_carries(const op::loop::attributes& about) {
    const program& p = of_.source;
    const int* const in = p.inputs_of(s_.value);
    list<int> carry(about.carries, -1);
    for (int v = 0; v < p.count.values; ++v)
      if (is<op::carry>(value(v)) && of_this(v))
        carry[value(v).template attributes<op::of_loop>().number] = v;
    slot_of_.assign(p.count.values, -1);
    for (int k = 0; k < about.carries; ++k) {
      const int next = in[k], first = in[about.carries + k];
      if ((next == carry[k] || next == first) && !(about.tested && k == 0)) {
        carry_at_.push_back(-1);
        if (carry[k] >= 0) add_slot(carry[k], {slot_source::whole, operand_of(first)});
        continue;
      }
      carry_at_.push_back(carries.size());
      next_.push_back(next);
      carries.push_back({operand_of(first), -1, of_.bytes(next), {}});
    }
  }
  [[gnu::cold]] void find_slots() {
    const program& p = of_.source;
    for (int k = 0; k < s_.inputs; ++k)
      if (!is_number(value(input(k)))) add_slot(input(k), {slot_source::whole, k, 0});
    for (int v = 0; v < p.count.values; ++v) {
      const node& n = value(v);
      if (is<op::step_slice>(n) && of_this(v)) add_slot(v, slice_of(v));
      else if (is<op::step_before>(n) && of_this(v))
        add_slot(v, {slot_source::before, operand_of(n.in[0]), of_.bytes(v), operand_of(n.in[1]),
                     n.template attributes<op::of_loop>().number != 0});
      else if (is<op::step_number>(n) && of_this(v)) add_slot(v, {slot_source::number, -1, 0});
    }
    for (int v = 0; v < p.count.values; ++v)
      if (is<op::carry>(value(v)) && of_this(v))
        if (const int k = carry_at_[value(v).template attributes<op::of_loop>().number]; k >= 0)
          slot_of_[v] = sources.size() + k;
    if (const int n = 2 * carry_at_.size(); value(s_.value).arity > n)
      decides = operand_of(p.inputs_of(s_.value)[n]);
  }
  // A stack that is not materialised: steps read its parts in place (transform/loop_tables.hpp).
  [[gnu::cold]] slot_source slice_of(int v) {
    const node& n = value(v);
    const int all = operand_of(n.in[0]);
    if (all >= 0)
      return {slot_source::slice, all, of_.bytes(v), n.arity > 1 ? operand_of(n.in[1]) : -1};
    const int stack = unaliased(n.in[0]), first = read_rows.size();
    const int* const parts = of_.source.inputs_of(stack);
    for (int k = 0; k < value(stack).arity; ++k) read_rows.push_back(operand_of(parts[k]));
    return {slot_source::slice, -1, of_.bytes(v), -1, false, first};
  }
  int unaliased(int v) const {
    while (value(v).op->kind == op_kind::alias) v = of_.source.inputs_of(v)[0];
    return v;
  }
  void add_slot(int v, const slot_source& from) {
    slot_of_[v] = sources.size();
    sources.push_back(from);
  }
  [[gnu::cold]] void find_results() {
    for (int k = 1; k < s_.outputs; ++k) {
      const int v = of_.source.outputs[s_.first_output + k], operand = s_.inputs + k;
      if (is<op::steps>(value(v))) {
        save(v, {operand});
        continue;
      }
      if (is<op::slice>(value(v))) {
        save_row(v, operand);
        continue;
      }
      const int number = value(v).template attributes<op::of_loop>().number;
      const int carry = carry_at_[number];
      if (carry < 0) {
        const int first = of_.source.inputs_of(s_.value)[carry_at_.size() + number];
        yielded.push_back({operand_of(first), operand, of_.bytes(v)});
      } else if (carries[carry].last < 0) {
        carries[carry].last = operand;
      } else {
        same.push_back({operand, carry});
      }
    }
  }

  // Lets a step write the value that it passes on directly to its saved row, where the next step
  // reads it.
  [[gnu::cold]] void save(int steps, saved to) {
    const int v = value(steps).in[1];
    to.stride = of_.bytes(v);
    to.every = value_at(of_.symbols, value(steps).template attributes<op::steps>().every);
    to.booleans = value(v).type == dtype::boolean;
    for (int k = 0; k < carries.size() && to.rows < 0; ++k)
      if (next_[k] == v && carries[k].history.operand < 0) {
        carries[k].history = to;
        return;
      }
    results_.push_back(v);
    results.push_back(to);
  }
  /// One row of a stack that is not materialised; other rows may have no operand.
  [[gnu::cold]] void save_row(int v, int operand) {
    const int steps = unaliased(value(v).in[0]);
    int k = 0;
    while (k < saved_in_rows_.size() && saved_in_rows_[k].first != steps) ++k;
    if (k == saved_in_rows_.size()) {
      saved_in_rows_.push_back({steps, saved_rows.size()});
      save(steps, {.rows = saved_rows.size()});
      const auto all = static_cast<int>(of_.shapes[steps][0]);
      for (int i = 0; i < all; ++i) saved_rows.push_back(-1);
    }
    const std::int64_t start =
        value_at(of_.symbols, value(v).template attributes<op::slice>().start);
    saved_rows[saved_in_rows_[k].second + static_cast<int>(start / of_.shapes[v][0])] = operand;
  }

  // Arrays that differ from those of the surrounding program.
  [[gnu::cold]] void fill(dependent<In, sized_program>& out) const {
    program& p = out.source;
    const int n = p.count.values, slots = sources.size() + carries.size();
    out.own_bytes = bytes_of<node>(n) + bytes_of<program_slot>(slots) +
                    bytes_of<write>(carries.size()) + bytes_of<int>(results_.size());
    out.own.reset(new std::byte[static_cast<std::size_t>(out.own_bytes)]);
    std::byte* next = out.own.get();
    const auto allocate = [&]<class T>(const T*& array, int count, const T* from = nullptr) {
      T* const to = reinterpret_cast<T*>(next);
      if (from) std::memcpy(next, from, static_cast<std::size_t>(count) * sizeof(T));
      else
        for (int i = 0; i < count; ++i) ::new (static_cast<void*>(to + i)) T();
      next += bytes_of<T>(count);
      array = to;
      return to;
    };
    node* const values = allocate(p.values, n, p.values);
    program_slot* const slot = allocate(p.slots, slots);
    write* const writes = allocate(p.writes, carries.size());
    int* const kept = allocate(p.results, results_.size());
    for (int v = 0; v < n; ++v) {
      if (is<op::scalar>(values[v])) values[v].op = &builtin<op::constant>;  // or a slot, below
      if (slot_of_[v] < 0) continue;
      values[v].op = &builtin<op::input>;
      values[v].arity = 0;
      values[v].template set<op::input>({.slot = slot_of_[v]});
      slot[slot_of_[v]].leaf = v;
    }
    for (int i = 0; i < slots; ++i)
      out.slot_shapes.push_back(slot[i].leaf < 0 ? shape{} : out.shapes[slot[i].leaf]);
    for (int k = 0; k < carries.size(); ++k) {
      slot[sources.size() + k].kind = slot_kind::cell;
      slot[sources.size() + k].writes_value = true;
      writes[k] = {sources.size() + k, false, next_[k]};
    }
    for (int k = 0; k < results_.size(); ++k) kept[k] = results_[k];
    p.steps = p.bodies + s_.first_body;
    p.count.steps = s_.body;
    p.count.slots = slots;
    p.count.writes = carries.size();
    p.count.results = results_.size();
  }
  template <class T>
  static std::int64_t bytes_of(int n) {
    constexpr std::int64_t step = alignof(std::max_align_t);
    return (n * static_cast<std::int64_t>(sizeof(T)) + step - 1) / step * step;
  }

  const dependent<In, sized_program>& of_;
  const step& s_;
  int number_ = 0;
  list<int> operands_;  // per value: its first number among the step's inputs, or -1
  list<int> slot_of_;   // per value: its slot, or -1
  list<int>
      carry_at_;  // per carry of the loop: its index in `carries`, or -1 if no step changes it
  list<int> next_, results_;
  list<std::pair<int, int>> saved_in_rows_;  // values, and their first rows
};

}  // namespace xla::detail
