// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/derived/normalize.hpp"
#include "xla/op/derived/over_axes.hpp"
#include "xla/tensor/state.hpp"

namespace xla {
namespace detail {

/// Refuses a weight, bias or statistic that has not one element per channel of x (N, C, …).
template <class T, int R>
constexpr void check_channels(const Tensor<T, R>& x, const Tensor<T, 1>& p, const call_site& site) {
  static_assert(R >= 2, "xla: needs (N, C, …)");
  const shape s = x.dims(), f = p.dims();
  const size_scope scope{x.table() ? x.table() : p.table(), site};
  if (extent e = s[1]; !scope.equal(e, f[0]))
    scope.fail(text("the channels of ") << s << ", axis 1, and the parameters " << f << " differ");
}

template <class T, int R>
constexpr void check_affine(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                            const Tensor<T, 1>& bias, const call_site& site) {
  check_channels(x, weight, site);
  check_channels(x, bias, site);
}

/// One element per channel under the sizes that broadcast to (N, C, …): (1, C, 1, …).
template <int R, class T>
constexpr Tensor<T, R> per_channel(const Tensor<T, 1>& p) {
  shape s;
  for (int i = 0; i < R; ++i) s.push(i == 1 ? p.dims()[0] : 1);
  return with_shape<op::reshape, R>(p, s);
}

/// All axes of (N, C, …) but the channels.
template <int R>
inline constexpr axis_set around_channels = [] {
  axis_set axes = axis_set::one(0);
  for (int i = 2; i < R; ++i) axes.add(i);
  return axes;
}();

/// x less a mean per channel, and what it is multiplied with.
template <class T, int R>
struct centered {
  Tensor<T, R> x, scale;

  constexpr Tensor<T, R> result() const { return x * scale; }
  constexpr Tensor<T, R> result(const Tensor<T, 1>& weight, const Tensor<T, 1>& bias) const {
    return x * (scale * per_channel<R>(weight)) + per_channel<R>(bias);
  }
};

/// Mean and variance of each channel of a batch, (1, C, 1, …), and of how many elements.
template <class T, int R>
struct batch_moments {
  Tensor<T, R> mean, variance;
  Size count;

  constexpr batch_moments(const Tensor<T, R>& x, const call_site& site)
      : count(count_over(x, around_channels<R>)) {
    const size_scope scope{x.table(), site};
    scope.nonzero(count.extent(), "batch_norm: the batch is empty, it has no mean to train with");
    scope.nonzero((count - 1).extent(),
                  "batch_norm: a batch of one element per channel has no variance to train with; "
                  "eval() the model");
    mean = average(x);
    variance = average(map_binary<op::squared_deviation, T>(x, mean));
  }
  constexpr centered<T, R> center(const Tensor<T, R>& x, const number<T>& eps) const {
    check_eps(x, eps);
    return {x - mean, rsqrt(variance + eps)};
  }
  /// Moves running statistics by a part of the way to these; the variance to its unbiased estimate.
  constexpr void move(const Buffer<T, 1>& running_mean, const Buffer<T, 1>& running_var,
                      const Tensor<T, 0>& rate) const {
    const auto move = [&](const Buffer<T, 1>& running, const Tensor<T, R>& batch) {
      const Tensor<T, 1> now = drop_axes<1, T>(batch.detach(), around_channels<R>);
      running.copy_(running.detach() * (1 - rate) + now * rate);
    };
    move(running_mean, mean);
    move(running_var, variance * count / (count - 1));
  }

 private:
  constexpr Tensor<T, R> average(const Tensor<T, R>& x) const {
    return narrowed<T>(reduce<op::sum>(widened(x), around_channels<R>) / count);
  }
};

/// With the statistics of the batch when training, which also move the running ones, else with
/// these.
template <class T, int R>
constexpr centered<T, R> center_batch(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                      const Buffer<T, 1>& running_var, bool training,
                                      const Tensor<T, 0>& momentum, const number_of<T>& eps,
                                      const call_site& site) {
  check_eps(x, eps);
  check_channels(x, running_mean, site);
  check_channels(x, running_var, site);
  if (!training)
    return {x - per_channel<R>(running_mean), per_channel<R>(rsqrt(running_var + eps))};
  const batch_moments<T, R> batch(x, site);
  batch.move(running_mean, running_var, momentum);
  return batch.center(x, eps);
}

}  // namespace detail

/// x (N, C) or (N, C, …), each channel less its mean and over its standard deviation: those of the
/// batch when training, which then also move the running ones by momentum of the way, else the
/// running ones. Then times weight plus bias, where they are given, one element each per channel;
/// another number of them is a shape_error. A batch of one element per channel has no variance: a
/// shape_error when training. Ioffe and Szegedy (2015).
template <class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                  const Buffer<T, 1>& running_var, const Tensor<T, 1>& weight,
                                  const Tensor<T, 1>& bias, bool training,
                                  detail::number_of<T> momentum = 0.1,
                                  detail::number_of<T> eps = 1e-5, caller who = here()) {
  const detail::call_site site{"batch_norm", who};
  detail::check_affine(x, weight, bias, site);
  return detail::center_batch(x, running_mean, running_var, training, momentum.tensor(), eps, site)
      .result(weight, bias);
}
template <class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                  const Buffer<T, 1>& running_var, bool training,
                                  detail::number_of<T> momentum = 0.1,
                                  detail::number_of<T> eps = 1e-5, caller who = here()) {
  const detail::call_site site{"batch_norm", who};
  return detail::center_batch(x, running_mean, running_var, training, momentum.tensor(), eps, site)
      .result();
}

/// The same by the batch's own statistics, in evaluation too: PyTorch's batch_norm without running
/// ones.
template <class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                  const Tensor<T, 1>& bias, detail::number_of<T> eps = 1e-5,
                                  caller who = here()) {
  const detail::call_site site{"batch_norm", who};
  detail::check_affine(x, weight, bias, site);
  return detail::batch_moments<T, R>(x, site).center(x, eps).result(weight, bias);
}
template <class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, detail::number_of<T> eps = 1e-5,
                                  caller who = here()) {
  return detail::batch_moments<T, R>(x, {"batch_norm", who}).center(x, eps).result();
}
// Running statistics without a word on training are no weights.
template <class T, int R>
void batch_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                const Buffer<T, 1>& running_var) = delete;

}  // namespace xla
