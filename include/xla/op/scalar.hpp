// SPDX-License-Identifier: Apache-2.0
#pragma once

// C++ numbers and hyper-parameters as operands of tensor functions: which numbers fit an element
// type, and which are refused. Every op with a number as an argument uses it.

#include <limits>
#include <utility>

#include "xla/op/cast.hpp"
#include "xla/op/op.hpp"
#include "xla/tensor/scalar.hpp"

namespace xla {

/// Refuses an operation on x: for a compiled body the compiler prints the sentence, else an
/// xla::error has it. For layers that check their options.
template <class T, int R>
constexpr void refuse_now(const Tensor<T, R>& x, const char* sentence) {
  if (detail::size_table* t = x.table()) t->refused.set(sentence);
  else throw runtime_error(sentence);
}

namespace detail {

/// Whether T can hold a number. Unsigned types also accept negative numbers of their size, modulo
/// 2^n.
template <class T, class U>
constexpr bool holds(U v) {
  using limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) return v == U(0) || v == U(1);
  else if constexpr (!std::is_integral_v<T>) return true;
  else {
    constexpr T high = limits::max();
    constexpr auto low = limits::is_signed ? std::int64_t{limits::min()} : -std::int64_t{high};
    if constexpr (std::is_integral_v<U>)
      return std::cmp_greater_equal(+v, low) && std::cmp_less_equal(+v, high);
    const auto x = static_cast<double>(v);
    return x >= static_cast<double>(low) && x < static_cast<double>(high) + 1;
  }
}
template <class T>
inline constexpr text too_large_refusal = [] {
  text t("xla: a number does not fit into a tensor of ");
  t << element_name<T>();
  if (!std::is_same_v<T, std::int64_t>) t << "; take a wider type: xla::cast<std::int64_t>(x)";
  return t;
}();
/// Refuses a number that would wrap around.
template <class T>
constexpr void require_fit(size_table* table, bool fits) {
  if (fits) return;
  if (table) table->refused.set(too_large_refusal<T>);
  else throw runtime_error(std::string(too_large_refusal<T>.view()));
}

/// A plain number in an op with a tensor: the element type itself, from anything that converts to
/// it, or a size, or a hyper-parameter.
template <class T>
class number {
 public:
  template <class U>
    requires(std::is_arithmetic_v<U> || std::is_same_v<U, bfloat16>)
  constexpr number(U v) : value_(static_cast<computed<T>>(v)), fits_(holds<T>(v)) {
    static_assert(floating_type<T> || !std::is_floating_point_v<U>,
                  "xla: a fraction would be truncated in a tensor of integers; convert the tensor "
                  "first: xla::cast<float>(x)");
  }
  constexpr number(Size s) : size_(s), is_size_(true) {}
  constexpr number(const Scalar& s) : scalar_(&s) {}

  constexpr Tensor<T, 0> tensor() const { return as<T>(); }
  /// The same for an element of a result: a number that an integer type does not hold is refused.
  /// In arithmetic numbers wrap around like elements.
  constexpr Tensor<T, 0> element(size_table* table) const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) require_fit<T>(table, fits());
    return tensor();
  }
  /// In the type that ops compute with: for bfloat16 the number is not rounded.
  constexpr Tensor<computed<T>, 0> operand() const { return as<computed<T>>(); }
  /// True if a number is known now and is outside [low, high], or NaN.
  constexpr bool outside(double low, double high) const {
    if (is_size_ || (scalar_ && !scalar_->known())) return false;
    const double v = scalar_ ? scalar_->value() : static_cast<double>(value_);
    return !(v >= low && v <= high);
  }
  /// False for a number, known now, that changes when converted to the type.
  template <class U = T>
  constexpr bool fits() const {
    if (scalar_) return !scalar_->known() || holds<U>(scalar_->value());
    if (is_size_) return !size_.known() || holds<U>(size_.extent());
    return fits_ && holds<U>(value_);
  }
  /// True if the number is exactly this one; false for a size or a hyper-parameter.
  constexpr bool is(double v) const {
    return !scalar_ && !is_size_ && static_cast<double>(value_) == v;
  }

 private:
  template <class U>
  constexpr Tensor<U, 0> as() const;

  computed<T> value_{};
  Size size_;
  const Scalar* scalar_ = nullptr;
  bool is_size_ = false, fits_ = true;
};

/// A number whose element type follows from the tensor with it.
template <class T>
using number_of = std::type_identity_t<number<T>>;

/// One number as a tensor without axes.
template <class T>
constexpr Tensor<T, 0> constant(T value) {
  Tensor<T, 0> t;
  // As an integer it is exact beyond 2^53.
  const std::int64_t whole = std::is_integral_v<T> ? static_cast<std::int64_t>(value) : 0;
  if (!__builtin_is_constant_evaluated()) {
    machine_of<T>::constant(t, dtype_of<T>, static_cast<double>(value), whole);
  } else {
    node n;
    n.op = &builtin<op::constant>;
    n.type = dtype_of<T>;
    n.set<op::constant>({static_cast<double>(value), whole});
    t.float_op(n);
  }
  return t;
}

template <class T>
template <class U>
constexpr Tensor<U, 0> number<T>::as() const {
  if (scalar_) return scalar_->template as<U>();
  if (!is_size_) return constant<U>(static_cast<U>(value_));
  if (!__builtin_is_constant_evaluated() || size_.known())
    return constant<U>(static_cast<U>(size_.extent()));
  node n;
  n.op = &builtin<op::size>;
  n.type = dtype_of<U>;
  n.set<op::size>({size_.extent()});
  Tensor<U, 0> t;
  graph* g = size_.table()->owner;
  t.name_node(g, g->add(n));
  return t;
}

template <class T, class U>
concept unlike = !std::is_same_v<T, U>;

/// Two element types that an op cannot combine, and how to convert one to the other.
template <class T, class U>
inline constexpr text types_refusal = [] {
  text t("xla: the element types of the tensors, ");
  t << element_name<T>() << " and " << element_name<U>() << ", differ; convert one: xla::cast<";
  if (!floating_type<T> && !floating_type<U>) t << "std::int64_t";
  else if (floating_type<T> && floating_type<U>) t << "float";
  else t << (floating_type<T> ? element_name<T>() : element_name<U>());
  return t << ">(x)";
}();
/// Stops the build if element types differ; a result of type Out causes no further error.
template <class T, class U, class Out = T>
constexpr Tensor<Out, dynamic_rank> refuse_types() {
  refuse<types_refusal<T, U>>();
  return {};
}

/// Refuses shapes that do not broadcast, in the name of a composed function.
template <class... X>
constexpr void check_broadcast(const call_site& site, const X&... x) {
  size_scope scope{nullptr, site};
  ((scope.table = scope.table ? scope.table : x.table()), ...);
  shape all;
  ((all = scope.broadcast(all, x.dims())), ...);
}
template <class Op, class Out, class T, int A, int B>
constexpr Tensor<Out, broadcast_rank(A, B)> map_binary(const Tensor<T, A>& a, const Tensor<T, B>& b,
                                                       caller loc = unknown_caller) {
  return apply_at<Op, Out, T, broadcast_rank(A, B)>(loc, plain, a, b);
}
/// Refuses a number other than 0 and 1 with a tensor of bool, for which it would be true.
template <class T, int R>
constexpr void require_truth(const Tensor<T, R>& x, const number<T>& n) {
  if constexpr (std::is_same_v<T, bool>)
    if (!n.fits())
      refuse_now(x,
                 "xla: next to a tensor of bool a number is 0 or 1; convert the tensor first: "
                 "xla::cast<std::int64_t>(x)");
}
template <class Op, class Out, class T, int R>
constexpr Tensor<Out, R> map_number(const Tensor<T, R>& a, const number<T>& b) {
  require_truth(a, b);
  return apply<Op, Out, T, R>(plain, a, b.operand());
}
template <class Op, class Out, class T, int R>
constexpr Tensor<Out, R> number_map(const number<T>& a, const Tensor<T, R>& b) {
  require_truth(b, a);
  return apply<Op, Out, T, R>(plain, a.operand(), b);
}

template <class T>
constexpr handle held_as(const handle& tensor, dtype type) {
  const auto& held = static_cast<const Tensor<T, 0>&>(tensor);
  switch (type) {
    case dtype::float32: return cast<float>(held);
    case dtype::float64: return cast<double>(held);
    case dtype::int32: return cast<std::int32_t>(held);
    case dtype::int64: return cast<std::int64_t>(held);
    case dtype::uint8: return cast<std::uint8_t>(held);
    case dtype::boolean: return cast<bool>(held);
    case dtype::bfloat16: break;
  }
  return cast<bfloat16>(held);
}

}  // namespace detail

template <class T>
constexpr Tensor<T, 0> Scalar::as() const {
  if (is_ == role::held) {
    Tensor<T, 0> t;
    static_cast<detail::handle&>(t) = held_as_(*tensor_, dtype_of<T>);
    return t;
  }
  if (!__builtin_is_constant_evaluated() || is_ != role::input)
    return detail::constant<T>(static_cast<T>(value_));
  Tensor<T, 0> t;
  const int known = graph_->slots[slot_].current;
  if (known >= 0 && graph_->nodes[known].type == dtype_of<T>) {
    t.name_node(graph_, known);
    return t;
  }
  detail::node n;
  n.op = &detail::builtin<op::scalar>;
  n.type = dtype_of<T>;
  n.set<op::scalar>({.slot = slot_});
  const int made = graph_->add(n);
  if (graph_->segment == 0) graph_->slots[slot_].current = made;  // for the next call
  t.name_node(graph_, made);
  return t;
}

template <element T, int R>
constexpr Tensor<T, R>::Tensor(std::type_identity_t<T> number)
  requires(R == 0)
    : Tensor(detail::constant<T>(number)) {}

}  // namespace xla

// The overloads of a function of two tensors by one op that accept a number on either side.
#define XLA_DETAIL_WITH_NUMBERS(function, Out, op)                                   \
  template <class T, int R>                                                          \
  constexpr Tensor<Out, R> function(const Tensor<T, R>& a, detail::number_of<T> b) { \
    return detail::map_number<op, Out>(a, b);                                        \
  }                                                                                  \
  template <class T, int R>                                                          \
  constexpr Tensor<Out, R> function(detail::number_of<T> a, const Tensor<T, R>& b) { \
    return detail::number_map<op, Out>(a, b);                                        \
  }                                                                                  \
  static_assert(true)
// The overload for tensors of different element types, which stops the build.
#define XLA_DETAIL_REFUSE_TYPES(function)                             \
  template <class T, int A, detail::unlike<T> U, int B>               \
  constexpr auto function(const Tensor<T, A>&, const Tensor<U, B>&) { \
    return detail::refuse_types<T, U>();                              \
  }                                                                   \
  static_assert(true)
