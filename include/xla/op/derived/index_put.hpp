// SPDX-License-Identifier: Apache-2.0
#pragma once

// index_put(): writes at several indices at once, by one joined index.

#include "xla/op/index_select.hpp"

namespace xla {
namespace detail {

struct index_put_name {
  static constexpr auto name = "index_put";
};

/// The indices of the first axes as one index of those axes merged; each in range. sizes: those to
/// which they broadcast.
template <class T, int R, int I, std::size_t N>
constexpr Tensor<std::int64_t, I> joined_index(const Tensor<T, R>& x,
                                               const Tensor<std::int64_t, I> (&indices)[N],
                                               shape& sizes, caller loc) {
  const size_scope scope{x.table() ? x.table() : indices[0].table(), {index_put_name::name, loc}};
  auto joined = check_index<index_put_name>(indices[0], x.size(0), loc);
  sizes = indices[0].dims();
  for (std::size_t k = 1; k < N; ++k) {
    const int axis = static_cast<int>(k);
    sizes = scope.broadcast(sizes, indices[k].dims());
    joined = joined * x.size(axis) + check_index<index_put_name>(indices[k], x.size(axis), loc);
  }
  return joined;
}

/// True when values of the one shape broadcast to the other; else they are refused.
constexpr bool fit_indices(const size_scope& scope, const shape& values, const shape& to) {
  bool fit = true;
  for (int i = 0; i < values.rank; ++i)
    if (extent e = values[i]; e != 1) fit = scope.equal(e, to[to.rank - values.rank + i]) && fit;
  if (!fit)
    scope.fail(text("values of shape ")
               << values << " do not broadcast to " << to
               << ": the sizes of the indices, then of the axes without one");
  return fit;
}

}  // namespace detail

/// x with the elements at indices of the first axes replaced by values: index_put(x, {i, j}, v) is
/// x[i, j] = v, with accumulate x[i, j] += v. The indices broadcast; the values have their sizes,
/// then those of the other axes, or broadcast to them. Of several values for one index the last
/// counts, and it alone has a gradient; accumulated, all are added in order. An index outside [0,
/// size) is an index_error.
template <class T, int R, int I, std::size_t N, int V>
constexpr Tensor<T, R> index_put(const Tensor<T, R>& x, const Tensor<std::int64_t, I> (&indices)[N],
                                 const Tensor<T, V>& values, bool accumulate = false,
                                 caller loc = here()) {
  constexpr int kept = R - static_cast<int>(N), all = I + kept;
  static_assert(kept >= 0, "xla::index_put: more indices than the tensor has axes");
  static_assert(V <= all, "xla::index_put: the values have more axes than the indices choose");
  const detail::call_site site{"index_put", loc};
  detail::shape to;
  const auto index = detail::joined_index(x, indices, to, loc);
  Size rows = 1, row = 1;
  for (int i = 0; i < R - kept; ++i) rows = rows * x.size(i);
  for (int i = R - kept; i < R; ++i) row = row * x.size(i), to.push(x.dims()[i]);

  const detail::size_scope scope{x.table() ? x.table() : index.table(), site};
  if (!detail::fit_indices(scope, values.dims(), to)) return x;
  const auto at = flatten(index);
  const auto source = detail::with_shape<op::expand, all>(values, to, loc);
  const auto lines = reshape(x, {rows, row}), parts = reshape(source, {at.size(0), row});
  const auto put = [&](auto op) {
    return detail::with_shape<op::reshape, R>(
        detail::put_along<decltype(op)>(lines, 0, at, parts, loc), x.dims(), loc);
  };
  if (!accumulate) return put(op::index_copy{});
  if constexpr (!std::is_same_v<T, bool>) return put(op::index_add{});
  scope.fail("bool cannot be accumulated; cast first");
  return x;
}
/// The same with one number at all indices.
template <class T, int R, int I, std::size_t N>
constexpr Tensor<T, R> index_put(const Tensor<T, R>& x, const Tensor<std::int64_t, I> (&indices)[N],
                                 detail::number_of<T> value, bool accumulate = false,
                                 caller loc = here()) {
  return index_put(x, indices, value.element(x.table()), accumulate, loc);
}

}  // namespace xla
