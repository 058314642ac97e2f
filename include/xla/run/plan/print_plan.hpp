// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans as text, for graph(planned) of compiled functions and for profiles. Graphs and programs are
// printed by transform/print.hpp.

#include <string>
#include <string_view>

#include "xla/base/instance.hpp"
#include "xla/run/plan/plan.hpp"
#include "xla/transform/print.hpp"

namespace xla::detail {

/// The name of an op of a region, by its word.
template <class In = void>
[[gnu::cold]] std::string_view name_of_word(const dependent<In, plan>& p, const ready_step& s,
                                            int word) {
  if (kernel::micro_op::of(p.source.words[s.source->first_word + word]).input) return "";
  if (s.kernel.name) return s.kernel.name(word);
  return p.source.word_ops[s.source->first_word + word]->name;
}

/// The sums of a start or wait.
template <class In = void>
std::int64_t bytes_of_sums(const dependent<In, plan>& p, const ready_step& s) {
  std::int64_t bytes = 0;
  for (int k = s.inputs; k < s.operands; ++k) bytes += p.bytes(p.operands[s.first_operand + k]);
  return bytes;
}
/// The number that a value is printed with. numbers: per value; empty: their own.
template <class = void>
int printed_number(int v, const list<int>& numbers) {
  return v < 0 || numbers.empty() ? v : numbers[v];
}
/// The same for a step's operands.
template <class In = void>
[[gnu::cold]] list<int> printed_operands(const dependent<In, plan>& p, const ready_step& s,
                                         const list<int>& numbers) {
  list<int> printed;
  for (int k = 0; k < s.operands; ++k)
    printed.push_back(printed_number(p.operands[s.first_operand + k], numbers));
  return printed;
}
/// "start 0: all_reduce how mean of %7 %9 to %8 %9, 4096 bytes"; with the same number "wait 0: …".
template <class In = void>
[[gnu::cold]] std::string print_exchange(const dependent<In, plan>& p, const ready_step& s,
                                         const list<int>& operands) {
  std::string out = s.kind == step_kind::start ? "start " : "wait ";
  ((out += std::to_string(s.exchange)) += ": ") += s.op->name;
  out += print_attributes<In>(s.op->fields, s.attr);
  for (int k = 0; k < s.operands; ++k)
    (out += k == 0 ? " of %" : k == s.inputs ? " to %" : " %") += std::to_string(operands[k]);
  return out + ", " + std::to_string(bytes_of_sums<In>(p, s)) + " bytes\n";
}

/// "%7 = convolution(%5, %2) … channels_last : float32 (8, 56, 56, 64) by winograd 4x4, caches
/// 147456 bytes"; of a region "map relu of %7 to %8 : float32 (8, 56, 56, 64)".
template <class In = void>
[[gnu::cold]] std::string print_step(const dependent<In, plan>& p, const ready_step& s,
                                     const list<int>& numbers) {
  const list<int> operands = printed_operands<In>(p, s, numbers);
  std::string out;
  if (s.kind == step_kind::library) {
    node n = p.source.values[s.source->value];
    n.op = s.op;
    n.attr = s.attr;
    n.set_shape(p.shape_of(s, s.inputs));
    n.arity = s.inputs;
    out = print_node<In>(operands[s.inputs], n, operands.begin());
    out.pop_back();
    const kernel_choice c = choice_of<In>(p, s);
    if (*c.algorithm) (out += " by ") += c.algorithm;
    if (c.cached > 0) ((out += ", caches ") += std::to_string(c.cached)) += " bytes";
    return out + "\n";
  }
  if (s.kind > step_kind::row) return print_exchange<In>(p, s, operands);
  out = s.kind == step_kind::row ? "row" : "map";
  for (int w = 0; w < s.source->words; ++w)
    if (const std::string_view name = name_of_word<In>(p, s, w); !name.empty())
      (out += ' ') += name;
  for (int k = 0; k < s.operands; ++k)
    (out += k == 0 ? " of %" : k == s.inputs ? " to %" : " %") += std::to_string(operands[k]);
  const int first = p.operands[s.first_operand + s.inputs];
  return out + " : " + std::string(name_of(p.source.values[first].type)) + " " +
         print_dims<In>(p.shape_of(s, s.inputs)) + "\n";
}

/// The steps of a plan in the order in which they run, one line each: what they read and write,
/// with memory order and algorithm. Steps that run together name their group. The steps of a loop's
/// body are below it, indented and prefixed with its number, after the table of each step's
/// operands. slots: their names; numbers: see printed_number.
template <class In = void>
[[gnu::cold]] std::string print_plan(const dependent<In, plan>& p, const list<std::string>& slots,
                                     const std::string& before = "step ",
                                     const list<int>& numbers = {}) {
  std::string out;
  for (int i = 0; i < p.steps.size(); ++i) {
    const ready_step& s = p.steps[i];
    const std::string name = before + std::to_string(i);
    out += name;
    if (s.group >= 0) out += " group " + std::to_string(s.group);
    (out += ": ") += print_step<In>(p, s, numbers);
    if (s.loop && s.loop->body_plan()) out += s.loop->print(p, s, slots, "  " + name + ".");
  }
  return out;
}
XLA_INSTANCE(std::string print_plan<void>(const plan&, const list<std::string>&, const std::string&,
                                          const list<int>&));

}  // namespace xla::detail
