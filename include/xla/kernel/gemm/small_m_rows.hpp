// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of small m: chooses the loop of small_m.hpp for the layout of b, and shares columns
// among threads. gemm.hpp and bfloat16.hpp call multiply_small_m().

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "xla/base/system/per_thread.hpp"
#include "xla/kernel/gemm/small_m.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"

namespace xla::kernel::detail {

/// A product of matrices by strides, for code that needs no other operands.
template <class T, class A = T, class B = T>
struct strided_product {
  index_t m, n, k;
  matrix_view<A> a;
  matrix_view<B> b;
  strided_rows<T> c;
  const epilogue* after = nullptr;
};

/// Calls f with the rows from `i` on, as many as a kernel computes; returns how many.
template <class T, class B, class F>
index_t with_rows(const strided_product<T, T, B>& p, index_t i, index_t column, F&& f) {
  const small_m_rows<T> x{p.a.data + i * p.a.row_stride, p.a.row_stride, p.c.row(i) + column,
                          p.c.step, p.k};
  const index_t rest = p.m - i;
  if (rest >= 4) return f(x, std::integral_constant<int, 4>{}), 4;
  if (rest >= 2) return f(x, std::integral_constant<int, 2>{}), 2;
  return f(x, std::integral_constant<int, 1>{}), 1;
}

/// One row times whole vectors of the given columns, each contiguous along k; leaves the others.
/// Memory is fastest if it is read in long runs. So a row of several parts is multiplied part after
/// part only if b is likely to be in the cache. A matrix somewhat larger than the cache is read by
/// turns from its begin and from its end: most of it is then found there.
template <class T>
void multiply_row(const strided_product<T>& p, range& columns) {
  constexpr index_t some = 8 * lanes<T>, round = small_m<T>::round, most = row_rounds * round;
  const index_t whole = columns.size() / lanes<T> * lanes<T>,
                bytes = columns.size() * p.k * element_size<T>;
  if (p.k > most ? p.k % most != 0 || 3 * bytes > 4 * own_memory<> : p.k % round != 0) return;
  bool from_end = false;
  if (bytes > own_memory<> && bytes <= 3 * own_memory<> && columns.size() == p.n) {
    const auto page = reinterpret_cast<std::uintptr_t>(p.b.data) / 4096;
    const std::uint64_t bit = std::uint64_t{1} << page % 64;
    // A bit for all matrices of one remainder: whether they were last read from their end.
    from_end = (sys::per_thread<std::uint64_t, struct last_end>() ^= bit) & bit;
  }
  const auto run = p.k == round       ? &dot_rows<T, 1, 1>
                   : p.k == 2 * round ? &dot_rows<T, 1, 2>
                   : p.k == 3 * round ? &dot_rows<T, 1, 3>
                                      : &dot_rows<T, 1, row_rounds>;
  for (index_t i = 0; i < whole; i += some) {
    const index_t first = from_end ? std::max<index_t>(whole - i - some, 0) : i,
                  end = from_end ? whole - i : std::min(i + some, whole);
    const index_t j = columns.begin + first;
    run({p.a.data, 0, p.c.row(0) + j, 0, p.k}, p.b.from(0, j).data, p.b.col_stride, end - first);
  }
  columns.begin += whole;
}

/// Two to four rows times whole vectors of the given columns, if b is likely to be in the cache:
/// the rows two by two, as more do not fit into registers.
template <class T>
void multiply_pairs(const strided_product<T>& p, range& columns) {
  constexpr int rounds = row_rounds / 2;
  constexpr index_t width = lanes<T>, round = small_m<T>::round;
  const index_t end = columns.begin + columns.size() / width * width,
                bytes = columns.size() * p.k * element_size<T>;
  const bool one = p.k == round;
  if (!one && (p.k % (rounds * round) != 0 || 3 * bytes > 4 * own_memory<>)) return;
  const auto pair = one ? &dot_rows<T, 2, 1> : &dot_rows<T, 2, rounds>,
             row = one ? &dot_rows<T, 1, 1> : &dot_rows<T, 1, rounds>;
  for (index_t& j = columns.begin; j < end; j += width)
    for (index_t i = 0; i < p.m; i += 2)
      (i + 1 < p.m ? pair : row)(
          {p.a.data + i * p.a.row_stride, p.a.row_stride, p.c.row(i) + j, p.c.step, p.k},
          p.b.from(0, j).data, p.b.col_stride, width);
}

#if defined(__AVX__)  // with shorter vectors it is not worth its size
/// One row times the given columns, each contiguous along k, if b is likely to come from memory:
/// both halves at once, in whole vectors; leaves the others. The hardware prefetcher anticipates
/// both runs: on a Zen 3 on 2026-11-30 one run took 1.10 to 1.32 times as long.
template <class T>
void multiply_halves(const strided_product<T>& p, range& columns) {
  constexpr index_t width = lanes<T>;
  const index_t half = columns.size() / width / 2 * width;
  if (2 * half * p.k * element_size<T> <= own_memory<>) return;
  for (index_t j = columns.begin, end = j + half; j < end; j += width)
    dot_two_tiles<T>(p.a.data, p.k, {p.b.from(0, j).data, p.b.from(0, j + half).data},
                     p.b.col_stride, {p.c.row(0) + j, p.c.row(0) + j + half});
  columns.begin += 2 * half;
}
#endif

/// Some columns of a product of small m; a is contiguous along k.
template <class T, class B>
void multiply_small_m_columns(const strided_product<T, T, B>& p, range columns) {
  constexpr index_t width = lanes<T>;
  if (p.b.col_stride == 1 && p.b.row_stride != 1) {
    const index_t parts = (columns.size() + strip_columns<T> - 1) / strip_columns<T>;
    for (index_t s = 0; s < parts; ++s) {
      const range some = part(columns.size(), width, parts, s);
      const index_t j = columns.begin + some.begin;
      for (index_t i = 0; i < p.m;)
        i += with_rows(p, i, j, [&](const small_m_rows<T>& x, auto rows) {
          axpy_strip(x, int{rows}, p.b.from(0, j), some.size());
        });
    }
    return;
  }
  const bool strided = p.b.row_stride != 1 && p.k > 1;
  if constexpr (keeps_rows<T> && std::is_same_v<T, B>)
    if (!strided) p.m == 1 ? multiply_row(p, columns) : multiply_pairs(p, columns);
#if defined(__AVX__)
  if constexpr (std::is_same_v<T, B>)
    if (!strided && p.m == 1) multiply_halves(p, columns);
#endif
  B* packed = strided ? right_scratch().get<B>(width * p.k) : nullptr;
  for (index_t j = columns.begin; j < columns.end; j += width) {
    const index_t count = std::min(width, columns.end - j);
    const auto b = p.b.from(0, j);
    for (index_t q = 0; strided && q < count; ++q)
      for (index_t k = 0; k < p.k; ++k)
        packed[q * p.k + k] = b.data[k * b.row_stride + q * b.col_stride];
    for (index_t i = 0; i < p.m;)
      i += with_rows(p, i, j, [&](const small_m_rows<T>& x, auto rows) {
        dot_tile<T, rows>(x, strided ? packed : b.data, strided ? p.k : b.col_stride, count);
      });
  }
}

/// A product of small m: its columns are shared among threads.
template <class T, class B>
void multiply_small_m(strided_product<T, T, B> p) {
  constexpr index_t worth_sharing = 1 << 17, chunk_work = 1 << 16;
  if (p.a.col_stride != 1 && p.k > 1) {
    T* packed = left_scratch().get<T>(p.m * p.k);
    for (index_t i = 0; i < p.m; ++i)
      for (index_t k = 0; k < p.k; ++k)
        packed[i * p.k + k] = p.a.data[i * p.a.row_stride + k * p.a.col_stride];
    p.a = {packed, p.k, 1};
  }
  const index_t threads = num_threads(), work = p.n * p.k;
  if (threads == 1 || work < worth_sharing) return multiply_small_m_columns(p, {0, p.n});
  const index_t vectors = (p.n + lanes<T> - 1) / lanes<T>;
  const index_t parts = std::clamp<index_t>(work / chunk_work, 1, std::min(vectors, 4 * threads));
  parallel_for(parts,
               [&](index_t i) { multiply_small_m_columns(p, part(p.n, lanes<T>, parts, i)); });
}

}  // namespace xla::kernel::detail
