// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pending tensors as a graph with a signature, and its program. lazy.hpp looks the signature up and
// runs the program; transform/capture.hpp makes captured graphs.

#include <algorithm>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/hash.hpp"
#include "xla/base/list.hpp"
#include "xla/run/execute/eager.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/run/plan/known_regions.hpp"
#include "xla/run/plan/lowered.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/selected_passes.hpp"
#include "xla/run/trace/recorded_function.hpp"
#include "xla/tensor/memory.hpp"
#include "xla/transform/bfloat16_storage.hpp"

namespace xla::detail {

/// The pending tensors as a graph: its leaves, its outputs, and its signature, the key of the cache
/// of programs.
template <class In>
class basic_traced_graph {
 public:
  basic_traced_graph() = default;
  basic_traced_graph(const basic_traced_graph&) = delete;
  [[gnu::cold]] ~basic_traced_graph() {
    for (auto& t : nodes_)
      if (t->is_pending()) t->index = -1;
  }

  /// Takes everything that is pending in a recording, in order. Ops that another thread adds at the
  /// same time are not included.
  void collect(pending_list& from) {
    take(from);
    for (int i = 0; i < nodes_.size(); ++i) nodes_[i]->index = i;
    uses_.assign(nodes_.size(), 0);
    first_.reserve(nodes_.size());
    at_.reserve(4 * nodes_.size());  // usually
    signature_.reserve(12 * nodes_.size());
    number_and_sign();
    left_out_ = passes_left_out<In>().load(std::memory_order_relaxed);
    put(left_out_);
    registered_ = passes_registered.load(std::memory_order_acquire);
    if (registered_) put(registered_->set.load(std::memory_order_acquire));
    // Signatures are long, and compared word by word: not by mix(), which takes longer. Two hashes
    // in turn, because a multiplication waits for the one before.
    auto next = hash_ = 0;
    for (auto w : signature_) hash_ = std::exchange(next, (hash_ ^ w) * 0xff51afd7ed558ccdull);
    hash_ ^= next << 1;
  }

  int size() const { return nodes_.size(); }
  std::uint64_t hash() const { return hash_; }
  std::uint32_t left_out() const { return left_out_; }
  /// nullptr: none.
  const registered_passes* registered() const { return registered_; }
  const auto& signature() const { return signature_; }
  auto& signature() { return signature_; }
  /// nullptr if it calls no recorded function.
  const traced_calls* calls() const { return calls_; }
  const list<impl*>& leaves() const { return leaves_; }
  const list<impl*>& outputs() const { return outputs_; }
  const list<rng_state>& random() const { return random_; }
  [[gnu::cold]] list<shape> leaf_shapes() const {
    list<shape> s;
    for (impl* leaf : leaves_) s.push_back(leaf->dims_shape());
    return s;
  }
  [[gnu::cold]] auto summary() const {
    dependent<In, graph_summary> s;
    for (auto& t : nodes_) s.push_back({t->op->name, t->type, t->dims_shape()});
    return s;
  }
  const list<ref<impl>>& nodes() const { return nodes_; }
  /// Whether nothing else refers to a leaf than this graph and the cell whose new value the graph
  /// computes.
  bool only_here(int leaf) const {
    return leaves_[leaf]->refs.load(std::memory_order_acquire) == leaf_uses_[leaf];
  }
  int donor(int output) const { return donors_[output]; }
  /// The number of a node's input: leaves first, then nodes.
  int input(const impl& t, int k) const { return after(t, 2 + k); }
  /// The nodes that a node waits for, numbered likewise; -1 for none.
  int after(const impl& t, int k) const { return static_cast<int>(at_[first_[t.index] + k]); }

  /// Called when the tensors have elements: releases inputs that no gradient needs any more.
  void finish() noexcept {
    for (auto& t : nodes_) {
      t->previous.reset();
      if (t->data) drop_inputs(*t);
      leave(*t);
    }
  }
  /// The graph cannot run: cells go back to their last value, other tensors report it when read. No
  /// gradient flows through them, because a parameter's gradient would keep the parameter alive
  /// forever. In eager mode that fuses, tensors that are read later are computed op by op, so that
  /// only those that depend on the failed op are lost.
  [[gnu::cold]] void fail() noexcept {
    bool lost = !fuses_eagerly() || call_;
    for (auto& t : nodes_) lost |= t->op->exchanges;
    for (auto& t : nodes_) {
      if (lost) {
        t->failed = true;
        t->release_inputs();
      }
      leave(*t);
    }
  }

 private:
  // Leaves keep their number (impl::index) during this function only. It holds a lock, because
  // graphs of several devices may have the same leaves.
  [[gnu::cold]] void number_and_sign() {
    struct numbering {
      list<impl*>& leaves;
      std::lock_guard<sys::mutex> alone{the_process.collecting};
      ~numbering() {
        for (impl* leaf : leaves) leaf->index = -1;
      }
    } const for_now{leaves_};
    for (auto& t : nodes_)
      for (int k = 0; k < t->arity; ++k) see(*t->in[k]);
    find_outputs();
    for (auto& t : nodes_) {
      sign(*t);
      if (const impl* old = t->previous.get(); old && is_leaf(*old)) ++leaf_uses_[old->index];
    }
    sign_leaves_and_outputs();
    if (call_) calls_ = static_cast<recorded_function*>(call_->made_by.get())->look_at(*this);
  }

  // A pending exchange refers to itself. A tensor that is not pending may be a leaf of another
  // device's graph, which numbers it.
  static void leave(impl& t) noexcept {
    t.index = -1;
    t.leave_pending();
    if (t.op->exchanges) t.release();
  }
  void take(pending_list& from) {
    const int most = from.size();
    nodes_.reserve(most);
    const std::lock_guard hold(from.links);
    for (impl* t = from.first; t && nodes_.size() < most; t = t->pending_next)
      if (t->try_retain()) nodes_.emplace_back(t);
  }

  // Numbers leaves in the order of first use, and counts uses from within the graph.
  void see(impl& in) {
    if (in.is_pending()) ++uses_[in.index];
    else if (in.index < 0) {
      leaf_uses_.push_back(1);
      leaves_.push_back(&in);
      in.index = leaves_.size() - 1;
    } else {
      ++leaf_uses_[in.index];
    }
  }

  bool is_leaf(const impl& t) const { return !t.is_pending() && t.index >= 0; }

  // Outputs are tensors with references from outside of the graph, and those that a gradient may
  // still need.
  [[gnu::cold]] void find_outputs() {
    list<char> output(nodes_.size()), keep(nodes_.size());
    for (int i = 0; i < nodes_.size(); ++i) {
      impl& t = *nodes_[i];
      const int inside = uses_[i] + 1 + t.op->exchanges;  // and this graph's reference, and its own
      output[i] = t.refs.load(std::memory_order_acquire) > inside;
      keep[i] = output[i] && !t.meta && ((t.needs_grad && !t.consumed) || t.part);
    }
    for (int i = nodes_.size() - 1; i >= 0; --i) {
      if (!keep[i]) continue;
      for (int k = 0; k < nodes_[i]->arity; ++k) {
        impl& in = *nodes_[i]->in[k];
        if (!in.is_pending()) continue;
        const bool again = in.part && !in.part->open;  // computed again for a gradient
        const bool read = !is<op::custom_gradient>(in) && !is<op::call>(in);
        output[in.index] |= !again && read;
        keep[in.index] |= again || (in.needs_grad && !in.consumed && !in.meta);
      }
    }
    for (int i = 0; i < nodes_.size(); ++i)
      if (output[i]) outputs_.push_back(nodes_[i].get());
    order_outputs();
  }

  // A cell's new value may reuse the memory of the old one if, in every run, only the graph refers
  // to the old one. Such outputs come first; they are the program's writes.
  [[gnu::cold]] void order_outputs() {
    list<impl*> writes, results;
    list<char> taken(leaves_.size());
    for (impl* t : outputs_) {
      impl* old = t->previous.get();
      const int leaf = old && is_leaf(*old) ? old->index : -1;
      const bool ours = leaf >= 0 && !taken[leaf] && same_dims(*old, *t) && old->type == t->type;
      if (ours) {
        taken[leaf] = 1;
        writes.push_back(t);
        donors_.push_back(leaf);
      } else {
        results.push_back(t);
      }
    }
    outputs_ = std::move(writes);
    outputs_.append(results.begin(), results.end());
    while (donors_.size() < outputs_.size()) donors_.push_back(-1);
  }

  // The node of the pending op number `order`, among nodes before `limit`; -1 if it is not in this
  // graph.
  [[gnu::cold, gnu::noinline]] int recorded_as(std::uint64_t order, int limit) const {
    const auto at =
        std::lower_bound(nodes_.begin(), nodes_.begin() + limit, order,
                         [](const ref<impl>& t, std::uint64_t o) { return t->order < o; });
    if (at == nodes_.begin() + limit || (*at)->order != order) return -1;
    return leaves_.size() + (*at)->index;
  }

  static std::uint64_t word(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
  static std::uint64_t word(std::int64_t high, int low) {
    return static_cast<std::uint64_t>(high) << 32 | static_cast<std::uint32_t>(low);
  }
  [[gnu::noinline]] void put(std::uint64_t w) { signature_.push_back(w); }
  // Writes words about the shape of t, and one more number.
  static std::uint64_t* sign(const op_record& t, int more, std::uint64_t* to) {
    *to++ = word(more, static_cast<int>(t.type) << 8 | t.rank);
    for (int i = 0; i < t.rank; ++i) *to++ = static_cast<std::uint64_t>(t.dims[i]);
    return to;
  }
  // Its inputs and the nodes that it waits for are in at_, which the signature contains as well.
  void sign(impl& t) {
    std::uint64_t* to = sign(t, t.arity, signature_.room(max_rank + 8));
    const auto add = [&](auto w) { *to++ = static_cast<std::uint64_t>(w); };
    add(word(t.op));
    if (t.op->impure) {
      const auto [seed, offset] = unpack<op::drawing::drawn>(t.attr);
      random_.push_back({seed, offset});
    } else {
      add(t.attr.low);
      add(t.attr.high);
      add(t.attr.size);
    }
    if (t.op->alone_is_input) add(world_now());
    if (is<op::call>(t)) {
      call_ = &t;
      static_cast<const recorded_function&>(*t.made_by.get()).put_numbers(t, random_);
    }
    if (t.op->check) {  // its plan names its line
      add(word(t.at.file_name()));
      add(t.at.line());
    }
    signature_.end_at(to);
    first_.push_back(at_.size());
    to = at_.room(2 + t.arity);
    for (auto of : t.after) add(of == 0 ? -1 : recorded_as(of - 1, t.index));
    for (int k = 0; k < t.arity; ++k) {
      const impl& in = *t.in[k];
      add(in.is_pending() ? leaves_.size() + in.index : in.index);
    }
    at_.end_at(to);
  }
  // After all nodes.
  [[gnu::cold, gnu::noinline]] void sign_leaves_and_outputs() {
    for (impl* leaf : leaves_) signature_.end_at(sign(*leaf, 0, signature_.room(max_rank + 1)));
    signature_.append(at_.begin(), at_.end());
    for (int i = 0; i < outputs_.size(); ++i) put(word(outputs_[i]->index, donors_[i]));
  }

  list<ref<impl>> nodes_;
  list<int> uses_;
  list<int> leaf_uses_;  // references to each leaf from the graph's nodes
  list<impl*> leaves_;
  list<impl*> outputs_;
  list<int> donors_;
  list<int> first_;         // per node: its index in the next list
  list<std::uint64_t> at_;  // the two nodes that a node waits for, and its inputs
  list<rng_state> random_;
  list<std::uint64_t> signature_;
  const impl* call_ = nullptr;  // one of them
  traced_calls* calls_ = nullptr;
  std::uint64_t hash_ = 0;
  std::uint32_t left_out_ = 0;  // passes of the library
  const registered_passes* registered_ = nullptr;
};
using traced_graph = basic_traced_graph<void>;

/// The program of a traced graph: the same passes as for a captured one, at run time.
template <class In>
class basic_traced_program {
 public:
  [[gnu::cold]] void build(const dependent<In, traced_graph>& from, Passes wanted) {
    const int n = from.nodes().size() + from.leaves().size();
    list<node> nodes(n + 1);
    list<slot> slots(from.leaves().size() + 1);
    owned_graph g;
    g.nodes = nodes.data();
    g.slots = slots.data();
    g.capacity = nodes.size();
    g.slot_capacity = slots.size();
    g.sizes.owner = &g;
    g.store_bfloat16 = store_as_bfloat16_when_traced.load(std::memory_order_relaxed);
    if (from.calls()) from.calls()->add_nodes(g, from);
    else add_nodes(g, from);
    list<int> results;
    list<write> writes;
    const int first = from.leaves().size();
    for (int i = 0; i < from.outputs().size(); ++i) {
      const int value = first + from.outputs()[i]->index;
      if (from.donor(i) >= 0) writes.push_back({from.donor(i), false, value});
      else results.push_back(value);
    }
    const graph_roots roots{results.data(), results.size(), writes.data(), writes.size()};
    dependent<In, pass_state> s(g, roots, false);
    if constexpr (has_known_regions) s.sums_tiles = g.loop_count == 0;
    wanted.left_out |= from.left_out();
    if (const registered_passes* more = from.registered()) more->run(*more, s, wanted);
    else run_recorded_passes<In>(s, wanted);
    lowered_.lower(s, wanted);
  }

  const program& view() const { return lowered_.view(); }
  std::int64_t bytes() const { return lowered_.bytes(); }

 private:
  [[gnu::cold]] static void add_nodes(graph& g, const dependent<In, traced_graph>& from) {
    for (impl* leaf : from.leaves()) {
      slot s;
      const int index = g.add_slot(s);
      g.slots[index].leaf = g.slots[index].current =
          g.add_leaf(index, false, leaf->type, leaf->dims_shape());
    }
    const bool alone = world_now() == 1;
    int last_exchange = -1;  // the next exchange waits for it
    for (auto& t : from.nodes()) {
      node n{*t};
      if (t->op->impure) n.set<op::drawing>({});
      g.lists.open(n, t->arity);
      int* const in = g.inputs(n);
      for (int k = 0; k < n.arity; ++k) in[k] = from.input(*t, k);
      for (int k = 0; k < 2; ++k) n.after[k] = from.after(*t, k);
      if (alone && n.op->alone_is_input) stand_for_input(n);
      else if (n.op->exchanges) n.after[0] = std::exchange(last_exchange, g.count);
      g.add(n);
    }
  }

  dependent<In, lowered_graph> lowered_;
};
using traced_program = basic_traced_program<void>;

}  // namespace xla::detail
