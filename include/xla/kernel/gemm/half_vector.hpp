// SPDX-License-Identifier: Apache-2.0
#pragma once

// A micro-kernel for columns that fill half of their last vector: two rows share a vector of sums
// there. 24 columns then take 3 multiply-adds for two rows instead of 4. Where half a vector takes
// half the time, each row has half a vector of its own. Direct convolutions use it.

#include <type_traits>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/micro_kernel.hpp"

namespace xla::kernel::detail {

/// Whether vectors can be halved by few instructions.
template <class T>
inline constexpr bool has_half_vectors =
#ifdef XLA_ISA_HALF_VECTORS
    std::is_same_v<T, float>;
using isa::join_halves, isa::load_half, isa::multiply_add_half, isa::store_half, isa::store_halves;
#else
    false;
#endif

/// Whether the processor splits vectors in two, as a Zen 4 does: 24 columns of 56 x 56 pixels of
/// 144 channels then take 0.8 of the time without pairs of rows, on 2026-11-29.
template <class = void>
inline const bool splits_vectors =
#ifdef XLA_ISA_HALF_VECTORS
    __builtin_cpu_is("amdfam19h");
#else
    false;
#endif

/// Sums in the order of micro_kernel(), for this many whole vectors of columns and half a vector,
/// which pairs of rows share or not.
template <int Rows, int Vectors, bool Shared, class T, class MicroPanel, class Result>
void half_kernel(const micro_call<T, MicroPanel, Result>& call) {
  using vector = packet<T>;
  constexpr int width = lanes<T>;
  const T* __restrict b = call.b;
  const index_t b_step = call.b_step;
  constexpr int share = Shared ? 2 : 1;  // rows of a vector of halves
  vector sum[Rows][Vectors], halves[Rows / share];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    halves[i / share] = simd::pset1<vector>(T{0});
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) sum[i][j] = simd::pset1<vector>(T{0});
  }
  if (call.c.fetches())
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j <= Vectors; ++j) call.c.fetch(i, j * width);
  call.a.template visit<Rows>(call.depth, [&](const auto& left) XLA_INLINE_LAMBDA {
    vector row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) row[j] = simd::ploadu<vector>(b + j * width);
    const vector half = load_half(b + Vectors * width, Shared);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i += 2) {
      const vector one = simd::pset1<vector>(left(i)), other = simd::pset1<vector>(left(i + 1));
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) {
        sum[i][j] = simd::pmadd(one, row[j], sum[i][j]);
        sum[i + 1][j] = simd::pmadd(other, row[j], sum[i + 1][j]);
      }
      if constexpr (Shared) {
        halves[i / 2] = simd::pmadd(join_halves(one, other), half, halves[i / 2]);
      } else {
        halves[i] = multiply_add_half(one, half, halves[i]);
        halves[i + 1] = multiply_add_half(other, half, halves[i + 1]);
      }
    }
    b += b_step;
  });
  const Result c = call.c;
  const bool first = call.first;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; i += 2) {
    T* to[2] = {c.row(i), c.row(i + 1)};
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        T* const at = to[r] + j * width;
        simd::pstoreu(at,
                      first ? sum[i + r][j] : simd::padd(simd::ploadu<vector>(at), sum[i + r][j]));
      }
    for (T*& at : to) at += Vectors * width;
    if constexpr (Shared) {
      store_halves(to[0], to[1], halves[i / 2], first);
    } else {
      store_half(to[0], halves[i], first);
      store_half(to[1], halves[i + 1], first);
    }
  }
}

/// A tile whose last vector may be half a one.
template <class T, int Rows, int Vectors, bool Shared = true>
struct half_tile : tile<T, Rows, Vectors> {
  static constexpr int width = lanes<T>;

  template <class MicroPanel, class Result>
  static void multiply(micro_call<T, MicroPanel, Result>&& call, index_t height, index_t wide) {
    if (wide == width + width / 2) return by_rows<1>(call, height);
    if constexpr (Vectors > 2)
      if (wide == 2 * width + width / 2) return by_rows<2>(call, height);
    tile<T>::multiply(std::move(call), height, wide);
  }

 private:
  template <int Before, class MicroPanel, class Result>
  static void by_rows(micro_call<T, MicroPanel, Result>& call, index_t height) {
    const auto all = [&](auto rows) {
      for (; height >= rows; height -= rows) {
        half_kernel<rows, Before, Shared>(call);
        call.a = call.a.below(rows);
        call.c = call.c.from(rows, 0);
      }
    };
    all(std::integral_constant<int, Rows>{});
    all(std::integral_constant<int, 4>{});
    all(std::integral_constant<int, 2>{});
    call.tail = width / 2;
    if (height > 0) micro_kernel<1, Before + 1>(call);
  }
};

}  // namespace xla::kernel::detail
