// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the steps of a loop in plans and in the interpreter, without copying carries. Plans reach it
// through loop_maker, whose functions are in planned_loops.hpp; XLA runs loops of its own.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/backend/body_path.hpp"
#include "xla/run/backend/loop_parts.hpp"
#include "xla/run/backend/loop_program.hpp"
#include "xla/run/backend/loop_turns.hpp"
#include "xla/run/backend/print_loop.hpp"
#include "xla/run/execute/bound_steps.hpp"
#include "xla/run/execute/planned.hpp"

namespace xla::detail {

/// Marks memory that the loop itself provides to its steps; it has no owner.
inline constexpr memory_space moved_on{.release = [](void*) noexcept {}};

/// A loop at given sizes. Carries are not copied from step to step: the pointers in the slots and
/// results of the body's program advance instead.
template <class In>
class basic_loop final : public loop_steps {
 public:
  /// With `batch` it is a part of a loop: so many rows of its batch.
  [[XLA_PLANS]] basic_loop(const dependent<In, sized_program>& p, const step& s,
                           const region_kernel* kernels, const backend* by,
                           const dependent<In, basic_batch_rows<In>>* batch = nullptr,
                           std::int64_t rows = 0)
      : layout_(p, s) {
    const auto about = p.source.values[s.value].template attributes<op::loop>();
    call_ = {name_of(about.function), p.source.values[s.value].at};
    trip_ = value_at(p.symbols, about.trip);
    reverse_ = about.reverse;
    when_ = about.when;
    tested_ = about.tested;
    bounded_ = about.bounded;
    counted_ = about.counted;
    dependent<In, sized_program> steps = layout_.make();
    if (batch) batch->take_rows(layout_, steps, rows, spaces_);
    if (by) body_ = by->make(std::move(steps));
    else body_ = std::make_unique<dependent<In, planned>>(std::move(steps), kernels);
    planned_ = body_->as_plan();
    using source = typename steps_program::slot_source;
    for (int i = 0; i < layout_.sources.size(); ++i)
      if (const auto is = layout_.sources[i].is; is == source::slice || is == source::before)
        moved_.push_back(i);
    sliced_ = moved_.size();
    for (int k = 0; k < layout_.carries.size(); ++k) moved_.push_back(layout_.sources.size() + k);
    if (planned_) bind();
    if (planned_ && !batch && !tested_ && !counted_ && layout_.decides < 0)
      parts_.divide(layout_, planned_->get_plan(), trip_, s, [&](const auto& rows, std::int64_t n) {
        return std::make_unique<basic_loop>(p, s, kernels, nullptr, &rows, n);
      });
  }

  /// The steps of a group that begins with this loop run between its own.
  void run_between(const dependent<In, plan>& p, const step_group& g) {
    between_.set(p, g, trip_);
    parts_.clear();
  }

  /// Whether the rows of an operand may be in different places.
  bool may_scatter(int operand) const {
    return !bound_ && parts_.empty() && layout_.is_by_rows(operand);
  }
  [[XLA_PLANS]] void scatter(int operand, const list<place_of_row>& rows) {
    scattered_.add(operand, of->inputs + of->outputs, rows);
  }

  void run(void* const* table, const int* operands, const rng_state* random) const override {
    if (!parts_.empty() && num_threads() > 1 && !watched_plans())
      return parts_.run(table, operands);
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
    const std::int64_t own = body_->memory().arena + turning_bytes();
    return std::max(own, parts_.arena_bytes()) + (next ? next->arena_bytes() : 0);
  }
  std::int64_t bytes() const override {
    return static_cast<std::int64_t>(sizeof *this) + body_->bytes() + moves_.bytes() +
           (bound_ ? bound_->bytes() : 0) + parts_.bytes() + spaces_.bytes();
  }
  const dependent<In, plan>* body_plan() const override {
    const dependent<In, planned>* const body = body_->as_plan();
    return body ? &body->get_plan() : nullptr;
  }
  dependent<In, planned>* planned_body() const override { return planned_; }
  list<int> operands_of_slot(int i) const override { return layout_.operands_of_slot(i, trip_); }
  [[XLA_PLANS]] list<int> operands_of_result(int i) const override {
    return layout_.operands_of_result(i, trip_);
  }
  [[gnu::cold]] std::string print(const dependent<In, plan>& p, const ready_step& s,
                                  const list<std::string>& slots,
                                  const std::string& before) const override {
    return parts_.print() + print_loop<In>(p, s, slots, layout_.numbers, before);
  }
  [[XLA_PLANS]] bool overwrites(const dependent<In, plan>& p, int k, int old) const override {
    const auto is_old = [&](int operand) {
      return operand >= 0 && p.base[p.source.inputs[of->first_input + operand]] == old;
    };
    const int last = of->inputs + k;
    for (const auto& c : layout_.yielded)
      if (c.last == last) return is_old(c.init);
    for (int i = 0; i < layout_.carries.size(); ++i)
      if (const auto& c = layout_.carries[i]; c.last == last)
        return is_old(c.init) && c.history.operand < 0 && in_place(i) && !reads_besides(i, is_old);
    return false;
  }

 private:
  using steps_program = dependent<In, basic_loop_program<In>>;
  using turns = loop_turns;
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
    waiting_.push_back(std::move(t));  // its capacity was reserved when the loop was made
  }
  [[XLA_PLANS]] std::unique_ptr<turns> make_turns() const {
    auto t = std::make_unique<turns>();
    const int sources = layout_.sources.size(), carries = layout_.carries.size();
    const int results = layout_.results.size(), n = sources + 2 * carries + results;
    t->all.reset(new buffer[static_cast<std::size_t>(n)]);
    for (int i = 0; i < n; ++i) {
      buffer& b = t->all[static_cast<std::size_t>(i)];
      b.space = &moved_on;  // so that no derived forms are cached with it
      if (i < sources + carries) t->slots.push_back({&b, nullptr, 0});
      else t->outputs.push_back(&b);
    }
    t->to.assign(carries, nullptr);
    t->other.assign(carries, nullptr);
    t->now.assign(carries, nullptr);
    t->aside.assign(results, nullptr);
    if (bound_) t->make_pointers(bound_->pointers());
    t->moves = moves_;
    t->own.reserve(2 * carries + results + (bound_ ? bound_->packed_matrices() : 0));
    const std::lock_guard hold(lock_);
    waiting_.reserve(++made_);
    return t;
  }

  // Whether something else also reads the initial value of carry k.
  [[XLA_PLANS]] bool reads_besides(int carry, const auto& is_old) const {
    bool read = is_old(layout_.decides);
    for (int operand : layout_.read_rows) read |= is_old(operand);
    for (const auto& c : layout_.yielded) read |= is_old(c.init);
    for (int i = 0; i < layout_.carries.size(); ++i)
      read |= i != carry && is_old(layout_.carries[i].init);
    for (int i = 0; i < layout_.sources.size(); ++i) {
      const auto& s = layout_.sources[i];
      read |= is_old(s.other) || (is_old(s.operand) && reads_slot(i));
    }
    return read;
  }
  [[XLA_PLANS]] bool reads_slot(int slot) const {
    const dependent<In, plan>* const p = body_plan();
    const int leaf = body_->about().source.slots[slot].leaf;
    return p && leaf >= 0 ? reads_value<In>(*p, leaf) : leaf >= 0;
  }

  using saved = typename steps_program::saved;
  bool in_place(int carry) const { return body_->about().in_place[carry]; }
  /// Whether the values that all steps pass on are saved, each at its own position.
  bool saves_all(const saved& history) const { return history.operand >= 0 && history.every <= 1; }
  std::int64_t turning_bytes() const {
    std::int64_t bytes = 0;
    for (int k = 0; k < layout_.carries.size(); ++k)
      if (const auto& c = layout_.carries[k]; !saves_all(c.history))
        bytes += c.bytes * ((c.last < 0) + !in_place(k));
    return bytes + (bound_ ? bound_->packed_bytes() : 0);
  }
  static void set(buffer& b, const void* to) {
    b.memory = const_cast<void*>(to);
    b.host_copy.store(b.memory, std::memory_order_relaxed);
  }
  void* own(turns& t, std::int64_t bytes) const {
    return t.own.emplace_back(buffer::make(static_cast<std::size_t>(bytes)))->memory;
  }
  static std::int64_t number_at(const void* from) {
    return *static_cast<const std::int64_t*>(from);
  }

  void run_steps(turns& t, void* const* table, const int* operands, const rng_state* random) const {
    const run_arguments with{t.slots.data(), t.outputs.data(), random};
    const auto next = [&] {
      const bool more = goes_on(t);
      if (more) move(t, table, operands);
      return more;
    };
    const auto done = [&] {
      for (int k : layout_.draws)
        t.random[k].offset += static_cast<std::uint64_t>(layout_.counters);
      between_.run_after(t.steps++, table);
    };
    t.steps = 0;
    if (bound_ && !watched_plans()) return run_bound(t, with, next, done);
    if (planned_) return planned_->run_while(with, moved_, next, done);
    while (next()) {
      body_->run(with);
      done();
    }
  }
  static bool holds(const void* flag) { return *static_cast<const bool*>(flag); }
  std::int64_t trip(void* const* table, const int* operands) const {
    if (layout_.decides < 0) return trip_;
    if (counted_) return std::min(trip_, number_at(table[operands[layout_.decides]]));
    return holds(table[operands[layout_.decides]]) == when_;
  }
  bool goes_on(const turns& t) const {
    if (!tested_) return t.steps < t.trip;
    return holds(t.now[0]) && (!bounded_ || t.steps < trip_);
  }
  /// Whether a step writes to the memory that the last step must write to; steps alternate between
  /// two locations. If the number of steps is unknown, the first step writes there.
  bool to_last(const turns& t, std::int64_t step) const {
    return (tested_ ? step : t.trip - 1 - step) % 2 == 0;
  }

  // Chooses where steps write their carries. The last step writes to the result's memory, the one
  // before it to another block, and so on alternately; or each step overwrites what it reads.
  void begin(turns& t, void* const* table, const int* operands) const {
    t.trip = tested_ ? 0 : trip(table, operands);
    const bool some = tested_ || t.trip > 0, several = tested_ || t.trip > 1;
    for (int k = 0; k < layout_.carries.size(); ++k) {
      const auto& c = layout_.carries[k];
      t.now[k] = table[operands[c.init]];
      t.to[k] = c.last >= 0 ? table[operands[c.last]] : nullptr;
      if (!some || saves_all(c.history)) continue;
      if (c.last < 0) t.to[k] = own(t, c.bytes);
      t.other[k] = in_place(k) || !several ? t.to[k] : own(t, c.bytes);
    }
    for (int k = 0; k < layout_.results.size(); ++k)
      if (const saved& r = layout_.results[k]; r.every > 1 || r.rows >= 0)
        t.aside[k] = own(t, r.stride);
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
      if (std::byte* const row = scattered_.find(operand, index, table)) return row;
      return static_cast<std::byte*>(table[operands[operand]]) + index * stride;
    };
    const int sources = layout_.sources.size(), carries = layout_.carries.size();
    for (int m = 0; m < sliced_; ++m) {
      const int i = moved_[m];
      const auto& s = layout_.sources[i];
      if (s.rows >= 0) {
        set(*t.slots[i].value, table[operands[layout_.read_rows[s.rows + static_cast<int>(at)]]]);
      } else if (s.is == source::slice) {
        const std::int64_t first = s.other < 0 ? 0 : number_at(table[operands[s.other]]);
        set(*t.slots[i].value, part(s.operand, s.stride, first + at));
      } else {
        const bool first = at == (s.reads_next ? t.trip - 1 : 0);
        set(*t.slots[i].value, first ? table[operands[s.other]]
                                     : part(s.operand, s.stride, s.reads_next ? at + 1 : at - 1));
      }
    }
    // With `every`, a group of steps shares a row, and the last one to run keeps it.
    const auto saves = [&](const saved& k) {
      return k.operand >= 0 && (k.every <= 1 || (reverse_ ? at : at + 1) % k.every == 0);
    };
    const auto row = [&](const saved& k) {
      return part(k.operand, k.stride, k.every <= 1 ? at : at / k.every);
    };
    for (int k = 0; k < carries; ++k) {
      const saved& history = layout_.carries[k].history;
      set(*t.slots[sources + k].value, t.now[k]);
      t.now[k] = saves(history) ? row(history) : to_last(t, t.steps) ? t.to[k] : t.other[k];
      set(*t.outputs[k], t.now[k]);
    }
    for (int k = 0; k < layout_.results.size(); ++k) {
      const saved& r = layout_.results[k];
      const int own = r.rows < 0 ? -1 : layout_.saved_rows[r.rows + static_cast<int>(at)];
      set(*t.outputs[carries + k], own >= 0   ? table[operands[own]]
                                   : saves(r) ? row(r)
                                              : t.aside[k]);
    }
  }
  // Binds the steps to their operands once: from the second step on, each pointer advances by a
  // constant or is that of a carry.
  [[XLA_PLANS]] void bind() {
    bool even = dependent<In, bound_steps>::can_run(planned_->get_plan());
    for (const auto& s : layout_.sources) even &= s.rows < 0;
    for (const saved& r : layout_.results) even &= r.rows < 0 && r.every <= 1;
    for (const auto& c : layout_.carries) {
      if (const std::int64_t every = c.history.every; c.history.operand < 0 || every <= 1) continue;
      else even &= every_ == 0 || every_ == every, every_ = every;
    }
    if (!even || (tested_ && saves_all(layout_.carries[0].history))) return;
    const list<char> fixed = layout_.fixed_slots(tested_ ? 0 : trip_);
    bound_ = std::make_unique<dependent<In, bound_steps>>(*planned_, fixed);
    several_ = bound_->is_chain() && !tested_;
    for (const auto& s : layout_.sources) several_ &= s.is != steps_program::slot_source::number;
    const int sources = layout_.sources.size(), carries = layout_.carries.size();
    const auto by = [&](std::int64_t stride) {
      return [this, stride = forward(stride)](const auto& use) {
        if (stride != 0) moves_.push_back({use.pointer, {stride, stride}});
      };
    };
    for (int m = 0; m < sliced_; ++m)
      bound_->each_of_slot(moved_[m], by(layout_.sources[moved_[m]].stride));
    for (int k = 0; k < carries; ++k) {
      const saved& history = layout_.carries[k].history;
      if (!saves_all(history)) continue;
      bound_->each_of_slot(sources + k, by(history.stride));
      bound_->each_of_output(k, by(history.stride));
    }
    for (int k = 0; k < layout_.results.size(); ++k)
      bound_->each_of_output(carries + k, by(layout_.results[k].stride));
    turning_ = moves_.size();
    const auto turning = [this](const auto& use) { moves_.push_back({use.pointer, {}}); };
    for (int k = 0; k < carries; ++k) {
      if (saves_all(layout_.carries[k].history) || in_place(k)) continue;
      bound_->each_of_slot(sources + k, turning);
      bound_->each_of_output(k, turning);
    }
  }
  std::int64_t forward(std::int64_t stride) const { return reverse_ ? -stride : stride; }

  // The first two steps and the last one read from other locations than the rest, so their pointers
  // are set individually; those of the rest advance. Steps that save carries of every n
  // steps, and the two steps after each, are set individually, too.
  void run_bound(turns& t, const run_arguments& with, const auto& next, const auto& done) const {
    if (!next()) return;
    planned_->on_frame(with, [&](void* const* table) {
      void** const pointers = t.pointers;
      const auto run = [&] { bound_->run(pointers, with.random), done(); };
      std::int64_t last_saved = -1;  // the latest step that is saved
      bool first = true;
      bound_->bind(table, pointers, [&](std::int64_t bytes) { return own(t, bytes); });
      do {
        if (t.steps == next_saved(t)) last_saved = t.steps;
        point(t, pointers);
        run();
        if (t.steps - last_saved < 3) continue;
        const std::int64_t from = t.steps, kept = next_saved(t);
        const auto is_between = [&] {
          if (tested_) t.now[0] = turned(t, 0);
          return t.steps < kept && (tested_ ? goes_on(t) : t.steps < t.trip - 1);
        };
        if (!is_between()) continue;
        if (first) find_moves(t);
        first = false;
        if (several_) run_turns(t, pointers, std::min(kept, t.trip - 1) - t.steps);
        else
          for (; is_between(); run()) advance(t);
        catch_up(t, from);
      } while (next());
    });
  }
  void run_turns(turns& t, void** pointers, std::int64_t count) const {
    advance(t);
    bound_->run_turns(pointers, {t.steps, count, t.by.data(), t.count});
    t.steps += count;
  }
  /// The next step, possibly this one, at which carries of every n steps are saved.
  std::int64_t next_saved(const turns& t) const {
    if (every_ == 0) return std::numeric_limits<std::int64_t>::max();
    return t.steps + (reverse_ ? t.trip - 1 - t.steps : every_ - 1 - t.steps % every_) % every_;
  }
  static auto write(void** pointers, void* to) {
    return [pointers, to](const auto& use) {
      pointers[use.pointer] = static_cast<std::byte*>(to) + use.offset;
    };
  }
  /// Points slots and results to the locations that move() has set.
  void point(const turns& t, void** pointers) const {
    for (int i : moved_) bound_->each_of_slot(i, write(pointers, t.slots[i].value->memory));
    for (int k = 0; k < t.outputs.size(); ++k)
      bound_->each_of_output(k, write(pointers, t.outputs[k]->memory));
  }
  // Carries with two locations alternate between them.
  void find_moves(turns& t) const {
    int i = turning_;
    for (int k = 0; k < layout_.carries.size(); ++k) {
      if (saves_all(layout_.carries[k].history) || in_place(k)) continue;
      const auto offset = static_cast<std::byte*>(t.to[k]) - static_cast<std::byte*>(t.other[k]);
      const std::int64_t by = to_last(t, 0) ? offset : -offset;
      const auto move = [&](std::int64_t even) {
        return [&, even](const auto&) {
          t.moves[i].by[0] = even;
          t.moves[i++].by[1] = -even;
        };
      };
      bound_->each_of_slot(layout_.sources.size() + k, move(-by));
      bound_->each_of_output(k, move(by));
    }
    if (several_) t.spread_moves();
  }
  void advance(turns& t) const {
    t.number = reverse_ ? t.trip - 1 - t.steps : t.steps;
    for (const pointer_move& m : t.moves)
      t.pointers[m.pointer] = static_cast<std::byte*>(t.pointers[m.pointer]) + m.by[t.steps % 2];
  }
  /// The values that the latest step has passed on, since step `from`, which move() has set up.
  void catch_up(turns& t, std::int64_t from) const {
    for (int k = 0; k < layout_.carries.size(); ++k) {
      const saved& history = layout_.carries[k].history;
      const std::int64_t by = (t.steps - from) * forward(history.stride);
      t.now[k] = saves_all(history) ? static_cast<std::byte*>(t.now[k]) + by : turned(t, k);
    }
  }
  void* turned(const turns& t, int carry) const {
    return to_last(t, t.steps - 1) ? t.to[carry] : t.other[carry];
  }
  // Completes the results: the initial values if there were no steps; otherwise copies the last
  // values that are not in place yet. The results of a branch that has not run are read and then
  // ignored; a bool among them is set to 0, as other bits would be invalid.
  void end(const turns& t, void* const* table, const int* operands) const {
    for (const auto& r : layout_.results)
      if (layout_.decides >= 0 && t.trip == 0 && r.booleans)
        std::memset(table[operands[r.operand]], 0, static_cast<std::size_t>(r.stride));
    for (int k = 0; k < layout_.carries.size(); ++k)
      if (const auto& c = layout_.carries[k]; c.last >= 0) copy(t.to[k], t.now[k], c.bytes);
    for (const auto& c : layout_.yielded)
      copy(table[operands[c.last]], table[operands[c.init]], c.bytes);
    for (const auto& [operand, carry] : layout_.same)
      copy(table[operands[operand]], t.to[carry], layout_.carries[carry].bytes);
  }
  static void copy(void* to, const void* from, std::int64_t bytes) {
    if (to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  steps_program layout_;
  call_site call_;
  list<shape> spaces_;  // of a part's body
  std::int64_t trip_ = 0;
  bool reverse_ = false;
  bool when_ = false, tested_ = false, bounded_ = false, counted_ = false;
  std::unique_ptr<executable> body_;
  dependent<In, planned>* planned_ = nullptr;  // the body, if it is a plan
  steps_between<In> between_;
  scattered_rows scattered_;
  list<int> moved_;  // slots that differ from step to step: slices, then carries
  int sliced_ = 0;   // how many are slices
  dependent<In, std::unique_ptr<bound_steps>> bound_;  // nullptr: they run as a plan
  bool several_ = false;                               // one call runs several of the bound steps
  std::int64_t every_ = 0;  // carries are saved every n steps; 0: always or never
  list<pointer_move>
      moves_;        // strides of slices and saved values, then of carries with two locations
  int turning_ = 0;  // index of the first of the latter
  dependent<In, basic_loop_parts<basic_loop>> parts_;
  mutable spin_lock lock_;
  mutable list<std::unique_ptr<turns>> waiting_;
  mutable int made_ = 0;
};

}  // namespace xla::detail
