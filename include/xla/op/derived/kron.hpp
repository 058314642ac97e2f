// SPDX-License-Identifier: Apache-2.0
#pragma once

// kron() and cross(), composed of other ops.

#include "xla/op/arithmetic.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"

namespace xla {

/// The Kronecker product: every element of a times all of b, block by block. The tensor with fewer
/// axes gets axes of size 1 before its own.
template <class T, int A, int B>
constexpr auto kron(const Tensor<T, A>& a, const Tensor<T, B>& b, caller loc = here()) {
  constexpr int rank = A > B ? A : B;
  static_assert(rank <= 3, "xla::kron: is of tensors of up to three axes");
  if constexpr (rank == 0) {
    return a * b;
  } else {
    Size a_sizes[2 * rank], b_sizes[2 * rank], sizes[rank];
    for (int i = 0; i < rank; ++i) {
      const int in_a = i - (rank - A), in_b = i - (rank - B);
      a_sizes[2 * i] = in_a < 0 ? Size(1) : a.size(in_a);
      b_sizes[2 * i + 1] = in_b < 0 ? Size(1) : b.size(in_b);
      a_sizes[2 * i + 1] = b_sizes[2 * i] = 1;
      sizes[i] = a_sizes[2 * i] * b_sizes[2 * i + 1];
    }
    const auto left = reshape(a, a_sizes, loc);
    return reshape(left * reshape(b, b_sizes, loc), sizes, loc);
  }
}

namespace detail {
struct cross_name {
  static constexpr auto name = "cross";
};
}  // namespace detail

/// The cross product of vectors along an axis of size 3; the other axes broadcast. Another size is
/// a shape_error.
template <class T, int A, int B>
constexpr auto cross(const Tensor<T, A>& a, const Tensor<T, B>& b, int axis = -1,
                     caller loc = here()) {
  static_assert(A == B && A >= 1, "xla::cross: the tensors need the same number of axes, from 1");
  using function = detail::cross_name;
  const int at = detail::axis_of(a, A, axis, {function::name, loc});
  check_size<function>(a, at, 3, loc);
  check_size<function>(b, at, 3, loc);
  const auto part = [&](const auto& x, int i) { return narrow(x, at, i, 1, loc); };
  const auto a0 = part(a, 0), a1 = part(a, 1), a2 = part(a, 2);
  const auto b0 = part(b, 0), b1 = part(b, 1), b2 = part(b, 2);
  const auto minor = [&](const auto& p, const auto& q, const auto& r, const auto& s) {
    const auto first = p * q;
    return first - r * s;
  };
  const auto x = minor(a1, b2, a2, b1);
  const auto y = minor(a2, b0, a0, b2);
  return cat({x, y, minor(a0, b1, a1, b0)}, at, loc);
}

}  // namespace xla
