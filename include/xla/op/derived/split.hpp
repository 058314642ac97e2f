// SPDX-License-Identifier: Apache-2.0
#pragma once

// chunk(), split() and unbind(): slices.

#include <array>

#include "xla/op/slice.hpp"

namespace xla {

/// N parts of equal size along an axis, in order. If the axis does not divide, the last parts are
/// smaller, as in torch.chunk, or empty; a size known only at run time must divide. An axis that
/// does not exist is a shape_error.
template <int N, class T, int R>
constexpr std::array<Tensor<T, R>, N> chunk(const Tensor<T, R>& x, int axis = 0,
                                            caller loc = here()) {
  static_assert(N > 0 && R != 0, "xla::chunk<N>: needs a tensor with axes and one part or more");
  const detail::call_site site{"chunk", loc};
  const int at = detail::checked_axis(x, axis, site);
  const Size n = x.size(at), part = n.known() ? (n + (N - 1)) / N : n / N;
  detail::extent all = n.extent();
  if (!n.known()) detail::size_scope{x.table(), site}.equal(all, (part * N).extent());
  std::array<Tensor<T, R>, N> parts;
  for (int i = 0; i < N; ++i) {
    const bool last = !n.known() && i == N - 1;
    parts[static_cast<std::size_t>(i)] = last ? slice(x, at, part * i, none, 1, loc)
                                              : slice(x, at, part * i, part * (i + 1), 1, loc);
  }
  return parts;
}

/// N parts of equal size along an axis. A size that does not divide is a shape_error.
template <int N, class T, int R>
constexpr std::array<Tensor<T, R>, N> split(const Tensor<T, R>& x, int axis = 0,
                                            caller loc = here()) {
  static_assert(N > 0 && R != 0, "xla::split<N>: needs a tensor with axes and one part or more");
  const detail::call_site site{"split", loc};
  const int at = detail::checked_axis(x, axis, site);
  const Size n = x.size(at);
  if (n.known() && n.extent() % N != 0)
    detail::size_scope{x.table(), site}.fail(detail::text("axis ")
                                             << at << " of " << x.dims() << " does not divide into "
                                             << N << " equal parts");
  return chunk<N>(x, at, loc);
}

/// The N slices along an axis whose size is N, without that axis. Another size is a shape_error.
template <int N, class T, int R>
constexpr std::array<Tensor<T, R - 1>, N> unbind(const Tensor<T, R>& x, int axis = 0,
                                                 caller loc = here()) {
  static_assert(N > 0 && R != 0, "xla::unbind<N>: needs a tensor with axes and one slice or more");
  const detail::call_site site{"unbind", loc};
  const int at = detail::checked_axis(x, axis, site);
  const detail::shape s = x.dims();
  if (detail::extent n = s[at]; !detail::size_scope{x.table(), site}.equal(n, N))
    detail::size_scope{x.table(), site}.fail(detail::text("axis ")
                                             << at << " of " << s << " does not have the size " << N
                                             << " that unbind<" << N << "> says");
  std::array<Tensor<T, R - 1>, N> slices;
  for (int i = 0; i < N; ++i) slices[static_cast<std::size_t>(i)] = select(x, at, i, loc);
  return slices;
}

/// Parts of the given sizes along an axis; they have to add up to its size. Others are a
/// shape_error.
template <class T, int R, std::size_t N>
constexpr std::array<Tensor<T, R>, N> split(const Tensor<T, R>& x, const Size (&sizes)[N],
                                            int axis = 0, caller loc = here()) {
  static_assert(R != 0, "xla::split: a tensor without axes has no parts");
  const detail::call_site site{"split", loc};
  const int at = detail::checked_axis(x, axis, site);
  const detail::size_scope scope{x.table() ? x.table() : detail::table_of(sizes), site};
  Size all = 0;
  bool negative = false;
  for (const Size& s : sizes) {
    negative = negative || (s.known() && s.extent() < 0);
    all = all + s;
  }
  std::array<Tensor<T, R>, N> parts;
  detail::extent n = x.dims()[at];
  if (negative || !scope.equal(n, all.extent())) {
    scope.fail(detail::text("the sizes of the parts do not add up to axis ")
               << at << " of " << x.dims());
    for (auto& p : parts) p = x;
    return parts;
  }
  Size start = 0;
  for (std::size_t i = 0; i < N; ++i) {
    parts[i] = narrow(x, at, start, sizes[i], loc);
    start = start + sizes[i];
  }
  return parts;
}

}  // namespace xla
