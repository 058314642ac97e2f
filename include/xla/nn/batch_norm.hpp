// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batch norms by PyTorch's names, also across replicas. Running statistics are buffers.

#include "xla/base/option.hpp"
#include "xla/nn/init.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/derived/batch_norm.hpp"

namespace xla::nn {

/// The options of a batch normalization, by PyTorch's names. Without track_running_stats the
/// batch's own statistics are used in evaluation too; with cumulative, PyTorch's momentum=None, the
/// running ones are averages over all batches so far.
struct BatchNormOptions {
  bool affine = true;
  bool track_running_stats = true;
  bool cumulative = false;
};

/// Normalizes each channel of (N, C) or (N, C, L), with two Axes of (N, C, H, W), to mean 0 and
/// variance 1, then multiplies by weight and adds bias. While training it uses the batch's
/// statistics, in evaluation the running ones, which momentum updates. Another number of channels
/// is a shape_error. With 0 Axes any number of them, and with another Batch that type's moments
/// (nn::SyncBatchNorm). Ioffe and Szegedy (2015).
template <class T, int Axes, BatchNormOptions O = BatchNormOptions{}, class Batch = own_batch>
struct BasicBatchNorm {
  using value_type = T;
  using parameter = detail::state_if<O.affine, Parameter<T, 1>>;
  using statistic = detail::state_if<O.track_running_stats, Buffer<T, 1>>;
  using counter = detail::state_if<O.track_running_stats, Buffer<std::int64_t, 0>>;

  parameter weight, bias;               ///< (channels)
  statistic running_mean, running_var;  ///< (channels)
  counter num_batches_tracked;          ///< so far
  Scalar eps = 1e-5, momentum = 0.1;
  TrainingFlag training;

  constexpr BasicBatchNorm() = default;
  constexpr explicit BasicBatchNorm(std::int64_t channels, Scalar epsilon = 1e-5, Scalar rate = 0.1)
      : weight(detail::make_state<parameter>({channels})),
        bias(detail::make_state<parameter>({channels})),
        running_mean(detail::make_state<statistic>({channels})),
        running_var(detail::make_state<statistic>({channels})),
        eps(epsilon),
        momentum(rate) {
    check_options(Axes == 0   ? "nn::SyncBatchNorm"
                  : Axes == 1 ? "nn::BatchNorm1d"
                              : "nn::BatchNorm2d",
                  {{"eps", epsilon.value()}, {"momentum", rate.value(), 0, 1}});
    if (__builtin_is_constant_evaluated()) return;
    if constexpr (O.affine) init::ones_(weight);
    if constexpr (O.track_running_stats) init::ones_(running_var);
  }

  template <int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    static_assert(Axes != 0 || R >= 2, "xla::nn::SyncBatchNorm: needs (N, C, …)");
    static_assert(Axes != 1 || R == 2 || R == 3, "xla::nn::BatchNorm1d: needs (N, C) or (N, C, L)");
    static_assert(Axes != 2 || R == 4, "xla::nn::BatchNorm2d: needs (N, C, H, W)");
    if constexpr (!O.track_running_stats) {
      if constexpr (O.affine) return batch_norm<Batch>(x, weight, bias, eps, loc);
      else return batch_norm<Batch>(x, eps, loc);
    } else if constexpr (O.cumulative) {
      const auto mean = running_mean.detach(), var = running_var.detach();
      const auto y = normalize(x, 1, loc);
      if (training) {
        const auto rate = 1 / cast<T>(num_batches_tracked.detach());
        running_mean.copy_(mean + (running_mean.detach() - mean) * rate);
        running_var.copy_(var + (running_var.detach() - var) * rate);
      }
      return y;
    } else {
      return normalize(x, momentum, loc);
    }
  }
  XLA_MODULE(weight, bias, running_mean, running_var, num_batches_tracked, eps, momentum, training)

 private:
  template <int R>
  constexpr Tensor<T, R> normalize(const Tensor<T, R>& x, const Scalar& rate, caller loc) const {
    Tensor<T, R> y;
    if constexpr (O.affine)
      y = batch_norm<Batch>(x, running_mean, running_var, weight, bias, training, rate, eps, loc);
    else y = batch_norm<Batch>(x, running_mean, running_var, training, rate, eps, loc);
    if (training) num_batches_tracked.copy_(num_batches_tracked.detach() + 1);
    return y;
  }
};
template <class T>
using BasicBatchNorm1d = BasicBatchNorm<T, 1>;
template <class T>
using BasicBatchNorm2d = BasicBatchNorm<T, 2>;
using BatchNorm1d = BasicBatchNorm<float, 1>;
using BatchNorm2d = BasicBatchNorm<float, 2>;

/// For batch_norm<nn::world_batch>(x): the batches of all replicas of the world, which have one
/// size, as one batch.
struct world_batch {
  template <class T, int R>
  static constexpr Tensor<T, R> sum(const Tensor<T, R>& own) {
    return all_reduce(own, reduce_type::sum);
  }
  template <class T, int R>
  static constexpr Size count(const Tensor<T, R>& x, Size own) {
    return own * world_size(x);
  }
};

/// BatchNorm1d or BatchNorm2d, of (N, C) or (N, C, …), with the mean and the variance of the
/// batches of all replicas while training: n replicas with batches of b normalize like one with a
/// batch of n b, and have the same running statistics. In a world of one it equals those.
template <class T, BatchNormOptions O = BatchNormOptions{}>
using BasicSyncBatchNorm = BasicBatchNorm<T, 0, O, world_batch>;
using SyncBatchNorm = BasicSyncBatchNorm<float>;

}  // namespace xla::nn
