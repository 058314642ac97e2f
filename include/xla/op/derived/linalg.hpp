// SPDX-License-Identifier: Apache-2.0
#pragma once

// mm(), bmm(), mv(), dot(), outer() and addmm(): matmul() with sizes checked as PyTorch does.
// Decompositions are not there.

#include "xla/op/matmul.hpp"

namespace xla {

/// The product of two matrices: (m, k) and (k, n). Sizes that cannot be multiplied are a
/// shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 2> mm(const Tensor<T, A>& a, const Tensor<T, B>& b, caller loc = here()) {
  static_assert(A == 2 && B == 2, "xla::mm: needs two matrices; see matmul");
  return matmul(a, b, loc);
}

/// A batch of products: (batch, m, k) and (batch, k, n). Sizes that cannot be multiplied are a
/// shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 3> bmm(const Tensor<T, A>& a, const Tensor<T, B>& b, caller loc = here()) {
  static_assert(A == 3 && B == 3, "xla::bmm: needs two tensors with three axes; see matmul");
  return matmul(a, b, loc);
}

/// A matrix times a vector: (m, k) and (k). Sizes that cannot be multiplied are a shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 1> mv(const Tensor<T, A>& a, const Tensor<T, B>& x, caller loc = here()) {
  static_assert(A == 2 && B == 1, "xla::mv: needs a matrix and a vector; see matmul");
  return matmul(a, x, loc);
}

/// The sum of the products of two vectors of one size. Others are a shape_error.
template <class T, int A, int B>
constexpr Tensor<T, 0> dot(const Tensor<T, A>& a, const Tensor<T, B>& b, caller loc = here()) {
  static_assert(A == 1 && B == 1, "xla::dot: needs two vectors; otherwise write sum(a * b)");
  const detail::size_scope scope{a.table() ? a.table() : b.table(), {"dot", loc}};
  if (detail::extent e = a.dims()[0]; !scope.equal(e, b.dims()[0]))
    scope.fail(detail::text("vectors of shape ") << a.dims() << " and " << b.dims());
  return detail::reduce_all<op::sum>(a * b);
}

/// All products of two vectors: (m) and (n) make (m, n).
template <class T, int A, int B>
constexpr Tensor<T, 2> outer(const Tensor<T, A>& a, const Tensor<T, B>& b) {
  static_assert(A == 1 && B == 1, "xla::outer: needs two vectors");
  return unsqueeze(a, 1) * b;
}

/// The factors of addmm.
struct AddmmOptions {
  double beta = 1;   ///< of the input
  double alpha = 1;  ///< of the product
};

/// beta * input + alpha * (a times b), the input broadcast to (m, n). Sizes that cannot be
/// multiplied or broadcast are a shape_error.
template <class T, int R, int A, int B>
constexpr Tensor<T, 2> addmm(const Tensor<T, R>& input, const Tensor<T, A>& a,
                             const Tensor<T, B>& b, AddmmOptions options = {},
                             caller loc = here()) {
  static_assert(R <= 2 && A == 2 && B == 2, "xla::addmm: needs two matrices and what to add");
  auto product = matmul(a, b, loc);
  if (options.alpha != 1) product = product * static_cast<T>(options.alpha);
  if (options.beta == 0) return product;
  if (options.beta == 1) return detail::map_binary<op::add, T>(input, product, loc);
  return detail::map_binary<op::add, T>(input * static_cast<T>(options.beta), product, loc);
}

}  // namespace xla
