// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products by a matrix that is packed once for many products, such as those of a loop's steps. They
// have the bits of gemm(), for more than 4 rows.

#include <algorithm>

#include "xla/kernel/gemm/long_k.hpp"

namespace xla::kernel {
namespace detail {

/// All of b, as pack_panels() packs it.
template <class T>
struct packed_right {
  using element = T;
};
template <class T>
using packed_product = product<tile<T>, strided_left<tile<T>, matrix_view<T>>, packed_right<T>>;

}  // namespace detail

/// The number of elements of b(k, n), packed.
template <class T>
detail::index_t packed_size(detail::index_t n, detail::index_t k) {
  detail::packed_product<T> p{1, n, k, {}, {}, {}};
  p.cut();
  return packed_block(p, n) * p.depths;
}
template <class T>
void pack_matrix(detail::index_t n, detail::index_t k, matrix_view<T> b, T* to) {
  detail::ordinary_product<T> p{1, n, k, {}, {b}, {}};
  p.cut();
  pack_panels(p, {0, n}, {0, p.depths}, to);
}
/// c(m, n) = a(m, k) · b, packed, for m over 4 and k of one piece (longest_piece).
template <class T>
void multiply_by_packed(detail::index_t m, detail::index_t n, detail::index_t k, const T* a,
                        const T* b, T* c) {
  using namespace detail;
  packed_product<T> p{m, n, k, {{a, k, 1}}, {}, {c, n}};
  p.cut();
  const index_t work = m * n * k;
  const bool alone = work < worth_sharing || num_threads() == 1;
  multiply_panels(p, b, alone ? 1 : std::clamp<index_t>(work / chunk_work, 1, 16 * num_threads()));
}

}  // namespace xla::kernel
