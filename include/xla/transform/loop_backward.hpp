// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds the gradient of one loop as another loop that runs in the opposite direction. backward()
// calls it through loop_rules, so that programs without loops compile none of it.

#include "xla/op/custom_gradient.hpp"
#include "xla/transform/loop_products.hpp"

namespace xla::detail {

inline constexpr char no_gradient_of_while[] =
    "xla::while_loop has no gradient, because the number of its steps is unknown until it has "
    "run: use xla::scan or xla::fori_loop, whose number of steps may be a value of run time";

/// The backward pass of one loop: a loop in the other direction that runs the gradient rules of its
/// body's ops. Gradients of carries are carries, and those of slices are stacked. Gradients of
/// outside values are accumulated from step to step, beginning with the gradient that has arrived
/// there, in the order of a backward() through the steps one by one. Values that a rule reads are
/// stacked in the forward loop.
///
/// With checkpoints only the carries before every n steps are saved. Then this is a loop over
/// blocks of that many steps. A block's steps run again from its first carries and stack the values
/// that rules read, for an inner loop that goes back through the block. In blocks of one step the
/// body runs again within the steps of the reversed loop.
class loop_backward : loop_products {
 public:
  /// loop: its node; source: the same, or its copy if it belongs to a checkpoint.
  constexpr loop_backward(graph_backward& of, int loop, int source)
      : loop_products(of, loop, source, of.inside),
        carry_(room(carries_)),
        next_(room(carries_)),
        init_(room(carries_)),
        given_(room(carries_)),
        arrived_(room(carries_)),
        begins_(room(carries_ + of.loops[number_].outside)),
        stacks_(room(loop - begin_)),
        sums_(room(of.loops[number_].outside)) {
    find_carries();
  }

  constexpr void run() {
    pass.inside = this;
    if (every() == 1) run_step_again();
    give_gradients();
    pass.run_list(pass.loops[number_].first);
    close();
    pass.inside = around();
    hand_out();
  }

  // The functions that loop_rules names.
  static constexpr bool step(graph_backward& of, int at) {
    const node& n = of.g.nodes[at];
    if (given_by_loop(n) == 0 && made_by_loop(n) == 0)
      return of.inside && of.inside->defer_product(at);
    if (!is<op::loop>(n)) return true;
    const int gradient = any_gradient(of, at);
    if (gradient < 0) return true;
    if (n.attributes<op::loop>().tested) of.g.sizes.refused.set(no_gradient_of_while);
    else loop_backward(of, at, source_of(of, at, gradient)).run();
    return true;
  }
  static constexpr int& sum(graph_backward& of, int at, bool adds) {
    return of.inside->sum_of(at, adds);
  }
  static constexpr void replaced(graph_backward& of, int at) { of.inside->begin_with_zeros(at); }
  static constexpr int read(graph_backward& of, int at, int gradient) {
    const replay_context context{of};
    return context.kept(loop_replay(of.g, of.again_, context).value(at, gradient));
  }
  /// A result that a function has saved is one of its results, not the bare value, if its gradient
  /// is to be differentiated.
  static constexpr void read_results(graph_backward& of, int at, gradient_scope& rule) {
    const node n = of.g.nodes[at];
    if (!is<op::custom_gradient>(n)) return;
    for (int q = 0; q < n.arity; ++q) {
      const int k = saved_result(of.g, n, q), result = k < 0 ? none : result_for(of.g, at, k);
      if (result >= 0) rule.in[q] = of.at(of.inside->read(result));
    }
  }

 private:
  using loop_reads::read;

  /// The copies of checkpointed nodes.
  struct replay_context {
    graph_backward& of;
    constexpr bool in_loop() const { return of.inside != nullptr; }
    constexpr int kept(int i) const { return of.inside ? of.inside->read(i) : i; }
    /// The loop in which a range of nodes from `begin` on is recorded again.
    constexpr int loop_for(int begin, int end) const {
      return of.inside ? of.inside->loop_for(begin, end) : of.g.loop;
    }
  };

  /// The sum of one gradient over the steps.
  struct running_sum {
    int of = none;      ///< the outside value
    int init = none;    ///< the initial value of the carry that holds the sum
    int now = none;     ///< the sum so far, in a step
    int begins = none;  ///< while nothing has been added: the number with which the sum begins
  };

  /// The first gradient of a loop's result, or none.
  static constexpr int any_gradient(const graph_backward& of, int loop) {
    for (int i = loop + 1; i <= of.root; ++i)
      if (of.gradient[i] >= 0 && made_by(of.g.nodes[i], loop)) return of.gradient[i];
    return none;
  }
  /// The loop whose steps have computed the values that rules read.
  static constexpr int source_of(graph_backward& of, int loop, int gradient) {
    const replay_context context{of};
    const int made = loop_replay(of.g, of.again_, context).value(loop, gradient);
    return of.inside ? of.inside->copy_of(made) : made;
  }
  /// Whether a node is a final result of a loop, given by its node.
  static constexpr bool made_by(const node& n, int loop) {
    return (is<op::steps>(n) || is<op::last_step>(n)) && n.in[0] == loop;
  }

  constexpr loop_backward* around() const { return static_cast<loop_backward*>(around_); }
  constexpr void find_carries() {
    const int* const in = g.inputs(g.nodes[loop_]);
    for (int k = 0; k < carries_; ++k) {
      next_.get()[k] = in[k];
      init_.get()[k] = in[carries_ + k];
      carry_.get()[k] = none;
    }
    for (int i = begin_; i < loop_; ++i)
      if (is<op::carry>(g.nodes[i]) && given_by_loop(g.nodes[i]) == number_ && pass.follows(i))
        carry_.get()[g.nodes[i].attributes<op::of_loop>().number] = i;
  }
  constexpr int zeros_as(int like) const {
    const node& n = g.nodes[like];
    return g.rules_of_loops->minus_zeros(n.type, n.dims_shape(), &g.sizes).lift(&g);
  }
  /// The same outside of this loop, even if it is a branch.
  constexpr int zeros_outside(int like) const {
    const around_loop outside(g, (blocks_.open() ? blocks_ : to_).number());
    return zeros_as(like);
  }

  // The gradients that the last step receives from after the loop: of its carries, then of all y.
  constexpr void give_gradients() {
    for (int k = 0; k < carries_; ++k) {
      if (carry_.get()[k] < 0) continue;
      int given = none;
      for (int i = loop_ + 1; i <= pass.root; ++i)
        if (is<op::last_step>(g.nodes[i]) && made_by(g.nodes[i], loop_) && pass.gradient[i] >= 0 &&
            g.nodes[i].attributes<op::of_loop>().number == k)
          given = pass.gradient[i];
      arrived_.get()[k] = given >= 0;
      if (given < 0) given = zeros_outside(carry_.get()[k]);
      given_.get()[k] = given;
      const int carry = add_carry(given);
      if (pass.follows(next_.get()[k])) pass.accumulate(next_.get()[k], carry);
    }
    for (int i = loop_ + 1; i <= pass.root; ++i)
      if (is<op::steps>(g.nodes[i]) && made_by(g.nodes[i], loop_) && pass.gradient[i] >= 0 &&
          pass.follows(g.nodes[i].in[1]))
        pass.accumulate(g.nodes[i].in[1], to_.slice(pass.gradient[i], block_.first));
  }

  constexpr int add_carry(int init) {
    if (blocks_.open()) init = begins_.get()[begun_++] = blocks_.carry(init, false, false);
    return to_.carry(init, g.recording, false);
  }
  constexpr running_sum* find(int at) const {
    for (int i = 0; i < count_; ++i)
      if (sums_.get()[i].of == at) return &sums_.get()[i];
    return nullptr;
  }
  /// The gradient of a value so far.
  constexpr int& sum_of(int at, bool adds) {
    if (has(at)) return pass.gradient[at];
    running_sum* s = find(at);
    if (!s) s = begin_sum(at);
    if (adds) s->begins = none;
    return s->now;
  }
  constexpr running_sum* begin_sum(int at) {
    running_sum& s = sums_.get()[count_++];
    s.of = at;
    s.init = around() ? around()->sum_of(at, false) : pass.gradient[at];
    if (s.init >= 0) {
      if (const running_sum* const outer = around() ? around()->find(at) : nullptr)
        s.begins = outer->begins;
    } else {
      s.begins = s.init = zeros_outside(at);
      while (!is<op::constant>(g.nodes[s.begins])) s.begins = g.nodes[s.begins].in[0];
    }
    s.now = add_carry(s.init);
    return &s;
  }
  /// A rule has added the first gradient to zeros, as if nothing had arrived.
  constexpr void begin_with_zeros(int at) {
    if (running_sum* const s = find(at); s && s->begins >= 0)
      g.nodes[s->begins].set<op::constant>({.value = 0});
  }

  // Values that the body writes are different leaves in each step.
  constexpr void refuse_written() const {
    for (int i = begin_; i < loop_; ++i) {
      const int slot = slot_of(g.nodes[i]);
      if (slot < 0 || pass.gradient[i] < 0 || g.slots[slot].kind == slot_kind::inner) continue;
      const loop_control of = control_of(g, g.nodes[source_]);
      g.sizes.refused.set(text("xla::")
                          << name_of(of.function)
                          << ": backward() after a loop whose body writes the parameters that it "
                             "reads: call it in the body, or detach() what the body returns"
                          << of.at);
    }
  }
  /// The gradient that a step passes on to the previous one: zeros if it passes nothing on. The
  /// initial value gets it or, if there are no steps, the gradient that has arrived after the loop.
  constexpr int gradient_of_carry(int k) {
    int& gradient = pass.gradient[carry_.get()[k]];
    if (gradient >= 0) return gradient;
    const int zeros = zeros_as(carry_.get()[k]);
    if (arrived_.get()[k]) gradient = zeros;
    return zeros;
  }
  constexpr void close() {
    refuse_written();
    const owned_array<int> next(room(carries_ + count_)), init(room(carries_ + count_));
    int n = 0;
    for (int k = 0; k < carries_; ++k) {
      if (carry_.get()[k] < 0) continue;
      next.get()[n] = gradient_of_carry(k);
      init.get()[n++] = given_.get()[k];
    }
    for (int i = 0; i < count_; ++i) {
      next.get()[n] = sums_.get()[i].now;
      init.get()[n++] = sums_.get()[i].init;
    }
    if (!blocks_.open()) return to_.close(next.get(), init.get());
    // A block's steps begin with the carries of the loop over blocks, and end with the values that
    // it passes on.
    to_.close(next.get(), begins_.get());
    for (int k = 0; k < n; ++k) next.get()[k] = to_.last(k, next.get()[k]);
    for (int i = begin_; i < loop_; ++i)
      if (is_sliced(i)) stacks_.get()[i - begin_] = to_.steps(pass.gradient[i]);
    blocks_.close(next.get(), init.get());
  }
  /// Whether a node is a slice whose gradient continues.
  constexpr bool is_sliced(int i) const {
    const node& n = g.nodes[i];
    return is<op::step_slice>(n) && given_by_loop(n) == number_ && pass.gradient[i] >= 0 &&
           pass.follows(n.in[0]);
  }
  constexpr int last_of(int carry, int made) {
    return blocks_.open() ? blocks_.last(carry, made) : to_.last(carry, made);
  }
  constexpr int all_of_slices(int i) {
    if (!blocks_.open()) return to_.steps(pass.gradient[i]);
    return g.rules_of_loops->join_blocks(g, blocks_.steps(stacks_.get()[i - begin_]), trip());
  }
  // Sums have begun with the gradients that had arrived outside; then come those of initial values
  // and xs. If no rule has contributed, there is no gradient.
  constexpr void hand_out() {
    int n = 0;
    for (int k = 0; k < carries_; ++k) n += carry_.get()[k] >= 0;
    for (int i = 0; i < count_; ++i) {
      const running_sum& s = sums_.get()[i];
      const int at = n++;
      if (s.begins >= 0) continue;
      const int total = last_of(at, s.now);
      (around() ? around()->sum_of(s.of, true) : pass.gradient[s.of]) = total;
    }
    multiply_deferred();
    n = 0;
    for (int k = 0; k < carries_; ++k) {
      if (carry_.get()[k] < 0) continue;
      const int at = n++, handed = pass.gradient[carry_.get()[k]];
      if (handed >= 0 && pass.follows(init_.get()[k]))
        pass.accumulate(init_.get()[k], last_of(at, handed));
    }
    for (int i = begin_; i < loop_; ++i)
      if (is_sliced(i)) pass.accumulate(g.nodes[i].in[0], all_of_slices(i));
  }

  owned_array<int> carry_;  // per carry: its node, if gradients continue to it, or none
  owned_array<int> next_, init_, given_;
  owned_array<bool> arrived_;  // per carry: whether a gradient arrives from after the loop
  owned_array<int> begins_;    // per carry of a block's steps: its initial value
  int begun_ = 0;
  owned_array<int> stacks_;  // per member: for a slice, the gradients of a block's steps
  owned_array<running_sum> sums_;
  int count_ = 0;
};

}  // namespace xla::detail
