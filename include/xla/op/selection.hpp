// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contents of an index's brackets: Slice, ellipsis, numbers. index.hpp applies it.

#include "xla/op/slice.hpp"

namespace xla {

/// The elements from start to end (not included) of an axis, step apart, as in slice; all of them
/// without arguments: x.index(0, xla::Slice(), xla::Slice(xla::none, 3)).
class Slice {
 public:
  constexpr Slice() = default;
  constexpr Slice(detail::bound start, detail::bound end = none, std::int64_t step = 1)
      : start_(start), end_(end), step_(step) {}

  constexpr detail::axis_part of(const detail::axis_range& axis) const {
    return axis.between(start_, end_, step_);
  }
  constexpr detail::size_table* table() const {
    return start_.table() ? start_.table() : end_.table();
  }

 private:
  detail::bound start_ = none, end_ = none;
  std::int64_t step_ = 1;
};

/// Stands for all axes that are not named otherwise: x.index(xla::ellipsis, 0).
struct ellipsis_t {};
inline constexpr ellipsis_t ellipsis{};

namespace detail {

constexpr axis_part part_of(const handle& x, int axis, const Slice& s) {
  return s.of(range_of(x, axis, s.table(), "index"));
}
constexpr axis_part part_of(const handle& x, int axis, Size i) {
  return range_of(x, axis, i.table(), "index").one(i, axis, x.dims());
}

/// The selection of an index on each of R axes.
template <int R>
struct selection {
  axis_part axis[R];

  template <class... I>
  static constexpr selection of(const handle& x, const I&... i) {
    constexpr int skips = (0 + ... + int{std::is_same_v<I, ellipsis_t>});
    constexpr int named = static_cast<int>(sizeof...(I)) - skips;
    static_assert(named <= R, "xla: index() names more axes than the tensor has");
    static_assert(skips <= 1, "xla: index() takes one xla::ellipsis");
    selection s;
    int at = 0;
    const auto take = [&](const auto& one) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, ellipsis_t>) at += R - named;
      else s.axis[at] = part_of(x, at, one), ++at;
    };
    (take(i), ...);
    return s;
  }
  /// The selection `inner` within this one.
  template <int Rank>
  constexpr selection then(const selection<Rank>& inner) const {
    selection s = *this;
    int k = 0;
    for (axis_part& a : s.axis) {
      if (a.drops) continue;
      const axis_part& b = inner.axis[k++];
      if (b.whole) continue;
      const Size forward = a.step < 0 ? a.start - b.start * -a.step : a.start + b.start * a.step;
      a = {a.whole ? b.start : forward, b.length, a.step * b.step, false, b.drops};
    }
    return s;
  }
  /// The first axis from `at` on that is not taken whole; R if there is none.
  constexpr int next(int at) const {
    while (at < R && axis[at].whole) ++at;
    return at;
  }
};

/// The selected part of x.
template <int Rank, class T, int R>
constexpr Tensor<T, Rank> read_part(const Tensor<T, R>& x, const selection<R>& chosen) {
  Tensor<T, R> y = x;
  for (int i = 0; i < R; ++i) y = slice_axis(y, i, chosen.axis[i]);
  if constexpr (Rank == R) return y;
  else {
    const shape from = y.dims();
    shape s;
    for (int i = 0; i < R; ++i)
      if (!chosen.axis[i].drops) s.push(from[i]);
    return with_shape<op::reshape, Rank>(y, s);
  }
}

/// The replacement of x's part along an axis when v is written: v with x's axes, of size 1 or the
/// part's, surrounded by the part's own elements along later axes.
template <class T, int R>
constexpr Tensor<T, R> part_with(const Tensor<T, R>& x, const selection<R>& chosen, int axis,
                                 const Tensor<T, R>& v) {
  const axis_part& p = chosen.axis[axis];
  const int next = chosen.next(axis + 1);
  if (next < R) {
    const Tensor<T, R> rest = slice_axis(x, axis, p);
    const axis_part& q = chosen.axis[next];
    return scatter_axis(rest, next, q, part_with(rest, chosen, next, v));
  }
  shape s = v.dims();
  s[axis] = p.length.extent();
  if (s == v.dims()) return v;
  return with_shape<op::expand, R>(with_table(v, x.table() ? x.table() : p.length.table()), s);
}

/// v, whose axes are the last ones of the selected part (or 1), with x's axes.
template <class T, int R, int A>
constexpr Tensor<T, R> align_part(const Tensor<T, R>& x, const selection<R>& chosen,
                                  const Tensor<T, A>& v) {
  const shape from = v.dims();
  const size_scope scope{x.table() ? x.table() : v.table(), "operator="};
  shape s, part;
  int left = 0;
  for (const axis_part& p : chosen.axis) left += !p.drops;
  bool fits = from.rank <= left;
  for (int i = 0; i < R; ++i) {
    const axis_part& p = chosen.axis[i];
    s.push(1);
    if (p.drops) continue;
    extent n = p.whole ? x.dims()[i] : p.length.extent();
    part.push(n);
    const int at = from.rank - left--;
    if (at < 0 || !fits) continue;
    s[i] = scope.find(from[at]);
    fits = s[i] == 1 || scope.equal(n, s[i]);
  }
  if (fits) return with_shape<op::reshape, R>(v, s);
  scope.fail(text("a value of shape ") << from << " does not fit into a part of shape " << part);
  return x;
}

}  // namespace detail
}  // namespace xla
