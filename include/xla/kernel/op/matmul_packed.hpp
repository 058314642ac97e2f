// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of small m by a matrix whose packed form its buffer caches, from the second call on:
// inference multiplies by the same weights in every call. Including this header sets the pointer of
// gemm/packed_call.hpp. xla::runtime does so; programs of headers alone do not link these kernels.

#include <cstdint>

#include "xla/kernel/call.hpp"
#include "xla/kernel/gemm/packed_call.hpp"
#include "xla/kernel/gemm/packed_matrix.hpp"
#include "xla/kernel/memory/cached_form.hpp"
#include "xla/op/matmul.hpp"

namespace xla::kernel {

/// A buffer's elements, packed as b(k, n).
template <class T>
class cached_matrix final : public cached_elements {
 public:
  /// The packed form, which another call has requested; nullptr at the first request, because a
  /// form that is used once is not worth its memory.
  static const T* of(xla::detail::buffer& owner, std::int64_t n, std::int64_t k, matrix_view<T> b) {
    for (auto* f = owner.forms.load(std::memory_order_acquire); f; f = f->next) {
      if (f->kind != &kind_of_these) continue;
      auto* const found = static_cast<cached_matrix*>(f);
      if (found->n_ != n || found->k_ != k || found->by_rows_ != (b.col_stride == 1)) continue;
      return found->template get<T>(packed_size<T>(n, k),
                                    [&](T* to) { pack_matrix<T>(n, k, b, to); });
    }
    owner.keep(*new cached_matrix(n, k, b.col_stride == 1));
    return nullptr;
  }

 private:
  cached_matrix(std::int64_t n, std::int64_t k, bool by_rows)
      : cached_elements(&kind_of_these), n_(n), k_(k), by_rows_(by_rows) {}

  static constexpr char kind_of_these = 0;
  std::int64_t n_, k_;
  bool by_rows_;
};

namespace detail {

/// Whether a packed form of b pays: packing waits for the memory, the product of a packed form does
/// not. Whole networks with their form in so much of the time without, a Zen 3 on 2026-11-30, one
/// text or image, 1 and 2 threads:
///   BERT-base, 128 tokens  .92  .93      MiniLM, 128 tokens             .88  .93 to .99
///   ViT-B/16               .92  .98      MiniLM, 46 tokens              .94  .99
///                                        8 times 46 tokens, not chosen  1.02  .83 to .94
/// With weights in the third cache of a Zen 4 a product of 5 to 10 rows took .70 to .91, of 16 to
/// 64 rows .70 to 1.07, of 128 rows .95 to .98. Large matrices would take too much memory twice.
template <class T>
bool pays_packed(const strided_product<T>& p) {
  constexpr index_t most_rows = 256, least = 1 << 12, most = 1 << 22;
  if (p.m <= small_m<T>::rows || p.m > most_rows || p.n < 2 || p.k > longest_piece<T>) return false;
  return p.n * p.k >= least && p.n * p.k <= most;
}

/// See packed_matmul.
template <class T>
bool multiply_by_cached(const ::xla::detail::kernel_call& call,
                        ::xla::detail::kernel_choice* choice) {
  const auto about = call.attributes<::xla::op::matmul>();
  const auto &b = call.in_shapes[1], &c = *call.out_shape;
  const index_t m = c[c.rank - 2], n = c[c.rank - 1], all = count(b);
  if (about.transpose_a || count(c) != m * n || n == 0) return false;
  const index_t k = all / n;
  const bool tb = about.transpose_b;
  strided_product<T> p{m, n, k, {nullptr, k, 1}, {nullptr, tb ? 1 : n, tb ? k : 1}, {nullptr, n}};
  if (!pays_packed(p)) return false;
  if (choice) {
    choice->cached = packed_size<T>(n, k) * index_t{sizeof(T)};
    return true;
  }
  p.b.data = static_cast<const T*>(call.in[1]);
  const T* const packed = cached_matrix<T>::of(*call.cache_owner, n, k, p.b);
  if (packed)
    multiply_by_packed<T>(m, n, k, static_cast<const T*>(call.in[0]), packed,
                          static_cast<T*>(call.out));
  return packed != nullptr;
}

}  // namespace detail

inline const bool packs_matrices =
    (the_packed_matmul.store(&detail::multiply_by_cached<float>, std::memory_order_relaxed), true);

}  // namespace xla::kernel
