// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of a long k and a small c by `dot`, such as the weight's gradient of a convolution
// of one pixel: threads share the blocks of k. bfloat16.hpp chooses it.

#include "xla/kernel/gemm/dot.hpp"
#if XLA_HAS_DOT

#include <algorithm>
#include <cstddef>

#include "xla/kernel/gemm/gemm.hpp"
#include "xla/kernel/reduce/block_sum.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

template <class A, class B>
using dot_product = product<bfloat16_tile, dot_left<matrix_view<A>>, dot_right<matrix_view<B>>>;

/// Whether the tiles of c give threads less work to share than the blocks of k do.
template <class P>
bool shares_blocks(const P& p) {
  constexpr index_t most = 1 << 16;
  return num_threads() > 1 && p.depths > 1 && p.m * p.n <= most && p.m * p.n * p.k >= worth_sharing;
}

/// Computes every block of k separately, the first in c itself; then adds them in order, as a
/// single thread does.
template <class A, class B>
void multiply_blocks(const dot_product<A, B>& p) {
  constexpr index_t least_rows = 64;
  const index_t down =
      std::clamp<index_t>(4 * num_threads() / p.depths, 1, std::max(p.m / least_rows, index_t{1}));
  ::xla::detail::working_memory memory;
  float* const parts = static_cast<float*>(
      memory.take(static_cast<std::size_t>((p.depths - 1) * p.m * p.n) * sizeof(float)));
  const auto part_of = [&](index_t block) { return parts + (block - 1) * p.m * p.n; };
  parallel_for(p.depths * down, [&](index_t i) {
    const index_t block = i / down;
    const range ks = p.block(block), rows = part(p.m, bfloat16_tile::rows, down, i % down);
    const strided_rows<float> all = block == 0 ? p.c : strided_rows<float>{part_of(block), p.n};
    const index_t k = 2 * ks.begin;
    dot_product<A, B> one{rows.size(),
                          p.n,
                          ks.size(),
                          {p.a.view.from(rows.begin, k), p.a.k - k},
                          {p.b.view.from(k, 0), p.b.k - k},
                          all.from(rows.begin, 0)};
    one.cut();
    multiply_part(one, {0, one.m}, {0, one.n});
  });
  for_ranges(p.m, p.n * p.depths, [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i)
      for (index_t block = 1; block < p.depths; ++block)
        column_sums<float>{p.c.row(i), nullptr}.add({part_of(block) + i * p.n, nullptr}, p.n,
                                                    false);
  });
  p.made({0, p.m}, {0, p.n}, p.block(p.depths - 1));
}

}  // namespace xla::kernel::detail

#endif
