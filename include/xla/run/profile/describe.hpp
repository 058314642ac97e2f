// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes the steps of a plan for a profile: names, operations, bytes. Times come from
// profiler.hpp.

#include <string>
#include <vector>

#include "xla/base/list.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/convolution.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/run/plan/print_plan.hpp"
#include "xla/run/profile/data.hpp"
#include "xla/run/profile/modules.hpp"
#include "xla/transform/print.hpp"

namespace xla::detail {

/// Describes a plan's steps for a profile, without times.
template <class>
class basic_plan_description {
 public:
  /// slots: the names of the plan's inputs; may be empty.
  basic_plan_description(const planned& e, const list<std::string>& slots)
      : e_(e), p_(e.get_plan()), slots_(slots) {
    list<std::string> cells;
    for (int i = 0; i < slots.size(); ++i)
      cells.push_back(p_.source.slots[i].kind == slot_kind::cell ? slots[i] : "");
    of_slots_ = modules_of(cells);
  }

  [[gnu::cold]] ProfileFunction run() {
    units_ = p_.steps.size();
    for (const step_group& g : p_.groups) units_ -= g.last - g.first;
    made_.assign(p_.placements.size(), -1);
    number_.assign(p_.placements.size(), -1);
    if (p_.exchanges) started_.assign(p_.exchanges->count(), -1);
    out_.arena_bytes = p_.arena_bytes;
    out_.unshared_bytes = p_.unshared_bytes;
    for (int i = 0; i < p_.slot_shapes.size(); ++i) {
      if (p_.source.slots[i].kind != slot_kind::tensor) continue;
      if (!out_.signature.empty()) out_.signature += ' ';
      out_.signature += str(p_.slot_shapes[i]);
    }
    used_.assign(p_.placements.size(), false);
    for (const ready_step& s : p_.steps)
      for (int k = 0; k < s.operands; ++k) used_[base(p_.operands[s.first_operand + k])] = true;
    for (int v = 0; v < p_.placements.size(); ++v) add_value(v);
    for (int i = 0; i < p_.steps.size(); ++i) add_step(i);
    for (int v : p_.copies)
      if (v >= 0) value(v).last = units_;
    // A value that lives across calls was made before the first step.
    for (const ProfileStep& s : out_.steps)
      for (int w : s.writes)
        if (s.once) keep(out_.values[static_cast<std::size_t>(w)]);
    modules_.name(out_.steps);
    return std::move(out_);
  }
  /// For each loop its body's runner; bodies of nested loops come after it.
  const list<std::uint64_t>& bodies() const { return bodies_; }

 private:
  /// For a loop's body: the modules of its slots and results.
  basic_plan_description(const planned& e, list<std::string> of_slots, list<std::string> of_results)
      : e_(e),
        p_(e.get_plan()),
        slots_(no_slots_),
        of_slots_(std::move(of_slots)),
        of_results_(std::move(of_results)) {}

  /// The module of a parameter, given the parameter's value or gradient.
  [[gnu::cold]] std::string module_of(int v) const {
    const placement& q = p_.placements[base(v)];
    const auto at = [&](const list<std::string>& all, int i) {
      return i >= 0 && i < all.size() ? all[i] : std::string();
    };
    if (q.where == storage::slot || q.where == storage::grad) return at(of_slots_, q.index);
    if (q.where == storage::write) return at(of_slots_, p_.source.writes[q.index].slot);
    return q.where == storage::result ? at(of_results_, q.index) : "";
  }
  /// For the inputs and saved values of each step of a loop's body.
  [[gnu::cold]] std::string module_of_steps(const ready_step& s, const list<int>& operands) const {
    std::string first, last;
    for (int k : operands) {
      if (k < 0) continue;
      last = module_of(p_.operands[s.first_operand + k]);
      if (first.empty()) first = last;
    }
    return module_in_blocks(first, last);
  }

  int base(int v) const { return p_.base[v]; }
  const node& node_of(int v) const { return p_.source.values[v]; }
  ProfileValue& value(int v) { return out_.values[static_cast<std::size_t>(number_[base(v)])]; }
  [[gnu::cold]] void keep(ProfileValue& v) const {
    v.first = -1;
    v.last = units_;
  }

  [[gnu::cold]] void add_value(int v) {
    const placement& q = p_.placements[v];
    if (base(v) != v || q.where == storage::slice) return;
    if (q.where == storage::arena && !used_[v])
      return;  // a gradient that this call does not compute
    const node& n = node_of(v);
    ProfileValue r;
    number_[v] = static_cast<int>(out_.values.size());
    r.name = "%" + std::to_string(v);
    r.shape = std::string(name_of(n.type)) + " " + str(p_.shapes[v]);
    r.bytes = q.bytes;
    r.offset = q.where == storage::arena ? q.offset : 0;
    r.first = r.last = -1;
    switch (q.where) {
      case storage::arena: r.storage = "arena"; break;
      case storage::slot: r.storage = "argument"; break;
      case storage::grad: r.storage = "gradient"; break;
      case storage::write: r.storage = "write"; break;
      case storage::donated: r.storage = "donated"; break;
      case storage::result: r.storage = "result"; break;
      case storage::slice: break;
    }
    if (q.where == storage::slot) r.name = slot(q.index);
    if (q.where == storage::grad) r.name = "gradient of " + slot(q.index);
    if (q.where == storage::result) r.name = "result " + std::to_string(q.index);
    if (q.where == storage::write) {
      const write& w = p_.source.writes[q.index];
      r.name = (w.gradient ? "new gradient of " : "new ") + slot(w.slot);
    }
    if (n.op->kind == op_kind::leaf || n.op->kind == op_kind::constant) {
      if (is<op::constant>(n)) r.name = print_number(n.attributes<op::constant>().value);
      if (is<op::scalar>(n)) r.name = slot(n.attributes<op::scalar>().slot);
      keep(r);
    }
    out_.values.push_back(std::move(r));
  }
  [[gnu::cold]] std::string slot(int i) const {
    return i < slots_.size() ? slots_[i] : "input " + std::to_string(i);
  }

  [[gnu::cold]] void add_step(int i) {
    const ready_step& s = p_.steps[i];
    if (s.group >= 0 && !s.loop) {
      const step_group& g = p_.groups[s.group];
      if (g.first == i) open_group(g, s);
      return add_to_group(g, s);
    }
    const int index = static_cast<int>(out_.steps.size());
    const int* operands = &p_.operands[s.first_operand];
    ProfileStep r;
    r.once = e_.is_once(i);
    r.type = node_of(operands[s.inputs]).type;
    for (int k = 0; k < s.operands; ++k) {
      const int b = base(operands[k]);
      ProfileValue& v = value(b);
      if (!s.loop) modules_.note(out_.steps.size(), module_of(b));
      if (k < s.inputs) {
        v.last = std::max(v.last, index);
        insert(r.reads, number_[b]);
        if (made_[b] >= 0) insert(r.after, made_[b]);
      } else {
        insert(r.writes, number_[b]);
        if (!goes_on(p_.source, *s.source, k - s.inputs)) v.first = index;
        made_[b] = index;
        v.last = std::max(v.last, index);
        if (p_.over[b] >= 0) v.replaces = number_[p_.over[b]];
      }
    }
    const bool in_place = updates_in_place(s, operands);
    count_bytes(r, s, in_place);
    describe(r, s);
    text line;
    if (!std::string_view(s.at.file_name()).empty() && !in_library(s.at.file_name())) line << s.at;
    const std::string_view source = line.view();
    if (source.size() > 3) r.source = std::string(source.substr(2, source.size() - 3));
    out_.steps.push_back(std::move(r));
  }
  [[gnu::cold]] void describe(ProfileStep& r, const ready_step& s) {
    if (s.kind > step_kind::row) describe_exchange(r, s);
    else if (s.loop) describe_loop(r, s);
    else if (s.kind == step_kind::library) describe_library(r, s);
    else describe_region(r, s);
  }
  /// False if it exists already.
  [[gnu::cold]] static bool insert(std::vector<int>& to, int x) {
    const bool there = std::find(to.begin(), to.end(), x) != to.end();
    if (!there) to.push_back(x);
    return !there;
  }

  /// Steps of a group become one entry of the profile, with the memory of the values between them.
  [[gnu::cold]] void open_group(const step_group& g, const ready_step& s) {
    ProfileStep r;
    r.type = node_of(p_.operands[s.first_operand + s.inputs]).type;
    if (g.by_images()) {
      r.kind = "slices";
      r.name = std::to_string(g.slices) + " images, each through " +
               std::to_string(g.last - g.first + 1) + " steps";
      add_slices(r, g);
    } else if (g.by_slices()) {
      r.kind = "slices";
      r.name = std::to_string(g.slices) + " slices:";
      add_slices(r, g);
    } else if (g.slices == step_group::whole) {
      r.kind = "parallel";
      r.name = "side by side:";
    } else {
      r.kind = "product";
    }
    out_.steps.push_back(std::move(r));
  }
  [[gnu::cold]] void add_slices(ProfileStep& r, const step_group& g) {
    ProfileValue v;
    v.name = "slices";
    v.storage = "arena";
    v.shape = std::to_string(g.threads) + " threads x " + std::to_string(g.bytes) + " bytes";
    v.bytes = g.threads * g.bytes;
    v.offset = g.offset;
    v.first = v.last = static_cast<int>(out_.steps.size());
    r.writes.push_back(static_cast<int>(out_.values.size()));
    out_.values.push_back(std::move(v));
  }
  [[gnu::cold]] void add_to_group(const step_group& g, const ready_step& s) {
    ProfileStep& r = out_.steps.back();
    const int index = static_cast<int>(out_.steps.size()) - 1;
    for (int k = 0; k < s.operands; ++k) {
      const int v = p_.operands[s.first_operand + k], b = base(v);
      if (p_.placements[b].where == storage::slice || made_[b] == index) continue;
      modules_.note(out_.steps.size() - 1, module_of(b));
      const auto bytes = static_cast<double>(p_.placements[b].bytes);
      value(b).last = std::max(value(b).last, index);
      if (k < s.inputs) {
        if (made_[b] >= 0) insert(r.after, made_[b]);
        if (insert(r.reads, number_[b])) r.bytes_read += bytes;
      } else {
        const int old = p_.over[b];
        if (old < 0) r.bytes_written += bytes;
        else value(b).replaces = number_[old];
        made_[b] = value(b).first = index;
        insert(r.writes, number_[b]);
      }
    }
    ProfileStep one;
    describe(one, s);
    r.flops += one.flops;
    const bool parts = g.slices == step_group::parts;
    if (g.threads == 0) return;  // it has the loop's name
    if (parts) r.name += (r.name.empty() ? "" : " + ") + one.name;
    else if (!g.by_images())
      r.name += one.kind == "product" || one.kind == "reduce" ? " " + one.ops[0] : " " + one.kind;
    r.ops.insert(r.ops.end(), one.ops.begin(), one.ops.end());
    if (!parts || one.algorithm.empty()) return;
    r.algorithm = std::move(one.algorithm);
    r.attributes = std::move(one.attributes);
    r.cached = one.cached;
  }

  /// Whether an update writes over the value that it reads.
  [[gnu::cold]] bool updates_in_place(const ready_step& s, const int* operands) const {
    if (s.kind != step_kind::library || !s.op->updates) return false;
    const placement& old = p_.placements[base(operands[0])];
    const placement& result = p_.placements[base(operands[s.inputs])];
    if (p_.over[base(operands[s.inputs])] == base(operands[0])) return true;
    return result.where == storage::write && p_.in_place[result.index] &&
           old.where == storage::slot && old.index == p_.source.writes[result.index].slot;
  }

  [[gnu::cold]] void count_bytes(ProfileStep& r, const ready_step& s, bool in_place) {
    const int* operands = &p_.operands[s.first_operand];
    auto size = [&](int k) { return static_cast<double>(p_.bytes(operands[k])); };
    for (int k = 0; k < s.inputs; ++k) {
      bool again = false;
      for (int j = 0; j < k; ++j) again |= operands[j] == operands[k];
      if (again || (k == 0 && in_place)) continue;
      const bool some = k == 0 && s.kind == step_kind::library && s.op->picks;
      r.bytes_read += some ? std::min(size(0), size(s.inputs)) : size(k);
    }
    if (in_place) r.bytes_written = size(s.inputs - 1);
    else
      for (int k = s.inputs; k < s.operands; ++k) r.bytes_written += size(k);
  }

  [[gnu::cold]] void describe_library(ProfileStep& r, const ready_step& s) {
    const shape* shapes = p_.operand_shapes.begin() + s.first_shape;
    const shape& out = p_.shape_of(s, s.inputs);
    r.ops.emplace_back(s.op->name);
    r.name = std::string(s.op->name) + " ";
    if (s.op->loops) {
      const shape sizes = s.op->loops(shapes, out, s.attr);
      r.kind = "product";
      for (int i = 0; i < sizes.rank; ++i) r.name += (i ? "x" : "") + std::to_string(sizes[i]);
      r.flops = 2 * static_cast<double>(count(sizes));
    } else if (s.op->kind == op_kind::reduce) {
      r.kind = "reduce";
      r.name += str(shapes[0]) + " to " + str(out);
      r.flops = static_cast<double>(count(shapes[0]));
    } else {
      r.kind = "move";
      r.name += str(out);
    }
    const kernel_choice c = choice_of(p_, s);
    r.algorithm = c.algorithm;
    r.cached = c.cached;
    if (!r.algorithm.empty()) (r.name += ' ') += r.algorithm;
    r.attributes = print_attributes(s.op->fields, s.attr);
    if (!r.attributes.empty()) r.attributes.erase(0, 1);
    if (precision_of(*s.op, s.attr, shapes, out) == precision::bfloat16) r.name += " bfloat16";
    constexpr std::string_view layout = "channels_last";
    if (r.attributes.find(layout) != std::string::npos) (r.name += ' ') += layout;
  }

  /// Numbers per run of the body; the profile multiplies them. The body of another backend has no
  /// steps to show.
  [[gnu::cold]] void describe_loop(ProfileStep& r, const ready_step& s) {
    const auto about = unpack<op::loop::attributes>(s.attr);
    r.kind = "loop";
    const loop_function of = about.function;
    r.name = of == loop_function::cond      ? "branch"
             : of == loop_function::unknown ? "loop"
                                            : name_of(of);
    r.ops.push_back(r.name);
    const planned* const body = s.loop->planned_body();
    if (!body) return;
    bodies_.push_back(body->id());
    list<std::string> of_slots, of_results;
    for (int i = 0; i < body->get_plan().source.count.slots; ++i)
      of_slots.push_back(module_of_steps(s, s.loop->operands_of_slot(i)));
    for (int i = 0; i < body->get_plan().source.count.results; ++i)
      of_results.push_back(module_of_steps(s, s.loop->operands_of_result(i)));
    basic_plan_description inner(*body, std::move(of_slots), std::move(of_results));
    r.body = std::move(inner.run().steps);
    modules_.note(out_.steps.size(), inner.modules_.whole());
    for (ProfileStep& b : r.body) {
      b.reads.clear();  // values of the body itself
      b.writes.clear();
    }
    for (std::uint64_t id : inner.bodies()) bodies_.push_back(id);
  }

  /// A start's inputs go to other replicas, a wait's outputs come from them.
  [[gnu::cold]] void describe_exchange(ProfileStep& r, const ready_step& s) {
    const bool starts = s.kind == step_kind::start;
    const auto bytes = static_cast<double>(bytes_of_sums(p_, s));
    const int sums = s.operands - s.inputs;
    r.kind = starts ? "start" : "wait";
    r.ops.emplace_back(s.op->name);
    r.name = r.kind + " " + std::to_string(s.exchange) + ": " + r.ops[0] + " of " +
             std::to_string(sums) + (sums == 1 ? " value" : " values");
    r.attributes = print_attributes(s.op->fields, s.attr);
    r.attributes.erase(0, 1);
    r.bytes_read = starts ? bytes : 0;
    r.bytes_written = starts ? 0 : bytes;
    if (starts) started_[s.exchange] = static_cast<int>(out_.steps.size());
    else r.started = started_[s.exchange];
  }

  /// A region counts one operation per element for each of its ops; a reduction counts the elements
  /// that it reads. Values that are the same along a row (in a map: everywhere) are computed once
  /// per row.
  [[gnu::cold]] void describe_region(ProfileStep& r, const ready_step& s) {
    const step& from = *s.source;
    const shape space = value_at(p_.symbols, p_.source.spaces[from.space]);
    const auto all = static_cast<double>(count(space));
    const bool row = s.kind == step_kind::row;
    const double rows = !row ? 1 : all / static_cast<double>(std::max<extent>(last(space), 1));
    list<char> single(from.words);
    for (int i = 0; i < from.words; ++i) {
      const auto m = kernel::micro_op::of(p_.source.words[from.first_word + i]);
      bool one = m.input ? m.invariant : true;
      if (!m.input)
        for (int o : {m.a, m.b, m.c})
          if (o != kernel::micro_op::none) one = one && single[o];
      const bool indexed = !m.input && m.b != kernel::micro_op::none &&
                           kernel::micro_op::of(p_.source.words[from.first_word + m.b]).index;
      single[i] = one || m.reduce || (indexed && m.c == kernel::micro_op::none);
      if (m.input) continue;
      const bool number = m.type == dtype::float32 || m.type == dtype::float64;
      if (number || m.type == dtype::bfloat16) r.flops += one || indexed ? rows : all;
      r.ops.emplace_back(name_of_word(p_, s, i));
    }
    r.kind = row ? "row" : "map";
    r.name = r.kind;
    constexpr std::size_t shown = 4;
    for (std::size_t i = 0; i < r.ops.size() && i < shown; ++i) r.name += " " + r.ops[i];
    if (r.ops.size() > shown) r.name += " +" + std::to_string(r.ops.size() - shown);
    r.name += " " + str(space);
  }
  static extent last(const shape& s) { return s.rank > 0 ? s[s.rank - 1] : 1; }

  const planned& e_;
  const plan& p_;
  const list<std::string> no_slots_;
  const list<std::string>& slots_;
  list<std::string> of_slots_, of_results_;  // modules
  step_modules modules_;
  ProfileFunction out_;
  int units_ = 0;            // steps, and groups of them
  list<int> made_, number_;  // per value: the step that makes it, its index in values
  list<char> used_;          // per value: some step reads or makes it
  list<int> started_;        // per exchange: the step that starts it
  list<std::uint64_t> bodies_;
};
using plan_description = basic_plan_description<void>;

}  // namespace xla::detail
