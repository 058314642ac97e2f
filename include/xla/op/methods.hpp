// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the methods of tensors that read values or copy, such as item(), data() and to_vector().
// In a compiled body they stop the build, as no values exist there.

#include <ostream>

#include "xla/base/compiler.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/create.hpp"

namespace xla {

namespace detail {
template <class In = void>
[[noreturn, gnu::noinline]] void refuse_item(const shape& dims, caller loc) {
  size_scope{nullptr, {"item", loc}}.fail(text("a tensor of shape ")
                                          << dims << " has more than one element, or none");
  XLA_UNREACHABLE();
}
XLA_INSTANCE(void refuse_item<void>(const shape&, caller));
}  // namespace detail

template <element T, int R>
constexpr T Tensor<T, R>::item(caller loc) const {
  if (__builtin_is_constant_evaluated()) {
    if (!owner()) throw std::logic_error("xla: item() outside a compiled body needs run time");
    table()->refused.set(
        detail::text("item() (or a tensor used as a condition) reads a value that exists only at "
                     "run time: return the tensor and read it outside, or choose with xla::where")
        << std::source_location(loc));
    return T{};
  }
  detail::machine_of<T>::count_fallback("item");
  const void* p = detail::machine_of<T>::read(*this);
  if (detail::count(dims()) != 1) detail::refuse_item<dependent<T, void>>(dims(), loc);
  return *static_cast<const T*>(p);
}

template <element T, int R>
const T* Tensor<T, R>::data() const {
  return static_cast<const T*>(detail::machine_of<T>::read(*this));
}

template <element T, int R>
std::vector<T> Tensor<T, R>::to_vector() const {
  const T* p = data();
  return std::vector<T>(p, p + std::int64_t(numel()));
}

template <element T, int R>
constexpr bool Tensor<T, R>::requires_grad() const {
  if (__builtin_is_constant_evaluated()) return owner() && owner()->nodes[node_index()].needs_grad;
  return value() && value()->needs_grad;
}

template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::requires_grad_(bool on) {
  static_assert(floating_type<T>, "xla: only tensors of float or double can collect gradients");
  if (!__builtin_is_constant_evaluated()) detail::machine_of<T>::require_grad(*this, on);
  else if (const int slot = slot_index(); slot >= 0) owner()->require_grad(slot, on);
  else if (owner()) require_grad(on);
  return *this;
}

template <element T, int R>
constexpr void Tensor<T, R>::require_grad(bool on) {
  detail::graph& g = *owner();
  if (const int slot = gradient_slot(); slot >= 0)
    this->name_node(&g, g.require_grad_of(node_index(), slot, on));
  else if (requires_grad() != on)
    this->name_node(&g, on ? g.add_collector(node_index()) : cut(false).node_index());
}

template <element T, int R>
constexpr Tensor<T, R> Tensor<T, R>::cut(bool needs_grad) const {
  Tensor result;
  result.name_node(owner(), owner()->add(owner()->detached(node_index(), {}, needs_grad)));
  return result;
}

template <element T, int R>
constexpr Tensor<T, R> Tensor<T, R>::grad() const {
  Tensor g;
  if (!__builtin_is_constant_evaluated()) {
    detail::machine_of<T>::grad(*this, g);
  } else if (owner()) {
    const int slot = gradient_slot();
    if (const int n = slot >= 0 ? owner()->gradient_of(slot) : -1; n >= 0)
      g.name_node(owner(), owner()->add(owner()->detached(
                               n, {.slot = owner()->decider(slot), .gradient = true}, false)));
    if (slot < 0 && requires_grad())
      table()->refused.set(
          "grad() of a value that was computed from others: only parameters, arguments and what "
          "requires_grad_() was called on collect gradients; write xla::grad(loss, x)");
  }
  return g;
}

template <element T, int R>
constexpr void Tensor<T, R>::set_grad(const Tensor& gradient, caller loc) {
  const detail::size_scope scope{table(), {"set_grad", loc}};
  const detail::shape to = dims(), from = gradient.dims();
  if (!scope.same(to, from)) {
    scope.fail(detail::text("a gradient of shape ") << from << " for a value of shape " << to);
  } else if (!__builtin_is_constant_evaluated()) {
    detail::machine_of<T>::set_grad(*this, gradient.detach());
  } else if (const int slot = gradient_slot(); slot < 0) {
    scope.fail("the tensor was computed from others and collects no gradients");
  } else if (const int own = gradient.lift(owner()); slot_index() < 0) {
    this->name_node(owner(), owner()->replace_gradient(node_index(), slot, own));
  } else {
    detail::slot& s = owner()->slots[slot];
    s.grad = owner()->add(
        owner()->detached(own, {.slot = slot, .gradient = true, .replaces = true}, false));
    s.state = detail::grad_state::present;
  }
}

template <element T, int R>
constexpr void Tensor<T, R>::zero_grad() {
  if (!__builtin_is_constant_evaluated()) {
    detail::machine_of<T>::zero_grad(*this);
  } else if (owner()) {
    const int slot = gradient_slot();
    if (slot >= 0 && slot_index() >= 0) owner()->slots[slot].state = detail::grad_state::absent;
    else if (slot >= 0)
      this->name_node(owner(), owner()->drop_gradient(node_index(), slot));
  }
}

template <element T, int R>
constexpr Tensor<T, R> Tensor<T, R>::detach() const {
  if (__builtin_is_constant_evaluated()) {
    return requires_grad() || this->input_grad() ? cut(false) : *this;
  }
  Tensor result;
  detail::machine_of<T>::detach(*this, result);
  return result;
}

namespace detail {

/// Rebinds t to a value of the same shape.
template <class T, int R>
constexpr void rebind(Tensor<T, R>& t, const Tensor<T, R>& value, const call_site& site) {
  const size_scope scope{t.table() ? t.table() : value.table(), site};
  const shape to = t.dims(), from = value.dims();
  if (!scope.same(to, from)) {
    scope.fail(text("a value of shape ") << from << " does not fit in place into " << to);
    return;
  }
  if (!__builtin_is_constant_evaluated()) machine_of<T>::rebind(t, value);
  else if (t.slot_index() >= 0) t.owner()->write(t.slot_index(), value.lift(t.owner()));
  else if (const int slot = t.collecting_slot(); slot >= 0)
    t.name_node(t.owner(), t.owner()->change(slot, value.lift(t.owner())));
  else static_cast<handle&>(t) = value;
}

}  // namespace detail

template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::operator+=(const Tensor& o) & {
  detail::rebind(*this, *this + o, "operator+=");
  return *this;
}
template <element T, int R>
    constexpr Tensor<T, R>& Tensor<T, R>::operator+=(std::type_identity_t<T> o) &
      requires(R != 0)
{
  detail::rebind(*this, *this + o, "operator+=");
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::operator-=(const Tensor& o) & {
  detail::rebind(*this, *this - o, "operator-=");
  return *this;
}
template <element T, int R>
    constexpr Tensor<T, R>& Tensor<T, R>::operator-=(std::type_identity_t<T> o) &
      requires(R != 0)
{
  detail::rebind(*this, *this - o, "operator-=");
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::operator*=(const Tensor& o) & {
  detail::rebind(*this, *this * o, "operator*=");
  return *this;
}
template <element T, int R>
    constexpr Tensor<T, R>& Tensor<T, R>::operator*=(std::type_identity_t<T> o) &
      requires(R != 0)
{
  detail::rebind(*this, *this * o, "operator*=");
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::operator/=(const Tensor& o) & {
  if constexpr (floating_type<T>) detail::rebind(*this, *this / o, "operator/=");
  else detail::refuse_whole_quotient<T>();
  return *this;
}
template <element T, int R>
    constexpr Tensor<T, R>& Tensor<T, R>::operator/=(std::type_identity_t<T> o) &
      requires(R != 0)
{
  if constexpr (floating_type<T>) detail::rebind(*this, *this / o, "operator/=");
  else detail::refuse_whole_quotient<T>();
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::operator=(const Tensor& o) & {
  if (is_cell()) detail::rebind(*this, o, "operator=");
  else detail::handle::operator=(o);
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::operator=(Tensor&& o) & {
  if (is_cell()) detail::rebind(*this, o, "operator=");
  else detail::handle::operator=(std::move(o));
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::copy_(const Tensor& o, caller loc) {
  detail::rebind(*this, o, {"copy_", loc});
  return *this;
}
template <element T, int R>
constexpr Tensor<T, R>& Tensor<T, R>::fill_(T number) {
  detail::rebind(*this, full_like(*this, number), "fill_");
  return *this;
}

/// A number computed from a parameter's gradient, to be combined with those of other parameters, as
/// in a norm of them all. It is 0 in calls of a compiled step in which the parameter is frozen.
template <class T, int R, class U>
constexpr Tensor<U, 0> gradient_part([[maybe_unused]] const Tensor<T, R>& parameter,
                                     const Tensor<U, 0>& number) {
  if (!__builtin_is_constant_evaluated() || !number.owner()) return number;
  detail::graph& g = *number.owner();
  const int slot = parameter.gradient_slot();
  detail::node n = g.detached(
      number.node_index(), {.slot = slot < 0 ? slot : g.decider(slot), .gradient = true}, false);
  n.op = &detail::builtin<op::gradient_part>;
  Tensor<U, 0> result;
  result.name_node(&g, g.add(n));
  return result;
}

}  // namespace xla
