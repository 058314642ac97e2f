// SPDX-License-Identifier: Apache-2.0
#pragma once

// broadcast_tensors(). Broadcasting within ops needs no call: shape rules do it.

#include <utility>

#include "xla/op/reshape.hpp"

namespace xla {

/// Two tensors under the sizes to which they broadcast. Sizes that do not broadcast are a
/// shape_error.
template <class T, int A, class U, int B>
constexpr auto broadcast_tensors(const Tensor<T, A>& a, const Tensor<U, B>& b,
                                 caller loc = here()) {
  constexpr int rank = detail::broadcast_rank(A, B);
  detail::size_table* const table = a.table() ? a.table() : b.table();
  const detail::size_scope scope{table, {"broadcast_tensors", loc}};
  const detail::shape all = scope.broadcast(a.dims(), b.dims());
  const auto under = [&]<class V, int R>(Tensor<V, R> x) {
    if constexpr (R == rank) {
      bool has_them = true;
      for (int i = 0; i < rank; ++i) has_them &= scope.find(x.dims()[i]) == scope.find(all[i]);
      if (has_them) return x;
    }
    if (__builtin_is_constant_evaluated() && table && !x.owner())
      x.name_node(table->owner, x.lift(table->owner));
    return detail::with_shape<op::expand, rank>(x, all, loc);
  };
  return std::pair(under(a), under(b));
}

}  // namespace xla
