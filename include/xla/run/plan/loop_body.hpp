// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/graph/loops.hpp"
#include "xla/run/plan/absent.hpp"

namespace xla::detail {

/// What a call wants of a loop: of values that are kept of all steps those that something reads, and
/// the carries, which stay; of its body what these need.
template <class In>
class basic_loop_body {
 public:
  [[gnu::cold]] static void shorten(basic_shortener<void>& by, step& s) {
    int kept = 0;
    for (int k = 0; k < s.outputs; ++k) {
      const int v = by.p_.outputs[s.first_output + k];
      if (k > 0 && !by.wants(v)) continue;
      by.outputs_[s.first_output + kept++] = v;
      if (is<op::steps>(by.values_[v])) by.want(by.values_[v].in[1]);
    }
    s.outputs = kept;
    const int* const next = by.p_.inputs_of(s.value);
    const int carries = by.values_[s.value].template attributes<op::loop>().carries;
    for (int k = 0; k < carries; ++k) by.want(next[k]);
    const int left_out = by.keep_steps(by.bodies_ + s.first_body, s.body);
    s.first_body += left_out;
    s.body -= left_out;
  }
};

}  // namespace xla::detail
