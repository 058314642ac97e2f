// SPDX-License-Identifier: Apache-2.0
#pragma once

// Forms that are taken from habit, of PyTorch or of C++, and that the library has not: each stops
// the build with what to write. An overload here fits nothing that another one takes.

#include <concepts>
#include <string_view>

#include "xla/op/arithmetic.hpp"

namespace xla {
namespace detail {

template <class T>
inline constexpr bool stop = false;
template <class T>
constexpr Tensor<T, dynamic_rank> refuse_other_types() {
  static_assert(stop<T>,
                "xla: the element types of the tensors differ; convert one: xla::cast<float>(x)");
  return {};
}

}  // namespace detail

#define XLA_REFUSE_OTHER_TYPES(function)                                         \
  template <class T, int A, detail::unlike<T> U, int B, class... More>           \
  constexpr auto function(const Tensor<T, A>&, const Tensor<U, B>&, More&&...) { \
    return detail::refuse_other_types<U>();                                      \
  }
XLA_REFUSE_OTHER_TYPES(matmul)
XLA_REFUSE_OTHER_TYPES(linear)
XLA_REFUSE_OTHER_TYPES(conv1d)
XLA_REFUSE_OTHER_TYPES(conv2d)
XLA_REFUSE_OTHER_TYPES(conv_transpose1d)
XLA_REFUSE_OTHER_TYPES(conv_transpose2d)
XLA_REFUSE_OTHER_TYPES(mm)
XLA_REFUSE_OTHER_TYPES(bmm)
XLA_REFUSE_OTHER_TYPES(mv)
XLA_REFUSE_OTHER_TYPES(dot)
XLA_REFUSE_OTHER_TYPES(outer)
XLA_REFUSE_OTHER_TYPES(maximum)
XLA_REFUSE_OTHER_TYPES(minimum)
XLA_REFUSE_OTHER_TYPES(atan2)
XLA_REFUSE_OTHER_TYPES(lerp)
XLA_REFUSE_OTHER_TYPES(mse_loss)
XLA_REFUSE_OTHER_TYPES(l1_loss)
XLA_REFUSE_OTHER_TYPES(huber_loss)
XLA_REFUSE_OTHER_TYPES(smooth_l1_loss)
XLA_REFUSE_OTHER_TYPES(binary_cross_entropy)
XLA_REFUSE_OTHER_TYPES(binary_cross_entropy_with_logits)
XLA_REFUSE_OTHER_TYPES(kl_div)
#undef XLA_REFUSE_OTHER_TYPES

template <class T, int C, int A, detail::unlike<T> U, int B>
constexpr auto where(const Tensor<bool, C>&, const Tensor<T, A>&, const Tensor<U, B>&,
                     caller = here()) {
  return detail::refuse_other_types<U>();
}

// More than a few numbers without names are mistaken for one another.
#define XLA_REFUSE_UNNAMED_OPTIONS(function)                                                     \
  template <class T, int A, int B, int C, std::integral First, class... More>                    \
  constexpr Tensor<T, A> function(const Tensor<T, A>&, const Tensor<T, B>&, const Tensor<T, C>&, \
                                  First, More&&...) {                                            \
    static_assert(detail::stop<T>, "xla::" #function ": options are written by name: " #function \
                                   "(x, w, b, {.stride = 2, .padding = 1})");                    \
    return {};                                                                                   \
  }
XLA_REFUSE_UNNAMED_OPTIONS(conv1d)
XLA_REFUSE_UNNAMED_OPTIONS(conv2d)
XLA_REFUSE_UNNAMED_OPTIONS(conv_transpose1d)
XLA_REFUSE_UNNAMED_OPTIONS(conv_transpose2d)
#undef XLA_REFUSE_UNNAMED_OPTIONS

// The number of axes is in the type, so what changes it stands where the compiler can count it.
#define XLA_REFUSE_NUMBERS(function, form)                                           \
  template <class T, int R, std::integral Axis, class... More>                       \
  constexpr Tensor<T, dynamic_rank> function(const Tensor<T, R>&, Axis, More&&...) { \
    static_assert(detail::stop<T>, "xla::" #function ": " form);                     \
    return {};                                                                       \
  }
#define XLA_REFUSE_BARE_AXES(function) \
  XLA_REFUSE_NUMBERS(function, "axes stand in braces: xla::" #function "(x, {1})")
#define XLA_REFUSE_BARE_SIZES(function) \
  XLA_REFUSE_NUMBERS(function, "sizes stand in braces: xla::" #function "(x, {2, -1})")
XLA_REFUSE_BARE_AXES(sum)
XLA_REFUSE_BARE_AXES(mean)
XLA_REFUSE_BARE_AXES(prod)
XLA_REFUSE_BARE_AXES(var)
XLA_REFUSE_BARE_AXES(any)
XLA_REFUSE_BARE_AXES(all)
XLA_REFUSE_BARE_AXES(logsumexp)
XLA_REFUSE_BARE_SIZES(reshape)
XLA_REFUSE_BARE_SIZES(view)
XLA_REFUSE_BARE_SIZES(expand)
XLA_REFUSE_NUMBERS(permute, "the order stands in braces: xla::permute(x, {1, 0})")
XLA_REFUSE_NUMBERS(squeeze, "the axis is in the type: xla::squeeze<1>(x)")
XLA_REFUSE_NUMBERS(flatten, "the first axis is in the type: xla::flatten<1>(x)")
XLA_REFUSE_NUMBERS(chunk, "how many is in the type: xla::chunk<2>(x, axis)")
#undef XLA_REFUSE_BARE_SIZES
#undef XLA_REFUSE_BARE_AXES
#undef XLA_REFUSE_NUMBERS

/// Stops the build: the compiler reads the text, so that it stands in the type.
template <class T, int R, class... More>
constexpr Tensor<T, dynamic_rank> einsum(std::string_view, const Tensor<T, R>&, More&&...) {
  static_assert(detail::stop<T>,
                "xla::einsum: the text is in the type: xla::einsum<\"ij,jk->ik\">(a, b)");
  return {};
}

/// Stops the build: the axis comes before the index.
template <class T, int R, int I, std::integral Axis>
constexpr Tensor<T, R> gather(const Tensor<T, R>&, const Tensor<std::int64_t, I>&, Axis) {
  static_assert(detail::stop<T>, "xla::gather: write gather(x, axis, index)");
  return {};
}

/// Stops the build: fractions are no indices.
template <std::floating_point T, int R, class U, int W, class... More>
constexpr Tensor<U, dynamic_rank> embedding(const Tensor<T, R>&, const Tensor<U, W>&, More&&...) {
  static_assert(detail::stop<T>,
                "xla::embedding: the index comes first, of std::int64_t: embedding(index, weight)");
  return {};
}

}  // namespace xla
