// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensor: the class that programs use, with its operators and conversions. Most methods are
// defined in op/methods.hpp, and storage in tensor/.

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "xla/base/caller.hpp"
#include "xla/base/refuse.hpp"
#include "xla/shape/size.hpp"
#include "xla/tensor/device.hpp"
#include "xla/tensor/handle.hpp"
#include "xla/tensor/machine.hpp"
#include "xla/tensor/methods.hpp"

namespace xla {

/// The rank of tensors whose number of axes the type does not fix; gradient rules use it.
inline constexpr int dynamic_rank = -1;

namespace detail {
inline constexpr int missing_rank = -2;
}
template <element T, int Rank = detail::missing_rank>
class Tensor;

namespace detail {

template <class T, int R, int Rank>
class indexed;

template <class V>
inline constexpr bool refused_assignment = false;

/// The axes that remain of R: a number as an index drops its own.
template <int R, class... I>
inline constexpr int indexed_rank = [] {
  const int left = R - (0 + ... + int{std::convertible_to<I, Size>});
  return left < 0 ? 0 : left;  // too many are refused where they are used
}();

template <class T>
constexpr std::string_view element_name() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (std::is_same_v<T, std::int32_t>) return "std::int32_t";
  else if constexpr (std::is_same_v<T, std::int64_t>) return "std::int64_t";
  else if constexpr (std::is_same_v<T, std::uint8_t>) return "std::uint8_t";
  else return "xla::bfloat16";
}

template <class T, int R>
inline constexpr text backward_refusal = [] {
  text t("xla: backward() of a tensor of ");
  t << element_name<T>();
  if (R > 0) t << " with " << R << (R == 1 ? " axis" : " axes");
  return t << ": grad can be implicitly created only for scalar outputs; write "
              "xla::mean(loss).backward(), xla::sum(loss).backward(), or with a gradient of its "
              "shape loss.backward(gradient)";
}();

/// Why a Tensor<U, R> is no Tensor<T, Rank>, and what makes it one.
template <class T, int Rank, class U, int R>
inline constexpr text conversion_refusal = [] {
  text t("xla: a tensor of ");
  t << element_name<U>() << " with " << R << (R == 1 ? " axis" : " axes") << " was given where "
    << element_name<T>() << " with " << Rank << (Rank == 1 ? " axis" : " axes") << " is taken";
  if (!std::is_same_v<T, U>) t << "; convert it: xla::cast<" << element_name<T>() << ">(x)";
  if (R < Rank) t << "; xla::unsqueeze(x, 0) adds an axis";
  else if (R > Rank)
    t << "; xla::squeeze, xla::flatten, xla::reshape or a reduction take axes away";
  return t;
}();

}  // namespace detail

/// A multi-dimensional array: element type T, Rank axes of any size. A value: copies share their
/// elements until one of them is written. Used the same in eager, traced and compiled code.
template <element T, int Rank>
class Tensor : public detail::handle {
 public:
  using value_type = T;
  static constexpr int rank = Rank;
  static_assert(Rank != detail::missing_rank,
                "xla::Tensor: the number of axes is in the type: xla::Tensor<float, 2>");
  static_assert(Rank == detail::missing_rank || (Rank >= dynamic_rank && Rank <= detail::max_rank),
                "xla::Tensor: a tensor has at most 6 axes");

  constexpr Tensor() = default;
  constexpr Tensor(const Tensor&) = default;
  constexpr Tensor(Tensor&&) = default;
  /// Names the other's value; where this is a parameter or buffer, writes it there.
  constexpr Tensor& operator=(const Tensor& o) &;
  constexpr Tensor& operator=(Tensor&& o) &;
  /// Refused: the part of a const tensor, or a result without a name, would be written and gone.
  template <class V>
  void operator=(const V&) && {
    static_assert(detail::refused_assignment<V>,
                  "xla: assigning to a part of a const tensor, or of an unnamed result, has no "
                  "effect; for x[mask] = v write x = xla::where(mask, v, x)");
  }
  constexpr ~Tensor() = default;
  /// A tensor without axes that holds one number.
  constexpr Tensor(std::type_identity_t<T> number)
    requires(Rank == 0);
  /// A tensor whose rank is not in its type, as one whose rank is. Gradient rules end with this.
  template <int R>
    requires(R != Rank && (R == dynamic_rank || Rank == dynamic_rank))
  constexpr Tensor(const Tensor<T, R>& o) : detail::handle(o) {}
  /// Stops the build: a tensor is given where one of another type is taken.
  template <element U, int R>
    requires(!std::is_same_v<T, U> || (R != Rank && R != dynamic_rank && Rank != dynamic_rank))
  constexpr Tensor(const Tensor<U, R>&) {
    detail::refuse<detail::conversion_refusal<T, Rank, U, R>>();
  }

  /// The size along an axis; a negative axis counts from the last. An axis that does not exist is a
  /// shape_error.
  constexpr Size size(int axis, caller loc = here()) const {
    const detail::shape s = dims();
    const int at = axis < 0 ? axis + s.rank : axis;
    if (at < 0 || at >= s.rank) {
      detail::size_scope{table(), {"size", loc}}.fail(detail::text("a tensor of shape ")
                                                      << s << " has no axis " << axis);
      return 1;
    }
    return {s[at], table()};
  }
  /// All sizes, outermost first.
  std::vector<std::int64_t> sizes() const {
    const detail::shape s = dims();
    return {s.dims, s.dims + s.rank};
  }
  constexpr int dim() const { return dims().rank; }
  constexpr Size numel() const {
    Size n = 1;
    for (int i = 0; i < dim(); ++i) n = n * size(i);
    return n;
  }

  /// Where it lives.
  constexpr Device device() const { return Device(this->device_number(), table()); }
  /// The same tensor there, to which gradients come back; throws `xla::error` when there is no such
  /// device.
  constexpr Tensor to(const Device& device, caller loc = here()) const {
    device.check<T>({"to", loc});
    Tensor there = *this;
    if (!__builtin_is_constant_evaluated())
      detail::machine_of<T>::to_device(*this, device.index, there);
    return there;
  }

  /// The one number of a tensor with one element; waits for it. Refused in a compiled body.
  constexpr T item(caller loc = here()) const;
  constexpr explicit operator bool() const
    requires(Rank == 0)
  {
    return item() != T{};
  }
  /// Stops the build: a condition is one bool.
  template <int R = Rank>
    requires(R != 0)
  constexpr explicit operator bool() const {
    static_assert(R == 0,
                  "xla: a tensor with axes is used as a condition; write xla::any(c) or "
                  "xla::all(c), and for each element xla::where(c, a, b), ~c, a & b, a | b");
    return false;
  }
  /// The elements, row by row; waits for them. The pointer lives as long as this tensor's value.
  const T* data() const;
  std::vector<T> to_vector() const;

  /// True when backward() collects a gradient for this value or one that it was computed from.
  constexpr bool requires_grad() const;
  /// Makes this tensor a place where backward() collects gradients, or with false no such place:
  /// a frozen parameter gets no gradient, and optimizers leave it alone. Between the calls of a
  /// compiled step, which respects it, or in a body, after which it stays.
  ///
  /// A copy of a tensor that collects gradients has the same gradient until one of the two is
  /// written: in place, by this function, by set_grad() or zero_grad(). What is written has from
  /// then on a gradient of its own, which gradients of what was computed before do not reach.
  constexpr Tensor& requires_grad_(bool on = true);
  /// The gradient that backward() has collected; undefined when there is none.
  constexpr Tensor grad() const;
  /// Puts another gradient of the same shape in its place, as gradient clipping does. Another shape
  /// is a shape_error.
  constexpr void set_grad(const Tensor& gradient, caller loc = here());
  /// Drops the gradient.
  constexpr void zero_grad();
  /// Adds the gradients of this one number to every parameter that it was computed from.
  constexpr void backward(caller loc = here()) const
    requires(Rank == 0);
  /// Stops the build: a loss is one number.
  template <int R = Rank>
    requires(R != 0)
  constexpr void backward() const {
    detail::refuse<detail::backward_refusal<T, R>>();
  }
  /// The same from what reaches each of this tensor's elements: gradient, of the same shape.
  constexpr void backward(const Tensor& gradient, caller loc = here()) const;
  /// The same value, cut off from gradients.
  constexpr Tensor detach() const;

  /// In-place forms: rebind this handle; other handles keep the old value. Sizes that do not
  /// broadcast to this one's are a shape_error.
  constexpr Tensor& operator+=(const Tensor& o) &;
  constexpr Tensor& operator-=(const Tensor& o) &;
  constexpr Tensor& operator*=(const Tensor& o) &;
  constexpr Tensor& operator/=(const Tensor& o) &;
  constexpr Tensor& operator+=(std::type_identity_t<T> o) &
        requires(Rank != 0);
  constexpr Tensor& operator-=(std::type_identity_t<T> o) &
        requires(Rank != 0);
  constexpr Tensor& operator*=(std::type_identity_t<T> o) &
        requires(Rank != 0);
  constexpr Tensor& operator/=(std::type_identity_t<T> o) &
        requires(Rank != 0);
  constexpr Tensor& copy_(const Tensor& o, caller loc = here());
  constexpr Tensor& fill_(T number);
  constexpr Tensor& zero_() { return fill_(T{}); }
  /// Replaces the slices that an index (n) names along an axis by those of the source. Errors as in
  /// index_copy.
  constexpr Tensor& index_copy_(int axis, const Tensor<std::int64_t, 1>& index,
                                const Tensor& source, caller loc = here())
    requires(Rank > 0);

  // While a step is captured: the same value cut off, where gradients stop, or begin.
  constexpr Tensor cut(bool needs_grad) const;
  constexpr void require_grad(bool on);

  /// Stops the build: a tensor is no function.
  template <class... A>
  constexpr Tensor operator()(const A&...) const {
    static_assert(
        !std::is_same_v<T, T>,
        "xla: a tensor is called as if it were a model: are the arguments in the order in "
        "which the function takes them? Elements are x.index(i, j)");
    return {};
  }

  /// Element i along the first axis: reads as a tensor of one axis less, and can be assigned.
  constexpr auto operator[](Size i) &
        requires(Rank > 0)
  {
    return index(i);
  }
  constexpr auto operator[](Size i) const&
    requires(Rank > 0)
  {
    return index(i);
  }
  /// The part that one index for each of the first axes chooses: a number (the axis goes), or a
  /// Slice; xla::ellipsis stands for whole axes. Reads as a tensor; what is assigned to it is
  /// written into this one.
  template <class... I>
    requires(Rank > 0)
  constexpr detail::indexed<T, Rank, detail::indexed_rank<Rank, I...>> index(const I&... i) &;
  template <class... I>
    requires(Rank > 0)
  constexpr Tensor<T, detail::indexed_rank<Rank, I...>> index(const I&... i) const&;

  /// The elements where a mask holds, of a mask of one axis whole slices; or the slices that an
  /// index names, of an index without axes one, without the axis. They are copied: x[mask] = v is
  /// x = xla::where(mask, v, x).
  template <element U, int I>
  constexpr auto operator[](const Tensor<U, I>& chosen) const {
    return detail::method::call_choose(*this, chosen);
  }
  template <element U, int I>
  constexpr auto index(const Tensor<U, I>& chosen) & {
    return detail::method::call_choose(*this, chosen);
  }
  template <element U, int I>
  constexpr auto index(const Tensor<U, I>& chosen) const& {
    return detail::method::call_choose(*this, chosen);
  }

  // PyTorch's other methods: x.sum({1}) is xla::sum(x, {1}).
  XLA_DETAIL_METHODS(XLA_DETAIL_METHOD)
  XLA_DETAIL_AXES_METHODS(XLA_DETAIL_AXES_METHOD)
  XLA_DETAIL_SIZES_METHODS(XLA_DETAIL_SIZES_METHOD)
  XLA_DETAIL_OTHER_METHODS(XLA_DETAIL_OTHER_METHOD)
  constexpr auto t() const {
    static_assert(Rank == 2, "xla: x.t() is of a matrix; write xla::transpose(x, axis, axis)");
    return transpose();
  }
};
#undef XLA_DETAIL_METHOD
#undef XLA_DETAIL_AXES_METHOD
#undef XLA_DETAIL_SIZES_METHOD
#undef XLA_DETAIL_OTHER_METHOD

static_assert(sizeof(Tensor<float, 2>) <= 64, "tensors are copied often: keep them small");

namespace detail {

/// A tensor whose rank the type does not fix.
template <class T>
using any_tensor = Tensor<T, dynamic_rank>;

constexpr int broadcast_rank(int a, int b) {
  return a == dynamic_rank || b == dynamic_rank ? dynamic_rank : a > b ? a : b;
}

constexpr int broadcast_rank(int a, int b, int c) {
  return broadcast_rank(a, broadcast_rank(b, c));
}
constexpr int broadcast_rank(int a) { return a; }

/// The result of an elementwise op on tensors of these ranks.
template <class T, int... Ranks>
using broadcast_tensor = Tensor<T, broadcast_rank(Ranks...)>;

template <class X>
inline constexpr bool is_tensor = false;
template <class T, int R>
inline constexpr bool is_tensor<Tensor<T, R>> = true;

}  // namespace detail
}  // namespace xla
