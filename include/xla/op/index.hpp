// SPDX-License-Identifier: Apache-2.0
#pragma once

// x[...] and x.index(...): parts of a tensor that can be read and assigned. selection.hpp defines
// the contents of the brackets; gather() and the like are in gather.hpp.

#include "xla/op/selection.hpp"

namespace xla {
namespace detail {

template <class T, int R>
constexpr void rebind(Tensor<T, R>& t, const Tensor<T, R>& value, const call_site& site);

/// A part of a tensor, chosen by indices. In the expression that makes it, assigning to it writes
/// into the tensor. A named part is a value like any other tensor, so that `auto h = t[0]; h =
/// tanh(h);` does not change t.
template <class T, int R, int Rank>
class indexed : public Tensor<T, Rank> {
 public:
  constexpr indexed(Tensor<T, R>& base, const selection<R>& chosen)
      : indexed(base, chosen, read_part<Rank>(base, chosen)) {}
  /// With what the tensor has there.
  constexpr indexed(Tensor<T, R>& base, const selection<R>& chosen, const Tensor<T, Rank>& value)
      : Tensor<T, Rank>(value), base_(&base), chosen_(chosen) {}
  constexpr indexed(const indexed&) = default;

  using Tensor<T, Rank>::index;
  template <class... I>
    requires(Rank > 0)
  constexpr indexed<T, R, indexed_rank<Rank, I...>> index(const I&... i) && {
    const auto inner = selection<Rank>::of(*this, i...);
    return {*base_, chosen_.then(inner),
            read_part<indexed_rank<Rank, I...>, T, Rank>(*this, inner)};
  }
  using Tensor<T, Rank>::operator[];
  constexpr auto operator[](Size i) &&
        requires(Rank > 0)
  {
    return std::move(*this).index(i);
  }

  template <int A>
  constexpr indexed&& operator=(const Tensor<T, A>& v) && {
    static_assert(A <= Rank, "xla: a value with more axes than the part that it is assigned to");
    const Tensor<T, R> value = align_part(*base_, chosen_, v);
    const bool whole = A == Rank && v.dims() == this->dims();
    Tensor<T, Rank> kept;
    if constexpr (A == Rank)
      if (whole) kept = v;
    const int first = chosen_.next(0);
    own() = {};  // values that were read may still refer to the tensor
    if (first < R) write(first, part_with(*base_, chosen_, first, value));
    else rebind(*base_, with_shape<op::expand, R>(value, base_->dims()), "operator=");
    if (whole) own() = kept;
    else own() = read_part<Rank>(*base_, chosen_);
    return std::move(*this);
  }
  constexpr indexed&& operator=(const indexed& o) && {
    return std::move(*this) = static_cast<const Tensor<T, Rank>&>(o);
  }
  constexpr indexed&& operator=(number_of<T> v) && {
    return std::move(*this) = v.element(base_->table());
  }

  template <int A>
  constexpr indexed& operator=(const Tensor<T, A>& v) & {
    static_assert(A == Rank,
                  "xla: a part that has a name is a value of its own: to write into the tensor, "
                  "assign in the same expression: t[i] = value");
    own() = v;
    return *this;
  }
  constexpr indexed& operator=(const indexed& o) & {
    return *this = static_cast<const Tensor<T, Rank>&>(o);
  }
  constexpr indexed& operator=(number_of<T> v) & { return *this = v.element(this->table()); }

  template <class V>
  constexpr indexed&& operator+=(const V& v) && {
    return std::move(*this) = *this + v;
  }
  template <class V>
  constexpr indexed&& operator-=(const V& v) && {
    return std::move(*this) = *this - v;
  }
  template <class V>
  constexpr indexed&& operator*=(const V& v) && {
    return std::move(*this) = *this * v;
  }
  template <class V>
  constexpr indexed&& operator/=(const V& v) && {
    if constexpr (floating_type<T>) return std::move(*this) = *this / v;
    else return refuse_whole_quotient<T>(), std::move(*this);
  }
  template <class V>
  constexpr indexed& operator+=(const V& v) & {
    return own() += v, *this;
  }
  template <class V>
  constexpr indexed& operator-=(const V& v) & {
    return own() -= v, *this;
  }
  template <class V>
  constexpr indexed& operator*=(const V& v) & {
    return own() *= v, *this;
  }
  template <class V>
  constexpr indexed& operator/=(const V& v) & {
    return own() /= v, *this;
  }
  constexpr indexed&& copy_(const Tensor<T, Rank>& v) && { return std::move(*this) = v; }
  constexpr indexed&& fill_(number_of<T> v) && { return std::move(*this) = v; }
  constexpr indexed&& zero_() && { return std::move(*this) = T{}; }
  constexpr indexed& copy_(const Tensor<T, Rank>& v, caller loc = here()) & {
    return own().copy_(v, loc), *this;
  }
  constexpr indexed& fill_(T v) & { return own().fill_(v), *this; }
  constexpr indexed& zero_() & { return fill_(T{}); }

 private:
  constexpr Tensor<T, Rank>& own() { return *this; }
  constexpr void write(int axis, const Tensor<T, R>& v) {
    const axis_part& p = chosen_.axis[axis];
    if (!__builtin_is_constant_evaluated()) {
      node n = with<op::slice_scatter>({axis, p.step, p.start.extent()}, base_->dims());
      n.op = &info_of<op::slice_scatter, T, T>;
      n.type = dtype_of<T>;
      const handle* const parts[] = {&v};
      if (machine_of<T>::update(*base_, n, parts, 1)) return;
    }
    rebind(*base_, scatter_axis<T, R>(*base_, axis, p, v), "operator=");
  }

  Tensor<T, R>* base_;
  selection<R> chosen_;
};

}  // namespace detail

template <element T, int R>
template <class... I>
  requires(R > 0)
constexpr detail::indexed<T, R, detail::indexed_rank<R, I...>> Tensor<T, R>::index(
    const I&... i) & {
  return {*this, detail::selection<R>::of(*this, i...)};
}

template <element T, int R>
template <class... I>
  requires(R > 0)
constexpr Tensor<T, detail::indexed_rank<R, I...>> Tensor<T, R>::index(const I&... i) const& {
  return detail::read_part<detail::indexed_rank<R, I...>>(*this,
                                                          detail::selection<R>::of(*this, i...));
}

}  // namespace xla
