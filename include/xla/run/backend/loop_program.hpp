// SPDX-License-Identifier: Apache-2.0
#pragma once

// Extracts the body of a loop from a program, as a program of its own with carries as slots.
// loops.hpp plans and runs it; this header runs nothing.

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/backend/loop_draws.hpp"

namespace xla::detail {

/// The steps of a loop as a program of their own. Its first slots are values that no step changes:
/// outside values, slices of them, the step's number, and constant carries. Then come the carries
/// that steps write. Its results are the values that are saved for every step. Shapes are those of
/// the surrounding program. Values are those that the steps use, with numbers of their own: plans
/// keep tables with a row for each value, and a deep network has thousands outside of its loops.
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
  list<int> numbers;  ///< per value, its number in the surrounding program; empty: the same

  basic_loop_program(const dependent<In, sized_program>& of, const step& s) : of_(of), s_(s) {}

  [[XLA_PLANS]] dependent<In, sized_program> make() {
    const program& p = of_.source;
    const auto about = p.values[s_.value].template attributes<op::loop>();
    number_ = about.number;
    operands_.assign(p.count.values, -1);
    for (int k = s_.inputs; k-- > 0;) operands_[input(k)] = k;
    find_carries(about);
    find_results();
    find_used();
    find_slots();
    dependent<In, sized_program> out;
    out.source = p;
    out.symbols = of_.symbols;
    take_values(of_.shapes, out.shapes);
    take_values(of_.random, out.random);
    out.world = of_.world;
    out.winograd = of_.winograd;
    out.in_rows = true;
    out.counters = of_.counters;
    draws = draws_of_steps<In>(of_, number_);
    if (!draws.empty()) counters = end_of_step<In>(of_, number_) - of_.counters[draws[0]];
    out.in_place.assign(carries.size(), false);
    fill(out);
    // Not slot_of_ = operands_ = {}, which leaks with clang 16.
    for (list<int>* used : {&slot_of_, &operands_, &number_of_}) list<int>().swap(*used);
    return out;
  }
  /// Whether all steps save a value in this operand, or read a slice of it, one after the other.
  [[XLA_PLANS]] bool is_by_rows(int operand) const {
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
  [[XLA_PLANS]] list<int> operands_of_slot(int i, std::int64_t steps) const {
    const int carry = i - sources.size();
    if (carry >= 0) return row_or_rows(carries[carry].init, -1, {}, steps);
    return row_or_rows(sources[i].operand, sources[i].rows, read_rows, steps);
  }
  [[XLA_PLANS]] list<int> operands_of_result(int i, std::int64_t steps) const {
    return row_or_rows(results[i].operand, results[i].rows, saved_rows, steps);
  }
  /// Per slot, whether so many steps read the same elements there that it pays to prepare them.
  [[XLA_PLANS]] list<char> fixed_slots(std::int64_t steps) const {
    constexpr std::int64_t few = 16;
    list<char> fixed(sources.size() + carries.size(), false);
    for (int i = 0; i < sources.size(); ++i)
      fixed[i] = steps > few && sources[i].is == slot_source::whole;
    return fixed;
  }

 private:
  [[XLA_PLANS]] static list<int> row_or_rows(int operand, int rows, const list<int>& all,
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
  [[XLA_PLANS]] void find_carries(const op::loop::attributes& about) {
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
  /// Numbers the values that steps read or make, also those that they read under another shape.
  /// Three things need all values as they are: a loop in the body, a chain, whose kernel knows
  /// values by their numbers, and an exchange, as replicas compare all sizes.
  [[XLA_PLANS]] void find_used() {
    const program& p = of_.source;
    bool all = p.chains && p.chains->count > 0;
    for (int i = 0; i < s_.body; ++i) all |= is_loop(body_step(i)) || body_step(i).exchanges;
    number_of_.assign(p.count.values, -1);
    if (all) {
      for (int v = 0; v < p.count.values; ++v) number_of_[v] = v;
      return;
    }
    constexpr int some = 0;
    const auto use = [&](int v) {
      // A sum's input may be in registers, and is then no value.
      for (; v >= 0 && number_of_[v] < 0; v = p.inputs_of(v)[0]) {
        number_of_[v] = some;
        const op_kind kind = value(v).op->kind;
        if (kind != op_kind::alias && kind != op_kind::reduce) break;
      }
    };
    for (int i = 0; i < s_.body; ++i) {
      const step& s = body_step(i);
      if (s.value >= 0) use(s.value);
      for (int k = 0; k < s.inputs; ++k) use(p.inputs[s.first_input + k]);
      for (int k = 0; k < s.outputs; ++k) use(p.outputs[s.first_output + k]);
    }
    for (int v : next_) use(v);
    for (int v : results_) use(v);
    for (int v = 0; v < p.count.values; ++v) {
      if (number_of_[v] < 0 && !(differs_by_step(value(v)) && of_this(v))) continue;
      number_of_[v] = numbers.size();
      numbers.push_back(v);
    }
  }
  static bool differs_by_step(const node& n) {
    return is<op::carry>(n) || is<op::step_slice>(n) || is<op::step_before>(n) ||
           is<op::step_number>(n);
  }
  /// Also one whose body has no steps.
  bool is_loop(const step& s) const {
    return s.kind == step_kind::library && value(s.value).op->loops_steps;
  }
  const step& body_step(int i) const { return of_.source.bodies[s_.first_body + i]; }
  /// In the body; -1: it does not use the value.
  int number_of(int v) const { return v < 0 ? -1 : number_of_[v]; }
  template <class T>
  [[XLA_PLANS]] void take_values(const list<T>& all, list<T>& to) const {
    if (numbers.empty()) {
      to = all;
      return;
    }
    to.reserve(numbers.size());
    for (int v : numbers) to.push_back(all[v]);
  }

  [[XLA_PLANS]] void find_slots() {
    const program& p = of_.source;
    for (int k = 0; k < s_.inputs; ++k)
      if (!is_number(value(input(k))) && number_of(input(k)) >= 0)
        add_slot(input(k), {slot_source::whole, k, 0});
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
  [[XLA_PLANS]] slot_source slice_of(int v) {
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
  [[XLA_PLANS]] void find_results() {
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
  [[XLA_PLANS]] void save(int steps, saved to) {
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
  [[XLA_PLANS]] void save_row(int v, int operand) {
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
  [[XLA_PLANS]] void fill(dependent<In, sized_program>& out) const {
    program& p = out.source;
    const int slots = sources.size() + carries.size();
    const program_sizes room = sizes_of_body();
    out.own_bytes = bytes_of<node>(room.values) + bytes_of<program_slot>(slots) +
                    bytes_of<write>(carries.size()) + bytes_of<int>(results_.size()) +
                    bytes_of<step>(room.steps) + bytes_of<int>(room.inputs) +
                    bytes_of<int>(room.outputs);
    out.own.reset(new std::byte[static_cast<std::size_t>(out.own_bytes)]);
    std::byte* next = out.own.get();
    const auto allocate = [&]<class T>(const T*& array, int count) {
      T* const to = reinterpret_cast<T*>(next);
      for (int i = 0; i < count; ++i) ::new (static_cast<void*>(to + i)) T();
      next += bytes_of<T>(count);
      array = to;
      return to;
    };
    node* const values = allocate(p.values, room.values);
    program_slot* const slot = allocate(p.slots, slots);
    write* const writes = allocate(p.writes, carries.size());
    int* const kept = allocate(p.results, results_.size());
    p.steps = p.bodies + s_.first_body;
    for (int i = 0; i < room.values; ++i) values[i] = value(numbers.empty() ? i : numbers[i]);
    if (!numbers.empty()) {
      step* const steps = allocate(p.steps, room.steps);
      int* const inputs = allocate(p.inputs, room.inputs);
      renumber(values, steps, inputs, allocate(p.outputs, room.outputs));
      p.bodies = nullptr;
      p.count.bodies = 0;
      p.count.inputs = room.inputs;
      p.count.outputs = room.outputs;
    }
    for (int i = 0; i < room.values; ++i) {
      node& n = values[i];
      if (is<op::scalar>(n)) n.op = &builtin<op::constant>;  // or a slot, below
      const int of = slot_of_[numbers.empty() ? i : numbers[i]];
      if (of < 0) continue;
      n.op = &builtin<op::input>;
      n.arity = 0;
      n.template set<op::input>({.slot = of});
      slot[of].leaf = i;
    }
    for (int i = 0; i < slots; ++i)
      out.slot_shapes.push_back(slot[i].leaf < 0 ? shape{} : out.shapes[slot[i].leaf]);
    for (int k = 0; k < carries.size(); ++k) {
      slot[sources.size() + k].kind = slot_kind::cell;
      slot[sources.size() + k].writes_value = true;
      writes[k] = {sources.size() + k, false, number_of(next_[k])};
    }
    for (int k = 0; k < results_.size(); ++k) kept[k] = number_of(results_[k]);
    p.count.values = room.values;
    p.count.steps = s_.body;
    p.count.slots = slots;
    p.count.writes = carries.size();
    p.count.results = results_.size();
  }
  /// Of the arrays that numbers of values are in.
  [[XLA_PLANS]] program_sizes sizes_of_body() const {
    if (numbers.empty()) return {.values = of_.source.count.values};
    program_sizes n{.values = numbers.size(), .steps = s_.body};
    for (int i = 0; i < s_.body; ++i) {
      n.inputs += body_step(i).inputs;
      n.outputs += body_step(i).outputs;
    }
    for (int v : numbers)
      if (value(v).arity > few_inputs) n.inputs += value(v).arity;
    return n;
  }
  [[XLA_PLANS]] void renumber(node* values, step* steps, int* inputs, int* outputs) const {
    const program& p = of_.source;
    int input = 0, output = 0;
    const auto list_of = [&](const int* from, int count) {
      const int first = input;
      for (int k = 0; k < count; ++k) inputs[input++] = number_of(from[k]);
      return first;
    };
    for (int i = 0; i < s_.body; ++i) {
      const step& of = body_step(i);
      step& s = steps[i] = of;
      s.value = number_of(of.value);
      s.first_input = list_of(p.inputs + of.first_input, of.inputs);
      s.first_output = output;
      for (int k = 0; k < of.outputs; ++k)
        outputs[output++] = number_of(p.outputs[of.first_output + k]);
    }
    for (int i = 0; i < numbers.size(); ++i) {
      node& n = values[i];
      const int* const in = p.inputs_of(numbers[i]);
      if (n.arity > few_inputs) n.in[0] = list_of(in, n.arity);
      else
        for (int k = 0; k < n.arity; ++k) n.in[k] = number_of(in[k]);
    }
  }
  template <class T>
  static std::int64_t bytes_of(int n) {
    constexpr std::int64_t step = alignof(std::max_align_t);
    return (n * static_cast<std::int64_t>(sizeof(T)) + step - 1) / step * step;
  }

  const dependent<In, sized_program>& of_;
  const step& s_;
  int number_ = 0;
  list<int> operands_;   // per value: its first number among the step's inputs, or -1
  list<int> slot_of_;    // per value: its slot, or -1
  list<int> number_of_;  // per value: its number in the body, or -1
  list<int>
      carry_at_;  // per carry of the loop: its index in `carries`, or -1 if no step changes it
  list<int> next_, results_;
  list<std::pair<int, int>> saved_in_rows_;  // values, and their first rows
};

}  // namespace xla::detail
