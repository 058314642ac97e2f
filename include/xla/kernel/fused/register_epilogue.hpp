// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps that follow an op, computed while its results are still in registers: batch norm by running
// statistics, bias, shortcut, relu and relu6. A kernel whose epilogue is a chain of these needs no
// second pass. Only xla::runtime has such kernels (kernel/convolution/register_epilogue.hpp).

#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/derived/batch_norm.hpp"
#include "xla/op/hardtanh.hpp"
#include "xla/op/relu.hpp"

namespace xla::kernel {

/// One map of such a chain, and its operands besides the result of the map before: one number, one
/// per channel, or one per element.
template <class T>
struct register_map {
  enum kind : std::int8_t { center_scale, add_channel, add_element, relu, hardtanh };
  kind what = relu;
  const T* a = nullptr;
  const T* b = nullptr;
};

/// A chain of maps on each element of a result, whose channels are contiguous. The bits are those
/// of the ops' own kernels, one after the other.
template <class T>
struct register_epilogue {
  static constexpr int most = 6;
  const T* result = nullptr;    ///< the first element; operands of add_element are laid out alike
  const T* shortcut = nullptr;  ///< an operand of add_element
  int count = 0;
  register_map<T> maps[most];

  /// Runs the chain on Rows x Vectors registers: x(i, j) is vector j of row i, whose element is at
  /// at(i), of channels from `channel` on.
  template <int Rows, int Vectors, class X, class At>
  XLA_INLINE void run(std::int64_t channel, X x, At at) const {
    constexpr int width = lanes<T>;
    using v = vec<T>;
    const auto load = [](const T* from, int j) XLA_INLINE_LAMBDA {
      return v{simd::ploadu<packet<T>>(from + j * width)};
    };
    const auto each = [&](auto f) XLA_INLINE_LAMBDA {
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j)
#pragma GCC unroll 24
        for (int i = 0; i < Rows; ++i) x(i, j) = f(v{x(i, j)}, i, j).v;
    };
    for (const register_map<T>*m = maps, *end = maps + count; m != end; ++m) {
      const T *const a = m->a, *const b = m->b;
      switch (m->what) {
        case register_map<T>::center_scale:
          each([&](v y, int, int j) XLA_INLINE_LAMBDA {
            return op::center_scale::kernel(y, load(a + channel, j), load(b + channel, j));
          });
          break;
        case register_map<T>::add_channel:
          each([&](v y, int, int j)
                   XLA_INLINE_LAMBDA { return op::add::kernel(y, load(a + channel, j)); });
          break;
        case register_map<T>::add_element:
          each([&](v y, int i, int j)
                   XLA_INLINE_LAMBDA { return op::add::kernel(y, load(a + (at(i) - result), j)); });
          break;
        case register_map<T>::relu:
          each([&](v y, int, int) XLA_INLINE_LAMBDA { return op::relu::kernel(y); });
          break;
        case register_map<T>::hardtanh: {
          const v low = v::splat(*a), high = v::splat(*b);
          if (*a == *a && *b == *b)  // without the op's selects for bounds that are NaN
            each([&](v y, int, int) XLA_INLINE_LAMBDA { return y.max(low).min(high); });
          else
            each([&](v y, int, int)
                     XLA_INLINE_LAMBDA { return op::hardtanh::kernel(y, low, high); });
          break;
        }
      }
    }
  }
};

}  // namespace xla::kernel
