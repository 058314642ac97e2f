// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "xla/graph/loops.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/backend/body_path.hpp"
#include "xla/run/backend/loop_draws.hpp"
#include "xla/run/backend/make_loop.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/plan/loop_body.hpp"

namespace xla::detail {

/// The steps of a loop as a program of their own. Its slots: what they read from outside, or a part
/// of it; then the carries, which it writes; then the step's number. Its results: what is kept of
/// each step. Shapes are those of the program around it.
template <class In>
class basic_loop_program {
 public:
  struct slot_source {
    enum kind { whole, slice, before, number } is = whole;
    int operand = 0;          ///< of the loop's step
    std::int64_t stride = 0;  ///< from one slice to the next, in bytes
    int other = -1;           ///< slice: the number of the first; before: the first step's
    bool behind = false;      ///< before: has the next index
  };
  /// Where what steps make is kept of all, or of every so-manieth: operand -1: nowhere.
  struct kept {
    int operand = -1;
    std::int64_t stride = 0, every = 0;
    bool truths = false;
  };
  struct carried {
    int init = 0;   ///< operands of the loop's step
    int last = -1;  ///< where the last step leaves it; -1: nobody wants it
    std::int64_t bytes = 0;
    kept history;  ///< steps hand it on there
  };
  list<slot_source> sources;  ///< per slot that is no carry
  list<carried> carries;
  list<kept> results;
  list<std::pair<int, int>> same;  ///< operands: another last step, of what carry
  int decides = -1;                ///< the operand that says whether or how often it runs
  list<int> draws;                 ///< random ops of its steps, and of loops in it
  std::int64_t counters = 0;       ///< that they take in a step

  basic_loop_program(const later<In, sized_program>& of, const step& s) : of_(of), s_(s) {}

  [[gnu::cold]] later<In, sized_program> make() {
    const program& p = of_.source;
    const auto about = p.values[s_.value].template attributes<op::loop>();
    number_ = about.number;
    for (int k = 0; k < about.carries; ++k) carries.emplace_back();
    find_slots();
    find_results();
    later<In, sized_program> out;
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
    out.in_place.assign(about.carries, false);
    fill(out);
    return out;
  }

 private:
  const node& value(int v) const { return of_.source.values[v]; }
  int input(int k) const { return of_.source.inputs[s_.first_input + k]; }
  int operand_of(int v) const {
    for (int k = 0; k < s_.inputs; ++k)
      if (input(k) == v) return k;
    return -1;
  }
  bool of_this(int v) const { return value(v).template attributes<op::of_loop>().loop == number_; }

  [[gnu::cold]] void find_slots() {
    const program& p = of_.source;
    slot_of_.assign(p.count.values, -1);
    for (int k = 0; k < s_.inputs; ++k)
      if (!is_number(value(input(k)))) add_slot(input(k), {slot_source::whole, k, 0});
    for (int v = 0; v < p.count.values; ++v) {
      const node& n = value(v);
      if (is<op::step_slice>(n) && of_this(v))
        add_slot(v, {slot_source::slice, operand_of(n.in[0]), of_.bytes(v),
                     n.arity > 1 ? operand_of(n.in[1]) : -1});
      else if (is<op::step_before>(n) && of_this(v))
        add_slot(v, {slot_source::before, operand_of(n.in[0]), of_.bytes(v), operand_of(n.in[1]),
                     n.template attributes<op::of_loop>().number != 0});
      else if (is<op::step_number>(n) && of_this(v)) add_slot(v, {slot_source::number, -1, 0});
    }
    for (int v = 0; v < p.count.values; ++v)
      if (is<op::carry>(value(v)) && of_this(v)) {
        const int k = value(v).template attributes<op::of_loop>().number;
        slot_of_[v] = sources.size() + k;
      }
    const int* const in = p.inputs_of(s_.value);
    for (int k = 0; k < carries.size(); ++k) {
      next_.push_back(in[k]);
      carries[k].bytes = of_.bytes(in[k]);
      carries[k].init = operand_of(in[carries.size() + k]);
    }
    if (const int n = 2 * carries.size(); value(s_.value).arity > n) decides = operand_of(in[n]);
  }
  void add_slot(int v, const slot_source& from) {
    slot_of_[v] = sources.size();
    sources.push_back(from);
  }
  [[gnu::cold]] void find_results() {
    for (int k = 1; k < s_.outputs; ++k) {
      const int v = of_.source.outputs[s_.first_output + k], operand = s_.inputs + k;
      if (is<op::steps>(value(v))) {
        keep(v, operand);
        continue;
      }
      const int carry = value(v).template attributes<op::of_loop>().number;
      if (carries[carry].last < 0) carries[carry].last = operand;
      else same.push_back({operand, carry});
    }
  }

  // What a step hands on is written where it is kept, and read there by the next one.
  [[gnu::cold]] void keep(int steps, int operand) {
    const int v = value(steps).in[1];
    const auto about = value(steps).template attributes<op::steps>();
    const kept to{operand, of_.bytes(v), value_at(of_.symbols, about.every),
                  value(v).type == dtype::boolean};
    for (int k = 0; k < carries.size(); ++k)
      if (next_[k] == v && carries[k].history.operand < 0) {
        carries[k].history = to;
        return;
      }
    results_.push_back(v);
    results.push_back(to);
  }

  // The arrays that differ from those of the program around it lie in memory of its own.
  [[gnu::cold]] void fill(later<In, sized_program>& out) const {
    program& p = out.source;
    const int n = p.count.values, slots = sources.size() + carries.size();
    out.own_bytes = bytes_of<node>(n) + bytes_of<program_slot>(slots) +
                    bytes_of<write>(carries.size()) + bytes_of<int>(results_.size());
    out.own.reset(new std::byte[static_cast<std::size_t>(out.own_bytes)]);
    std::byte* next = out.own.get();
    const auto place = [&]<class T>(const T*& array, int count, const T* from = nullptr) {
      T* const to = reinterpret_cast<T*>(next);
      next += bytes_of<T>(count);
      for (int i = 0; i < count; ++i) ::new (static_cast<void*>(to + i)) T(from ? from[i] : T());
      array = to;
      return to;
    };
    node* const values = place(p.values, n, p.values);
    program_slot* const slot = place(p.slots, slots);
    write* const writes = place(p.writes, carries.size());
    int* const kept = place(p.results, results_.size());
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

  const later<In, sized_program>& of_;
  const step& s_;
  int number_ = 0;
  list<int> slot_of_;  // per value: the slot that it is, or -1
  list<int> next_, results_;
};

/// Memory of the steps' own, which they are given anew in each step.
inline constexpr memory_place moved_on{.let_go = [](void*) noexcept {}};

/// A loop at its sizes. Nothing is copied from step to step: slots and results of the steps'
/// program are moved on.
template <class In>
class basic_loop final : public loop_steps {
 public:
  [[gnu::cold]] basic_loop(const later<In, sized_program>& p, const step& s,
                           const region_kernel* kernels, const backend* by)
      : layout_(p, s) {
    const auto about = p.source.values[s.value].template attributes<op::loop>();
    call_ = {name_of(static_cast<loop_function>(about.function)), p.source.values[s.value].at};
    trip_ = value_at(p.symbols, about.trip);
    reverse_ = about.reverse;
    when_ = about.when;
    tested_ = about.tested;
    counted_ = about.counted;
    later<In, sized_program> steps = layout_.make();
    if (by) body_ = by->make(std::move(steps));
    else body_ = std::make_unique<later<In, planned>>(std::move(steps), kernels);
  }

  void run(void* const* table, const int* operands, const rng_state* random) const override {
    const borrowed_turns now(*this);
    turns& t = *now.get();
    begin(t, table, operands);
    if (!layout_.draws.empty()) {
      t.random.clear();
      for (int i = 0; i < body_->about().counters.size(); ++i) t.random.push_back(random[i]);
      random = t.random.data();
    }
    try {
      run_steps(t, table, operands, random);
    } catch (const runtime_error& e) {
      refuse_in_body<In>(e, call_, t.number);
    }
    end(t, table, operands);
  }
  std::int64_t arena_bytes() const override {
    return body_->memory().arena + turning_bytes() + (next ? next->arena_bytes() : 0);
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(sizeof *this) + body_->bytes();
  }
  const later<In, plan>* body_plan() const override {
    const later<In, planned>* const body = body_->as_plan();
    return body ? &body->get_plan() : nullptr;
  }
  later<In, planned>* planned_body() const override { return body_->as_plan(); }

 private:
  using steps_program = later<In, basic_loop_program<In>>;
  /// What one run moves.
  struct turns {
    std::unique_ptr<buffer[]> all;
    list<slot_value> slots;
    list<buffer*> outputs;
    list<rng_state> random;  ///< where the step's numbers begin
    list<void*> to, other;   ///< per carry: where the last step writes, and the one before it
    list<void*> now;         ///< where the latest step has
    list<void*> aside;       ///< per result: where steps make it that is not kept of them
    list<ref<buffer>> own;
    std::int64_t number = 0;
    std::int64_t steps = 0;  ///< that have run
    std::int64_t trip = 0;   ///< how many will; not known where the first carry is tested
  };
  class borrowed_turns {
   public:
    explicit borrowed_turns(const basic_loop& from) : from_(from), turns_(from.take()) {}
    ~borrowed_turns() { from_.give(std::move(turns_)); }
    borrowed_turns(const borrowed_turns&) = delete;
    turns* get() const { return turns_.get(); }

   private:
    const basic_loop& from_;
    std::unique_ptr<turns> turns_;
  };
  std::unique_ptr<turns> take() const {
    {
      const std::lock_guard hold(lock_);
      if (!waiting_.empty()) {
        auto t = std::move(waiting_.back());
        waiting_.pop_back();
        return t;
      }
    }
    return make_turns();
  }
  void give(std::unique_ptr<turns> t) const noexcept {
    t->own.clear();
    const std::lock_guard hold(lock_);
    waiting_.push_back(std::move(t));  // into memory that has been there since it was made
  }
  [[gnu::cold]] std::unique_ptr<turns> make_turns() const {
    auto t = std::make_unique<turns>();
    const int sources = layout_.sources.size(), carries = layout_.carries.size();
    const int results = layout_.results.size(), n = sources + 2 * carries + results;
    t->all.reset(new buffer[static_cast<std::size_t>(n)]);
    for (int i = 0; i < n; ++i) {
      buffer& b = t->all[static_cast<std::size_t>(i)];
      b.place = &moved_on;  // so that nothing is kept with it
      if (i < sources + carries) t->slots.push_back({&b, nullptr, 0});
      else t->outputs.push_back(&b);
    }
    t->to.assign(carries, nullptr);
    t->other.assign(carries, nullptr);
    t->now.assign(carries, nullptr);
    t->aside.assign(results, nullptr);
    t->own.reserve(2 * carries + results);
    const std::lock_guard hold(lock_);
    waiting_.reserve(++made_);
    return t;
  }

  using kept = typename steps_program::kept;
  bool in_place(int carry) const { return body_->about().in_place[carry]; }
  /// Whether each step hands on in a place of its own, all of which are kept.
  bool keeps_all(const kept& history) const { return history.operand >= 0 && history.every <= 1; }
  std::int64_t turning_bytes() const {
    std::int64_t bytes = 0;
    for (int k = 0; k < layout_.carries.size(); ++k)
      if (const auto& c = layout_.carries[k]; !keeps_all(c.history))
        bytes += c.bytes * ((c.last < 0) + !in_place(k));
    return bytes;
  }
  static void set(buffer& b, const void* to) {
    b.memory = const_cast<void*>(to);
    b.home.store(b.memory, std::memory_order_relaxed);
  }
  void* own(turns& t, std::int64_t bytes) const {
    return t.own.emplace_back(buffer::make(static_cast<std::size_t>(bytes)))->memory;
  }
  static std::int64_t number_at(const void* place) {
    return *static_cast<const std::int64_t*>(place);
  }

  void run_steps(turns& t, void* const* table, const int* operands, const rng_state* random) const {
    for (t.steps = 0; goes_on(t); ++t.steps) {
      move(t, table, operands);
      body_->run({t.slots.data(), t.outputs.data(), random});
      for (int k : layout_.draws)
        t.random[k].offset += static_cast<std::uint64_t>(layout_.counters);
    }
  }
  static bool holds(const void* truth) { return *static_cast<const bool*>(truth); }
  std::int64_t trip(void* const* table, const int* operands) const {
    if (layout_.decides < 0) return trip_;
    if (counted_) return std::min(trip_, number_at(table[operands[layout_.decides]]));
    return holds(table[operands[layout_.decides]]) == when_;
  }
  bool goes_on(const turns& t) const {
    if (!tested_) return t.steps < t.trip;
    return holds(t.now[0]);
  }
  /// Whether this step writes where the last one does; where it is not known which is, the first
  /// does.
  bool to_last(const turns& t) const { return (tested_ ? t.steps : t.trip - 1 - t.steps) % 2 == 0; }

  // The last step writes where the result is to be, the one before it elsewhere, and so on; or all
  // write over what they read.
  void begin(turns& t, void* const* table, const int* operands) const {
    t.trip = tested_ ? 0 : trip(table, operands);
    const bool some = tested_ || t.trip > 0, several = tested_ || t.trip > 1;
    for (int k = 0; k < layout_.carries.size(); ++k) {
      const auto& c = layout_.carries[k];
      t.now[k] = table[operands[c.init]];
      t.to[k] = c.last >= 0 ? table[operands[c.last]] : nullptr;
      if (!some || keeps_all(c.history)) continue;
      if (c.last < 0) t.to[k] = own(t, c.bytes);
      t.other[k] = in_place(k) || !several ? t.to[k] : own(t, c.bytes);
    }
    for (int k = 0; k < layout_.results.size(); ++k)
      if (const kept& r = layout_.results[k]; r.every > 1) t.aside[k] = own(t, r.stride);
    for (int i = 0; i < layout_.sources.size(); ++i) {
      const auto& s = layout_.sources[i];
      buffer& b = *t.slots[i].value;
      if (s.is == steps_program::slot_source::whole) set(b, table[operands[s.operand]]);
      if (s.is == steps_program::slot_source::number) set(b, &t.number);
    }
  }
  void move(turns& t, void* const* table, const int* operands) const {
    using source = typename steps_program::slot_source;
    const std::int64_t at = t.number = reverse_ ? t.trip - 1 - t.steps : t.steps;
    const auto part = [&](int operand, std::int64_t stride, std::int64_t index) {
      return static_cast<std::byte*>(table[operands[operand]]) + index * stride;
    };
    const int sources = layout_.sources.size(), carries = layout_.carries.size();
    for (int i = 0; i < sources; ++i) {
      const auto& s = layout_.sources[i];
      if (s.is == source::slice) {
        const std::int64_t first = s.other < 0 ? 0 : number_at(table[operands[s.other]]);
        set(*t.slots[i].value, part(s.operand, s.stride, first + at));
      } else if (s.is == source::before) {
        const bool first = at == (s.behind ? t.trip - 1 : 0);
        set(*t.slots[i].value, first ? table[operands[s.other]]
                                     : part(s.operand, s.stride, s.behind ? at + 1 : at - 1));
      }
    }
    // Of every so-manieth step: of those that share a row the last to run.
    const auto keeps = [&](const kept& k) {
      return k.operand >= 0 && (k.every <= 1 || (reverse_ ? at : at + 1) % k.every == 0);
    };
    const auto row = [&](const kept& k) {
      return part(k.operand, k.stride, k.every <= 1 ? at : at / k.every);
    };
    for (int k = 0; k < carries; ++k) {
      const kept& history = layout_.carries[k].history;
      set(*t.slots[sources + k].value, t.now[k]);
      t.now[k] = keeps(history) ? row(history) : to_last(t) ? t.to[k] : t.other[k];
      set(*t.outputs[k], t.now[k]);
    }
    for (int k = 0; k < layout_.results.size(); ++k) {
      const kept& r = layout_.results[k];
      set(*t.outputs[carries + k], keeps(r) ? row(r) : t.aside[k]);
    }
  }
  // Of no steps what there was at first; or the last has written where it is kept, or elsewhere.
  // What a branch that has not run would have made is read, and not used; a truth has no bits but 0
  // and 1.
  void end(const turns& t, void* const* table, const int* operands) const {
    for (const auto& r : layout_.results)
      if (layout_.decides >= 0 && t.trip == 0 && r.truths)
        std::memset(table[operands[r.operand]], 0, static_cast<std::size_t>(r.stride));
    for (int k = 0; k < layout_.carries.size(); ++k)
      if (const auto& c = layout_.carries[k]; c.last >= 0 && t.now[k] != t.to[k])
        copy(t.to[k], t.now[k], c.bytes);
    for (const auto& [operand, carry] : layout_.same)
      copy(table[operands[operand]], t.to[carry], layout_.carries[carry].bytes);
  }
  static void copy(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  steps_program layout_;
  call_site call_;
  std::int64_t trip_ = 0;
  bool reverse_ = false;
  bool when_ = false, tested_ = false, counted_ = false;
  std::unique_ptr<executable> body_;
  mutable spin_lock lock_;
  mutable list<std::unique_ptr<turns>> waiting_;
  mutable int made_ = 0;
};

template <class In>
[[gnu::cold]] loop_steps* make_loop(const later<In, sized_program>& p, const step& s,
                                    const region_kernel* kernels, const backend* by,
                                    std::unique_ptr<loop_steps>& others) {
  auto made = std::make_unique<later<In, basic_loop<In>>>(p, s, kernels, by);
  made->next = std::move(others);
  others = std::move(made);
  return others.get();
}
XLA_INSTANCE(loop_steps* make_loop<void>(const sized_program&, const step&, const region_kernel*,
                                         const backend*, std::unique_ptr<loop_steps>&));

template <class In>
[[gnu::cold]] void shorten_body(basic_shortener<void>& by, step& loop) {
  later<In, basic_loop_body<In>>::shorten(by, loop);
}
XLA_INSTANCE(void shorten_body<void>(basic_shortener<void>&, step&));

/// All steps of a loop have numbers of their own, one after the other.
template <class In>
[[gnu::cold]] void repeat_draws(later<In, sized_program>& p, int v) {
  const node& n = p.source.values[v];
  const auto about = n.attributes<op::loop>();
  const list<int> draws = draws_of_steps<In>(p, about.number);
  if (draws.empty()) return;
  const std::int64_t begin = p.counters[draws[0]], steps = value_at(p.symbols, about.trip);
  p.random_counters = begin + (steps > 0 ? calculated<'*'>(p.random_counters - begin, steps) : 0);
}
XLA_INSTANCE(void repeat_draws<void>(sized_program&, int));

}  // namespace xla::detail
