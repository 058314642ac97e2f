// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/instance.hpp"
#include "xla/kernel/conv_sizes.hpp"

namespace xla::kernel {

/// y of x; all of it is written. Every sum has an order that depends on sizes alone.
template <class T>
void conv_forward(const conv_sizes& s, const T* x, conv_weights<T> w, T* y);

/// x of y by the transposed convolution, which is the input's gradient.
template <class T>
void conv_input_gradient(const conv_sizes& s, const T* dy, conv_weights<T> w, T* dx);

/// The weight's gradient, contiguous as (out, in / groups, taps).
template <class T>
void conv_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw);

}  // namespace xla::kernel

#if XLA_RUNTIME_HERE
#include "xla/kernel/conv_choice.hpp"
#endif
