// SPDX-License-Identifier: Apache-2.0
#pragma once

// Unpooling as layers, and what pools need to return indices. Not in xla.hpp.

#include <cstdint>

#include "xla/kernel/op/max_pool_index.hpp"
#include "xla/nn/pool.hpp"
#include "xla/op/derived/max_unpool.hpp"

namespace xla::nn {

/// The structure of unpooling, as that of max pooling.
template <int D>
struct MaxUnpoolConfig {
  detail::per_axis<D> kernel_size;
  PoolStride<detail::per_axis<D>> stride = none;  ///< none: the kernel's size
  detail::per_axis<D> padding = 0;                ///< on both sides
};
using MaxUnpool1dConfig = MaxUnpoolConfig<1>;
using MaxUnpool2dConfig = MaxUnpoolConfig<2>;

/// max_unpool1d, or with two axes max_unpool2d, as a layer on values and indices: unpool(y, i), or
/// with the size of the original images.
template <int D, MaxUnpoolConfig<D> C>
struct BasicMaxUnpool {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, const Tensor<std::int64_t, R>& indices,
                                    const ImageSize& output_size = none,
                                    caller loc = here()) const {
    const MaxUnpoolOptions<detail::per_axis<D>> how{C.stride, C.padding, output_size};
    if constexpr (D == 1) return max_unpool1d(x, indices, C.kernel_size, how, loc);
    else return max_unpool2d(x, indices, C.kernel_size, how, loc);
  }
};
template <auto... C>
using MaxUnpool1d = BasicMaxUnpool<1, MaxUnpool1dConfig{C...}>;
template <auto... C>
using MaxUnpool2d = BasicMaxUnpool<2, MaxUnpool2dConfig{C...}>;

}  // namespace xla::nn
