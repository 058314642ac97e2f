// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/loop/trees.hpp"
#include "xla/run/engine/make_loop.hpp"
#include "xla/run/trace/graph_of.hpp"
#include "xla/transform/loop_backward.hpp"
#include "xla/transform/loop_values.hpp"
#include "xla/transform/lower_loops.hpp"

namespace xla::detail {

/// A graph as it is now, to forget what is recorded from here on.
class graph_mark {
 public:
  constexpr explicit graph_mark(graph& of)
      : g(of), count_(of.count), slots_(of.slot_count), loops_(of.loop_count), loop_(of.loop),
        segment_(of.segment), segments_(of.segment_count), listed_(of.lists.count),
        kept_(static_cast<std::size_t>(of.slot_count) + 1) {
    for (int i = 0; i < slots_; ++i) kept_.get()[i] = g.slots[i];
  }
  graph_mark(const graph_mark&) = delete;

  constexpr void undo() const {
    g.count = count_;
    g.slot_count = slots_;
    g.loop_count = loops_;
    g.loop = loop_;
    g.segment = segment_;
    g.segment_count = segments_;
    g.lists.count = listed_;
    for (int i = 0; i < slots_; ++i) g.slots[i] = kept_.get()[i];
  }
  /// Why what has been recorded since is no body of a loop; nullptr: it is one.
  constexpr const char* refusal() const {
    for (int i = 0; i < slots_; ++i) {
      const slot &was = kept_.get()[i], &is = g.slots[i];
      if (was.current != is.current || was.requires_grad != is.requires_grad)
        return "the body writes a parameter, a buffer or a tensor from outside: hand it on as a "
               "carry, and write it when the loop is over";
      if (was.grad != is.grad || was.state != is.state)
        return "the body writes a gradient: call backward() outside of it";
    }
    for (int i = count_; i < g.count; ++i) {
      if (g.nodes[i].op->impure)
        return "the body draws random numbers: draw them before it, for all steps, and pass them "
               "as xs";
      if (g.nodes[i].op->exchanges)
        return "replicas exchange in the body: let them do so before it, or behind it";
    }
    return nullptr;
  }

 private:
  graph& g;
  int count_, slots_, loops_, loop_, segment_, segments_, listed_;
  owned_array<slot> kept_;
};

/// The two ops, with and without checks among their steps.
template <class In>
inline constexpr loop_maker makes_loops{&make_loop<later<In, void>>,
                                                &shorten_body<later<In, void>>};
template <class In, bool Checks>
inline constexpr loop_info info_with_steps = info_of_loop(makes_loops<In>, Checks);
template <class In>
inline constexpr loop_rules loops_of_graphs{.level = &level_in_loops,
                                            .place = &begin_behind_inputs,
                                            .verify = &verify_loops,
                                            .refuse_leaks = &refuse_leaks,
                                            .lower = &loop_lowering::run,
                                            .order = &loop_backward::order,
                                            .step = &loop_backward::step,
                                            .sum = &loop_backward::sum,
                                            .replaced = &loop_backward::replaced,
                                            .read = &loop_backward::read,
                                            .minus_zeros = &minus_zeros<In>,
                                            .block = &block_of<In>,
                                            .add_numbers = &add_numbers<In>,
                                            .join_blocks = &join_blocks<In>,
                                            .plain = &info_with_steps<In, false>,
                                            .checks = &info_with_steps<In, true>};

/// Records loops. Carry: a tree of tensors. Give makes of the recorder and the graph what a step is
/// given besides it.
template <class Carry>
class loop_capture {
 public:
  static constexpr int count = tensors_in<Carry>();

  /// every: see loop_range.
  constexpr loop_capture(graph& in, call_site site, extent trip, bool reverse,
                         loop_control control = {}, extent every = 0)
      : g(in), site_(site), trip_(trip), every_(every), reverse_(reverse), control_(control) {}

  /// Recorded anew as long as gradients may go further around than they did before.
  template <class Body, class Give, class Keep>
  constexpr auto run(const Body& body, const Carry& init, const Give& give, const Keep& keep) {
    each_tensor(init, [&, k = 0](const auto& t) mutable { init_[k++] = t.lift(&g); });
    for (;;) {
      const graph_mark before(g);
      loop_recorder loop(g, loops_of_graphs<Carry>, trip_, reverse_, control_);
      g.loops[loop.number() - 1].every = every_;
      Carry now = init;
      each_tensor(now, [&, k = 0](auto& t) mutable {
        carry_[k] = loop.carry(init_[k], needs_[k], wants_[k]);
        t.name_node(&g, carry_[k++]);
      });
      auto made = body(now, give(g, loop));
      const Carry& next = made.first;
      each_tensor(next, [&, k = 0](const auto& t) mutable { next_[k++] = t.lift(&g); });
      if (const char* why = before.refusal()) size_scope{&g.sizes, site_}.fail(why);
      for (int k = 0; k < count; ++k) same_shape(g.nodes[carry_[k]], g.nodes[next_[k]]);
      if (!g.sizes.refused.failed() && goes_further()) {
        before.undo();
        continue;
      }
      loop.close(next_, init_);
      each_tensor(made.first, [&, k = 0](auto& t) mutable {
        t.name_node(&g, loop.last(k, next_[k]));
        ++k;
      });
      return std::pair(made.first, keep(made.second, g, loop));
    }
  }

 private:
  constexpr bool goes_further() {
    bool further = false;
    for (int k = 0; k < count; ++k) {
      const node &from = g.nodes[carry_[k]], &to = g.nodes[next_[k]];
      further |= (to.needs_grad && !from.needs_grad) || (to.input_grad && !from.input_grad);
      needs_[k] |= to.needs_grad;
      wants_[k] |= to.input_grad;
    }
    return further && g.recording;
  }
  constexpr void same_shape(const node& from, const node& to) const {
    const size_scope scope{&g.sizes, site_};
    bool same = from.rank == to.rank;
    for (int i = 0; same && i < from.rank; ++i) {
      extent size = from.dims[i];
      same = scope.equal(size, to.dims[i]);
    }
    if (!same)
      scope.fail(text("a carry of shape ")
                 << from.dims_shape() << " became one of shape " << to.dims_shape()
                 << ": each step hands on what it was given, in the same shape");
  }

  graph& g;
  call_site site_;
  extent trip_, every_;
  bool reverse_;
  loop_control control_;
  int init_[count + 1] = {}, carry_[count + 1] = {}, next_[count + 1] = {};
  bool needs_[count + 1] = {}, wants_[count + 1] = {};
};

}  // namespace xla::detail
