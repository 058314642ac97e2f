// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions whose result's size depends on values, such as nonzero(). They read their input at
// once, so compiled bodies refuse them.

#include <vector>

#include "xla/base/dependent.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/index_select.hpp"

namespace xla {
namespace detail {

/// Refuses a function whose result's size depends on elements. True in a compiled body.
constexpr bool refuse_data_size(const handle& x, const call_site& site) {
  if (!__builtin_is_constant_evaluated()) return false;
  if (!x.owner()) throw std::logic_error("xla: a size that depends on elements needs run time");
  x.table()->refused.set(
      text(site.function)
      << "() makes a tensor whose size only the elements tell: in a compiled body keep all of them "
         "and choose with xla::where, or pad to a fixed size"
      << site.at);
  return true;
}

template <class T>
dependent<T, std::vector<std::int64_t>> indices_of(const T* x, std::int64_t n) {
  dependent<T, std::vector<std::int64_t>> indices;
  for (std::int64_t i = 0; i < n; ++i)
    if (x[i] != T{}) indices.push_back(i);
  return indices;
}

template <class T, int R>
Tensor<std::int64_t, 2> read_nonzero(const Tensor<T, R>& x) {
  machine_of<T>::count_fallback("nonzero");
  dependent<T, std::vector<std::int64_t>> out;
  const shape s = x.dims();
  const dependent<T, std::vector<std::int64_t>> indices = indices_of(x.data(), count(s));
  for (std::int64_t index : indices) {
    std::int64_t at[max_rank] = {};
    for (int i = R - 1; i >= 0; --i) {
      at[i] = index % s[i];
      index /= s[i];
    }
    out.insert(out.end(), at, at + R);
  }
  return from_blob(out.data(), {indices.size(), R});
}

template <class T, int R>
Tensor<std::int64_t, 1> read_mask(const Tensor<T, R>& mask) {
  machine_of<T>::count_fallback("masked_select");
  const dependent<T, std::vector<std::int64_t>> indices =
      indices_of(mask.data(), count(mask.dims()));
  return from_blob(indices.data(), {indices.size()});
}

}  // namespace detail

/// The indices of the elements that are not 0, in order: (n, rank). Reads x, so it runs pending
/// ops; counts as fallback::nonzero. Refused in a compiled body.
template <class T, int R>
constexpr Tensor<std::int64_t, 2> nonzero(const Tensor<T, R>& x, caller loc = here()) {
  using index = std::conditional_t<std::is_void_v<T>, T, std::int64_t>;  // dependent, for clang
  if (detail::refuse_data_size(x, {"nonzero", loc})) return full<index>({1, R}, 0);
  return detail::read_nonzero(x);
}

/// The elements of x under a mask, in order, as one axis; both broadcast. Reads the mask, so it
/// runs pending ops; counts as fallback::masked_select. Refused in a compiled body.
template <class T, int A, int B>
constexpr Tensor<T, 1> masked_select(const Tensor<T, A>& x, const Tensor<bool, B>& mask,
                                     caller loc = here()) {
  constexpr int rank = detail::broadcast_rank(A, B);
  if (detail::refuse_data_size(x.owner() ? detail::handle(x) : detail::handle(mask),
                               {"masked_select", loc}))
    return full<T>({1}, T{});
  const detail::shape s =
      detail::size_scope{nullptr, {"masked_select", loc}}.broadcast(x.dims(), mask.dims());
  const auto indices = detail::read_mask(detail::broadcast_to<rank>(mask, s));
  const auto all = reshape(detail::broadcast_to<rank>(x, s), {detail::count(s)});
  return detail::select_along(all, 0, indices);
}

namespace detail {
/// x[mask] and x[index].
template <class T, int R, class U, int I>
constexpr auto choose(const Tensor<T, R>& x, const Tensor<U, I>& by) {
  const size_scope scope{x.table(), "operator[]"};
  constexpr bool mask = std::is_same_v<U, bool>;
  static_assert(mask || std::is_same_v<U, std::int64_t>,
                "xla: x[index] takes an index of std::int64_t; convert it: "
                "xla::cast<std::int64_t>(index)");
  static_assert(mask || I == 0 || I == 1,
                "xla: x[index] takes an index of one axis, or of none; of more it is "
                "xla::embedding(index, x), xla::gather or xla::take_along_dim");
  static_assert(!mask || I == R || I == 1,
                "xla: x[mask] takes a mask of x's axes, or of its first one");
  if constexpr (!mask) {
    if constexpr (!std::is_same_v<U, std::int64_t> || (I != 0 && I != 1)) {
      return x;  // refused above
    } else if constexpr (I == 0) {
      const Tensor<T, R> row = index_select(x, 0, reshape(by, {1}, unknown_caller), unknown_caller);
      shape rest;
      for (int i = 1; i < R; ++i) rest.push(row.dims()[i]);
      return with_shape<op::reshape, R - 1>(row, rest);
    } else {
      return index_select(x, 0, by, unknown_caller);
    }
  } else {
    const shape s = x.dims(), m = by.dims();
    if (!__builtin_is_constant_evaluated() && (s[0] != m[0] || (I == R && !scope.same(s, m))))
      scope.fail(text("a mask of shape ") << m << " for a tensor of shape " << s);
    if constexpr (I == R) return masked_select(x, by, unknown_caller);
    else return index_select(x, 0, reshape(nonzero(by, unknown_caller), {-1}), unknown_caller);
  }
}
}  // namespace detail

}  // namespace xla
