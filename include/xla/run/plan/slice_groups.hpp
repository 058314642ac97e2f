// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups steps that run better slice by slice, so that values between them stay in the cache, as in
// attention written with matmul. specialize.hpp calls it; planned.hpp runs the groups.

#include <algorithm>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/op/reduce.hpp"
#include "xla/run/plan/plan.hpp"

namespace xla::detail {

/// The shape that a step iterates over: the space of a region, the input of a reduction, or the
/// result of other ops.
template <class In = void>
inline shape space_of(const dependent<In, plan>& p, const step& s) {
  if (s.space >= 0) return value_at(p.symbols, p.source.spaces[s.space]);
  const node& n = p.source.values[s.value];
  return p.shapes[n.op->kind == op_kind::reduce ? n.in[0] : s.value];
}

/// How many leading axes of its space give `slices` slices that the step can compute separately; 0
/// if it cannot.
template <class In = void>
inline int slice_axes(const dependent<In, plan>& p, const step& s, const shape& space,
                      std::int64_t slices) {
  int most = space.rank - (s.kind == step_kind::row ? 1 : 0);
  if (s.kind == step_kind::library) {
    const node& n = p.source.values[s.value];
    if (n.op->check || n.op->impure || n.op->exchanges || n.arity > few_inputs) return 0;
    if (n.op->kind == op_kind::reduce) {
      const axis_set axes = n.attributes<op::reduction>().axes;
      most = 0;
      while (most < space.rank && !axes.has(most)) ++most;
    } else {
      most = n.op->takes_axes > 0 ? space.rank - n.op->takes_axes : 0;
    }
  }
  std::int64_t made = 1;
  for (int i = 0; i < most; ++i)
    if ((made *= space[i]) >= slices) return made == slices ? i + 1 : 0;
  return 0;
}

/// Whether slice i of the space, by its first `axes` axes, corresponds to slice i of an operand,
/// which is contiguous in memory.
inline bool slices_as_space(const shape& operand, const shape& space, int axes,
                            std::int64_t slices) {
  std::int64_t made = 1;
  for (int i = 0; i < axes - (space.rank - operand.rank); ++i) made *= operand[i];
  return made == slices;
}

/// See step_group::cut.
template <class In = void>
[[XLA_PLANS]] inline void cut_slice(dependent<In, plan>& p, ready_step& r, shape& space) {
  const std::int64_t slices = p.groups[r.group].slices;
  const int axes = slice_axes<In>(p, *r.source, space, slices);
  r.first_slice = p.slice_shapes.size();
  r.sliced = p.sliced.size();
  shape sliced, rest;
  for (int i = 0; i < space.rank; ++i) (i < axes ? sliced : rest).push(space[i]);
  p.sliced.push_back(sliced);
  for (int k = 0; k < r.operands; ++k) {
    const int v = p.operands[r.first_operand + k];
    const placement& q = p.placements[p.base[v]];
    const shape& s = p.shape_of(r, k);
    std::int64_t strides[max_rank];
    kernel::broadcast_strides(s, space, strides);
    slice_placement placed;
    if (q.where == storage::slice) placed.offset = q.offset;
    for (int i = 0; i < axes; ++i)
      placed.strides[i] = strides[i] * size_of(p.source.values[v].type);
    p.slice_placements.push_back(placed);
    shape slice;
    for (int i = std::max(0, axes - (space.rank - s.rank)); i < s.rank; ++i) slice.push(s[i]);
    p.slice_shapes.push_back(slice);
  }
  space = rest;
  if (r.op && r.op->kind == op_kind::reduce) {
    auto over = unpack<op::reduction::attributes>(r.attr);
    over.axes = over.axes.without_first(axes);
    r.attr = pack(over);
  }
}

/// Finds steps that run better together, slice by slice of their leading axes: batched products and
/// ops on their results, if the values in between are as large as the inputs. So attention's scores
/// stay in the cache, and each thread needs memory for one slice. The steps of a group become
/// neighbours; bits do not change.
template <class In>
class basic_slice_finder {
 public:
  /// once: per step of the program, whether it runs only once per plan instead of in each call.
  basic_slice_finder(dependent<In, plan>& out, const list<char>& once)
      : out_(out), p_(out.source), once_(once) {}

  [[XLA_PLANS]] void run() {
    const int steps = p_.count.steps;
    bool seeds = false;
    for (int i = 0; i < steps; ++i)
      if (slices_of(i) > 1) seeds = true;
    if (!seeds) return;
    count_reads();
    role_.assign(steps, role::none);
    mark_.assign(p_.count.values, role::none);
    list<char> tried(steps, false);
    for (int i = 0; i < steps; ++i) {
      const int s = out_.order[i];
      if (tried[s] || out_.group_of[i] >= 0) continue;
      tried[s] = true;
      slices_ = slices_of(s);
      if (slices_ < 2) continue;
      if (try_from(i)) i = resume_;
      forget();
    }
  }

 private:
  /// Steps further away are not considered.
  static constexpr int window = 48;
  static constexpr int max_steps = 32;
  static constexpr int max_seeds = 4;
  /// The largest slice of one value, where there is a choice.
  static constexpr std::int64_t max_bytes = 1 << 16;
  /// The smallest size of the values between the steps in one slice; smaller ones stay in the cache
  /// anyway.
  static constexpr std::int64_t least_bytes = 4096;
  enum class role : std::uint8_t { none, member, after };

  int base(int v) const { return out_.base[v]; }
  const step& step_at(int i) const { return out_.step_at(i); }
  int input(const step& s, int k) const { return p_.inputs[s.first_input + k]; }
  int output(const step& s, int k) const { return p_.outputs[s.first_output + k]; }

  /// The number of slices for a group around a step with many products; 0 for other steps. Slices
  /// are small enough for the cache, and no smaller unless there would be too few for the threads.
  [[XLA_PLANS]] std::int64_t slices_of(int number) const {
    const step& s = p_.steps[number];
    if (s.kind != step_kind::library || once_[number]) return 0;
    const op_info& op = *p_.values[s.value].op;
    if (!op.loops || op.takes_axes == 0) return 0;
    const shape& result = out_.shapes[s.value];
    const std::int64_t bytes = out_.placements[s.value].bytes;
    std::int64_t slices = 1;
    for (int i = 0; i + op.takes_axes < result.rank; ++i) {
      slices *= result[i];
      if (slices >= 8 * num_threads() && bytes / slices <= max_bytes) return slices;
    }
    return slices > 1 && busy(slices) ? slices : 0;
  }
  /// Whether the last slices keep most threads busy.
  static bool busy(std::int64_t slices) {
    const std::int64_t threads = num_threads();
    const std::int64_t rounds = (slices + threads - 1) / threads;
    return 4 * slices >= 3 * rounds * threads;
  }
  [[XLA_PLANS]] void count_reads() {
    reads_.assign(p_.count.values, 0);
    for (int i = 0; i < p_.count.steps; ++i)
      for (int k = 0; k < p_.steps[i].inputs; ++k) ++reads_[base(input(p_.steps[i], k))];
    for (int v : out_.copies)
      if (v >= 0) reads_[base(v)] = p_.count.inputs + 1;  // not by the number of steps alone
  }
  void forget() {
    for (int i : touched_) {
      role_[i] = role::none;
      for (int k = 0; k < p_.steps[i].outputs; ++k) mark_[output(p_.steps[i], k)] = role::none;
    }
    touched_.clear();
  }
  void give(int position, role r) {
    const int number = out_.order[position];
    if (role_[number] == role::none) touched_.push_back(number);
    role_[number] = r;
    const step& s = p_.steps[number];
    for (int k = 0; k < s.outputs; ++k) mark_[output(s, k)] = r;
  }
  role role_at(int position) const { return role_[out_.order[position]]; }

  [[XLA_PLANS]] bool try_from(int seed) {
    seeds_.assign(1, seed);
    refused_.clear();
    int first = 0, last = 0, members = 0;
    grow(first, last, members);
    while (seeds_.size() + refused_.size() < max_seeds) {
      const int other = another_seed(first, last);
      if (other < 0) break;
      seeds_.push_back(other);
      grow(first, last, members);
      if (read_by_members(step_at(other).value, first, last)) continue;
      seeds_.pop_back();
      refused_.push_back(other);
      grow(first, last, members);
    }
    first = draw_in(first, last, members);
    leave_out(first, last, members);
    if (members < 2 || !worthwhile(first, last)) return false;
    form(first, last);
    resume_ = first - 1;
    return true;
  }

  /// Another step with many products that a member of the group reads.
  [[XLA_PLANS]] int another_seed(int first, int last) const {
    for (int i = first; i <= last; ++i) {
      if (role_at(i) != role::member) continue;
      for (int j = i - 1; j >= 0 && j >= i - window; --j) {
        const step& maker = step_at(j);
        if (role_at(j) != role::none || out_.group_of[j] >= 0 || is_in(refused_, j)) continue;
        if (maker.kind != step_kind::library || p_.values[maker.value].op->takes_axes == 0)
          continue;
        if (reads_of(step_at(i), maker) && fits(j)) return j;
      }
    }
    return -1;
  }
  static bool is_in(const list<int>& some, int i) {
    return std::find(some.begin(), some.end(), i) != some.end();
  }

  /// The members of a group are steps with many products (seeds), and steps that read the results
  /// of members.
  [[XLA_PLANS]] void grow(int& first, int& last, int& members) {
    forget();
    const int steps = p_.count.steps;
    first = last = *std::min_element(seeds_.begin(), seeds_.end());
    give(first, role::member);
    members = 1;
    for (int i = first + 1; i < steps && i <= last + window && members < max_steps;) {
      const int end = out_.end_of(i);
      bool reads = false, late = false, check = false;
      for (int j = i; j <= end; ++j) {
        const step& s = step_at(j);
        check |= s.check || s.exchanges;
        for (int k = 0; k < s.inputs; ++k) {
          const role r = mark_[base(input(s, k))];
          reads |= r == role::member;
          late |= r == role::after;
        }
      }
      const bool joins = (reads || is_in(seeds_, i)) && !late && out_.group_of[i] < 0 && fits(i);
      // Checks keep their order, and so do exchanges; steps that others read come before them.
      if (!joins && (reads || late) && check) break;
      for (int j = i; j <= end && (joins || reads || late); ++j)
        give(j, joins ? role::member : role::after);
      if (joins) {
        last = i;
        ++members;
      }
      i = end + 1;
    }
  }

  /// Whether a step can run slice by slice and reads from members only the slice that it computes.
  [[XLA_PLANS]] bool fits(int position) const {
    const step& s = step_at(position);
    if (s.check || s.exchanges || once_[out_.order[position]]) return false;
    const shape space = space_of<In>(out_, s);
    const int axes = slice_axes<In>(out_, s, space, slices_);
    if (axes == 0) return false;
    for (int k = 0; k < s.outputs; ++k)
      if (!slices_as_space(out_.shapes[output(s, k)], space, axes, slices_)) return false;
    for (int k = 0; k < s.inputs; ++k)
      if (mark_[base(input(s, k))] == role::member &&
          !slices_as_space(out_.shapes[input(s, k)], space, axes, slices_))
        return false;
    return true;
  }
  /// Whether value v has readers, all of which are members that read it by slices.
  [[XLA_PLANS]] bool read_by_members(int v, int first, int last) const {
    if (out_.placements[v].where != storage::arena || reads_[v] == 0) return false;
    int found = 0;
    for (int i = first; i <= last; ++i) {
      if (role_at(i) != role::member) continue;
      const step& s = step_at(i);
      for (int k = 0; k < s.inputs; ++k) {
        if (base(input(s, k)) != v) continue;
        const shape space = space_of<In>(out_, s);
        if (!slices_as_space(out_.shapes[input(s, k)], space,
                             slice_axes<In>(out_, s, space, slices_), slices_))
          return false;
        ++found;
      }
    }
    return found == reads_[v];
  }

  // Adds steps whose results only members read.
  [[XLA_PLANS]] int draw_in(int first, int last, int& members) {
    for (int i = last - 1; i >= 0 && i >= first - window && members < max_steps; --i) {
      if (role_at(i) != role::none || out_.group_of[i] >= 0 || !fits(i)) continue;
      const step& s = step_at(i);
      bool all = true;
      for (int k = 0; all && k < s.outputs; ++k) all = read_by_members(output(s, k), i, last);
      if (!all) continue;
      give(i, role::member);
      first = std::min(first, i);
      ++members;
    }
    return first;
  }

  // A member that reads no value from inside the group is better run at its original position: its
  // result may not be needed for a long time.
  [[XLA_PLANS]] void leave_out(int& first, int& last, int& members) {
    for (int i = last; i >= first; --i) {
      if (role_at(i) != role::member) continue;
      const step& s = step_at(i);
      bool stays = false;
      for (int k = 0; k < s.inputs; ++k)
        if (const int v = base(input(s, k)); mark_[v] == role::member)
          stays = stays || read_by_members(v, first, last);
      for (int j = i + 1; j <= last && !stays; ++j)
        if (role_at(j) == role::member) stays = reads_of(step_at(j), s);
      if (stays) continue;
      give(i, role::after);
      --members;
    }
    while (first < last && role_at(first) != role::member) ++first;
    while (first < last && role_at(last) != role::member) --last;
  }
  bool reads_of(const step& reader, const step& maker) const {
    for (int k = 0; k < reader.inputs; ++k)
      for (int j = 0; j < maker.outputs; ++j)
        if (base(input(reader, k)) == output(maker, j)) return true;
    return false;
  }

  // A group pays only if the values between its steps are as large as their inputs.
  [[XLA_PLANS]] bool worthwhile(int first, int last) {
    inside_.clear();
    std::int64_t inside = 0, largest = 0;
    for (int i = first; i <= last; ++i) {
      if (role_at(i) != role::member) continue;
      const step& s = step_at(i);
      for (int k = 0; k < s.outputs; ++k) {
        const int v = output(s, k);
        if (!read_by_members(v, i, last)) continue;
        inside += out_.placements[v].bytes;
        inside_.push_back(v);
      }
      for (int k = 0; k < s.inputs; ++k)
        if (const int v = base(input(s, k)); mark_[v] != role::member)
          largest = std::max(largest, out_.placements[v].bytes);
    }
    return inside >= largest && inside / slices_ >= least_bytes;
  }

  // Moves the members together: steps that they may depend on come before them, steps that depend
  // on them after.
  [[XLA_PLANS]] void form(int first, int last) {
    list<int> numbers, groups;
    step_group g;
    for (const role part : {role::none, role::member, role::after}) {
      if (part == role::member) g.first = first + numbers.size();
      for (int i = first; i <= last; ++i) {
        if (role_at(i) != part) continue;
        numbers.push_back(out_.order[i]);
        groups.push_back(part == role::member ? out_.groups.size() : out_.group_of[i]);
      }
      if (part == role::member) g.last = first + numbers.size() - 1;
    }
    g.slices = slices_;
    g.cut = &cut_slice<In>;
    g.threads = static_cast<int>(std::min<std::int64_t>(num_threads(), slices_));
    for (int v : inside_) {
      out_.placements[v].where = storage::slice;
      out_.placements[v].index = out_.groups.size();
    }
    out_.groups.push_back(g);
    for (int i = 0; i < numbers.size(); ++i) {
      const int position = first + i;
      out_.order[position] = numbers[i];
      out_.group_of[position] = groups[i];
      if (groups[i] < 0) continue;
      step_group& moved = out_.groups[groups[i]];
      if (i == 0 || groups[i - 1] != groups[i]) {
        moved.last += position - moved.first;
        moved.first = position;
      }
    }
  }

  dependent<In, plan>& out_;
  const program& p_;
  const list<char>& once_;
  std::int64_t slices_ = 0;
  int resume_ = 0;   // the last step that was not moved
  list<int> reads_;  // per value: the number of operands that read it
  list<role> role_;  // per step of the program
  list<role> mark_;  // per value: the role of the step that makes it
  list<int> touched_, inside_;
  list<int> seeds_, refused_;  // positions in the new order
};
using slice_finder = basic_slice_finder<void>;

}  // namespace xla::detail
