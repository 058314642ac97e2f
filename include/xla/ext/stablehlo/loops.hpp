// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops and branches of a program as StableHLO's while and if. program.hpp calls it for programs
// that have loops.

#include <utility>

#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/backend/loop_draws.hpp"

namespace xla::detail::hlo {

/// Whether an op belongs to loops; such ops are not in the list of ops.
inline bool is_of_loops(const op_info& op) {
  for (std::uint32_t id :
       {id_of<op::loop>, id_of<op::carry>, id_of<op::step_slice>, id_of<op::step_before>,
        id_of<op::step_number>, id_of<op::last_step>, id_of<op::steps>})
    if (op.id == id) return true;
  return false;
}

/// Writes one loop of a program as `while`, a branch as `if`. The loop's state is the number of
/// steps done, the carries, and each stack of saved values. All other values that the body reads
/// are captured from outside.
class while_writer {
 public:
  /// loop: the loop's node. made: the StableHLO value of each node; the results are added to it.
  /// draws: the state of each random op.
  while_writer(writer& w, const sized_program& p, int loop, const list<char>& wanted,
               list<list<value>>& made, list<value>& draws)
      : w_(w), p_(p), loop_(loop), wanted_(wanted), made_(made), draws_(draws) {
    const lowering_call call(p, loop, {}, nullptr);
    about_ = call.attributes<op::loop>();
    trip_ = about_.trip;
    for (int v = loop + 1; v < p.source.count.values; ++v)
      if (wanted_[v] && is<op::steps>(node_at(v)) && node_at(v).in[0] == loop)
        collected_.push_back(v);
  }

  /// write_node(v) writes a node of the body.
  template <class WriteNode>
  void write(WriteNode&& write_node) {
    list<value> state = first_state();
    list<tensor_type> types;
    for (const value& v : state) types.push_back(v.type);
    if (is_branch()) {
      state =
          w_.ops("if", list_of({input(2 * about_.carries)}), types, {}, either(state, write_node));
    } else if (trip_ > 0) {
      std::string regions =
          w_.region(types, [&](const list<value>& now) { return list_of({goes_on(now)}); });
      regions += ", ";
      regions += w_.region(types, [&](const list<value>& now) { return step(now, write_node); });
      state = w_.ops("while", state, types, {}, regions);
    }
    give_results(state);
  }

 private:
  const node& node_at(int v) const { return p_.source.values[v]; }
  const value& input(int k) const { return made_[p_.source.inputs_of(loop_)[k]][0]; }
  value trip() {
    return about_.counted ? input(2 * about_.carries) : w_.constant(trip_, element::i64);
  }
  value minus_one(const value& v) { return w_.map("subtract", v, w_.constant(1, element::i64)); }
  int number_of(int v) const { return node_at(v).attributes<op::of_loop>().number; }

  list<value> first_state() {
    list<value> state = list_of({w_.constant(0, element::i64)});
    for (int k = 0; k < about_.carries; ++k) state.push_back(input(about_.carries + k));
    for (int v : collected_)
      state.push_back(w_.constant(0, element_of(node_at(v).type), p_.shapes[v]));
    return state;
  }

  bool is_branch() const { return about_.when || about_.unless; }
  /// The two regions of a branch: one runs its step, the other returns the values as they are.
  template <class WriteNode>
  std::string either(const list<value>& state, WriteNode& write_node) {
    const std::string runs =
        w_.region({}, [&](const list<value>&) { return step(state, write_node); });
    const std::string stays = w_.region({}, [&](const list<value>&) { return state; });
    return about_.when ? runs + ", " + stays : stays + ", " + runs;
  }
  value goes_on(const list<value>& now) {
    if (about_.tested && !about_.bounded) return now[1];
    const value before_end = w_.compare("LT", now[0], trip());
    return about_.tested ? w_.map("and", now[1], before_end) : before_end;
  }

  template <class WriteNode>
  list<value> step(const list<value>& now, WriteNode& write_node) {
    const value number = about_.reverse ? w_.map("subtract", minus_one(trip()), now[0]) : now[0];
    for (int v = 0; v < loop_; ++v)
      if (wanted_[v] && given_by_loop(node_at(v)) == about_.number)
        made_[v] = list_of({given(v, now, number)});
    list<value> before = draws_;
    draw_on(now[0]);
    const writer::insertion_point here = w_.here();
    for (int v = 0; v < loop_; ++v)
      if (wanted_[v] && node_at(v).loop == about_.number) write_node(v);
    w_.back_to(here);
    draws_.swap(before);
    list<value> next = list_of({w_.map("add", now[0], w_.constant(1, element::i64))});
    for (int k = 0; k < about_.carries; ++k) next.push_back(input(k));
    for (int k = 0; k < collected_.size(); ++k) {
      const value& made = made_[node_at(collected_[k]).in[1]][0];
      next.push_back(with_step(now[1 + about_.carries + k], row_of(collected_[k], number), made));
    }
    return next;
  }
  /// Advances the random states by what a step draws, times the steps done.
  void draw_on(const value& steps_done) {
    const list<int> draws = draws_of_steps<void>(p_, about_.number);
    if (draws.empty()) return;
    const shape both{1, {2}};
    const std::int64_t own = end_of_step<void>(p_, about_.number) - p_.counters[draws[0]];
    const value used = w_.map("multiply", steps_done, w_.constant(own, element::i64));
    const value of_offset =
        w_.map("multiply", w_.broadcast(used, both, {}), w_.iota(element::i64, both, 0));
    for (int k : draws) draws_[k] = w_.map("add", draws_[k], of_offset);
  }
  value given(int v, const list<value>& now, const value& number) {
    if (is<op::carry>(node_at(v))) return now[1 + number_of(v)];
    if (is<op::step_number>(node_at(v))) return number;
    if (is<op::step_before>(node_at(v))) return before(v, number);
    if (node_at(v).arity == 1) return row(v, number);
    return row(v, w_.map("add", made_[node_at(v).in[1]][0], number));
  }
  /// The carry of the step before, or its initial value in the first step.
  value before(int v, const value& number) {
    const bool reversed = number_of(v) != 0;
    const value one = w_.constant(1, element::i64);
    const value first = reversed ? minus_one(trip()) : w_.constant(0, element::i64);
    const value row_before = row(v, w_.map(reversed ? "add" : "subtract", number, one));
    const value is_first = w_.to(w_.compare("EQ", number, first), p_.shapes[v]);
    return w_.select(is_first, made_[node_at(v).in[1]][0], row_before);
  }
  value row(int v, const value& number) {
    const value& all = made_[node_at(v).in[0]][0];
    tensor_type one = all.type;
    one.dims[0] = 1;
    const value part = w_.op("dynamic_slice", at_step(list_of({all}), number), one,
                             numbers("slice_sizes", one.dims));
    return w_.reshape(part, p_.shapes[v]);
  }
  /// The row of the stack that a step writes; with `every`, the last step of each group writes it.
  value row_of(int v, const value& number) {
    const extent every = value_at(p_.symbols, node_at(v).attributes<op::steps>().every);
    return every <= 1 ? number : w_.map("divide", number, w_.constant(every, element::i64));
  }
  /// The stack with the row of one step replaced.
  value with_step(const value& all, const value& number, const value& made) {
    shape one = all.type.dims;
    one[0] = 1;
    const value row = w_.reshape(made, one);
    if (is_branch()) return row;
    return w_.op("dynamic_update_slice", at_step(list_of({all, row}), number), all.type);
  }
  list<value> at_step(list<value> in, const value& number) {
    const int rank = in[0].type.dims.rank;
    in.push_back(number);
    for (int i = 1; i < rank; ++i) in.push_back(w_.constant(0, element::i64));
    return in;
  }

  void give_results(const list<value>& state) {
    made_[loop_] = list_of({state[0]});
    for (int k = 0; k < collected_.size(); ++k)
      made_[collected_[k]] = list_of({state[1 + about_.carries + k]});
    for (int v = loop_ + 1; v < p_.source.count.values; ++v)
      if (wanted_[v] && is<op::last_step>(node_at(v)) && node_at(v).in[0] == loop_)
        made_[v] = list_of({state[1 + number_of(v)]});
  }

  writer& w_;
  const sized_program& p_;
  int loop_;
  const list<char>& wanted_;
  list<list<value>>& made_;
  list<value>& draws_;
  op::loop::attributes about_;
  extent trip_ = 0;
  list<int> collected_;  // op::steps of the loop
};

}  // namespace xla::detail::hlo
