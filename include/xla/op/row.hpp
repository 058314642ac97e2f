// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/op/create.hpp"

namespace xla::op {

/// Row attr along the first axis.
struct row {
  static constexpr auto name = "row";
  static constexpr op_kind kind = op_kind::library;
  static constexpr shape shape_of(const shape_rule& r) {
    if (detail::is_known(r.in[0][0]) && (r.op.attr < 0 || r.op.attr >= r.in[0][0]))
      r.sizes.fail(detail::text("row ") << r.op.attr << " of " << r.in[0] << " does not exist");
    shape s;
    for (int i = 1; i < r.in[0].rank; ++i) s.push(r.in[0][i]);
    return s;
  }
  static constexpr void gradient(auto& g) {
    g.to(0, with_row(detail::expand_to(any_zero(g.grad()), g.in(0).dims()), g.attr(), g.grad()));
  }
};

/// The first input with row attr along the first axis replaced by the second.
struct assign_row {
  static constexpr auto name = "assign_row";
  static constexpr op_kind kind = op_kind::library;
  static constexpr shape shape_of(const shape_rule& r) {
    if (detail::is_known(r.in[0][0]) && (r.op.attr < 0 || r.op.attr >= r.in[0][0]))
      r.sizes.fail(detail::text("row ") << r.op.attr << " of " << r.in[0] << " does not exist");
    return r.in[0];
  }
  static constexpr void gradient(auto& g) {
    if (g.wants(0)) {
      const auto hole = any_zero(g.grad());
      g.to(0, with_row(g.grad(), g.attr(), detail::expand_to(hole, g.in(1).dims())));
    }
    if (g.wants(1)) g.to(1, row_at(g.grad(), g.attr()));
  }
};

}  // namespace xla::op

namespace xla {
namespace detail {

template <class T>
constexpr any_tensor<T> any_zero(const any_tensor<T>&) {
  return Tensor<T, 0>(T{});
}
template <class T, int R>
constexpr Tensor<T, R> with_row(const Tensor<T, R>& x, std::int64_t i, const handle& row) {
  node n;
  n.attr = i;
  return apply<op::assign_row, T, T, R>(n, x, row);
}
template <class T>
constexpr any_tensor<T> row_at(const any_tensor<T>& x, std::int64_t i) {
  node n;
  n.attr = i;
  return apply<op::row, T, T, dynamic_rank>(n, x);
}
template <class T, int R>
constexpr Tensor<T, R - 1> row_of_tensor(const Tensor<T, R>& x, std::int64_t i) {
  return row_at(any_tensor<T>(x), i);
}

template <class T, int R>
constexpr void rebind(Tensor<T, R>& t, const Tensor<T, R>& value, std::string_view function);

/// t[i][j]: the row, a tensor; when assigned it is written into the tensor that it comes from.
template <class T, int R, int Depth>
class row_proxy : public Tensor<T, R - Depth> {
 public:
  constexpr row_proxy(Tensor<T, R>& base, std::int64_t i) : base_(base) {
    path_[0] = i;
    static_cast<handle&>(*this) = read<0>(base_);
  }
  constexpr row_proxy(Tensor<T, R>& base, const std::int64_t (&path)[max_rank], std::int64_t i)
      : base_(base) {
    for (int k = 0; k + 1 < Depth; ++k) path_[k] = path[k];
    path_[Depth - 1] = i;
    static_cast<handle&>(*this) = read<0>(base_);
  }
  constexpr row_proxy(const row_proxy&) = default;
  constexpr auto operator[](std::int64_t i) const
    requires(Depth < R)
  {
    return row_proxy<T, R, Depth + 1>(base_, path_, i);
  }
  constexpr const row_proxy& operator=(const Tensor<T, R - Depth>& v) const {
    rebind(base_, write<0>(base_, v), "operator[]");
    return *this;
  }
  // The in-place forms write into the tensor that the row comes from.
  template <class V>
  constexpr const row_proxy& operator+=(const V& v) const {
    return *this = *this + v;
  }
  template <class V>
  constexpr const row_proxy& operator-=(const V& v) const {
    return *this = *this - v;
  }
  template <class V>
  constexpr const row_proxy& operator*=(const V& v) const {
    return *this = *this * v;
  }
  template <class V>
  constexpr const row_proxy& operator/=(const V& v) const {
    return *this = *this / v;
  }
  constexpr const row_proxy& copy_(const Tensor<T, R - Depth>& v) const { return *this = v; }
  constexpr const row_proxy& fill_(T v) const { return *this = full_like(*this, v); }
  constexpr const row_proxy& zero_() const { return fill_(T{}); }

  constexpr const row_proxy& operator=(const row_proxy& o) const {
    return *this = static_cast<const Tensor<T, R - Depth>&>(o);
  }
  constexpr const row_proxy& operator=(std::type_identity_t<T> v) const
    requires(Depth < R)
  {
    return *this = full_like(*this, v);
  }

 private:
  template <int K, int Rank>
  constexpr Tensor<T, R - Depth> read(const Tensor<T, Rank>& x) const {
    if constexpr (K == Depth) return x;
    else return read<K + 1>(row_of_tensor(x, at<K>(x)));
  }
  template <int K, int Rank>
  constexpr Tensor<T, Rank> write(const Tensor<T, Rank>& x, const Tensor<T, R - Depth>& v) const {
    if constexpr (K == Depth) {
      detail::shape s = x.dims();
      return with_shape<op::expand, Rank>(v, s);
    } else {
      return with_row(x, at<K>(x), write<K + 1>(row_of_tensor(x, at<K>(x)), v));
    }
  }
  template <int K, int Rank>
  constexpr std::int64_t at(const Tensor<T, Rank>& x) const {
    return path_[K] < 0 ? path_[K] + std::int64_t(x.size(0)) : path_[K];
  }

  Tensor<T, R>& base_;
  std::int64_t path_[max_rank] = {};
};

}  // namespace detail

template <element T, int R>
constexpr typename detail::row_of<T, R>::type Tensor<T, R>::operator[](std::int64_t i) const&
  requires(R > 0)
{
  return detail::row_of_tensor(*this, i < 0 ? i + std::int64_t(size(0)) : i);
}

template <element T, int R>
    constexpr typename detail::row_of<T, R>::type Tensor<T, R>::operator[](std::int64_t i) &&
      requires(R > 0)
{
  return static_cast<const Tensor&>(*this)[i];
}

}  // namespace xla
