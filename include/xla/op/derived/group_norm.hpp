// SPDX-License-Identifier: Apache-2.0
#pragma once

// group_norm() and instance_norm(), composed of other ops.

#include "xla/op/derived/batch_norm.hpp"

namespace xla {
namespace detail {

/// The number of elements in a channel of x (N, C, …).
template <class T, int R>
constexpr extent channel_size(const Tensor<T, R>& x, const size_scope& scope) {
  extent n = 1;
  for (int i = 2; i < R; ++i) n = scope.multiply(n, x.dims()[i]);
  return n;
}

/// Mean and variance of each group of channels of each sample of x (N, C, …), repeated per channel:
/// (N, C, 1, …). Sums are over the positions of each channel first, so that images may have any
/// layout.
template <class T, int R>
struct sample_moments {
  Tensor<T, R> mean, variance;
  Size count;  ///< of the elements of a group

  constexpr sample_moments(const Tensor<T, R>& x, extent groups, extent each,
                           const size_scope& scope)
      : count(scope.multiply(each, channel_size(x, scope)), scope.table) {
    mean = average(x, groups, each);
    variance = average(map_binary<op::center_square, T>(x, mean), groups, each);
  }
  constexpr Tensor<T, R> norm(const Tensor<T, R>& x, const number<T>& eps) const {
    return center_scale(x, mean, rsqrt(variance + eps));
  }
  constexpr Tensor<T, R> norm(const Tensor<T, R>& x, const number<T>& eps,
                              const Tensor<T, 1>& weight, const Tensor<T, 1>& bias) const {
    const auto scale = rsqrt(variance + eps) * per_channel<R>(weight);
    return center_scale(x, mean, scale) + per_channel<R>(bias);
  }

 private:
  constexpr Tensor<T, R> average(const Tensor<T, R>& x, extent groups, extent each) const {
    const auto sums = R == 2 ? widened(x) : reduce<op::sum>(widened(x), axis_set::range(2, R));
    if (each == 1) return narrowed<T>(sums / count);
    shape rows;
    rows.push(x.dims()[0]);
    rows.push(groups);
    rows.push(each);
    const auto all = reduce<op::sum>(with_shape<op::reshape, 3>(sums, rows), axis_set::one(2));
    const auto mean = with_shape<op::expand, 3>(narrowed<T>(all / count), rows);
    return with_shape<op::reshape, R>(mean, sums.dims());
  }
};

/// The same for a public function, whose arguments are not checked yet.
template <class T, int R>
constexpr sample_moments<T, R> moments_of_groups(const Tensor<T, R>& x, std::int64_t num_groups,
                                                 const number<T>& eps, const call_site& site) {
  check_eps(x, eps);
  const shape s = x.dims();
  const size_scope scope{x.table(), site};
  if (num_groups < 1)
    scope.fail(text("num_groups is ") << num_groups << ", and has to be at least 1");
  const std::int64_t groups = num_groups < 1 ? 1 : num_groups;
  const extent each = scope.divide(s[1], groups);
  if (extent all = scope.multiply(each, groups); !scope.equal(all, s[1]))
    scope.fail(text("the ") << s[1] << " channels of " << s << " are not a multiple of " << groups
                            << " groups");
  return {x, groups, each, scope};
}

/// The statistics of each channel of each sample.
template <class T, int R>
constexpr sample_moments<T, R> moments_of_samples(const Tensor<T, R>& x, const number<T>& eps,
                                                  const call_site& site) {
  static_assert(R >= 3, "xla::instance_norm: needs (N, C, L) or (N, C, H, W)");
  check_eps(x, eps);
  const size_scope scope{x.table(), site};
  const Size size{channel_size(x, scope), x.table()};
  scope.nonzero((size - 1).extent(),
                "instance_norm: a channel of one element has no variance to divide by");
  return {x, x.dims()[1], 1, scope};
}

/// Moves running statistics towards the means of these over the samples, by momentum; the variance
/// towards its unbiased estimate.
template <class T, int R>
constexpr void move_to_samples(const sample_moments<T, R>& now, const Buffer<T, 1>& running_mean,
                               const Buffer<T, 1>& running_var, const Tensor<T, 0>& rate,
                               const call_site& site) {
  const Size samples = now.mean.size(0);
  size_scope{now.mean.table(), site}.nonzero(
      samples.extent(), "instance_norm: the batch is empty, it has no mean to train with");
  const auto move = [&](const Buffer<T, 1>& running, const Tensor<T, R>& moment) {
    const auto sum = reduce<op::sum>(widened(moment.detach()), axis_set::one(0));
    axis_set ones = axis_set::range(2, R);
    ones.add(0);
    const Tensor<T, 1> mean = drop_axes<1, T>(narrowed<T>(sum / samples), ones);
    running.copy_(running.detach() * (1 - rate) + mean * rate);
  };
  move(running_mean, now.mean);
  move(running_var, now.variance * now.count / (now.count - 1));
}

}  // namespace detail

/// x (N, C, …), each sample's channels in groups of equal size, minus the group's mean and divided
/// by its standard deviation. Then multiplied by weight and increased by bias, if given, with one
/// element per channel. A number of channels that is not a multiple of the groups, or another
/// number of parameters, is a shape_error. Wu and He (2018).
template <class T, int R>
constexpr Tensor<T, R> group_norm(const Tensor<T, R>& x, std::int64_t num_groups,
                                  detail::number_of<T> eps = 1e-5, caller loc = here()) {
  static_assert(R >= 2, "xla::group_norm: needs (N, C, …)");
  return detail::moments_of_groups(x, num_groups, eps, {"group_norm", loc}).norm(x, eps);
}
template <class T, int R>
constexpr Tensor<T, R> group_norm(const Tensor<T, R>& x, std::int64_t num_groups,
                                  const Tensor<T, 1>& weight, const Tensor<T, 1>& bias,
                                  detail::number_of<T> eps = 1e-5, caller loc = here()) {
  static_assert(R >= 2, "xla::group_norm: needs (N, C, …)");
  const detail::call_site site{"group_norm", loc};
  detail::check_affine(x, weight, bias, site);
  return detail::moments_of_groups(x, num_groups, eps, site).norm(x, eps, weight, bias);
}

/// x (N, C, …), each channel of each sample minus its mean and divided by its standard deviation.
/// Then multiplied by weight and increased by bias, if given, with one element per channel. Another
/// number of them, or channels of one element, which have no variance, are a shape_error. Ulyanov
/// et al. (2016).
template <class T, int R>
constexpr Tensor<T, R> instance_norm(const Tensor<T, R>& x, detail::number_of<T> eps = 1e-5,
                                     caller loc = here()) {
  return detail::moments_of_samples(x, eps, {"instance_norm", loc}).norm(x, eps);
}
template <class T, int R>
constexpr Tensor<T, R> instance_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                     const Tensor<T, 1>& bias, detail::number_of<T> eps = 1e-5,
                                     caller loc = here()) {
  const detail::call_site site{"instance_norm", loc};
  detail::check_affine(x, weight, bias, site);
  return detail::moments_of_samples(x, eps, site).norm(x, eps, weight, bias);
}

/// The same with running statistics, one element each per channel: with use_input_stats momentum
/// moves them towards the means over the samples, else they replace the samples' own. An empty
/// batch is a shape_error if they would move.
template <class T, int R>
constexpr Tensor<T, R> instance_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                     const Buffer<T, 1>& running_var, const Tensor<T, 1>& weight,
                                     const Tensor<T, 1>& bias, bool use_input_stats,
                                     detail::number_of<T> momentum = 0.1,
                                     detail::number_of<T> eps = 1e-5, caller loc = here()) {
  const detail::call_site site{"instance_norm", loc};
  detail::check_affine(x, weight, bias, site);
  detail::check_statistics(x, running_mean, running_var, eps, site);
  if (!use_input_stats)
    return detail::norm_by_running(x, running_mean, running_var, weight, bias, eps);
  const auto samples = detail::moments_of_samples(x, eps, site);
  detail::move_to_samples(samples, running_mean, running_var, momentum.tensor(), site);
  return samples.norm(x, eps, weight, bias);
}
template <class T, int R>
constexpr Tensor<T, R> instance_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                     const Buffer<T, 1>& running_var, bool use_input_stats,
                                     detail::number_of<T> momentum = 0.1,
                                     detail::number_of<T> eps = 1e-5, caller loc = here()) {
  const detail::call_site site{"instance_norm", loc};
  detail::check_statistics(x, running_mean, running_var, eps, site);
  if (!use_input_stats) return detail::norm_by_running(x, running_mean, running_var, eps);
  const auto samples = detail::moments_of_samples(x, eps, site);
  detail::move_to_samples(samples, running_mean, running_var, momentum.tensor(), site);
  return samples.norm(x, eps);
}
// Running statistics without use_input_stats would be taken for weights.
template <class T, int R>
void instance_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                   const Buffer<T, 1>& running_var) = delete;

}  // namespace xla
