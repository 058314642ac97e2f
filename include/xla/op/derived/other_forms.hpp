// SPDX-License-Identifier: Apache-2.0
#pragma once

// Forms that users of PyTorch or C++ may write and that the library lacks: each stops the build and
// says what to write. No overload here accepts arguments that another one accepts.

#include <concepts>
#include <string_view>

#include "xla/op/arithmetic.hpp"

namespace xla {
namespace detail {

template <class T>
inline constexpr bool stop = false;

}  // namespace detail

#define XLA_REFUSE_OTHER_TYPES(function)                                         \
  template <class T, int A, detail::unlike<T> U, int B, class... More>           \
  constexpr auto function(const Tensor<T, A>&, const Tensor<U, B>&, More&&...) { \
    return detail::refuse_types<T, U, U>();                                      \
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
  return detail::refuse_types<T, U, U>();
}

// More than a few unnamed numbers are easily confused.
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

// The number of axes is in the type, so arguments that change it must be known to the compiler.
#define XLA_REFUSE_NUMBERS(function, form)                                           \
  template <class T, int R, std::integral Axis, class... More>                       \
  constexpr Tensor<T, dynamic_rank> function(const Tensor<T, R>&, Axis, More&&...) { \
    static_assert(detail::stop<T>, "xla::" #function ": " form);                     \
    return {};                                                                       \
  }
#define XLA_REFUSE_BARE_AXES(function) \
  XLA_REFUSE_NUMBERS(function, "write axes in braces: xla::" #function "(x, {1})")
#define XLA_REFUSE_BARE_SIZES(function) \
  XLA_REFUSE_NUMBERS(function, "write sizes in braces: xla::" #function "(x, {2, -1})")
XLA_REFUSE_BARE_AXES(sum)
XLA_REFUSE_BARE_AXES(mean)
XLA_REFUSE_BARE_AXES(prod)
XLA_REFUSE_BARE_AXES(var)
XLA_REFUSE_BARE_AXES(any)
XLA_REFUSE_BARE_AXES(all)
XLA_REFUSE_BARE_AXES(logsumexp)
XLA_REFUSE_NUMBERS(
    max, "write axes in braces: xla::max(x, {1}); for its position write xla::argmax(x, 1)")
XLA_REFUSE_NUMBERS(
    min, "write axes in braces: xla::min(x, {1}); for its position write xla::argmin(x, 1)")
XLA_REFUSE_BARE_SIZES(reshape)
XLA_REFUSE_BARE_SIZES(view)
XLA_REFUSE_BARE_SIZES(expand)
XLA_REFUSE_NUMBERS(permute, "write the order in braces: xla::permute(x, {1, 0})")
XLA_REFUSE_NUMBERS(squeeze, "the axis is in the type: xla::squeeze<1>(x)")
XLA_REFUSE_NUMBERS(flatten, "the first axis is in the type: xla::flatten<1>(x)")
XLA_REFUSE_NUMBERS(chunk, "how many is in the type: xla::chunk<2>(x, axis)")
#undef XLA_REFUSE_BARE_SIZES
#undef XLA_REFUSE_BARE_AXES
#undef XLA_REFUSE_NUMBERS

#define XLA_REFUSE_SIZES_WITHOUT_BRACES(function)                                                  \
  template <element T = float, std::integral First, std::integral... More>                         \
  constexpr Tensor<T, 1 + static_cast<int>(sizeof...(More))> function(First, More...) {            \
    static_assert(detail::stop<T>,                                                                 \
                  "xla::" #function ": write sizes in braces: xla::" #function "<float>({3, 4})"); \
    return {};                                                                                     \
  }
XLA_REFUSE_SIZES_WITHOUT_BRACES(zeros)
XLA_REFUSE_SIZES_WITHOUT_BRACES(ones)
XLA_REFUSE_SIZES_WITHOUT_BRACES(rand)
XLA_REFUSE_SIZES_WITHOUT_BRACES(randn)
#undef XLA_REFUSE_SIZES_WITHOUT_BRACES

// A text as the last argument would be read only at run time.
#define XLA_REFUSE_TEXT(function)                                                                \
  template <class T, int A, class U, int B, class Text>                                          \
    requires std::convertible_to<const Text&, std::string_view>                                  \
  constexpr Tensor<T, 0> function(const Tensor<T, A>&, const Tensor<U, B>&, const Text&) {       \
    static_assert(detail::stop<T>, "xla::" #function ": a reduction is no text: xla::" #function \
                                   "(x, target, xla::reduction::sum)");                          \
    return {};                                                                                   \
  }
XLA_REFUSE_TEXT(cross_entropy)
XLA_REFUSE_TEXT(nll_loss)
XLA_REFUSE_TEXT(mse_loss)
XLA_REFUSE_TEXT(l1_loss)
XLA_REFUSE_TEXT(huber_loss)
XLA_REFUSE_TEXT(smooth_l1_loss)
XLA_REFUSE_TEXT(binary_cross_entropy)
XLA_REFUSE_TEXT(binary_cross_entropy_with_logits)
XLA_REFUSE_TEXT(kl_div)
#undef XLA_REFUSE_TEXT

/// Stops the build: a number outside of graphs cannot be a tensor.
template <class Number, class T, int R>
  requires std::is_arithmetic_v<Number>
constexpr Number& operator+=(Number& n, const Tensor<T, R>&) {
  static_assert(detail::stop<T>,
                "xla: a tensor is added to a number; write total += loss.item(), which waits for "
                "it, or make total a tensor");
  return n;
}

// A tensor passed through an ellipsis would be its handle's address. Calls of std::printf do not
// come here.
#define XLA_REFUSE_PRINTING(function)                                                            \
  template <class... A>                                                                          \
    requires(... || detail::is_tensor<std::remove_cvref_t<A>>)                                   \
  int function(A&&...) {                                                                         \
    static_assert(sizeof...(A) == 0, "xla: " #function " takes no tensor; write loss.item(), or " \
                                     "std::cout << x");                                          \
    return 0;                                                                                    \
  }
XLA_REFUSE_PRINTING(printf)
XLA_REFUSE_PRINTING(fprintf)
XLA_REFUSE_PRINTING(snprintf)
#undef XLA_REFUSE_PRINTING

/// Stops the build: the compiler reads the text, so it must be in the type.
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

/// Stops the build: indices are of one type.
template <detail::unlike<std::int64_t> T, int R, class U, int W, class... More>
constexpr Tensor<U, R + 1> embedding(const Tensor<T, R>&, const Tensor<U, W>&, More&&...) {
  static_assert(detail::stop<T>,
                "xla::embedding: the index comes first, of std::int64_t: embedding(index, weight); "
                "convert it: xla::cast<std::int64_t>(index)");
  return {};
}

}  // namespace xla
