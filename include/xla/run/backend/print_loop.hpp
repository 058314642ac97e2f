// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loop of a plan as text: the table of what each step has of its own, with names, then the body.
// loops.hpp calls it for graph(planned); plans without loops are printed by print_plan.hpp alone.

#include <string>

#include "xla/run/plan/block_names.hpp"
#include "xla/run/plan/print_plan.hpp"

namespace xla::detail {

template <class In>
class basic_loop_printer {
 public:
  /// slots: the names of the plan's; numbers: per value of the body, its number in the plan.
  basic_loop_printer(const dependent<In, plan>& p, const ready_step& s,
                     const list<std::string>& slots, const list<int>& numbers)
      : p_(p), s_(s), slots_(slots), numbers_(numbers) {}

  [[gnu::cold]] std::string print(const std::string& before) {
    const dependent<In, plan>& body = *s_.loop->body_plan();
    list<std::string> names;
    for (int i = 0; i < body.source.count.slots; ++i)
      names.push_back(add(body.source.slots[i].leaf, s_.loop->operands_of_slot(i)));
    for (int i = 0; i < body.source.count.results; ++i)
      add(body.source.results[i], s_.loop->operands_of_result(i));
    return out_ + print_plan<In>(body, names, before, numbers_);
  }

 private:
  /// "  %7 is %1 %3 %5: argument 0.blocks.0-2.up.weight", for the operands of each step from the
  /// first on. Returns their name.
  [[gnu::cold]] std::string add(int v, const list<int>& operands) {
    std::string first, last;
    if (operands.size() > 1) out_ += "  %" + std::to_string(printed_number(v, numbers_)) + " is";
    for (int k : operands) {
      const int of = k < 0 ? -1 : p_.operands[s_.first_operand + k];
      if (operands.size() > 1) out_ += of < 0 ? " -" : " %" + std::to_string(of);
      if (of < 0) continue;
      last = name(of);
      if (first.empty()) first = last;
    }
    const std::string all = module_in_blocks<In>(first, last);
    if (operands.size() > 1) out_ += (all.empty() ? "" : ": " + all) + "\n";
    return all;
  }
  /// The name of the slot whose value or gradient is in a value's memory; empty if there is none.
  [[gnu::cold]] std::string name(int v) const {
    const placement& q = p_.placements[p_.base[v]];
    const bool written = q.where == storage::write;
    if (!written && q.where != storage::slot && q.where != storage::grad) return "";
    const write w = written ? p_.source.writes[q.index] : write{q.index, q.where == storage::grad};
    if (w.slot >= slots_.size() || slots_[w.slot].empty()) return "";
    return slots_[w.slot] + (w.gradient ? ".grad" : "");
  }

  const dependent<In, plan>& p_;
  const ready_step& s_;
  const list<std::string>& slots_;
  const list<int>& numbers_;
  std::string out_;
};

template <class In>
[[gnu::cold]] std::string print_loop(const dependent<In, plan>& p, const ready_step& s,
                                     const list<std::string>& slots, const list<int>& numbers,
                                     const std::string& before) {
  return dependent<In, basic_loop_printer<In>>(p, s, slots, numbers).print(before);
}

}  // namespace xla::detail
