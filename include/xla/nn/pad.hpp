// SPDX-License-Identifier: Apache-2.0
#pragma once

// Padding by constants, reflection, replication and wrapping as layers. Not in xla.hpp.

#include <cstdint>

#include "xla/module.hpp"
#include "xla/op/derived/pad.hpp"

namespace xla::nn {

namespace detail {
/// Sizes in PyTorch's order, the last axis first: {left, right, top, bottom, front, back}, or one
/// for all of D axes; as pad() takes them of R.
template <int D, int R, std::int64_t... By>
struct padding_of {
  static_assert(sizeof...(By) == 1 || sizeof...(By) == 2 * D,
                "xla::nn: a padding is one number for all sides, or one for each: left, right, "
                "top, bottom, front, back");
  static_assert(R >= D, "xla::nn: the input has fewer axes than the layer pads");
  Padding by[R];
  constexpr padding_of() {
    constexpr std::int64_t given[] = {By...};
    for (int i = 0; i < D; ++i) {
      const bool one = sizeof...(By) == 1;
      by[R - 1 - i] = {given[one ? 0 : 2 * i], given[one ? 0 : 2 * i + 1]};
    }
  }
};
}  // namespace detail

/// Pads the last D axes with their own elements; see pad().
template <int D, PadMode Mode, std::int64_t... By>
struct BasicPad {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return pad(x, detail::padding_of<D, R, By...>().by, Mode, loc);
  }
};
/// nn::ReflectionPad2d<1>, or nn::ReflectionPad2d<left, right, top, bottom>.
template <std::int64_t... By>
using ReflectionPad1d = BasicPad<1, PadMode::reflect, By...>;
template <std::int64_t... By>
using ReflectionPad2d = BasicPad<2, PadMode::reflect, By...>;
template <std::int64_t... By>
using ReflectionPad3d = BasicPad<3, PadMode::reflect, By...>;
template <std::int64_t... By>
using ReplicationPad1d = BasicPad<1, PadMode::replicate, By...>;
template <std::int64_t... By>
using ReplicationPad2d = BasicPad<2, PadMode::replicate, By...>;
template <std::int64_t... By>
using ReplicationPad3d = BasicPad<3, PadMode::replicate, By...>;
template <std::int64_t... By>
using CircularPad1d = BasicPad<1, PadMode::circular, By...>;
template <std::int64_t... By>
using CircularPad2d = BasicPad<2, PadMode::circular, By...>;
template <std::int64_t... By>
using CircularPad3d = BasicPad<3, PadMode::circular, By...>;

/// Pads the last D axes with one value: nn::ConstantPad2d<1>{0.5}. Negative sizes crop.
template <int D, std::int64_t... By>
struct BasicConstantPad {
  Scalar value = 0;
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return pad(x, detail::padding_of<D, R, By...>().by, value, loc);
  }
  XLA_MODULE(value)
};
template <std::int64_t... By>
using ConstantPad1d = BasicConstantPad<1, By...>;
template <std::int64_t... By>
using ConstantPad2d = BasicConstantPad<2, By...>;
template <std::int64_t... By>
using ConstantPad3d = BasicConstantPad<3, By...>;

/// The same with zeros.
template <int D, std::int64_t... By>
struct BasicZeroPad {
  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x, caller loc = here()) const {
    return pad(x, detail::padding_of<D, R, By...>().by, 0, loc);
  }
};
template <std::int64_t... By>
using ZeroPad1d = BasicZeroPad<1, By...>;
template <std::int64_t... By>
using ZeroPad2d = BasicZeroPad<2, By...>;
template <std::int64_t... By>
using ZeroPad3d = BasicZeroPad<3, By...>;

}  // namespace xla::nn
