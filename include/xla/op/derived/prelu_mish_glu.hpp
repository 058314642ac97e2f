// SPDX-License-Identifier: Apache-2.0
#pragma once

// prelu(), mish() and glu(), composed of other ops.

#include "xla/op/arithmetic.hpp"
#include "xla/op/compare.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// x where it is above 0, elsewhere x times a weight: one for all, or one for each index along axis
/// 1. Another number of weights is a shape_error. He et al. (2015).
template <class T, int R>
constexpr Tensor<T, R> prelu(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                             caller loc = here()) {
  static_assert(floating_type<T>, "xla::prelu: needs float or double; cast first");
  const detail::size_scope scope{x.table() ? x.table() : weight.table(), {"prelu", loc}};
  detail::extent n = weight.dims()[0];
  if constexpr (R > 1) {
    if (!(detail::is_known(n) && n == 1)) {
      detail::shape s;
      for (int i = 0; i < R; ++i) s.push(i == 1 ? n : 1);
      if (!scope.equal(n, x.dims()[1]))
        scope.fail(detail::text("weights ") << weight.dims() << " for x of shape " << x.dims()
                                            << ", whose axis 1 is another: give one, or as many");
      return where(x > 0, x, x * detail::with_shape<op::reshape, R>(weight, s, loc));
    }
  } else if (!scope.equal(n, 1)) {
    scope.fail(detail::text("weights ") << weight.dims() << " for x of shape " << x.dims()
                                        << ", which has no axis 1: give one");
  }
  return where(x > 0, x, x * detail::with_shape<op::reshape, 0>(weight, detail::shape{}, loc));
}

/// x tanh(softplus(x)) of each element. Misra (2019).
template <class T, int R>
constexpr Tensor<T, R> mish(const Tensor<T, R>& x) {
  static_assert(floating_type<T>, "xla::mish: needs float or double; cast first");
  return x * tanh(softplus(x));
}

/// The first half of x along an axis times the sigmoid of the second. A size that is odd is a
/// shape_error, and so is an axis that does not exist. Dauphin et al. (2017).
template <class T, int R>
constexpr Tensor<T, R> glu(const Tensor<T, R>& x, int axis = -1, caller loc = here()) {
  static_assert(floating_type<T>, "xla::glu: needs float or double; cast first");
  static_assert(R != 0, "xla::glu: a tensor without axes has no halves");
  const detail::call_site site{"glu", loc};
  const int at = detail::axis_of(x, R, axis, site);
  const detail::size_scope scope{x.table(), site};
  const Size half = x.size(at) / 2;
  detail::extent all = x.dims()[at];
  if (!scope.equal(all, (half * 2).extent()))
    scope.fail(detail::text("axis ") << axis << " of " << x.dims() << " has no two halves");
  return narrow(x, at, 0, half, loc) * sigmoid(narrow(x, at, half, half, loc));
}

}  // namespace xla
