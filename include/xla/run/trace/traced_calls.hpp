// SPDX-License-Identifier: Apache-2.0
#pragma once

// The recorded functions that one traced graph calls, and its plans for other numbers of steps.
// traced_graph.hpp reaches it by an interface, so that programs without loops contain none of it.

#include <algorithm>
#include <memory>
#include <utility>

#include "xla/run/trace/function.hpp"
#include "xla/run/trace/traced_graph.hpp"
#include "xla/run/trace/trip_shapes.hpp"

namespace xla::detail {

/// The program of another entry, at other numbers of steps.
template <class In>
class basic_planned_again final : public basic_executable<In> {
 public:
  basic_planned_again(const std::shared_ptr<dependent<In, traced_entry>>& of, list<shape> sizes)
      : basic_executable<In>(nullptr),
        of_(program_of(of)),
        plan_(size_program<In>(of_->lowered.view(), std::move(sizes), {}), nullptr) {}

  const dependent<In, sized_program>& about() const override { return plan_.about(); }
  void run(const run_arguments& with) override { plan_.run(with); }
  bool check(const run_arguments& with) override { return plan_.check(with); }
  MemoryAnalysis memory() const override { return plan_.memory(); }
  std::int64_t bytes() const override { return plan_.bytes(); }
  dependent<In, planned>* as_plan() override { return &plan_; }

 private:
  using entry = std::shared_ptr<dependent<In, traced_entry>>;
  // The entry that owns the program itself, so that entries do not form a chain.
  static const entry& program_of(const entry& of) {
    if (of->lowered.bytes() > 0) return of;
    return static_cast<const basic_planned_again*>(of->ready.get())->of_;
  }

  entry of_;
  dependent<In, planned> plan_;
};

/// The functions that a traced graph calls. Its signature is rewritten with the numbers of steps of
/// its loops in one place: graphs that differ in nothing else share a program.
template <class In>
class basic_traced_calls final : public traced_calls {
 public:
  explicit basic_traced_calls(dependent<In, traced_graph>& g) : all_(g.signature()) {
    if (!chosen_backend<In>()) basic_trip_finder<In>(g, sizes_).run();
    list<std::uint64_t> as_recorded;
    as_recorded.swap(g.signature());
    int loops = 0;
    for (const ref<impl>& t : g.nodes()) {
      sign(g, *t);
      if (is<op::call>(*t)) loops += function::of(*t).g.loop_count;
    }
    loops_.resize(loops);
    for (int i = 0; i < g.outputs().size(); ++i)
      put(g.signature(), g.outputs()[i]->index, g.donor(i));
    words_.append(g.signature().begin(), g.signature().end());
    for (std::int64_t trip : sizes_.trips) put(g.signature(), trip);
  }

  void add_nodes(graph& g, const dependent<In, traced_graph>& from) const override {
    list<int> at;
    g.loops = loops_.data();
    g.loop_capacity = loops_.size();
    for (const symbol& s : sizes_.symbols) g.sizes.add(s);
    for (impl* leaf : from.leaves()) {
      const int index = g.add_slot({});
      g.slots[index].leaf = g.slots[index].current =
          g.add_leaf(index, false, leaf->type, dims(index, *leaf));
      at.push_back(index);
    }
    for (int i = 0; i < sizes_.trips.size(); ++i) g.add_slot({});
    list<int> results;
    int last_exchange = -1;  // the next exchange waits for it
    for (const ref<impl>& t : from.nodes()) add(g, from, *t, at, results, last_exchange);
    const int first = from.leaves().size();
    for (impl* t : from.outputs()) t->index = at[first + t->index] - first;
  }
  void add_slots(list<shape>& slots) const override {
    for (std::int64_t trip : sizes_.trips) slots.emplace_back().push(trip);
  }
  bool plan(dependent<In, tracer>& known, const dependent<In, traced_graph>& g,
            dependent<In, traced_entry>& to) const override {
    if (sizes_.trips.empty()) {
      to.build(chosen_backend<In>(), g);
      return true;
    }
    list<shape> sizes = g.leaf_shapes();
    add_slots(sizes);
    for (auto& [hash, e] : known.cache_)
      if (!e->by && same_program(e->signature)) {
        to.ready = std::make_unique<basic_planned_again<In>>(e, std::move(sizes));
        return false;
      }
    to.lowered.build(g, {});
    to.ready = std::make_unique<dependent<In, planned>>(
        size_program<In>(to.lowered.view(), std::move(sizes), {}), nullptr);
    return true;
  }

 private:
  using function = basic_function<In>;

  bool same_program(const list<std::uint64_t>& signature) const {
    const int rest = words_.size() + sizes_.trips.size();
    return signature.size() == all_.size() &&
           std::equal(words_.begin(), words_.end(), signature.begin()) &&
           std::equal(all_.begin() + rest, all_.end(), signature.begin() + rest);
  }

  shape dims(int number, const impl& t) const {
    return sizes_.shapes.empty() ? t.dims_shape() : sizes_.shapes[number];
  }
  /// The symbol or number of a function's steps in the graph.
  extent steps_of(const function& f) const {
    for (int j = 0; j < sizes_.trips.size(); ++j)
      if (sizes_.trips[j] == f.trip) return symbol_extent(j);
    return f.trip;
  }
  template <class... Words>
  static void put(list<std::uint64_t>& to, Words... words) {
    (to.push_back(static_cast<std::uint64_t>(words)), ...);
  }
  void put_dims(list<std::uint64_t>& to, int number, const impl& t) const {
    const shape s = dims(number, t);
    put(to, s.rank, static_cast<int>(t.type));
    for (int i = 0; i < s.rank; ++i) put(to, s[i]);
  }

  void sign(dependent<In, traced_graph>& g, const impl& t) const {
    list<std::uint64_t>& to = g.signature();
    put(to, reinterpret_cast<std::uintptr_t>(t.op), t.arity);
    put_dims(to, g.leaves().size() + t.index, t);
    if (!t.op->impure && !is<op::call>(t)) put(to, t.attr.low, t.attr.high, t.attr.size);
    if (is<op::call>(t)) {
      const function& f = function::of(t);
      to.append(f.words.begin(), f.words.end());
      put(to, steps_of(f));
    }
    if (t.op->alone_is_input) put(to, world_now());
    if (t.op->check) put(to, reinterpret_cast<std::uintptr_t>(t.at.file_name()), t.at.line());
    put(to, g.after(t, 0), g.after(t, 1));
    for (int k = 0; k < t.arity; ++k) {
      put(to, g.input(t, k));
      if (!t.in[k]->is_pending()) put_dims(to, t.in[k]->index, *t.in[k]);
    }
  }

  void add(graph& g, const dependent<In, traced_graph>& from, const impl& t, list<int>& at,
           list<int>& results, int& last_exchange) const {
    if (is<op::call>(t)) {
      list<int> inputs;
      for (int k = 0; k < t.arity; ++k) inputs.push_back(at[from.input(t, k)]);
      at.push_back(results.size());
      const function& f = function::of(t);
      return f.add_to(g, inputs.data(), steps_of(f), results);
    }
    if (is<op::output>(t) && is<op::call>(*t.in[0])) {
      const int number = t.template attributes<op::output>().number;
      return at.push_back(results[at[from.input(t, 0)] + number]);
    }
    node n{t};
    n.set_shape(dims(at.size(), t));
    if (t.op->impure) n.template set<op::drawing>({});
    g.lists.open(n, t.arity);
    int* const in = g.inputs(n);
    for (int k = 0; k < n.arity; ++k) in[k] = at[from.input(t, k)];
    for (int k = 0; k < 2; ++k)
      if (const int before = from.after(t, k); before >= 0) n.after[k] = at[before];
    if (world_now() == 1 && n.op->alone_is_input) stand_for_input(n);
    else if (n.op->exchanges) n.after[0] = std::exchange(last_exchange, g.count);
    at.push_back(g.add(n));
  }

  const list<std::uint64_t>& all_;
  trip_shapes sizes_;
  mutable list<loop_range> loops_;  // memory owned by the graph
  list<std::uint64_t> words_;       // of the signature, before the numbers of steps
};

}  // namespace xla::detail
