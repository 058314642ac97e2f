// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "xla/transform/backward.hpp"
#include "xla/transform/loop_recorder.hpp"

namespace xla::detail {

/// -0 in a shape: what is added to it keeps all its bits.
template <class In>
constexpr handle minus_zeros(dtype type, const shape& s, size_table* table) {
  const auto of = [&]<class T>(T zero) -> handle {
    return fill_shape<T, dynamic_rank>(constant(zero), s, table);
  };
  if (type == dtype::bfloat16) return of(later<In, bfloat16>(-0.0f));
  if (type == dtype::float32) return of(later<In, float>(-0.0f));
  return of(later<In, double>(-0.0));
}

inline constexpr char no_gradient_of_while[] =
    "xla::while_loop has no gradient, as nothing says before it runs how many steps there are: use "
    "xla::scan or xla::fori_loop, whose number of steps may be known at run time only";

/// The backward pass of one loop: a loop in the other direction, in which the rules of its body's
/// ops run. Gradients of carries are carries, and those of slices are kept of all steps. Those of
/// what stands outside are added up from step to step, beginning with what has arrived there, as
/// backward() through the steps one by one adds them. What a rule reads is kept of all steps.
class loop_backward {
 public:
  constexpr loop_backward(graph_backward& of, int loop)
      : pass(of),
        g(of.g),
        loop_(loop),
        number_(number_of(of, loop)),
        begin_(g.loops[number_ - 1].begin),
        carries_(g.nodes[loop].attributes<op::loop>().carries),
        around_(of.inside),
        carry_(room(carries_)),
        next_(room(carries_)),
        init_(room(carries_)),
        given_(room(carries_)),
        again_(room(loop - begin_)),
        sums_(room(of.loops[number_].outside)),
        to_(g, *g.rules_of_loops, g.loops[number_ - 1].trip,
            !g.nodes[loop].attributes<op::loop>().reverse, control()) {
    for (int i = begin_; i < loop; ++i) again_.get()[i - begin_] = none;
    find_carries();
  }
  loop_backward(const loop_backward&) = delete;

  constexpr void run() {
    pass.inside = this;
    give_gradients();
    pass.run_list(pass.loops[number_].first);
    close();
    pass.inside = around_;
    hand_out();
  }

  // What loop_rules names.
  static constexpr bool order(graph_backward& of, int at, int* stack, int& top) {
    const node& n = of.g.nodes[at];
    if (given_by_loop(n) != 0) return true;
    if (made_by_loop(n) == 0) return false;
    if (is<op::loop>(n)) order_body(of, at, stack, top);
    else stack[top++] = n.in[0];
    return true;
  }
  static constexpr bool step(graph_backward& of, int at) {
    const node& n = of.g.nodes[at];
    if (given_by_loop(n) == 0 && made_by_loop(n) == 0) return false;
    if (!is<op::loop>(n) || !any_gradient(of, at)) return true;
    if (n.attributes<op::loop>().tested) of.g.sizes.refused.set(no_gradient_of_while);
    else loop_backward(of, at).run();
    return true;
  }
  static constexpr int& sum(graph_backward& of, int at, bool adds) {
    return of.inside->sum_of(at, adds);
  }
  static constexpr void replaced(graph_backward& of, int at) { of.inside->begin_with_zeros(at); }
  static constexpr int read(graph_backward& of, int at) { return of.inside->read(at); }

 private:
  static constexpr int none = graph_backward::none;
  static constexpr std::size_t room(int n) { return static_cast<std::size_t>(n) + 1; }

  /// The sum of one gradient over the steps.
  struct running_sum {
    int of = none;      ///< what stands outside
    int init = none;    ///< what the carry that is the sum begins with
    int now = none;     ///< so far, in a step
    int begins = none;  ///< while nothing has been added: the number that the sum begins with
  };

  static constexpr int number_of(const graph_backward& of, int loop) {
    return of.g.nodes[loop].attributes<op::loop>().number;
  }
  static constexpr bool any_gradient(const graph_backward& of, int loop) {
    bool any = false;
    for (int i = loop + 1; i <= of.root; ++i)
      any |= of.gradient[i] >= 0 && made_by(of.g.nodes[i], loop);
    return any;
  }
  /// Whether a node is what a loop, by its node, has made in the end.
  static constexpr bool made_by(const node& n, int loop) {
    return (is<op::steps>(n) || is<op::last_step>(n)) && n.in[0] == loop;
  }

  // Depth first from what the steps hand on, and then all y. What the body reads from outside comes
  // before the first values and xs.
  static constexpr void order_body(graph_backward& of, int loop, int* stack, int& top) {
    const graph& g = of.g;
    const int number = number_of(of, loop), begin = g.loops[number - 1].begin;
    const int carries = g.nodes[loop].attributes<op::loop>().carries;
    int ys = 0;
    for (int i = loop + 1; i <= of.root; ++i) ys += is<op::steps>(g.nodes[i]);
    const int most = 4 * (loop - begin) + g.lists.count + 2 * carries + ys;
    const owned_array<int> from_memory(room(most)), outside_memory(room(most));
    int *const from = from_memory.get(), *const outside = outside_memory.get();
    int own_top = 0, count = 0;
    for (int i = of.root; i > loop; --i)
      if (is<op::steps>(g.nodes[i]) && g.nodes[i].in[0] == loop && of.follows(g.nodes[i].in[1]))
        from[own_top++] = g.nodes[i].in[1];
    const int* const inputs = g.inputs(g.nodes[loop]);
    for (int k = carries - 1; k >= 0; --k)
      if (of.follows(inputs[k])) from[own_top++] = inputs[k];
    of.loops[number].first = of.find_order(begin, from, own_top, outside, count);
    for (int k = carries; k < 2 * carries; ++k)
      if (of.follows(inputs[k])) outside[count++] = inputs[k];
    for (int i = begin; i < loop; ++i)
      if (is<op::step_slice>(g.nodes[i]) && given_by_loop(g.nodes[i]) == number &&
          of.follows(g.nodes[i].in[0]))
        outside[count++] = g.nodes[i].in[0];
    of.loops[number].outside = count;
    for (int k = count - 1; k >= 0; --k) stack[top++] = outside[k];
  }

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
  /// The same outside of this loop, also where that is a branch.
  constexpr int zeros_outside(int like) const {
    const int inside = g.loop;
    g.loop = g.loops[to_.number() - 1].parent;
    const int zeros = zeros_as(like);
    g.loop = inside;
    return zeros;
  }
  /// A branch runs backward where it has run.
  constexpr loop_control control() const {
    loop_control c = control_of(g, g.nodes[loop_]);
    if (c.decides >= 0) c.decides = read_around(c.decides);
    return c;
  }

  // What the last step gets of what stands behind the loop: of its carries, then of all y.
  constexpr void give_gradients() {
    for (int k = 0; k < carries_; ++k) {
      if (carry_.get()[k] < 0) continue;
      int given = none;
      for (int i = loop_ + 1; i <= pass.root; ++i)
        if (is<op::last_step>(g.nodes[i]) && made_by(g.nodes[i], loop_) && pass.gradient[i] >= 0 &&
            g.nodes[i].attributes<op::of_loop>().number == k)
          given = pass.gradient[i];
      if (given < 0) given = zeros_outside(carry_.get()[k]);
      given_.get()[k] = given;
      const int carry = to_.carry(given, g.recording, false);
      if (pass.follows(next_.get()[k])) pass.accumulate(next_.get()[k], carry);
    }
    for (int i = loop_ + 1; i <= pass.root; ++i)
      if (is<op::steps>(g.nodes[i]) && made_by(g.nodes[i], loop_) && pass.gradient[i] >= 0 &&
          pass.follows(g.nodes[i].in[1]))
        pass.accumulate(g.nodes[i].in[1], to_.slice(pass.gradient[i]));
  }

  constexpr bool has(int at) const { return at >= begin_ && at < loop_; }
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
    s.init = around_ ? around_->sum_of(at, false) : pass.gradient[at];
    if (s.init >= 0) {
      if (const running_sum* const outer = around_ ? around_->find(at) : nullptr)
        s.begins = outer->begins;
    } else {
      s.begins = s.init = zeros_outside(at);
      while (!is<op::constant>(g.nodes[s.begins])) s.begins = g.nodes[s.begins].in[0];
    }
    s.now = to_.carry(s.init, g.recording, false);
    return &s;
  }
  /// A rule has put the first gradient among zeros, as it does where nothing has arrived.
  constexpr void begin_with_zeros(int at) {
    if (running_sum* const s = find(at); s && s->begins >= 0)
      g.nodes[s->begins].set<op::constant>({.value = 0});
  }

  /// What a rule reads: of a step, from what all steps have made.
  constexpr int read(int at) {
    loop_backward* of = this;
    while (of && of->number_ != g.nodes[at].loop) of = of->around_;
    return of ? of->read_own(at) : at;
  }
  constexpr int read_own(int at) {
    int* const known = has(at) ? &again_.get()[at - begin_] : nullptr;
    if (known && *known >= 0) return *known;
    const node n = g.nodes[at];
    int made = none;
    if (is<op::step_number>(n)) made = to_.step();
    else made = to_.slice(read_around(is<op::step_slice>(n) ? n.in[0] : steps_of(g, loop_, at)));
    if (known) *known = made;
    return made;
  }
  constexpr int read_around(int at) const { return around_ ? around_->read(at) : at; }

  constexpr void close() {
    const owned_array<int> next(room(carries_ + count_)), init(room(carries_ + count_));
    int n = 0;
    for (int k = 0; k < carries_; ++k) {
      if (carry_.get()[k] < 0) continue;
      const int handed = pass.gradient[carry_.get()[k]];
      next.get()[n] = handed < 0 ? zeros_as(carry_.get()[k]) : handed;
      init.get()[n++] = given_.get()[k];
    }
    for (int i = 0; i < count_; ++i) {
      next.get()[n] = sums_.get()[i].now;
      init.get()[n++] = sums_.get()[i].init;
    }
    to_.close(next.get(), init.get());
  }
  // Sums have begun with what had arrived outside; then what the first values and xs get. Where
  // no rule has given anything, there is no gradient.
  constexpr void hand_out() {
    int n = 0;
    for (int k = 0; k < carries_; ++k) n += carry_.get()[k] >= 0;
    for (int i = 0; i < count_; ++i) {
      const running_sum& s = sums_.get()[i];
      const int at = n++;
      if (s.begins >= 0) continue;
      const int total = to_.last(at, s.now);
      (around_ ? around_->sum_of(s.of, true) : pass.gradient[s.of]) = total;
    }
    n = 0;
    for (int k = 0; k < carries_; ++k) {
      if (carry_.get()[k] < 0) continue;
      const int at = n++, handed = pass.gradient[carry_.get()[k]];
      if (handed >= 0 && pass.follows(init_.get()[k]))
        pass.accumulate(init_.get()[k], to_.last(at, handed));
    }
    for (int i = begin_; i < loop_; ++i)
      if (is<op::step_slice>(g.nodes[i]) && given_by_loop(g.nodes[i]) == number_ &&
          pass.gradient[i] >= 0 && pass.follows(g.nodes[i].in[0]))
        pass.accumulate(g.nodes[i].in[0], to_.steps(pass.gradient[i]));
  }

  graph_backward& pass;
  graph& g;
  int loop_, number_, begin_, carries_;  // its node; its members are those from begin on to it
  loop_backward* around_;
  owned_array<int> carry_;  // per carry: its node, where gradients go on to it, or none
  owned_array<int> next_, init_, given_;
  owned_array<int> again_;  // per member: what stands for it in the steps of this loop, or none
  owned_array<running_sum> sums_;
  int count_ = 0;
  loop_recorder to_;
};

}  // namespace xla::detail
