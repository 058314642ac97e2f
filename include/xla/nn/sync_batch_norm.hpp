// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batch normalization with the statistics of all replicas. With one replica it is BatchNorm.

#include "xla/nn/batch_norm.hpp"
#include "xla/op/collectives.hpp"

namespace xla::nn {

/// For batch_norm<nn::world_batch>(x): the batches of all replicas of the world together, which
/// have one size.
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
/// batches of all replicas while training: so that n replicas with batches of b normalize as one
/// with a batch of n b, and have the same running statistics. In a world of one it is those.
template <class T, BatchNormOptions O = BatchNormOptions{}>
using BasicSyncBatchNorm = BasicBatchNorm<T, 0, O, world_batch>;
using SyncBatchNorm = BasicSyncBatchNorm<float>;

}  // namespace xla::nn
