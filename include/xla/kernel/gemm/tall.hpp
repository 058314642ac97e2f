// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of few columns: tall tiles, of many rows, which read an element of a for each
// multiply-add or two. Direct convolutions use it.

#include <type_traits>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/left_operand.hpp"

namespace xla::kernel::detail {

/// Rows of a, contiguous along k, with a pointer to every third; the others have fixed offsets from
/// it. An offset per row would need too many registers: g++ 12 then takes 1.3 times as long for one
/// column of vectors. Far rows follow one another in memory, and the next ones are prefetched.
template <class T, bool Far>
struct tall_micro_panel {
  const T* data;
  index_t row;

  tall_micro_panel below(index_t rows) const { return {data + rows * row, row}; }

  template <int Rows, class F>
  [[gnu::always_inline]] void visit(index_t depth, F f) const {
    constexpr index_t unit = 3, count = (Rows + unit - 1) / unit;
    const index_t next = row;
    const T* at[count];
#pragma GCC unroll 8
    for (index_t g = 0; g < count; ++g) at[g] = xla::detail::hidden(data + g * unit * next);
    [[maybe_unused]] const T* coming = data + fetched_ahead;
    for (index_t k = 0; k < depth; ++k) {
      if constexpr (Far) {
#pragma GCC unroll 8
        for (index_t i = 0; i < Rows; i += line_of<T>) XLA_PREFETCH(coming + i, 0, 3);
        coming += Rows;
      }
      f([&](index_t i) { return at[i / unit][i % unit * next]; });
#pragma GCC unroll 8
      for (index_t g = 0; g < count; ++g) at[g] = xla::detail::hidden(at[g] + 1);
    }
  }

 private:
  static constexpr index_t fetched_ahead = 8192 / element_size<T>;
};

/// Such rows as a left operand.
template <class T, bool Far>
struct tall_left {
  const T* data;
  index_t row;

  tall_micro_panel<T, Far> read(range some, range ks) const {
    return {data + some.begin * row + ks.begin, row};
  }
  static constexpr index_t grain() { return 16; }
  upcoming<T> ahead(range, range, index_t) const { return {}; }
};

/// A tile of one vector of columns, by kernels of Rows, 8, 4, 2 and 1 rows.
template <class T, int Rows>
struct tall_tile : tile<T, Rows, 1> {
  template <class MicroPanel, class Result>
  static void multiply(micro_call<T, MicroPanel, Result>&& call, index_t height, index_t wide) {
    call.tail = static_cast<int>(wide);
    const auto all = [&](auto rows) {
      for (; height >= rows; height -= rows) {
        micro_kernel<rows, 1>(call);
        call.a = call.a.below(rows);
        call.c = call.c.from(rows, 0);
      }
    };
    all(std::integral_constant<int, Rows>{});
    all(std::integral_constant<int, 8>{});
    all(std::integral_constant<int, 4>{});
    all(std::integral_constant<int, 2>{});
    all(std::integral_constant<int, 1>{});
  }
};

}  // namespace xla::kernel::detail
