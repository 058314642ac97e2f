// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "xla/kernel/loops.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// A map region of a traced graph, run tile by tile: each op's own kernel on a piece that stays in
/// cache, intermediate values in scratch.
class tile_region {
 public:
  static constexpr std::int64_t tile = 1024;
  static constexpr std::int64_t widest = 8;  // bytes of an element

  tile_region(const program& p, const step& s) : p_(p), s_(s) {}

  void operator()(const tile_call& call) const {
    auto* scratch = static_cast<char*>(kernel::thread_scratch(s_.words * tile * widest));
    for (std::int64_t k = 0; k < call.n; k += tile)
      piece(call, scratch, k, std::min(tile, call.n - k));
  }

 private:
  void piece(const tile_call& call, char* scratch, std::int64_t from, std::int64_t n) const {
    void* values[64];
    std::int64_t steps[64];
    int input = 0, output = s_.inputs;
    for (int i = 0; i < s_.words; ++i) {
      const auto m = kernel::micro_op::of(p_.words[s_.first_word + i]);
      const std::int64_t bytes = size_of(m.type);
      if (m.input) {
        steps[i] = call.steps[input];
        values[i] = static_cast<char*>(call.pointers[input++]) + from * steps[i] * bytes;
        continue;
      }
      steps[i] = 1;
      values[i] = m.output ? static_cast<char*>(call.pointers[output++]) + from * bytes
                           : scratch + i * tile * widest;
      const int operand[] = {m.a, m.b, m.c};
      void* pointers[4];
      std::int64_t strides[4] = {};
      int count = 0;
      for (int o : operand) {
        if (o == kernel::micro_op::none) break;
        pointers[count] = values[o];
        strides[count++] = steps[o];
      }
      pointers[count] = values[i];
      p_.word_ops[s_.first_word + i]->tile({pointers, strides, n});
    }
  }

  const program& p_;
  const step& s_;
};

}  // namespace xla::detail
