// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the exchanges of a plan: starts them early and waits for them late. Plans call it through a
// pointer, so that programs with one replica compile none of it.

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/op/collectives.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/plan/buckets.hpp"
#include "xla/run/plan/fingerprint.hpp"
#include "xla/run/world/world.hpp"

namespace xla::detail {

/// Sets the program whose exchanges this thread runs, within a scope.
class program_scope {
 public:
  explicit program_scope(const fingerprint& f) : before_(std::exchange(this_thread.program, &f)) {}
  program_scope(const program_scope&) = delete;
  ~program_scope() { this_thread.program = before_; }

 private:
  const fingerprint* before_;
};

/// Runs the exchanges of a plan. One thread at a time calls it, because a device takes part in one
/// exchange after the other.
template <class In>
class basic_exchange_runner final : public plan_exchanges {
 public:
  explicit basic_exchange_runner(const fingerprint& program) : program_(program) {}

  void take(bucket_steps&& steps) {
    steps_ = std::move(steps);
    tickets_.assign(steps_.buckets, 0);
  }
  int count() const override { return tickets_.size(); }

  void run_step(const dependent<In, plan>& p, const ready_step& s, void* const* table) override {
    replica& world = *replica_now();
    std::uint64_t& ticket = tickets_[s.exchange];
    if (s.kind == step_kind::wait) return world.wait(std::exchange(ticket, 0));
    const int* const operands = &p.operands[s.first_operand];
    dependent<In, list<exchange_piece>> pieces(s.inputs);
    for (int k = 0; k < s.inputs; ++k) {
      const int sum = operands[s.inputs + k];
      pieces[k] = {table[operands[k]], table[sum], detail::count(p.shape_of(s, k)),
                   p.source.values[sum].template attributes<op::all_reduce>().parameter};
    }
    exchange e;
    e.what = exchange::kind::all_reduce;
    e.how = unpack<op::all_reduce::attributes>(s.attr).how;
    e.type = p.source.values[operands[s.inputs]].type;
    e.program = this_thread.program;
    e.pieces = pieces.data();
    e.piece_count = pieces.size();
    ticket = world.start(e);
  }

  /// If a step fails, exchanges in flight end with the world, so that nobody reads or writes memory
  /// that the next call uses.
  void run_all(const dependent<In, planned>& e, const dependent<In, frame>& f,
               const rng_state* random) override {
    replica& world = *replica_now();
    fingerprint program = program_;
    // A traced graph runs some time after it was recorded, when the seed may have changed.
    if (!e.get_plan().source.word_ops) program.seed = generator::instance().get().seed;
    const program_scope during(program);
    try {
      if (plan_watch* w = watched_plans()) return w->run(*w, e, f, random);
      const bool pushed = !world.progresses_alone();
      for (int i = 0; i < e.get_plan().steps.size(); i = e.after(i)) {
        if (e.is_once(i)) continue;
        e.run_one(i, f, random);
        if (pushed) world.progress();
      }
    } catch (...) {
      bool under_way = false;
      for (std::uint64_t& ticket : tickets_) under_way |= std::exchange(ticket, 0) != 0;
      if (under_way) world.abort(std::current_exception());
      throw;
    }
  }

 private:
  fingerprint program_;          // without the seed
  bucket_steps steps_;           // that the plan's program points to
  list<std::uint64_t> tickets_;  // of those in flight; or 0
};

/// States that are written whatever other replicas do, such as counts of steps and running
/// statistics, are written last: they keep their values if a replica waits in vain.
template <class In>
[[gnu::cold]] void write_in_the_end(dependent<In, plan>& of) {
  const program& p = of.source;
  list<char> exchanged(p.count.values, false);
  for (int i = 0; i < p.count.steps; ++i) {
    const step& s = p.steps[i];
    bool after = s.exchanges;
    for (int k = 0; k < s.inputs; ++k) after |= exchanged[of.base[p.inputs[s.first_input + k]]];
    for (int k = 0; k < s.outputs; ++k) exchanged[p.outputs[s.first_output + k]] = after;
  }
  for (int i = 0; i < p.count.writes; ++i) {
    const write& w = p.writes[i];
    const int value = of.base[w.value];
    if (w.gradient || of.copies[i] >= 0 || exchanged[value]) continue;
    of.placements[value].where = storage::arena;
    of.copies[i] = w.value;
  }
}

template <class In>
[[gnu::cold]] void identify_plan(plan_steps& p) {
  if (world_now() == 1) return;
  p.of.exchanges = std::make_unique<basic_exchange_runner<In>>(fingerprint_of<In>(p.of));
  write_in_the_end<In>(p.of);
}
XLA_INSTANCE(void identify_plan<void>(plan_steps&));

template <class In>
[[gnu::cold]] void find_buckets(plan_steps& p) {
  dependent<In, bucket_finder> found(p.of, p.once);
  static_cast<basic_exchange_runner<In>&>(*p.of.exchanges).take(found.run());
}
XLA_INSTANCE(void find_buckets<void>(plan_steps&));

}  // namespace xla::detail
