// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a plan of a program at its sizes: storage, loops, groups. It runs once per signature, in
// well under a millisecond, when a call brings sizes that are new.

#include <algorithm>
#include <stdexcept>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/plan/known_regions.hpp"
#include "xla/run/plan/memory_plan.hpp"
#include "xla/run/plan/plan.hpp"
#include "xla/run/plan/side_by_side.hpp"
#include "xla/run/plan/slice_groups.hpp"
#include "xla/run/plan/verify.hpp"
#include "xla/run/state/selected_passes.hpp"

namespace xla::detail {

template <class In>
[[noreturn, gnu::cold]] void throw_illegal(const pass_label& p, const text& why) {
  text sentence("xla: the pass ");
  sentence << p.name << " made an illegal plan: " << why;
  throw dependent<In, std::logic_error>(std::string(sentence.view()));
}

/// Makes a plan of a program at its sizes.
template <class In>
class basic_specializer {
 public:
  [[XLA_PLANS]] basic_specializer(dependent<In, plan>& of, const region_kernel* kernels)
      : kernels_(kernels),
        out_(of),
        wanted_(p_.passes & Passes{passes_left_out<In>().load(std::memory_order_relaxed)}) {}

  void run() {
    find_bases();
    place_values();
    find_once();
    for (int i = 0; i < p_.count.steps; ++i) out_.order.push_back(i);  // as the program has them
    out_.group_of.assign(p_.count.steps, -1);
    bring(&plan_hooks::identify);
    arrange(pass_named("buckets"), &plan_hooks::buckets);
    arrange(pass_named("updates"), &plan_hooks::join);
    arrange<dependent<In, slice_finder>>(pass_named("slices"));
    arrange(pass_named("epilogues"), &plan_hooks::epilogues);
    arrange<dependent<In, side_finder>>(pass_named("side_by_side"));
    bring(&plan_hooks::loops);
    find_in_place();
    dependent<In, memory_planner>(out_, made_, fixed_).run();
    out_.steps.reserve(p_.count.steps);
    out_.operands.reserve(p_.count.inputs + p_.count.outputs);
    for (int i = 0; i < p_.count.steps; ++i) add_step(i);
    for (int v = 0; v < values(); ++v) {
      if (is<op::scalar>(p_.values[v])) out_.scalars.push_back(v);
      const storage where = out_.placements[base(v)].where;
      if (base(v) != v && where != storage::arena && where != storage::slice)
        out_.moving.push_back(v);
    }
  }

 private:
  int values() const { return p_.count.values; }
  int base(int v) const { return out_.base[v]; }

  /// A pass over the steps with their sizes, unless it is disabled.
  template <class Finder>
  void arrange(const pass_label& p) {
    arrange(p, [&] { Finder(out_, once_).run(); });
  }
  void arrange(const pass_label& p, auto&& find) {
    if ((wanted_.left_out & bit_of(p)) != 0) return;
    find();
    if (!verifies(wanted_)) return;
    if (const text why = verify<In>(out_); !why.empty()) throw_illegal<In>(p, why);
  }

  void arrange(const pass_label& p, void (*plan_hooks::*found)(plan_steps&)) {
    arrange(p, [&] { bring(found); });
  }
  /// The contributions of ops with a kernel of their own.
  [[XLA_PLANS, gnu::noinline]] void bring(void (*plan_hooks::*found)(plan_steps&)) {
    plan_steps steps{out_, once_, kernels_};
    for (int i = 0; i < p_.count.steps; ++i)
      if (const step& s = p_.steps[i]; s.kind == step_kind::library)
        if (const plan_hooks* const hooks = p_.values[s.value].op->plan)
          if (const auto find = hooks->*found) return find(steps);
  }

  [[XLA_PLANS]] void find_bases() {
    for (int v = 0; v < values(); ++v) {
      const node& n = p_.values[v];
      out_.base.push_back(n.op->kind == op_kind::alias ? base(p_.inputs_of(v)[0]) : v);
      placement& q = out_.placements.emplace_back();
      q.bytes = n.op->kind == op_kind::leaf && !is<op::input>(n) ? 8 : out_.bytes(v);
      if (is<op::input>(n)) {
        const auto of = n.attributes<op::input>();
        q.where = of.gradient ? storage::grad : storage::slot;
        q.index = of.slot;
      }
    }
  }

  // A result or write takes the value's memory for itself, unless another one has it.
  [[XLA_PLANS]] void place_values() {
    claimed_.assign(values(), false);
    made_.assign(values(), -1);
    for (int i = 0; i < p_.count.steps; ++i)
      for (int k = 0; k < p_.steps[i].outputs; ++k)
        made_[p_.outputs[p_.steps[i].first_output + k]] = i;
    for (int i = 0; i < p_.count.writes; ++i) claim(p_.writes[i].value, storage::write, i);
    for (int i = 0; i < p_.count.results; ++i) claim(p_.results[i], storage::result, i);
  }
  void claim(int value, storage where, int index) {
    const int b = base(value);
    const bool free = made_[b] >= 0 && !claimed_[b];
    if (free) {
      out_.placements[b].where = where;
      out_.placements[b].index = index;
      claimed_[b] = true;
    }
    out_.copies.push_back(free ? -1 : value);
  }

  // A write may overwrite the old value if all of its readers come first (or are the writing region
  // itself, which reads and writes the same element), and so do all checks. Among steps that run
  // side by side none reads a value that another one replaces.
  [[XLA_PLANS]] void find_in_place() {
    list<int> last_read(values(), -1);
    list<char> kept(values(), false);  // copied when the steps are done
    for (int v : out_.copies)
      if (v >= 0) kept[base(v)] = true;
    int last_check = -1;
    for (int i = 0; i < p_.count.steps; ++i) {
      const step& s = out_.step_at(i);
      if (s.check && !out_.in_rows)
        last_check = i;  // a loop's steps write it, and nothing else sees it
      for (int k = 0; k < s.outputs; ++k)
        if (!goes_on(p_, s, k)) made_[p_.outputs[s.first_output + k]] = i;
      for (int k = 0; k < s.inputs; ++k)
        last_read[base(p_.inputs[s.first_input + k])] = out_.waits_for_none(i) ? i : out_.end_of(i);
    }
    for (int i = 0; i < p_.count.writes; ++i) {
      const write& w = p_.writes[i];
      const int old = p_.replaced_by(w);
      const int writer = made_[base(w.value)];
      const int begin = writer < 0 ? writer : out_.begin_of(writer);
      bool ok = out_.copies[i] < 0 && begin > last_check;
      if (ok && old >= 0) {
        ok = out_.shapes[old] == out_.shapes[w.value];
        const int reader = last_read[old];
        const bool same_step = reader == writer && out_.waits_for_none(writer) &&
                               may_overwrite<In>(out_, writer, base(w.value), old);
        ok = ok && (reader < begin || same_step) && !kept[old];
      }
      out_.in_place[i] = ok;
    }
  }

  // Steps that depend on nothing but sizes and constants run once, when a frame is made.
  [[XLA_PLANS]] void find_once() {
    fixed_.assign(values(), false);
    for (int v = 0; v < values(); ++v) {
      const op_info* op = p_.values[v].op;
      fixed_[v] = is<op::constant>(*op) || is<op::size>(*op);
    }
    once_.assign(p_.count.steps, false);
    for (int i = 0; i < p_.count.steps; ++i) {
      const step& s = p_.steps[i];
      const op_info* const op = s.value < 0 ? nullptr : p_.values[s.value].op;
      bool fixed =
          !op || !(op->impure || op->alone_is_input);  // the seed: it differs on each replica
      if (fixed && op && op->loops_steps) fixed = !runs_anyway(p_.values[s.value]);
      for (int k = 0; k < s.inputs; ++k) fixed &= fixed_[base(p_.inputs[s.first_input + k])];
      for (int k = 0; k < s.outputs; ++k) {
        const int v = p_.outputs[s.first_output + k];
        fixed &= out_.placements[v].where == storage::arena;
      }
      once_[i] = fixed;
      for (int k = 0; fixed && k < s.outputs; ++k) fixed_[p_.outputs[s.first_output + k]] = true;
    }
  }

  [[XLA_PLANS]] void add_step(int i) {
    const step& s = out_.step_at(i);
    ready_step r;
    r.kind = s.kind;
    r.group = out_.group_of[i];
    r.source = &s;
    r.ops = s.ops;
    r.first_operand = out_.operands.size();
    r.first_shape = out_.operand_shapes.size();
    r.inputs = s.inputs;
    r.operands = s.inputs + s.outputs;
    [[maybe_unused]] known_region known;
    if constexpr (has_known_regions)
      if (!kernels_ && s.words > 0) known = find_known_region(p_, s);
    const bool moved = has_known_regions && (known.kernel.map || known.kernel.row);
    for (int k = 0; k < s.inputs; ++k)
      out_.operands.push_back(p_.inputs[s.first_input + (moved ? known.input[k] : k)]);
    for (int k = 0; k < s.outputs; ++k) out_.operands.push_back(p_.outputs[s.first_output + k]);
    const bool exchange = s.kind > step_kind::row;
    if (s.kind == step_kind::library || exchange) {
      const node& n = p_.values[s.value];
      r.op = n.op;
      r.attr = attributes_at<In>(out_, n);
      r.at = n.at;
      if (exchange) r.exchange = s.kernel;
      r.random = out_.random[s.value];
      if (r.op->loops_steps) {
        r.loop = out_.loop_of(s);
        r.exchange = 0;
      }
      if (r.op->prepares >= 0)
        r.cache_owner = cache_owner_of(p_.inputs[s.first_input + r.op->prepares]);
    } else {
      if (kernels_) r.kernel = kernels_[s.kernel];
      else if constexpr (has_known_regions) r.kernel = known.kernel;
    }
    shape space = space_of(out_, s);
    if (out_.in_slices(i)) out_.groups[r.group].cut(out_, r, space);
    if (s.space >= 0) r.loops = loops_of(r, space);
    else if (r.exchange < 0)
      for (int k = 0; k < r.operands; ++k) out_.operand_shapes.push_back(out_.shape_of(r, k));
    if (once_[out_.order[i]]) out_.once.push_back(i);
    out_.steps.push_back(r);
  }
  // A program that writes a parameter or its gradient trains, and its kernels cache no packed
  // weights.
  int cache_owner_of(int value) {
    const placement& q = out_.placements[base(value)];
    if (q.where != storage::slot) return -1;
    for (int i = 0; i < p_.count.writes; ++i)
      if (p_.writes[i].slot == q.index) return -1;
    out_.cache_owners.push_back(q.index);
    return values() + out_.cache_owners.size() - 1;
  }
  /// The number of a region's nest: that of one of the latest maps, if it is the same. An optimizer
  /// has the same map for many parameters.
  [[XLA_PLANS]] int loops_of(const ready_step& r, const shape& space) {
    constexpr int latest = 16;
    const int i = out_.steps.size();
    const bool by_rows = r.kind == step_kind::row || out_.on_parts(i);
    for (int j = std::max(0, i - latest); !by_rows && j < i; ++j)
      if (same_loops(r, j)) return out_.steps[j].loops;
    shape shapes[kernel::max_operands];
    std::int64_t bytes[kernel::max_operands];
    for (int k = 0; k < r.operands; ++k) {
      shapes[k] = r.sliced < 0 ? out_.shape_of(r, k) : out_.slice_shapes[r.first_slice + k];
      bytes[k] = size_of(value(r, k).type);
    }
    return out_.loops.add(kernel::make_loops(space, shapes, bytes, r.operands, by_rows));
  }
  /// Whether step i has the loops of a, a map: it is one, too, with operands of the same shapes and
  /// types, and runs neither slice by slice nor on parts.
  [[XLA_PLANS]] bool same_loops(const ready_step& a, int i) const {
    const ready_step& b = out_.steps[i];
    bool same = a.kind == b.kind && a.sliced == b.sliced && b.sliced < 0 && !out_.on_parts(i) &&
                a.operands == b.operands && space(a) == space(b);
    for (int k = 0; same && k < a.operands; ++k)
      same = value(a, k).type == value(b, k).type && out_.shape_of(a, k) == out_.shape_of(b, k);
    return same;
  }
  const shape& space(const ready_step& r) const { return p_.spaces[r.source->space]; }
  const node& value(const ready_step& r, int operand) const {
    return p_.values[out_.operands[r.first_operand + operand]];
  }

  const region_kernel* kernels_;
  dependent<In, plan>& out_;
  const program& p_ = out_.source;
  const Passes wanted_;
  list<int> made_;      // per value: the step that makes it
  list<char> claimed_;  // per value: is a result's or write's memory
  list<char> fixed_;
  list<char> once_;
};
using specializer = basic_specializer<void>;

}  // namespace xla::detail
