// SPDX-License-Identifier: Apache-2.0
#pragma once

// ragged_dot(): products of groups of rows with one matrix each, composed of other ops.

#include "xla/op/clip.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/logical.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/where.hpp"

namespace xla {

/// Products of groups of rows of x (rows, k) with one matrix each of weight (groups, k, n), as
/// mixtures of experts need: the first group_sizes[0] rows with weight[0], the following ones with
/// weight[1], and so on. The result is (rows, n), and 0 for remaining rows. A negative size counts
/// as 0, and missing rows are skipped, so that any sizes are valid.
///
/// Every group multiplies all rows, because sizes of tensors are known before the values of
/// group_sizes: the work is `groups` times that of x with one matrix, the memory (groups, rows, n).
/// It corresponds to jax.lax.ragged_dot and torch_xla's gmm. Other sizes of k or groups are a
/// shape_error.
template <class T>
constexpr Tensor<T, 2> ragged_dot(const Tensor<T, 2>& x, const Tensor<T, 3>& weight,
                                  const Tensor<std::int64_t, 1>& group_sizes, caller loc = here()) {
  static_assert(floating_type<T>, "xla::ragged_dot: needs float or double; cast first");
  auto* const table = x.table() ? x.table() : weight.table();
  const detail::size_scope scope{table, {"ragged_dot", loc}};
  detail::extent groups = group_sizes.dims()[0], inner = x.dims()[1];
  if (!scope.equal(groups, weight.dims()[0]))
    scope.fail(detail::text("") << groups << " group sizes for a weight of " << weight.dims()
                                << ", which is (groups, k, n)");
  if (!scope.equal(inner, weight.dims()[1]))
    scope.fail(detail::text("cannot multiply ")
               << x.dims() << " by matrices of " << weight.dims() << ": inner sizes differ");
  const auto sizes = clamp_min(group_sizes, 0);
  const auto ends = unsqueeze(cumsum(sizes, 0, loc), 1);  // (groups, 1)
  const auto row = arange<std::int64_t>(x.size(0));
  const auto own = logical_and(row >= ends - unsqueeze(sizes, 1), row < ends);  // (groups, rows)
  return sum(where(unsqueeze(own, 2), matmul(x, weight, loc), 0), {0});
}

}  // namespace xla
