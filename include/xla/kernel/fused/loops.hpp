// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs kernels of map and row regions over loop nests, on the threads; and for_ranges(), by which
// most kernels divide work. Plans, eager mode and kernels call it.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/loop_nest.hpp"
#include "xla/kernel/fused/skinny_rows.hpp"
#include "xla/kernel/memory/thread_scratch.hpp"
#include "xla/kernel/reduce/block_sum.hpp"
#include "xla/kernel/threads/parallel.hpp"

namespace xla::kernel {

using ::xla::detail::row_call;
using ::xla::detail::tile_call;

/// Below this amount of work, in elements times ops, one thread is faster than several.
inline constexpr std::int64_t parallel_work = 1 << 16;

namespace detail {

/// The body of for_ranges() with its type erased, so that the loop is compiled once.
struct range_body {
  void (*call)(void* body, index_t first, index_t last);
  void* body;
};

template <class = void>
void run_ranges(index_t n, index_t work, range_body f) {
  const index_t all = n * std::max<index_t>(work, 1);
  const index_t chunks =
      all < parallel_work || num_threads() == 1 ? 1 : std::min<index_t>({all / 16384, n, 64});
  if (chunks <= 1) return f.call(f.body, 0, n);
  parallel_for(chunks, [&](index_t c) { f.call(f.body, n * c / chunks, n * (c + 1) / chunks); });
}

}  // namespace detail

/// Calls f(first, last) for ranges that cover [0, n), on the thread pool if there is enough work.
/// `work` is the cost of one index, in elements times ops.
template <class F>
void for_ranges(std::int64_t n, std::int64_t work, F&& f) {
  using body = std::remove_reference_t<F>;
  detail::run_ranges(n, work,
                     {[](void* self, std::int64_t first, std::int64_t last) {
                        (*static_cast<body*>(self))(first, last);
                      },
                      const_cast<void*>(static_cast<const void*>(&f))});
}

/// The kernel of a map region: a function, or an object that is called with its address.
struct tile_kernel {
  void (*tile)(const tile_call&) = nullptr;
  void (*call)(const void* object, const tile_call&) = nullptr;
  const void* object = nullptr;

  void operator()(const tile_call& c) const {
    if (tile) tile(c);
    else call(object, c);
  }
};

template <class = void>
void run_map(const loop_nest& l, tile_kernel kernel, void* const* base, std::int64_t ops = 1);

namespace detail {

/// The same where short rows are joined into long ones.
template <class = void>
[[gnu::cold]] void run_joined(const loop_nest& l, tile_kernel kernel, void* const* base,
                              index_t ops, index_t rows) {
  void* p[max_operands];
  std::copy_n(base, l.operands, p);
  repeat_rows(l, rows, p);
  const index_t rest = l.sizes[0] % rows;
  const loop_nest joined = join_rows(l, rows);
  run_map(joined, kernel, p, ops);
  if (rest == 0) return;
  index_t steps[max_operands];
  for (int k = 0; k < l.operands; ++k) {
    steps[k] = joined.strides[k][1];
    p[k] = static_cast<char*>(p[k]) + joined.sizes[0] * joined.strides[k][0] * l.bytes[k];
  }
  kernel(tile_call{p, steps, rest * l.sizes[1]});
}

}  // namespace detail

/// Runs a map region over its loops, in fixed chunks, on the pool if there is enough work.
template <class>
void run_map(const loop_nest& l, tile_kernel kernel, void* const* base, std::int64_t ops) {
  if (l.elements == 0) return;
  if (const std::int64_t rows = rows_to_join(l); rows > 1)
    return detail::run_joined(l, kernel, base, ops, rows);
  std::int64_t steps[max_operands] = {};
  if (l.axes > 0)
    for (int k = 0; k < l.operands; ++k) steps[k] = l.strides[k][l.axes - 1];
  const std::int64_t inner = l.inner(), rows = l.elements / inner;
  const std::int64_t chunks = l.elements * ops < parallel_work || num_threads() == 1
                                  ? 1
                                  : std::min<std::int64_t>(l.elements * ops / 16384, 64);
  if (rows >= chunks) {
    auto some = [&](std::int64_t c) {
      for_each_row(l, base, rows * c / chunks, rows * (c + 1) / chunks, [&](void* const* p) {
        kernel(tile_call{p, steps, inner});
      });
    };
    if (chunks == 1) return some(0);
    return parallel_for(chunks, some);
  }
  // Splits few long rows at multiples of 64 elements.
  const std::int64_t parts = (chunks + rows - 1) / rows,
                     part = ((inner + parts - 1) / parts + 63) & ~63;
  const std::int64_t pieces = (inner + part - 1) / part;
  parallel_for(rows * pieces, [&](std::int64_t c) {
    const std::int64_t from = c % pieces * part;
    void* p[max_operands];
    std::int64_t at[max_axes];
    find_row(l, base, c / pieces, p, at);
    for (int k = 0; k < l.operands; ++k)
      p[k] = static_cast<char*>(p[k]) + from * steps[k] * l.bytes[k];
    kernel(tile_call{p, steps, std::min(part, inner - from)});
  });
}
XLA_INSTANCE(void run_map<void>(const loop_nest&, tile_kernel, void* const*, std::int64_t));

/// The order of sums of columns over this many rows, for any number of threads: at most 64 parts of
/// the rows are summed on their own, then the parts' sums are added in order. With many rows, a
/// part sums blocks.
struct column_order {
  bool blocks;
  std::int64_t part;

  explicit constexpr column_order(std::int64_t rows)
      : blocks(rows > 64 * 32),
        part(blocks ? (rows + 64 * block_terms - 1) / (64 * block_terms) * block_terms : 32) {}
};

/// The outputs of a row region that are sums of columns: all rows add to the same elements. `lost`
/// is the rounding error of a sum (kernel/reduce/block_sum.hpp).
struct column_outputs {
  int count = 0;
  int operand[max_operands];
  std::int64_t
      offset[max_operands];  ///< offset in the memory for a row of all of them, which takes `bytes`
  std::int64_t width[max_operands];  ///< of an element
  std::int64_t n, bytes = 0;

  column_outputs(const loop_nest& l, int inputs) : n(l.inner()) {
    for (int k = inputs; k < l.operands; ++k) {
      bool same = l.axes > 1;
      for (int i = 0; i + 1 < l.axes; ++i) same &= l.strides[k][i] == 0;
      if (!same) continue;
      operand[count] = k;
      width[count] = l.bytes[k];
      offset[count++] = bytes;
      bytes += (n * l.bytes[k] + 63) / 64 * 64;
    }
  }
  /// Redirects a block's sums to memory of its own.
  void move(void** pointers, char* block) const {
    for (int i = 0; i < count; ++i) pointers[operand[i]] = block + offset[i];
  }
  /// Adds sums, with their rounding errors unless `lost` is null, to the sums of earlier rows.
  [[gnu::noinline]] void add(char* to, char* to_lost, char* sums, char* lost, bool first) const {
    for (int i = 0; i < count; ++i)
      if (width[i] == 4) of<float>(i, to, to_lost).add(of<float>(i, sums, lost), n, first);
      else of<double>(i, to, to_lost).add(of<double>(i, sums, lost), n, first);
  }
  [[gnu::noinline]] void total(char* sums, char* lost, void* const* out) const {
    for (int i = 0; i < count; ++i)
      if (void* to = out[operand[i]]; width[i] == 4)
        of<float>(i, sums, lost).total(static_cast<float*>(to), n);
      else of<double>(i, sums, lost).total(static_cast<double*>(to), n);
  }

 private:
  template <class T>
  column_sums<T> of(int i, char* sums, char* lost) const {
    return {reinterpret_cast<T*>(sums + offset[i]),
            lost ? reinterpret_cast<T*>(lost + offset[i]) : nullptr};
  }
};

/// Where the sums of each block are added when a block of rows is finished.
struct block_target {
  const column_outputs& columns;
  char *sums, *lost, *block;
};

/// Runs the rows in parts by some(pointers, first, last, target), on the pool if asked to. The
/// parts' sums of columns are added in order.
template <class Some>
void run_column_parts(const loop_nest& l, const column_outputs& columns, void* const* base,
                      std::int64_t rows, bool parallel, const Some& some) {
  const column_order order(rows);
  const std::int64_t parts = (rows + order.part - 1) / order.part;
  if (parts <= 1) return some(base, std::int64_t{0}, rows, nullptr);
  const std::int64_t part_bytes = (order.blocks ? 2 : 1) * columns.bytes;
  auto* sums =
      static_cast<char*>(thread_scratch<column_outputs>(part_bytes * (parallel ? parts : 2)));
  auto lost = [&](char* of) { return order.blocks ? of + columns.bytes : nullptr; };
  auto one = [&](std::int64_t c, char* to) {
    const std::int64_t first = c * order.part, last = std::min(rows, first + order.part);
    void* p[max_operands];
    std::copy_n(base, l.operands, p);
    struct one_block;
    block_target target{columns, to, lost(to), to};
    if (order.blocks) target.block = static_cast<char*>(thread_scratch<one_block>(columns.bytes));
    columns.move(p, target.block);
    some(static_cast<void* const*>(p), first, last, order.blocks ? &target : nullptr);
  };
  if (parallel) parallel_for(parts, [&](std::int64_t c) { one(c, sums + c * part_bytes); });
  for (std::int64_t c = 0; c < parts; ++c) {
    char* const to = sums + (parallel ? c : c > 0) * part_bytes;
    if (!parallel) one(c, to);
    if (c > 0) columns.add(sums, lost(sums), to, lost(to), false);
  }
  columns.total(sums, lost(sums), base);
}

/// Runs a row region over its loops; the last axis is the row. Operands from number `inputs` on are
/// written.
template <class = void>
void run_rows(const loop_nest& l, void (*kernel)(const row_call&),
              std::int64_t (*scratch_bytes)(std::int64_t), void* const* base, int inputs,
              std::int64_t ops = 1) {
  const std::int64_t inner = l.inner();
  const std::int64_t block = l.axes > 1 ? l.sizes[l.axes - 2] : 1;  // rows at equal distances
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < l.axes; ++i) rows *= l.sizes[i];
  const column_outputs columns(l, inputs);
  if (rows == 0) {
    for (int i = 0; i < columns.count; ++i)
      std::memset(base[columns.operand[i]], 0,
                  static_cast<std::size_t>(inner * l.bytes[columns.operand[i]]));
    return;
  }
  std::int64_t steps[max_operands] = {};
  for (int k = 0; l.axes > 1 && k < l.operands; ++k)
    steps[k] = l.strides[k][l.axes - 2] * l.bytes[k];
  const std::int64_t scratch = scratch_bytes(inner);
  // Rows at equal distances run one after the other, in blocks if sums are made of blocks.
  auto some = [&](void* const* pointers, std::int64_t first, std::int64_t last,
                  const block_target* target) {
    void* memory = scratch > 0 ? thread_scratch(scratch) : nullptr;
    void* p[max_operands];
    std::int64_t at[max_axes];
    std::int64_t count = 0, near = first, begin = first;
    for (std::int64_t row = first; row < last; row += count) {
      if (row == near) {
        find_row(l, pointers, row, p, at);
        near += block - row % block;
      } else {
        for (int k = 0; k < l.operands; ++k) p[k] = static_cast<char*>(p[k]) + count * steps[k];
      }
      const std::int64_t end = target ? std::min(last, begin + block_terms) : last;
      count = std::min(near, end) - row;
      kernel({p, steps, count, inner, memory, row == begin});
      if (!target || row + count < end) continue;
      target->columns.add(target->sums, target->lost, target->block, nullptr, begin == first);
      begin = end;
    }
  };
  const std::int64_t work = std::max<std::int64_t>(inner, 1) * ops;
  if (columns.count > 0) {
    const bool parallel = rows * work >= parallel_work && num_threads() > 1;
    return run_column_parts(l, columns, base, rows, parallel, some);
  }
  for_ranges(rows, work,
             [&](std::int64_t first, std::int64_t last) { some(base, first, last, nullptr); });
}
XLA_INSTANCE(void run_rows<void>(const loop_nest&, void (*)(const row_call&),
                                 std::int64_t (*)(std::int64_t), void* const*, int, std::int64_t));

}  // namespace xla::kernel
