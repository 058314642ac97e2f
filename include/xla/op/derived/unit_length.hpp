// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/norm.hpp"
#include "xla/op/minmax.hpp"

namespace xla {

/// Vectors along an axis over their p-norm, or over eps where that is larger: torch's
/// functional.normalize. An axis that is not there is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> normalize(const Tensor<T, R>& x, double p = 2, int axis = 1,
                                 double eps = 1e-12, caller who = here()) {
  static_assert(fraction<T>, "xla::normalize: needs float or double; cast first");
  static_assert(R > 0, "xla::normalize: needs vectors, a tensor with axes");
  return x / maximum(norm(x, p, {axis}, keepdim, who), eps);
}

}  // namespace xla
