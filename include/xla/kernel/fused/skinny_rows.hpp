// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps over skinny rows, where starting a row costs as much as its few elements. If operands are
// read row after row, or repeat one row (a number per channel), several rows run as one, over
// adjacent copies of that row. loops.hpp calls it.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "xla/kernel/fused/loop_nest.hpp"
#include "xla/kernel/memory/thread_scratch.hpp"

namespace xla::kernel {

namespace detail {

/// Whether an operand of two axes is the same row each time.
inline bool repeats(const loop_nest& l, int operand) {
  const std::int64_t* const on = l.strides[operand];
  return on[0] == 0 && on[1] == 1 && l.sizes[0] > 1;
}

template <class = void>
[[gnu::cold]] std::int64_t count_joined(const loop_nest& l, std::int64_t few) {
  constexpr std::int64_t many = 1024, copied = 1 << 14;
  const std::int64_t n = l.sizes[1];
  std::int64_t bytes = 0;
  for (int k = 0; k < l.operands; ++k) {
    if (repeats(l, k)) bytes += n * l.bytes[k];
    else if (l.strides[k][0] != l.strides[k][1] * n) return 1;
  }
  if (bytes == 0) return 1;
  const std::int64_t rows = std::min(many / n, copied / bytes);
  return rows * n > 2 * few ? rows : 1;
}

}  // namespace detail

/// How many rows are worth running as one; 1 if none are.
inline std::int64_t rows_to_join(const loop_nest& l) {
  constexpr std::int64_t few = 128, least = 4096;
  return l.axes != 2 || l.sizes[1] > few || l.elements < least ? 1 : detail::count_joined(l, few);
}

/// Points repeating operands to copies of their row, which stay valid until this thread makes
/// others: for one map at a time.
template <class = void>
[[gnu::cold]] void repeat_rows(const loop_nest& l, std::int64_t rows, void** operands) {
  constexpr std::int64_t line = 64;
  const auto length = [&](int k) { return rows * l.sizes[1] * l.bytes[k]; };
  std::int64_t all = 0;
  for (int k = 0; k < l.operands; ++k)
    if (detail::repeats(l, k)) all += length(k) + line;
  struct copies;
  char* to = static_cast<char*>(thread_scratch<copies>(all));
  for (int k = 0; k < l.operands; ++k) {
    if (!detail::repeats(l, k)) continue;
    std::int64_t done = l.sizes[1] * l.bytes[k];
    std::memcpy(to, operands[k], static_cast<std::size_t>(done));
    for (std::int64_t next; done < length(k); done += next) {
      next = std::min(done, length(k) - done);
      std::memcpy(to + done, to, static_cast<std::size_t>(next));
    }
    operands[k] = to;
    to += (done + line - 1) / line * line;
  }
}

/// The loops over this many rows at a time, without the rest.
template <class = void>
[[gnu::cold]] loop_nest join_rows(const loop_nest& l, std::int64_t rows) {
  loop_nest joined = l;
  joined.sizes[0] /= rows;
  joined.sizes[1] *= rows;
  joined.elements = joined.sizes[0] * joined.sizes[1];
  for (int k = 0; k < l.operands; ++k) joined.strides[k][0] *= rows;
  return joined;
}

}  // namespace xla::kernel
