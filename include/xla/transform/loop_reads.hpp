// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the gradient rules of a loop's steps read: values that the loop keeps of all its steps, or
// the body run again. loop_backward.hpp builds the reversed loop on it.

#include <utility>

#include "xla/transform/backward.hpp"
#include "xla/transform/loop_body_order.hpp"
#include "xla/transform/loop_recorder.hpp"
#include "xla/transform/loop_replay.hpp"
#include "xla/transform/loop_values.hpp"

namespace xla::detail {

/// The reversed loop of one loop, and the values in it that represent those of the loop's steps.
class loop_reads {
 public:
  loop_reads(const loop_reads&) = delete;

 protected:
  static constexpr int none = graph_backward::none;
  static constexpr std::size_t room(int n) { return static_cast<std::size_t>(n) + 1; }

  /// Per node of a range its replacement, or none.
  class stand_ins {
   public:
    constexpr stand_ins(int begin, int end) : begin_(begin), end_(end), all_(room(end - begin)) {
      for (int i = begin; i < end; ++i) (*this)[i] = none;
    }
    constexpr bool has(int at) const { return at >= begin_ && at < end_; }
    constexpr int& operator[](int at) { return all_.get()[at - begin_]; }
    constexpr int begin() const { return begin_; }

   private:
    int begin_, end_;
    owned_array<int> all_;
  };

  /// loop: the loop's node; source: the same, or its copy in a checkpoint; around: the reads of the
  /// enclosing loop, or nullptr.
  constexpr loop_reads(graph_backward& of, int loop, int source, loop_reads* around)
      : pass(of),
        g(of.g),
        loop_(loop),
        source_(source),
        number_(made_by_loop(of.g.nodes[loop])),
        begin_(g.loops[number_ - 1].begin),
        carries_(g.nodes[loop].attributes<op::loop>().carries),
        around_(around),
        copied_(begin_of(source), source),
        blocks_(g, *g.rules_of_loops, blocks(), !reverse()),
        known_(run_blocks_again()),
        to_(g, *g.rules_of_loops, blocks_.open() ? every() : trip(), !reverse(), control()) {}

  constexpr bool reverse() const { return g.nodes[loop_].attributes<op::loop>().reverse; }
  constexpr extent trip() const { return g.loops[number_ - 1].trip; }
  /// As loop_range::every; gradients of gradients ignore it.
  constexpr extent every() const { return g.recording ? 0 : g.loops[number_ - 1].every; }
  /// The number of blocks of several steps; -1: there are none.
  constexpr extent blocks() {
    return every() == 0 || every() == 1 ? -1 : blocks_of(g, trip(), every());
  }
  /// The loop that encloses the reversed one.
  constexpr int parent() const {
    return g.loops[(blocks_.open() ? blocks_ : to_).number() - 1].parent;
  }
  /// The reversed loop in which the body's nodes from begin to end are made again.
  constexpr int loop_for(int begin, int end) const {
    const loop_reads* in = this;
    for (; begin < in->begin_ || end > in->loop_; in = in->around_)
      if (!in->around_) return in->parent();
    return in->to_.number();
  }

  /// Whether a step computes it: a node of the body, or a later one that stacks values of an inner
  /// loop.
  constexpr bool has(int at) const {
    if (at < begin_ || loop_body_order::outside(pass, at, number_)) return false;
    return at < loop_ || in_loop(g, g.nodes[at].loop, number_);
  }

  /// The replacement of a value that a step computed, read from its stack.
  constexpr int read(int at) {
    at = copy_of(at);
    loop_reads* of = this;
    while (of && of->source_number() != g.nodes[at].loop) of = of->around_;
    return of ? of->read_own(at) : at;
  }
  /// If the body is recorded again, the value there.
  constexpr int copy_of(int at) {
    if (around_) at = around_->copy_of(at);
    return copied_.has(at) && copied_[at] >= 0 ? copied_[at] : at;
  }
  /// Records the body again in each step of the reversed loop.
  constexpr void run_step_again();

 private:
  constexpr int begin_of(int loop) const {
    return g.loops[g.nodes[loop].attributes<op::loop>().number - 1].begin;
  }
  /// A branch runs backward if it has run.
  constexpr loop_control control() {
    if (blocks_.open()) return counted_as(g.nodes[source_], block_.count);
    loop_control c = control_of(g, g.nodes[source_]);
    if (c.decides >= 0) c.decides = read_around(c.decides);
    return c;
  }

  constexpr int source_number() const { return g.nodes[source_].attributes<op::loop>().number; }
  constexpr int read_own(int at) {
    const bool member = known_.has(at);
    if (member && known_[at] >= 0) return known_[at];
    const node n = g.nodes[at];
    int made = none;
    const int inside = std::exchange(g.loop, to_.number());  // if others read it, too
    if (is<op::step_number>(n)) made = to_.step();
    else if (is<op::step_slice>(n)) made = to_.slice(read_around(n.in[0]), block_.first);
    else if (is<op::carry>(n) && !g.recording) made = read_carry(n);
    else if (n.op->kind == op_kind::alias && !g.recording) made = read_alias(n);
    else made = to_.slice(read_around(steps_of(g, source_, at)));
    g.loop = inside;
    if (member) known_[at] = made;
    return made;
  }
  /// The value as the enclosing loop reads it; a block's steps are within that already.
  constexpr int read_around(int at) { return blocks_.open() ? at : outside(at); }
  /// The carry that the previous step passed on, read from its stack.
  constexpr int read_carry(const node& n) {
    const int k = n.attributes<op::of_loop>().number;
    const int next = g.inputs(g.nodes[source_])[k];
    const int init = read_around(g.inputs(g.nodes[source_])[carries_ + k]);
    const node& from = g.nodes[next];
    if (is<op::carry>(from) && from.attr == n.attr) return init;  // it stays as it was
    return to_.before(read_around(steps_of(g, source_, next)), init, reverse());
  }
  /// The same elements under another shape are computed again.
  constexpr int read_alias(node n) {
    g.lists.own(n);
    for (int k = 0; k < n.arity; ++k) {
      const int in = read(g.inputs(n)[k]);
      g.inputs(n)[k] = in;
    }
    n.needs_grad = n.input_grad = false;
    if (is<op::detach>(n)) n.set<op::detach>({});
    return g.add(n);
  }

  // Records the body of a loop again, at the end of the graph. given(i): the replacement of a
  // carry, slice or number; kept(i): that of its steps' draws.
  template <class Given, class Kept>
  constexpr void copy_body(int source, const Given& given, const Kept& kept) {
    const int number = g.nodes[source].attributes<op::loop>().number;
    node_copier copier(g);
    const auto input = [&](int was) {
      if (copied_.has(was) && copied_[was] >= 0) return copied_[was];
      return outside(was);
    };
    for (int i = copied_.begin(); i < source; ++i) {
      copier.begin_loops(i, source);
      const node n = g.nodes[i];
      if (!in_loop(g, n.loop, number)) continue;
      refuse_again(g, n);
      if (given_by_loop(n) == number) copied_[i] = given(i);
      else if (result_of_steps(n)) copied_[i] = copier.result_of_step(i, kept);
      else copied_[i] = copier.copy(i, input);
    }
  }
  /// Records the steps of each block again, in the loop over blocks; rules then read from these.
  constexpr stand_ins run_blocks_again() {
    if (blocks_.open()) source_ = copy_block();
    return {begin_of(source_), source_};
  }
  constexpr int copy_block() {
    block_ = g.rules_of_loops->block(g, blocks_.step(), every(), trip());
    const owned_array<int> init(room(carries_)), next(room(carries_));
    for (int k = 0; k < carries_; ++k) init.get()[k] = first_of_block(k);
    loop_recorder again(g, *g.rules_of_loops, every(), reverse(),
                        counted_as(g.nodes[source_], block_.count));
    for (int k = 0; k < carries_; ++k) next.get()[k] = again.carry(init.get()[k], false, false);
    const auto given = [&](int i) {
      const node n = g.nodes[i];
      if (is<op::carry>(n)) return next.get()[n.attributes<op::of_loop>().number];
      if (is<op::step_slice>(n)) return again.slice(outside(n.in[0]), block_.first);
      return g.rules_of_loops->add_numbers(g, again.step(), block_.first);
    };
    copy_body(source_, given,
              [&](int i) { return again.slice(outside(steps_of(g, source_, i)), block_.first); });
    for (int k = 0; k < carries_; ++k) {
      const int made = g.inputs(g.nodes[source_])[k];
      next.get()[k] = copied_.has(made) && copied_[made] >= 0 ? copied_[made] : outside(made);
    }
    again.close(next.get(), init.get());
    return again.made();
  }
  constexpr int outside(int at) { return around_ ? around_->read(at) : at; }
  /// The carry with which a block's first step begins.
  constexpr int first_of_block(int k) {
    const int next = g.inputs(g.nodes[source_])[k];
    const int init = outside(g.inputs(g.nodes[source_])[carries_ + k]);
    const node& from = g.nodes[next];
    if (is<op::carry>(from) && given_by_loop(from) == source_number() &&
        from.attributes<op::of_loop>().number == k)
      return init;
    return blocks_.before(outside(steps_of(g, source_, next, every())), init, reverse());
  }

 protected:
  graph_backward& pass;
  graph& g;
  int loop_;                      // its node
  int source_;                    // the one whose steps have computed the values that rules read
  int number_, begin_, carries_;  // its members are the nodes from begin on up to it
  loop_reads* around_;
  stand_ins copied_;      // if the body runs again, the copies
  loop_recorder blocks_;  // the loop over blocks, if each has several steps
  block_of_steps block_;
  stand_ins known_;  // in the steps of this loop
  loop_recorder to_;
};

// After copy_body(): clang instantiates a template that is used before its definition only at the
// end of the source, too late for constant evaluation.
constexpr void loop_reads::run_step_again() {
  const auto own = [this](int i) { return read_own(i); };
  copy_body(source_, own, own);
}

}  // namespace xla::detail
