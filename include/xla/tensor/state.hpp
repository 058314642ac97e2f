// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parameters and buffers: tensors with an identity inside a module, which optimizers and layers
// write. Plain tensors are values without identity (tensor.hpp).

#include "xla/tensor.hpp"

namespace xla {
namespace detail {

/// During a capture: an argument's slot takes over the value of another slot, copied, or moved with
/// its gradient.
constexpr void assign_slot(const handle& to, const handle& from, bool moved) {
  graph& g = *to.owner();
  const size_scope scope{&g.sizes, "operator="};
  const shape a = to.dims(), b = from.defined() ? from.dims() : shape{};
  if (from.slot_index() < 0 || g.slots[from.slot_index()].functional)
    scope.fail("a parameter of an argument cannot become a function of others: write copy_(value)");
  else if (!scope.same(a, b))
    scope.fail(text("a parameter of shape ") << a << " cannot become one of shape " << b);
  else {
    const int gradient = moved ? g.gradient_of(from.slot_index()) : -1;
    g.write(to.slot_index(), from.node_index());
    slot& s = g.slots[to.slot_index()];
    s.state = gradient < 0 ? grad_state::absent : grad_state::present;
    s.grad = gradient;
  }
}

}  // namespace detail

/// A tensor with identity inside its module. Optimizers and running layers write it, also through
/// const members. A copy, such as in a copy of its module, is a new leaf with the same value, whose
/// gradients do not flow to the original, in every mode. functional_copy() makes a copy whose
/// gradients do. Sizes in the constructor are facts of the type's default constructor; without
/// sizes they are found when the module is bound. Without axes it is a number, 0 at first.
template <element T, int Rank, bool Trainable>
class State : public Tensor<T, Rank> {
 public:
  static constexpr bool trainable = Trainable;

  constexpr State() {
    this->poison();
    for (detail::extent& e : sizes_) e = -1;
    if constexpr (Rank == 0)
      if (!__builtin_is_constant_evaluated())
        detail::machine_of<T>::create_cell(*this, dtype_of<T>, shape(), Trainable);
  }
  /// Elements are 0 until an initialiser writes them.
  template <std::size_t N>
    requires(static_cast<int>(N) == Rank)
  constexpr explicit State(const Size (&sizes)[N]) {
    this->poison();
    for (std::size_t i = 0; i < N; ++i) sizes_[i] = sizes[i].extent();
    if (!__builtin_is_constant_evaluated())
      detail::machine_of<T>::create_cell(*this, dtype_of<T>, shape(), Trainable);
  }
  /// Starts with a value, as a leaf: gradients do not continue to the value's inputs. In a default
  /// constructor its sizes are facts of the type: Parameter<float, 1> scale =
  /// xla::tensor<float>({1, 2, 3}).
  constexpr State(const Tensor<T, Rank>& value) { begin(value); }
  constexpr State(std::type_identity_t<T> number)
    requires(Rank == 0)
      : State(Tensor<T, 0>(number)) {}
  /// Zeros of another tensor's shape on its device, or one zero.
  static State like(const detail::handle& other) {
    State s;
    s.begin_like(other);
    return s;
  }
  /// Becomes zeros of another tensor's shape on its device, as an optimizer's state for a
  /// parameter.
  void begin_like(const detail::handle& other) {
    detail::machine_of<T>::create_like(*this, other, dtype_of<T>, Rank != 0, Trainable);
  }
  /// The same with size 1 along the axes for which one_along(axis, rank) holds.
  void begin_like(const detail::handle& other, const auto& one_along) {
    detail::shape dims = other.dims();
    for (int i = 0; i < dims.rank; ++i)
      if (one_along(i, dims.rank)) dims[i] = 1;
    const detail::working_on<T> there(other);
    detail::machine_of<T>::create_cell(*this, dtype_of<T>, dims, Trainable);
  }
  /// Zeros of these sizes on another tensor's device.
  template <std::size_t N>
  static State like(const detail::handle& other, const Size (&sizes)[N]) {
    const detail::working_on<T> there(other);
    return State(sizes);
  }
  constexpr State(const State& o) : Tensor<T, Rank>(o) { copy_cell(o); }
  constexpr State(State&& o) noexcept : Tensor<T, Rank>(o) { move_cell(o); }
  constexpr State& operator=(const State& o) {
    if (this == &o || assign_argument(o, false)) return *this;
    if (!__builtin_is_constant_evaluated() && this->get_cell() && o.get_cell()) {
      copy_sizes(o);
      detail::machine_of<T>::assign_cell(*this, o);
    } else {
      static_cast<detail::handle&>(*this) = o;
      copy_cell(o);
    }
    return *this;
  }
  /// Takes over the value and the gradient of another one. As after a copy, references to this
  /// cell, such as an optimizer's, stay valid; and references to the other one refer to this one.
  constexpr State& operator=(State&& o) noexcept {
    if (this == &o || assign_argument(o, true)) return *this;
    if (!__builtin_is_constant_evaluated() && this->get_cell() && o.get_cell()) {
      copy_sizes(o);
      this->take_contents(o);
    } else {
      static_cast<detail::handle&>(*this) = o;
      move_cell(o);
    }
    return *this;
  }

  /// Writes the value; if it has none yet, starts with it.
  constexpr State& operator=(const Tensor<T, Rank>& value) {
    if (this->is_cell()) Tensor<T, Rank>::copy_(value);
    else begin(value);
    return *this;
  }

  /// Writes the value, also through a const module, as for running statistics.
  constexpr const State& copy_(const Tensor<T, Rank>& value) const {
    const_cast<State&>(*this).Tensor<T, Rank>::copy_(value);
    return *this;
  }

  /// Replaces the gradient, through a const module as well.
  constexpr void set_grad(const Tensor<T, Rank>& gradient, caller loc = here()) const {
    const_cast<State&>(*this).Tensor<T, Rank>::set_grad(gradient, loc);
  }

  /// Replaces slices, through a const module as well.
  constexpr const State& index_copy_(int axis, const Tensor<std::int64_t, 1>& index,
                                     const Tensor<T, Rank>& source) const
    requires(Rank > 0)
  {
    const_cast<State&>(*this).Tensor<T, Rank>::index_copy_(axis, index, source);
    return *this;
  }

  /// A part that can be assigned, through a const module as well.
  template <class... I>
    requires(Rank > 0)
  constexpr auto index(const I&... i) const {
    return const_cast<State&>(*this).Tensor<T, Rank>::index(i...);
  }
  constexpr auto operator[](Size i) const
    requires(Rank > 0)
  {
    return index(i);
  }

  /// The sizes that the type fixes; -1 for others.
  constexpr detail::shape shape() const {
    detail::shape s;
    s.rank = Rank < 0 ? 0 : Rank;
    for (int i = 0; i < s.rank; ++i) s.dims[i] = sizes_[i];
    return s;
  }

 private:
  constexpr void begin(const Tensor<T, Rank>& value) {
    this->poison();
    const detail::shape s = value.dims();
    for (int i = 0; i < extents; ++i) sizes_[i] = i < s.rank && Rank > 0 ? s[i] : -1;
    if (!__builtin_is_constant_evaluated())
      detail::machine_of<T>::create_cell(*this, value.detach(), Trainable);
    else if (value.owner())
      throw runtime_error("xla: a parameter or buffer cannot be made in a compiled body");
  }
  constexpr void copy_cell(const State& o) {
    copy_sizes(o);
    if (__builtin_is_constant_evaluated()) {
      if (o.slot_index() >= 0) this->name_slot(o.owner(), o.owner()->copy_slot(o.slot_index()));
    } else if (o.get_cell()) {
      detail::machine_of<T>::copy_cell(*this, o);
    }
  }
  constexpr void move_cell(State& o) noexcept {
    copy_sizes(o);
    if (__builtin_is_constant_evaluated()) {
      if (o.slot_index() >= 0) this->name_slot(o.owner(), o.slot_index());
    } else {
      this->steal_cell(o);
    }
  }
  constexpr bool assign_argument(const State& o, bool moved) {
    if (!__builtin_is_constant_evaluated() || this->slot_index() < 0) return false;
    if (this->owner()->slots[this->slot_index()].kind == detail::slot_kind::local) return false;
    detail::assign_slot(*this, o, moved);
    return true;
  }
  constexpr void copy_sizes(const State& o) {
    for (int i = 0; i < extents; ++i) sizes_[i] = o.sizes_[i];
  }
  static constexpr int extents = Rank < 1 ? 1 : Rank;
  detail::extent sizes_[extents] = {-1};
};

/// A tensor that training changes.
template <element T, int Rank>
using Parameter = State<T, Rank, true>;

/// A tensor that a module or optimizer stores and changes, without gradient.
template <element T, int Rank>
using Buffer = State<T, Rank, false>;

namespace detail {
template <class X>
inline constexpr bool is_state = false;
template <class T, int R, bool B>
inline constexpr bool is_state<State<T, R, B>> = true;
}  // namespace detail
}  // namespace xla
