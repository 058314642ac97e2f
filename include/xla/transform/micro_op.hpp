// SPDX-License-Identifier: Apache-2.0
#pragma once

// One operation of a fused region, packed into a word. Lowering writes it; the templates in
// kernel/fused/ and the tiles of recorded graphs read it. A region's kernel is made from a list of
// them.

#include <cstdint>

#include "xla/shape/dtype.hpp"

namespace xla::kernel {

/// One value of a fused region, in a word, for short symbols and cheap comparison. Operands are
/// earlier values of the region.
struct micro_op {
  static constexpr int none = 63;
  std::uint32_t id = 0;  ///< of the op; 0 for an input
  dtype type = dtype::float32;
  int a = none, b = none, c = none;
  bool input = false;
  bool invariant = false;  ///< input: one value per call (map) or per row (row)
  bool output = false;     ///< stored to memory
  bool reduce = false;
  bool column = false;  ///< a reduction over all axes but the last
  bool index = false;   ///< input: an index of type std::int64_t into each row

  constexpr std::uint64_t word() const {
    return std::uint64_t{id} | std::uint64_t(type) << 32 | std::uint64_t(a) << 36 |
           std::uint64_t(b) << 42 | std::uint64_t(c) << 48 | std::uint64_t(input) << 54 |
           std::uint64_t(invariant) << 55 | std::uint64_t(output) << 56 |
           std::uint64_t(reduce) << 57 | std::uint64_t(column) << 58 | std::uint64_t(index) << 59;
  }
  static constexpr std::uint64_t no_operands =
      std::uint64_t{none} << 36 | std::uint64_t{none} << 42 | std::uint64_t{none} << 48;

  /// The word of an input.
  static constexpr std::uint64_t input_word(dtype type, bool invariant, bool index) {
    return no_operands | std::uint64_t(type) << 32 | std::uint64_t{1} << 54 |
           std::uint64_t(invariant) << 55 | std::uint64_t(index) << 59;
  }
  /// The word of an op that has no operands yet.
  static constexpr std::uint64_t op_word(std::uint32_t id, dtype type, bool output, bool reduce,
                                         bool column) {
    return no_operands | id | std::uint64_t(type) << 32 | std::uint64_t(output) << 56 |
           std::uint64_t(reduce) << 57 | std::uint64_t(column) << 58;
  }
  /// The word with value i as operand k, which was unset.
  static constexpr std::uint64_t with(std::uint64_t word, int k, int i) {
    return word ^ static_cast<std::uint64_t>(none ^ i) << (36 + 6 * k);
  }
  static constexpr micro_op of(std::uint64_t w) {
    micro_op m;
    m.id = static_cast<std::uint32_t>(w);
    m.type = static_cast<dtype>(w >> 32 & 15);
    m.a = static_cast<int>(w >> 36 & 63);
    m.b = static_cast<int>(w >> 42 & 63);
    m.c = static_cast<int>(w >> 48 & 63);
    m.input = w >> 54 & 1;
    m.invariant = w >> 55 & 1;
    m.output = w >> 56 & 1;
    m.reduce = w >> 57 & 1;
    m.column = w >> 58 & 1;
    m.index = w >> 59 & 1;
    return m;
  }
};

}  // namespace xla::kernel
