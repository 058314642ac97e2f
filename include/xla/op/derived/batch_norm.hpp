// SPDX-License-Identifier: Apache-2.0
#pragma once

// batch_norm(), by the batch's or by running statistics. nn/batch_norm.hpp stores the latter.

#include "xla/op/derived/normalize.hpp"
#include "xla/op/derived/over_axes.hpp"
#include "xla/op/minmax.hpp"
#include "xla/tensor/state.hpp"

namespace xla::detail {
template <class T>
constexpr any_tensor<T> center_scaled(const any_tensor<T>& x, const any_tensor<T>& m,
                                      const any_tensor<T>& s);
template <class T>
constexpr any_tensor<T> sum_to_moments(const any_tensor<T>& x, const shape& moments);

/// Whether a shape has one element per channel, (C, 1, …), or one per channel and sample, (N, C, 1,
/// …), where x has `rank` axes.
constexpr bool is_moment(const shape& s, int rank) {
  bool all = true;
  for (int i = 2; i < rank && s.rank == rank; ++i) all = all && s[i] == 1;
  return all;
}
}  // namespace xla::detail

namespace xla::op {

/// (x - m) * s, where m has one element per channel, (C, 1, …), or per channel and sample, (N, C,
/// 1, …). The gradient reads x, which is saved anyway; intermediate values are only read by sums
/// and need not be saved.
struct center_scale : map {
  static constexpr auto name = "center_scale";
  static constexpr auto kernel(auto x, auto m, auto s) { return (x - m) * s; }
  static constexpr void gradient(auto& g) {
    const auto x = g.in(0), m = g.in(1), s = g.in(2);
    const bool alike = s.dims().rank == m.dims().rank && detail::is_moment(s.dims(), x.dims().rank);
    if (g.needs(2)) {
      const auto d = detail::center_scaled(x, m, g.grad());
      g.to(2, alike ? detail::sum_to_moments(d, m.dims()) : d);
    }
    if (g.needs(1)) {
      if (alike) g.to(1, -(detail::sum_to_moments(g.grad(), m.dims()) * s));
      else g.to(1, -detail::sum_to_moments(g.grad() * s, m.dims()));
    }
    if (g.needs(0)) g.to(0, g.grad() * s);
  }
};

/// (x - m)^2 where m is the mean of x. The sum of these does not change to first order with m, so m
/// gets no gradient.
struct center_square : map {
  static constexpr auto name = "center_square";
  static constexpr auto kernel(auto x, auto m) { return (x - m) * (x - m); }
  static constexpr void gradient(auto& g) {
    if (!g.needs(0)) return;
    const auto half = detail::center_scaled(g.in(0), g.in(1), g.grad());
    g.to(0, half + half);
  }
};

}  // namespace xla::op

XLA_OP(xla::op::center_scale, fractions);
XLA_OP(xla::op::center_square, fractions);

namespace xla {

/// The batch whose statistics batch_norm computes: its argument. Another type,
/// batch_norm<Batch>(x), adds the sums of further batches and counts their elements, like
/// nn::world_batch over replicas.
struct own_batch {
  template <class T, int R>
  static constexpr Tensor<T, R> sum(const Tensor<T, R>& own) {
    return own;
  }
  template <class T, int R>
  static constexpr Size count(const Tensor<T, R>&, Size own) {
    return own;
  }
};

namespace detail {

template <class T>
constexpr any_tensor<T> center_scaled(const any_tensor<T>& x, const any_tensor<T>& m,
                                      const any_tensor<T>& s) {
  return apply<op::center_scale, T, T, dynamic_rank>(plain, x, m, s);
}

/// The sum of x (N, C, …) to the shape of moments: per channel, or over positions alone, per
/// channel and sample. The latter is one sum whichever sizes are 1 in the call.
template <class T>
constexpr any_tensor<T> sum_to_moments(const any_tensor<T>& x, const shape& moments) {
  const int rank = x.dims().rank;
  if (moments.rank < rank) return sum_to(x, moments);
  if (rank == 2) return x;
  return reduce<op::sum>(x, axis_set::range(2, rank));
}

/// Refuses a weight, bias or statistic without one element per channel of x (N, C, …).
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

/// One element per channel under the sizes that broadcast to (N, C, …): (C, 1, …).
template <int R, class T>
constexpr Tensor<T, R - 1> per_channel(const Tensor<T, 1>& p) {
  shape s;
  for (int i = 1; i < R; ++i) s.push(i == 1 ? p.dims()[0] : 1);
  return with_shape<op::reshape, R - 1>(p, s);
}

/// All axes of (N, C, …) but the channels.
template <int R>
inline constexpr axis_set around_channels = [] {
  axis_set axes = axis_set::one(0);
  for (int i = 2; i < R; ++i) axes.add(i);
  return axes;
}();

template <class T, int R>
constexpr void check_statistics(const Tensor<T, R>& x, const Buffer<T, 1>& mean,
                                const Buffer<T, 1>& var, const number_of<T>& eps,
                                const call_site& site) {
  check_eps(x, eps);
  check_channels(x, mean, site);
  check_channels(x, var, site);
}

/// x less the mean of each channel, times a scale: both (C, 1, …) or (N, C, 1, …).
template <class T, int R, int P>
constexpr Tensor<T, R> center_scale(const Tensor<T, R>& x, const Tensor<T, P>& mean,
                                    const Tensor<T, P>& scale) {
  return apply<op::center_scale, T, T, R>(plain, x, mean, scale);
}

/// x normalized by running statistics.
template <class T, int R>
constexpr Tensor<T, R> norm_by_running(const Tensor<T, R>& x, const Buffer<T, 1>& mean,
                                       const Buffer<T, 1>& var, const number<T>& eps) {
  return center_scale(x, per_channel<R>(mean), per_channel<R>(rsqrt(var + eps)));
}
template <class T, int R>
constexpr Tensor<T, R> norm_by_running(const Tensor<T, R>& x, const Buffer<T, 1>& mean,
                                       const Buffer<T, 1>& var, const Tensor<T, 1>& weight,
                                       const Tensor<T, 1>& bias, const number<T>& eps) {
  const auto scale = per_channel<R>(rsqrt(var + eps) * weight);
  return center_scale(x, per_channel<R>(mean), scale) + per_channel<R>(bias);
}

/// Mean and variance of each channel of a batch, (C, 1, …), and the number of elements per channel.
template <class T, int R, class Batch>
struct batch_moments {
  Tensor<T, R - 1> mean, variance;
  Size count;

  constexpr batch_moments(const Tensor<T, R>& x, const call_site& site)
      : count(Batch::count(x, count_over(x, around_channels<R>))) {
    const size_scope scope{x.table(), site};
    const bool several = count.known() && count.extent() != 1;
    scope.nonzero(several ? 1 : (count - 1).extent(),
                  "batch_norm: a batch of one element per channel has no variance to train with; "
                  "eval() the model");
    mean = average(x);
    variance = average(map_binary<op::center_square, T>(x, mean));
  }
  constexpr Tensor<T, R> norm(const Tensor<T, R>& x, const number<T>& eps) const {
    return center_scale(x, mean, rsqrt(variance + eps));
  }
  constexpr Tensor<T, R> norm(const Tensor<T, R>& x, const number<T>& eps,
                              const Tensor<T, 1>& weight, const Tensor<T, 1>& bias) const {
    const auto scale = rsqrt(variance + eps) * per_channel<R>(weight);
    return center_scale(x, mean, scale) + per_channel<R>(bias);
  }
  /// Moves running statistics towards these by momentum; the variance by its unbiased estimate. An
  /// empty batch changes nothing.
  constexpr void move(const Buffer<T, 1>& running_mean, const Buffer<T, 1>& running_var,
                      const Tensor<T, 0>& part) const {
    const auto all = elements();
    const Tensor<T, 0> rate = part * narrowed<T>(minimum(all, 1));
    const auto move = [&](const Buffer<T, 1>& running, const Tensor<T, R - 1>& batch) {
      const Tensor<T, 1> now = drop_axes<1, T>(batch.detach(), axis_set::range(1, R - 1));
      running.copy_(running.detach() * (1 - rate) + now * rate);
    };
    move(running_mean, mean);
    move(running_var, narrowed<T>(widened(variance) * all / (all - 1)));
  }

 private:
  constexpr Tensor<computed<T>, 0> elements() const { return number<computed<T>>(count).tensor(); }
  constexpr Tensor<T, R - 1> average(const Tensor<T, R>& x) const {
    const auto sum = Batch::sum(reduce<op::sum>(widened(x), around_channels<R>));
    // Of an empty batch 0, not 0 / 0.
    const auto mean = narrowed<T>(sum / maximum(elements(), 1));
    return drop_axes<R - 1, T>(mean, axis_set::one(0));
  }
};

}  // namespace detail

/// x (N, C) or (N, C, …) minus the mean and divided by the standard deviation of each channel:
/// those of the batch when training, which also move the running ones by momentum, else the running
/// ones. Then multiplied by weight and increased by bias, if given, with one element per channel;
/// another number of them is a shape_error. A batch of one element per channel has no variance, and
/// is a shape_error when training. An empty one gives an empty result and moves nothing. Ioffe and
/// Szegedy (2015).
template <class Batch = own_batch, class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                  const Buffer<T, 1>& running_var, const Tensor<T, 1>& weight,
                                  const Tensor<T, 1>& bias, bool training,
                                  detail::number_of<T> momentum = 0.1,
                                  detail::number_of<T> eps = 1e-5, caller loc = here()) {
  const detail::call_site site{"batch_norm", loc};
  detail::check_affine(x, weight, bias, site);
  detail::check_statistics(x, running_mean, running_var, eps, site);
  if (!training) return detail::norm_by_running(x, running_mean, running_var, weight, bias, eps);
  const detail::batch_moments<T, R, Batch> batch(x, site);
  batch.move(running_mean, running_var, momentum.tensor());
  return batch.norm(x, eps, weight, bias);
}
template <class Batch = own_batch, class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                                  const Buffer<T, 1>& running_var, bool training,
                                  detail::number_of<T> momentum = 0.1,
                                  detail::number_of<T> eps = 1e-5, caller loc = here()) {
  const detail::call_site site{"batch_norm", loc};
  detail::check_statistics(x, running_mean, running_var, eps, site);
  if (!training) return detail::norm_by_running(x, running_mean, running_var, eps);
  const detail::batch_moments<T, R, Batch> batch(x, site);
  batch.move(running_mean, running_var, momentum.tensor());
  return batch.norm(x, eps);
}

/// The same by the batch's own statistics, in evaluation too: PyTorch's batch_norm without running
/// ones.
template <class Batch = own_batch, class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, const Tensor<T, 1>& weight,
                                  const Tensor<T, 1>& bias, detail::number_of<T> eps = 1e-5,
                                  caller loc = here()) {
  const detail::call_site site{"batch_norm", loc};
  detail::check_eps(x, eps);
  detail::check_affine(x, weight, bias, site);
  return detail::batch_moments<T, R, Batch>(x, site).norm(x, eps, weight, bias);
}
template <class Batch = own_batch, class T, int R>
constexpr Tensor<T, R> batch_norm(const Tensor<T, R>& x, detail::number_of<T> eps = 1e-5,
                                  caller loc = here()) {
  detail::check_eps(x, eps);
  return detail::batch_moments<T, R, Batch>(x, {"batch_norm", loc}).norm(x, eps);
}
// Refuses running statistics without the argument `training`, which would be taken for weight and
// bias.
template <class T, int R>
void batch_norm(const Tensor<T, R>& x, const Buffer<T, 1>& running_mean,
                const Buffer<T, 1>& running_var) = delete;

}  // namespace xla
