// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a fused region of a traced graph tile by tile, by the kernels of single ops, because no
// compiler has made a loop for it. Compiled functions have such loops (kernel/fused/map.hpp).

#include <algorithm>
#include <cstring>

#include "xla/kernel/fused/loops.hpp"
#include "xla/run/plan/known_regions.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// A map region of a traced graph, run tile by tile: each op's own kernel runs on a piece that
/// stays in the cache. Intermediate values have few buffers in scratch, which are reused after a
/// value's last read.
template <class>
class basic_tile_region {
 public:
  static constexpr std::int64_t tile_bytes = 4096;  ///< of the widest elements
  /// The distance between buffers. No two begin at the same offset within a page, so that a load
  /// need not wait for a store to another.
  static constexpr std::int64_t buffer_bytes = tile_bytes + 192;

  [[gnu::cold]] basic_tile_region(const program& p, const step& s) : p_(p), s_(s) {
    for (int i = 0; i < s_.words; ++i) {
      const auto m = kernel::micro_op::of(p_.words[s_.first_word + i]);
      values_[i].bytes = static_cast<std::int8_t>(size_of(m.type));
      widest_ = std::max<std::int64_t>(widest_, values_[i].bytes);
      if (has_known_regions && m.column) values_[i].output = next_output();
      else if (!m.input) add(i, m);
    }
    if constexpr (has_known_regions) keep_summed();
    assign_buffers();
  }

  /// What runs it; refers to this object.
  kernel::tile_kernel kernel() const {
    return {nullptr,
            [](const void* self, const tile_call& call) {
              static_cast<const basic_tile_region*>(self)->run(call);
            },
            this};
  }

 protected:
  void run(const tile_call& call) const {
    run(call, [](char* const*, std::int64_t, std::int64_t) {});
  }
  /// Calls sums(values, first, n) for each piece, before what waits for the end is written.
  template <class Sums>
  void run(const tile_call& call, const Sums& sums) const {
    auto* scratch = static_cast<char*>(kernel::thread_scratch(buffers_ * buffer_bytes));
    char* at[max_values];
    std::int64_t steps[max_values];
    bool late[max_values];  // outputs that must not be written before the end
    for (int i = 0; i < s_.words; ++i) steps[i] = i < s_.inputs ? call.steps[i] : 1;
    for (int i = 0; i < s_.words; ++i)
      late[i] = i < last_read_ && values_[i].output >= 0 &&
                read_after(i, call, call.pointers[values_[i].output]);
    const std::int64_t tile = tile_bytes / widest_;
    for (std::int64_t from = 0; from < call.n; from += tile) {
      for (int i = 0; i < s_.words; ++i) {
        const value& v = values_[i];
        const int operand = i < s_.inputs ? i : late[i] ? -1 : v.output;
        at[i] = operand < 0
                    ? scratch + v.buffer * buffer_bytes
                    : static_cast<char*>(call.pointers[operand]) + from * steps[i] * v.bytes;
      }
      const std::int64_t n = std::min(tile, call.n - from);
      for (int k = 0; k < op_count_; ++k) run(ops_[k], at, steps, n);
      sums(at, from, n);
      for (int i = s_.inputs; i < s_.words; ++i)
        if (late[i])
          std::memcpy(
              static_cast<char*>(call.pointers[values_[i].output]) + from * values_[i].bytes, at[i],
              static_cast<std::size_t>(n * values_[i].bytes));
    }
  }

  static constexpr int max_values = kernel::micro_op::none;

  struct value {
    std::int8_t bytes = 0;      ///< of an element
    std::int8_t output = -1;    ///< its number among the operands of the call
    std::int8_t buffer = -1;    ///< in scratch
    std::int8_t last_read = 0;  ///< of this value's op
  };
  struct op {
    void (*tile)(const tile_call&);
    std::int8_t in[3];
    std::int8_t count = 0;
    std::int8_t value;
  };

  // Inputs are the first values of a region.
  void add(int i, const kernel::micro_op& m) {
    op& o = ops_[op_count_++];
    o.tile = p_.word_ops[s_.first_word + i]->tile;
    o.value = static_cast<std::int8_t>(i);
    for (int in : {m.a, m.b, m.c}) {
      if (in == kernel::micro_op::none) break;
      o.in[o.count++] = static_cast<std::int8_t>(in);
      values_[in].last_read = o.value;
      if (in < s_.inputs) last_read_ = o.value;
    }
    if (m.output) values_[i].output = next_output();
  }
  std::int8_t next_output() { return static_cast<std::int8_t>(s_.inputs + outputs_++); }
  /// What sums of columns read is there until the end of a piece.
  [[gnu::cold]] void keep_summed() {
    for (int i = s_.inputs; i < s_.words; ++i) {
      const auto m = kernel::micro_op::of(p_.words[s_.first_word + i]);
      if (!m.column) continue;
      values_[m.a].last_read = static_cast<std::int8_t>(s_.words);
      if (m.a < s_.inputs) last_read_ = s_.words;
    }
  }

  // An op may write over an operand of the same width that nothing reads later. An output keeps its
  // buffer, because it may have to wait there.
  [[gnu::cold]] void assign_buffers() {
    bool taken[max_values] = {};
    for (int k = 0; k < op_count_; ++k) {
      const op& o = ops_[k];
      value& v = values_[o.value];
      auto leave = [&](bool same_width) {
        for (int j = 0; j < o.count; ++j) {
          const value& in = values_[o.in[j]];
          const bool dies = in.buffer >= 0 && in.output < 0 && in.last_read == o.value;
          if (dies && (in.bytes == v.bytes) == same_width) taken[in.buffer] = false;
        }
      };
      leave(true);
      v.buffer = 0;
      while (taken[v.buffer]) ++v.buffer;
      leave(false);
      taken[v.buffer] = v.output >= 0 || v.last_read > o.value;
      buffers_ = std::max<std::int64_t>(buffers_, v.buffer + 1);
    }
  }

  static void run(const op& o, char* const* at, const std::int64_t* steps, std::int64_t n) {
    void* pointers[4];
    std::int64_t strides[4];
    for (int j = 0; j < o.count; ++j) {
      pointers[j] = at[o.in[j]];
      strides[j] = steps[o.in[j]];
    }
    pointers[o.count] = at[o.value];
    strides[o.count] = 1;
    o.tile({pointers, strides, n});
  }

  /// Whether an op after value i reads an input that has this memory (an update in place).
  bool read_after(int i, const tile_call& call, const void* memory) const {
    for (int k = 0; k < s_.inputs; ++k)
      if (call.pointers[k] == memory && values_[k].last_read > i) return true;
    return false;
  }

  const program& p_;
  const step& s_;
  value values_[max_values];
  op ops_[max_values];
  int op_count_ = 0, outputs_ = 0;
  int last_read_ = 0;  ///< of inputs: by the op of this value
  std::int64_t widest_ = 1, buffers_ = 0;
};
using tile_region = basic_tile_region<void>;

}  // namespace xla::detail
