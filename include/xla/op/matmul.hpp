// SPDX-License-Identifier: Apache-2.0
#pragma once

// matmul(), its op and its gradient. Kernels are in kernel/gemm/; mm, bmm, addmm and others are
// functions over it (derived/linalg.hpp, derived/matrix.hpp).

#include "xla/op/arithmetic.hpp"
#include "xla/op/op.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/reshape.hpp"

namespace xla::detail {

/// The precision of a product of tensors of T, as xla::autocast sets it: for this thread at run
/// time, for an operand's graph in constant evaluation.
template <class T>
constexpr precision product_precision(const handle& a, const handle& b) {
  if constexpr (!std::is_same_v<T, float>) return precision::float32;
  else {
    if (!__builtin_is_constant_evaluated()) return machine_of<T>::product_precision();
    const graph* const g = a.owner() ? a.owner() : b.owner();
    return g ? g->products : precision::float32;
  }
}

template <class T>
constexpr any_tensor<T> gradient_product(const any_tensor<T>& a, const any_tensor<T>& b, bool ta,
                                         bool tb, precision p, bool of_steps = false);
}

namespace xla::op {

/// Matrix products over the last two axes; earlier axes broadcast. Either operand may be
/// transposed, and both rounded first. Sums of products of bfloat16 are floats.
struct matmul {
  static constexpr auto name = "matmul";
  static constexpr op_kind kind = op_kind::library;
  static constexpr int takes_axes = 2;
  static constexpr int prepares = 1;
  static constexpr bool has_algorithms = true;
  struct attributes {
    bool transpose_a = false;
    bool transpose_b = false;
    detail::precision precision{};
    bool half_a = false;  ///< of floats: stored as bfloat16, see transform/bfloat16_storage.hpp
    bool half_b = false;
    /// Rows of one step of scan(), or of all: summed in the order of products of over 4 rows, see
    /// transform/batch_products.hpp.
    bool of_steps = false;
    XLA_ATTRIBUTES(transpose_a, transpose_b, precision, half_a, half_b, of_steps)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    const shape &a = r.in[0], &b = r.in[1];
    const auto [ta, tb, p, ha, hb, of_steps] = r.attributes<matmul>();
    shape batch_a = a, batch_b = b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    shape s = r.sizes.broadcast(batch_a, batch_b);
    detail::extent inner = a[a.rank - (ta ? 2 : 1)];
    if (!r.sizes.equal(inner, b[b.rank - (tb ? 1 : 2)])) {
      detail::text t("cannot multiply ");
      t << a << (ta ? " transposed" : "") << " by " << b << (tb ? " transposed" : "")
        << ": inner sizes " << inner << " and " << b[b.rank - (tb ? 1 : 2)] << " differ";
      r.sizes.fail(t);
    }
    s.push(a[a.rank - (ta ? 1 : 2)]);
    s.push(b[b.rank - (tb ? 2 : 1)]);
    return s;
  }
  /// (products, m, n, k), or (m, n, k) of a single product.
  static constexpr shape loops(const shape* in, const shape& out, const attributes& a) {
    shape batch = out, s;
    batch.rank -= 2;
    if (count(batch) != 1) s.push(count(batch));
    s.push(out[out.rank - 2]);
    s.push(out[out.rank - 1]);
    s.push(in[0][in[0].rank - (a.transpose_a ? 2 : 1)]);
    return s;
  }
  static constexpr void gradient(auto& g) {
    const auto [ta, tb, p, ha, hb, of_steps] = g.attributes();
    const auto a = g.in(0), b = g.in(1);
    const auto d = detail::narrowed<typename decltype(a)::value_type>(g.grad());
    if (g.needs(0))
      g.to(0, ta ? detail::gradient_product(b, d, tb, true, p)
                 : detail::gradient_product(d, b, false, !tb, p, of_steps));
    if (g.needs(1))
      g.to(1, tb ? detail::gradient_product(d, a, true, ta, p)
                 : detail::gradient_product(a, d, !ta, false, p));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::matmul, fractions);

namespace xla {
namespace detail {

/// In the type of the sums.
template <int R, class T, int A, int B>
constexpr Tensor<computed<T>, R> wide_product(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                              bool transpose_a, bool transpose_b,
                                              caller loc = unknown_caller) {
  const precision p =
      std::is_same_v<T, bfloat16> ? precision::bfloat16 : product_precision<T>(a, b);
  const bool of_steps = R == 2 && p == precision::float32 && !transpose_a && a.scanned();
  return apply_at<op::matmul, computed<T>, T, R>(
      loc, with<op::matmul>({transpose_a, transpose_b, p, false, false, of_steps}), a, b);
}
template <int R, class T, int A, int B>
constexpr Tensor<T, R> product(const Tensor<T, A>& a, const Tensor<T, B>& b, bool transpose_a,
                               bool transpose_b, caller loc = unknown_caller) {
  return narrowed<T>(wide_product<R>(a, b, transpose_a, transpose_b, loc));
}
/// The same in a gradient rule, with the precision of the differentiated product.
template <class T>
constexpr any_tensor<T> gradient_product(const any_tensor<T>& a, const any_tensor<T>& b, bool ta,
                                         bool tb, precision p, bool of_steps) {
  return narrowed<T>(apply<op::matmul, computed<T>, T, dynamic_rank>(
      with<op::matmul>({ta, tb, p, false, false, of_steps}), a, b));
}

/// (…, k) times a matrix: all leading axes as rows of one product.
template <class T, int R>
constexpr Tensor<T, R> rows_times(const Tensor<T, R>& x, const Tensor<T, 2>& w, bool transposed,
                                  caller loc) {
  if constexpr (R == 2) return product<2>(x, w, false, transposed, loc);
  else {
    const shape from = x.dims();
    shape rows;
    rows.push(-1);
    rows.push(from[R - 1]);
    const auto y = product<2>(with_shape<op::reshape, 2>(x, rows), w, false, transposed, loc);
    shape to = from;
    to[R - 1] = y.dims()[1];
    return with_shape<op::reshape, R>(y, to);
  }
}

}  // namespace detail

/// Matrix product: (m, k) and (k, n); with more axes a batch of products, leading axes broadcast.
/// Sizes that cannot be multiplied are a shape_error that names both.
template <class T, int A, int B>
constexpr auto matmul(const Tensor<T, A>& a, const Tensor<T, B>& b, caller loc = here()) {
  static_assert(A >= 1 && B >= 1 && (A >= 2 || B >= 2),
                "xla::matmul: needs a matrix; for two vectors write sum(a * b)");
  static_assert(!std::is_same_v<T, bool>, "xla::matmul: needs numbers, not bool; cast first");
  if constexpr (A == 1) {
    return detail::drop_axes<B - 1, T>(matmul(unsqueeze(a, 0), b, loc),
                                       detail::axis_set::one(B - 2));
  } else if constexpr (B == 1) {
    return detail::drop_axes<A - 1, T>(matmul(a, unsqueeze(b, 1), loc),
                                       detail::axis_set::one(A - 1));
  } else if constexpr (B == 2) {
    return detail::rows_times(a, b, false, loc);
  } else {
    return detail::product<(A > B ? A : B)>(a, b, false, false, loc);
  }
}

/// x times the transpose of weight: (…, in) and (out, in), like torch.nn.functional.linear. Another
/// size of in is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> linear(const Tensor<T, R>& x, const Tensor<T, 2>& weight,
                              caller loc = here()) {
  static_assert(R >= 2, "xla::linear: needs a batch, (…, in); add an axis with unsqueeze(x, 0)");
  return detail::rows_times(x, weight, true, loc);
}
/// The same plus bias (out).
template <class T, int R>
constexpr Tensor<T, R> linear(const Tensor<T, R>& x, const Tensor<T, 2>& weight,
                              const Tensor<T, 1>& bias, caller loc = here()) {
  return detail::map_binary<op::add, T>(linear(x, weight, loc), bias, loc);
}

}  // namespace xla
