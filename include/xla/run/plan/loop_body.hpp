// SPDX-License-Identifier: Apache-2.0
#pragma once

// Removes the parts of a loop's body that a call does not need, as absent.hpp does for a program.
// loops.hpp calls it while a signature is planned.

#include "xla/base/instance.hpp"
#include "xla/graph/loops.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/plan/absent.hpp"

namespace xla::detail {

/// The parts of a loop that a call needs: stacks that something reads, and all carries; and of its
/// body what these need.
template <class In>
class basic_loop_body {
 public:
  [[XLA_PLANS]] static void prune(basic_pruner<void>& by, step& s) {
    int kept = 0;
    for (int k = 0; k < s.outputs; ++k) {
      const int v = by.p_.outputs[s.first_output + k];
      if (k > 0 && !by.wants(v)) continue;
      by.outputs_[s.first_output + kept++] = v;
      if (const int all = kept_by(by, v); is<op::steps>(by.values_[all]))
        by.want(by.values_[all].in[1]);
    }
    s.outputs = kept;
    const node& loop = by.values_[s.value];
    const auto about = loop.template attributes<op::loop>();
    int* const in = loop.arity > few_inputs ? by.inputs_ + loop.in[0] : by.values_[s.value].in;
    if (!by.absent_.empty()) keep_frozen(by, about, in);
    for (int k = 0; k < about.carries; ++k) by.want(in[k]);
    const int left_out = by.keep_steps(by.bodies_ + s.first_body, s.body);
    s.first_body += left_out;
    s.body -= left_out;
  }

 private:
  /// The stack of a value, of which an output may be one row.
  [[XLA_PLANS]] static int kept_by(const basic_pruner<void>& by, int v) {
    if (!is<op::slice>(by.values_[v])) return v;
    do v = by.p_.inputs_of(v)[0];
    while (by.values_[v].op->kind == op_kind::alias);
    return v;
  }
  /// Carries of frozen parameters keep their initial value, also where a step reads the new one.
  [[XLA_PLANS]] static void keep_frozen(basic_pruner<void>& by, const op::loop::attributes& about,
                                        int* in) {
    for (int v = 0; v < by.p_.count.values; ++v) {
      const node& n = by.values_[v];
      if (!is<op::carry>(n) && !is<op::last_step>(n)) continue;
      const auto a = n.template attributes<op::carry>();
      if (a.loop != about.number || !by.is_absent(a.owner())) continue;
      const int first = in[about.carries + a.number];
      if (is_number(by.values_[first])) continue;
      in[a.number] = first;
      if (a.owner() == a.slot() && !a.gradient()) renew(by, about.number, a.slot(), first);
    }
  }
  static void renew(basic_pruner<void>& by, int loop, int slot, int first) {
    for (int v = 0; v < by.p_.count.values; ++v) {
      node& n = by.values_[v];
      if (is<op::updated>(n) && n.loop == loop && n.template attributes<op::of_slot>().slot == slot)
        n.in[0] = first;
    }
  }
};

}  // namespace xla::detail
