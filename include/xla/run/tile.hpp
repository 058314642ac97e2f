// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include "xla/kernel/loops.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// A map region of a traced graph, run tile by tile: each op's own kernel on a piece that stays in
/// cache, intermediate values in scratch.
template <class>
class basic_tile_region {
 public:
  static constexpr std::int64_t tile = 1024;
  static constexpr std::int64_t widest = 8;  // bytes of an element

  basic_tile_region(const program& p, const step& s) : p_(p), s_(s) {
    for (int i = 0; i < s_.words; ++i)
      for (int o : {word(i).a, word(i).b, word(i).c})
        if (!word(i).input && o != kernel::micro_op::none) last_read_[o] = i;
  }

  void operator()(const tile_call& call) const {
    auto* scratch = static_cast<char*>(kernel::thread_scratch(s_.words * tile * widest));
    for (std::int64_t k = 0; k < call.n; k += tile)
      piece(call, scratch, k, std::min(tile, call.n - k));
  }

 private:
  void piece(const tile_call& call, char* scratch, std::int64_t from, std::int64_t n) const {
    void* values[64] = {};
    void* late[64] = {};  // where values that must not be written yet go in the end
    std::int64_t steps[64];
    int input = 0, output = s_.inputs;
    for (int i = 0; i < s_.words; ++i) {
      if (!word(i).input) continue;
      steps[i] = call.steps[input];
      values[i] = static_cast<char*>(call.pointers[input++]) +
                  from * steps[i] * static_cast<std::int64_t>(bytes_of(i));
    }
    for (int i = 0; i < s_.words; ++i) {
      const auto m = word(i);
      if (m.input) continue;
      steps[i] = 1;
      values[i] = scratch + i * tile * widest;
      if (m.output) {
        void* to = static_cast<char*>(call.pointers[output++]) +
                   from * static_cast<std::int64_t>(bytes_of(i));
        (read_after(i, values, to) ? late[i] : values[i]) = to;
      }
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
    for (int i = 0; i < s_.words; ++i)
      if (late[i]) std::memcpy(late[i], values[i], static_cast<std::size_t>(n) * bytes_of(i));
  }

  kernel::micro_op word(int i) const { return kernel::micro_op::of(p_.words[s_.first_word + i]); }
  std::size_t bytes_of(int i) const { return static_cast<std::size_t>(size_of(word(i).type)); }
  /// Whether an op after number i reads an input that lies in this memory: an update in place.
  bool read_after(int i, void* const* values, const void* memory) const {
    for (int k = 0; k < s_.words; ++k)
      if (values[k] == memory && last_read_[k] > i) return true;
    return false;
  }

  const program& p_;
  const step& s_;
  int last_read_[64] = {};
};
using tile_region = basic_tile_region<void>;

}  // namespace xla::detail
