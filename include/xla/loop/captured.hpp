// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records a loop in the graph of a compiled function, for scan(), fori_loop(), while_loop() and
// cond(). Traced mode records by traced.hpp; eager mode runs the steps (stepwise.hpp).

#include <cstddef>
#include <utility>

#include "xla/base/owned_array.hpp"
#include "xla/loop/slot_carries.hpp"
#include "xla/loop/trees.hpp"
#include "xla/run/call/static_chains.hpp"
#include "xla/run/trace/graph_of.hpp"
#include "xla/run/trace/loop_rules.hpp"
#include "xla/transform/loop_recorder.hpp"

namespace xla::detail {

/// The op after a given node that exchanges with other replicas, or else one that draws random
/// numbers; nullptr if there is none.
constexpr const op_info* draws_or_exchanges(const graph& g, int begin) {
  const op_info* draws = nullptr;
  for (int i = begin; i < g.count; ++i) {
    if (g.nodes[i].op->exchanges) return g.nodes[i].op;
    if (draws_again(g.nodes[i])) draws = g.nodes[i].op;
  }
  return draws;
}

/// A call of one of the loop functions.
struct loop_call {
  loop_function function;
  caller loc;
  constexpr call_site site() const { return {name_of(function), loc}; }
  constexpr call_site body() const { return {place_in(function), loc}; }
  constexpr loop_control control(loop_control c) const {
    c.function = function;
    c.at = loc;
    return c;
  }
};

/// Requirements on sizes that the body of a loop, or a branch, records.
class body_sizes {
 public:
  constexpr body_sizes(graph& of, loop_call loop)
      : g(of),
        body_(loop.body()),
        begin_(g.sizes.equality_count),
        failed_(g.sizes.refused.failed()) {}
  /// After the body: if it was refused, adds that it is in this loop.
  constexpr void tell() const {
    if (!failed_ && g.sizes.refused.failed()) g.sizes.refused.why << body_.function << body_.at;
  }
  /// The same for errors that only a call finds.
  constexpr void end() const {
    const int needed = g.sizes.equality_count - begin_;
    if (needed > 0) g.sizes.require({.where = body_, .of_body = needed});
  }

 private:
  graph& g;
  call_site body_;
  int begin_;
  bool failed_;
};

/// Records loops. Carry is a tree of tensors. Give makes the further arguments of a step from the
/// recorder and the graph.
template <class Carry>
class loop_capture {
 public:
  static constexpr int count = tensors_in<Carry>();

  /// every: see loop_range.
  constexpr loop_capture(graph& in, loop_call of, extent trip, bool reverse,
                         loop_control control = {}, extent every = 0)
      : g(in),
        call_(of),
        site_(of.site()),
        trip_(trip),
        every_(every),
        reverse_(reverse),
        control_(of.control(control)) {}

  /// The body was recorded once before, to find the graph, so it must not write.
  constexpr loop_capture& recorded_before() {
    recorded_before_ = true;
    return *this;
  }

  /// Records again until no further gradients pass around and the body writes nothing new.
  template <class Body, class Give, class Keep>
  constexpr auto run(const Body& body, const Carry& init, const Give& give, const Keep& keep) {
    each_tensor(init, [&, k = 0](const auto& t) mutable { init_[k++] = t.lift(&g); });
    slot_carries slots(g);
    const body_sizes sizes(g, call_);
    for (;;) {
      const graph_mark before(g);
      loop_recorder loop(g, loops_of_graphs<Carry>, trip_, reverse_, control_);
      g.loops[loop.number() - 1].every = every_;
      Carry now = init;
      each_tensor(now, [&, k = 0](auto& t) mutable {
        carry_[k] = loop.carry(init_[k], needs_[k], wants_[k]);
        t.name_node(&g, carry_[k++]);
      });
      slots.begin(loop);
      const int begin = g.count;
      auto made = body(now, give(g, loop));
      sizes.tell();
      const Carry& next = made.first;
      each_tensor(next, [&, k = 0](const auto& t) mutable { next_[k++] = t.lift(&g); });
      if (const char* why = refusal(begin, slots)) size_scope{&g.sizes, site_}.fail(why);
      for (int k = 0; k < count; ++k) same_shape(g.nodes[carry_[k]], g.nodes[next_[k]]);
      const bool further = goes_further(), more = slots.more(begin);
      if (!g.sizes.refused.failed() && (further || more)) {
        before.undo();
        continue;
      }
      sizes.end();
      close(loop, slots);
      each_tensor(made.first, [&, k = 0](auto& t) mutable {
        t.name_node(&g, loop.last(k, next_[k]));
        ++k;
      });
      slots.end(loop, count);
      return std::pair(made.first, keep(made.second, g, loop));
    }
  }

 private:
  constexpr const char* refusal(int begin, const slot_carries& slots) const {
    const op_info* const other = draws_or_exchanges(g, begin);
    if (other && control_.tested && (other->exchanges || !control_.bounded))
      return other->exchanges
                 ? "replicas exchange in the body, and each may run a different number of steps: "
                   "exchange before the loop, or use scan() or fori_loop()"
                 : "the body draws random numbers, and how many is unknown until it has run: give "
                   "the most steps in max_steps, or draw before the loop";
    if (recorded_before_ && slots.writes())
      return "the body writes, but all that the loop starts from is constant: start from a tensor "
             "of the function, as zeros_like(x)";
    return slots.refusal();
  }
  constexpr void close(loop_recorder& loop, slot_carries& slots) const {
    const auto room = static_cast<std::size_t>(count + slots.count()) + 1;
    const owned_array<int> next(room), init(room);
    for (int k = 0; k < count; ++k) {
      next.get()[k] = next_[k];
      init.get()[k] = init_[k];
    }
    slots.yield_values(next.get() + count, init.get() + count);
    loop.close(next.get(), init.get());
  }
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
                 << ": each step must keep the shape of every carry");
  }

  graph& g;
  loop_call call_;
  call_site site_;
  extent trip_, every_;
  bool reverse_;
  loop_control control_;
  bool recorded_before_ = false;
  int init_[count + 1] = {}, carry_[count + 1] = {}, next_[count + 1] = {};
  bool needs_[count + 1] = {}, wants_[count + 1] = {};
};

}  // namespace xla::detail
