// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/batch_norm.hpp"

namespace xla {
namespace detail {

/// x (N, C, …) seen as rows of (N, groups, size), each less its mean and over its deviation.
template <class T, int R>
constexpr Tensor<T, R> normalize_rows(const Tensor<T, R>& x, extent groups, extent size,
                                      const number_of<T>& eps) {
  shape rows;
  rows.push(x.dims()[0]);
  rows.push(groups);
  rows.push(size);
  return with_shape<op::reshape, R>(layer_norm(with_shape<op::reshape, 3>(x, rows), eps), x.dims());
}

/// How many elements a channel of x (N, C, …) has.
template <class T, int R>
constexpr extent channel_size(const Tensor<T, R>& x, const size_scope& scope) {
  extent n = 1;
  for (int i = 2; i < R; ++i) n = scope.multiply(n, x.dims()[i]);
  return n;
}

}  // namespace detail

/// x (N, C, …), each sample's channels in groups of the same number, each group less its mean and
/// over its standard deviation. Then times weight plus bias, where they are given, one element each
/// per channel. Channels that are not a multiple of the groups, or another number of parameters,
/// are a shape_error. Wu and He (2018).
template <class T, int R>
constexpr Tensor<T, R> group_norm(const Tensor<T, R>& x, std::int64_t num_groups,
                                  detail::number_of<T> eps = 1e-5, caller who = here()) {
  static_assert(R >= 2, "xla::group_norm: needs (N, C, …)");
  const detail::shape s = x.dims();
  const detail::size_scope scope{x.table(), {"group_norm", who}};
  if (num_groups < 1) {
    scope.fail(detail::text("num_groups is ") << num_groups << ", and has to be at least 1");
    return x;
  }
  const detail::extent each = scope.divide(s[1], num_groups);
  if (detail::extent all = scope.multiply(each, num_groups); !scope.equal(all, s[1])) {
    scope.fail(detail::text("the ") << s[1] << " channels of " << s << " are not a multiple of "
                                    << num_groups << " groups");
    return x;
  }
  return detail::normalize_rows(x, num_groups, scope.multiply(each, channel_size(x, scope)), eps);
}
template <class T, int R>
constexpr Tensor<T, R> group_norm(const Tensor<T, R>& x, std::int64_t num_groups,
                                  const Tensor<T, 1>& weight, const Tensor<T, 1>& bias,
                                  detail::number_of<T> eps = 1e-5, caller who = here()) {
  detail::check_affine(x, weight, bias, {"group_norm", who});
  return group_norm(x, num_groups, eps, who) * detail::per_channel<R>(weight) +
         detail::per_channel<R>(bias);
}

/// x (N, C, …), each channel of each sample less its mean and over its standard deviation. Then
/// times weight plus bias, where they are given, one element each per channel. Another number of
/// them, or channels of one element, which have no variance, are a shape_error. Ulyanov et al.
/// (2016).
template <class T, int R>
constexpr Tensor<T, R> instance_norm(const Tensor<T, R>& x, detail::number_of<T> eps = 1e-5,
                                     caller who = here()) {
  static_assert(R >= 3, "xla::instance_norm: needs (N, C, L) or (N, C, H, W)");
  const detail::size_scope scope{x.table(), {"instance_norm", who}};
  const Size size{detail::channel_size(x, scope), x.table()};
  scope.nonzero((size - 1).extent(),
                "instance_norm: a channel of one element has no variance to divide by");
  return detail::normalize_rows(x, x.dims()[1], size.extent(), eps);
}
template <class T, int R>
constexpr Tensor<T, R> instance_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                     const Tensor<T, 1>& bias, detail::number_of<T> eps = 1e-5,
                                     caller who = here()) {
  detail::check_affine(x, weight, bias, {"instance_norm", who});
  return instance_norm(x, eps, who) * detail::per_channel<R>(weight) + detail::per_channel<R>(bias);
}

}  // namespace xla
