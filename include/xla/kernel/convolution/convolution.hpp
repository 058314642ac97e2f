// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of convolutions: three directions, packing, the name of the algorithm.
// algorithms.hpp defines it. kernel/op/convolution.hpp calls it, with images whose channels are
// innermost.

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/convolution/sizes.hpp"

namespace xla::kernel {

/// The number of elements of a weight's packed form, by taps or transformed. 0 if kernels read the
/// weight in place or caching does not pay: conv_packs() returns false. Without a packed form the
/// functions below pack in each call, with the same bits.
template <class T>
bool conv_packs(const conv_sizes& s, conv_direction d);
template <class T>
std::int64_t conv_packed_size(const conv_sizes& s, conv_direction d);
template <class T>
void conv_pack(const conv_sizes& s, conv_direction d, conv_weights<T> w, T* to);

/// Gives w its packed form, which `cache_owner`, the buffer of the weights, caches. The first call
/// only records the form: weights that are written between any two calls, as in training, are not
/// cached.
template <class T>
void cache_packed(xla::detail::buffer* cache_owner, const conv_sizes& s, conv_direction d,
                  conv_weights<T>& w);

/// The name of the algorithm, as profiles print it.
template <class T>
const char* conv_algorithm_name(const conv_sizes& s);

/// Writes all of y, the convolution of x. The order of every sum depends on sizes alone. The kernel
/// may notify `after` of finished parts of y.
template <class T>
void conv_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y,
                  const epilogue* after = nullptr);

/// Writes x, the transposed convolution of y, which is the input's gradient.
template <class T>
void conv_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx,
                         const epilogue* after = nullptr);

/// The weight's gradient, contiguous as (out, in / groups, taps).
template <class T>
void conv_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/convolution/algorithms.hpp"
#endif
