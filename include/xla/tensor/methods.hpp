// SPDX-License-Identifier: Apache-2.0
#pragma once

// PyTorch's methods: x.f(a) is f(x, a), with the arguments of the function of that name. The
// function is found by argument-dependent lookup at the call, so that tensors may be declared
// before functions.

#define XLA_DETAIL_METHODS(m)                                                                      \
  m(abs) m(all) m(any) m(argmax) m(argmin) m(argsort) m(atan2) m(bmm) m(ceil) m(clamp)             \
  m(clamp_max) m(clamp_min) m(clip) m(cos) m(cross) m(cummax) m(cummin) m(cumprod) m(cumsum)       \
  m(dot) m(erf) m(erfc) m(exp) m(expand) m(expand_as) m(expm1) m(flatten) m(flip) m(floor)         \
  m(fmod) m(gather) m(index_add) m(index_copy) m(index_select) m(isfinite) m(isinf) m(isnan)       \
  m(kron) m(kthvalue) m(lerp) m(log) m(log1p) m(log_softmax) m(logical_and) m(logical_not)         \
  m(logical_or) m(logical_xor) m(logsumexp) m(masked_fill) m(masked_select) m(matmul) m(max)       \
  m(maximum) m(mean) m(median) m(min) m(minimum) m(mm) m(movedim) m(multinomial) m(mv)             \
  m(nanquantile) m(narrow) m(nonzero) m(norm) m(outer) m(permute) m(pow) m(prod) m(quantile)       \
  m(reciprocal) m(relu) m(remainder) m(repeat) m(repeat_interleave) m(reshape) m(reshape_as)       \
  m(roll) m(round) m(rsqrt) m(scatter) m(scatter_add) m(scatter_reduce) m(select) m(sigmoid)       \
  m(sign) m(sin) m(softmax) m(sort) m(sqrt) m(square) m(squeeze) m(sum) m(swapaxes)                \
  m(take_along_dim) m(tan) m(tanh) m(tile) m(transpose) m(tril) m(triu) m(trunc) m(unflatten)      \
  m(unique) m(unique_consecutive) m(unsqueeze) m(var) m(view) m(view_as)
// Axes in braces are numbers, sizes in braces xla::Size.
#define XLA_DETAIL_AXES_METHODS(m)                                                                 \
  m(all) m(any) m(flip) m(logsumexp) m(max) m(mean) m(median) m(min) m(norm) m(permute) m(prod)    \
  m(sum) m(var)
#define XLA_DETAIL_SIZES_METHODS(m) m(expand) m(repeat) m(reshape) m(tile) m(view)
// PyTorch's names that are missing here, and the replacement to write.
#define XLA_DETAIL_OTHER_METHODS(m)                                              \
  m(clone, "tensors are values: auto y = x") m(cpu, "write x.to(xla::Device())") \
  m(cuda, "write x.to(xla::device(1))") m(numpy, "write x.to_vector()")          \
  m(shape, "write x.sizes() or x.size(axis)") m(tolist, "write x.to_vector()")   \
  m(type, "write xla::cast<double>(x)")

namespace xla::detail::method {
#define XLA_DETAIL_CALL(name) \
  constexpr auto call_##name(const auto&... a) { return name(a...); }
XLA_DETAIL_METHODS(XLA_DETAIL_CALL)
#undef XLA_DETAIL_CALL
constexpr auto call_choose(const auto&... a) { return choose(a...); }
}  // namespace xla::detail::method

#define XLA_DETAIL_METHOD(name)                       \
  constexpr auto name(const auto&... a) const {       \
    return detail::method::call_##name(*this, a...);  \
  }
#define XLA_DETAIL_AXES_METHOD(name)                                    \
  template <int XlaN>                                                   \
  constexpr auto name(const int (&axes)[XlaN], const auto&... a) const { \
    return detail::method::call_##name(*this, axes, a...);              \
  }
#define XLA_DETAIL_SIZES_METHOD(name)                                          \
  template <int XlaN>                                                          \
  constexpr auto name(const Size (&sizes)[XlaN], const auto&... a) const {     \
    return detail::method::call_##name(*this, sizes, a...);                    \
  }
#define XLA_DETAIL_OTHER_METHOD(name, form)                                     \
  constexpr Tensor name(const auto&... a) const {                               \
    static_assert(sizeof...(a) > 64, "xla: no tensor has " #name "(): " form); \
    return {};                                                                  \
  }
