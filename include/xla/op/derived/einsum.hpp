// SPDX-License-Identifier: Apache-2.0
#pragma once

// einsum(): products given by a formula that is known at compile time. einsum_formula.hpp parses
// the formula.

#include "xla/op/derived/einsum_formula.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

/// x, whose axes are From, with the axes To: the same letters in another order.
template <letters From, letters To, class T>
constexpr Tensor<T, To.count> reorder(const Tensor<T, From.count>& x) {
  static_assert(From.count == To.count);
  if constexpr (From == To) return x;
  else {
    axis_order order;
    for (int i = 0; i < To.count; ++i) order.push(From.find(To.at[i]));
    return permute_by(x, order);
  }
}

/// The diagonal of axes p and q, in place of axis p; axis q goes.
template <int P, int Q, class T, int R>
constexpr Tensor<T, R - 1> diagonal_of(const Tensor<T, R>& x, const call_site& site) {
  const shape s = x.dims();
  const size_scope scope{x.table(), site};
  if (extent e = s[P]; !scope.equal(e, s[Q]))
    scope.fail(text("a diagonal of axes with sizes ") << s[P] << " and " << s[Q]);
  shape along[2];
  for (int i = 0; i < R; ++i) {
    along[0].push(i == P ? s[P] : 1);
    along[1].push(i == Q ? s[Q] : 1);
  }
  const auto same = with_shape<op::reshape, R>(arange<std::int64_t>(x.size(P)), along[0]) ==
                    with_shape<op::reshape, R>(arange<std::int64_t>(x.size(Q)), along[1]);
  const auto axis = axis_set::one(Q);
  return drop_axes<R - 1, T>(reduce<op::sum>(where(same, x, 0), axis), axis);
}

/// Prepares one operand: takes diagonals, and sums over letters that are not in Kept. The other
/// letters keep their order.
template <letters From, letters Kept, class T>
constexpr Tensor<T, From.among(Kept).count> einsum_keep(const Tensor<T, From.count>& x) {
  constexpr int again = From.repeated();
  if constexpr (again >= 0) {
    constexpr int first = From.find(From.at[again]);
    return einsum_keep<From.without(again), Kept, T>(diagonal_of<first, again>(x, "einsum"));
  } else if constexpr (From.among(Kept) == From) {
    return x;
  } else {
    axis_set axes;
    for (int i = 0; i < From.count; ++i)
      if (!Kept.has(From.at[i])) axes.add(i);
    return drop_axes<From.among(Kept).count, T>(reduce<op::sum>(x, axes), axes);
  }
}

/// x with an axis of size 1 for each letter of All that it lacks.
template <letters From, letters All, class T>
constexpr Tensor<T, All.count> align(const Tensor<T, From.count>& x) {
  constexpr letters mine = All.among(From);
  const Tensor<T, mine.count> y = reorder<From, mine, T>(x);
  if constexpr (mine == All) return y;
  else {
    const shape from = y.dims();
    shape s;
    for (int i = 0; i < All.count; ++i)
      s.push(mine.has(All.at[i]) ? from[mine.find(All.at[i])] : 1);
    return with_shape<op::reshape, All.count>(y, s);
  }
}

/// The size of each letter; where both operands have a letter, the sizes must agree.
template <letters A, letters B>
struct letter_sizes {
  const shape a, b;
  const size_scope scope;
  constexpr letter_sizes(const handle& x, const handle& y, caller loc)
      : a(x.dims()), b(y.dims()), scope{x.table() ? x.table() : y.table(), {"einsum", loc}} {
    for (int i = 0; i < A.count; ++i)
      if (const int k = B.find(A.at[i]); k >= 0)
        if (extent e = a[i]; !scope.equal(e, b[k]))
          scope.fail(text("letter ") << A.at[i] << " stands for sizes " << a[i] << " and " << b[k]);
  }
  constexpr extent size(char c) const { return A.has(c) ? a[A.find(c)] : b[B.find(c)]; }
  constexpr extent product(const letters& l) const {
    extent n = 1;
    for (int i = 0; i < l.count; ++i) n = scope.multiply(n, size(l.at[i]));
    return n;
  }
};

/// x with axes of size 1 expanded to y's size of the same letter.
template <letters A, letters B, class T>
constexpr Tensor<T, A.count> grow_ones(const Tensor<T, A.count>& x, const handle& y) {
  const shape from = x.dims(), other = y.dims();
  const size_scope scope{x.table() ? x.table() : y.table(), "einsum"};
  shape to = from;
  for (int i = 0; i < A.count; ++i)
    if (const int k = B.find(A.at[i]); k >= 0 && scope.find(from[i]) == 1) to[i] = other[k];
  if (to == from) return x;
  return with_shape<op::expand, A.count>(with_table(x, scope.table), to);
}

/// x as a matrix or a batch of matrices: each of the three kinds of letters is merged into one
/// axis.
template <int R, letters From, letters To, class T, class Sizes>
constexpr Tensor<T, R> as_matrices(const Tensor<T, From.count>& x, const Sizes& sizes,
                                   const letters& batch, const letters& rows,
                                   const letters& columns) {
  shape s;
  if (R == 3) s.push(sizes.product(batch));
  s.push(sizes.product(rows));
  s.push(sizes.product(columns));
  return with_shape<op::reshape, R>(reorder<From, To, T>(x), s);
}

/// Multiplies two operands, prepared by einsum_keep, as one (batched) matrix product. A transposed
/// operand is read in place.
template <letters A, letters B, letters Out, class T>
constexpr Tensor<T, Out.count> einsum_product(const Tensor<T, A.count>& a,
                                              const Tensor<T, B.count>& b, caller loc) {
  constexpr einsum_pair p(A, B, Out);
  constexpr int rank = p.batch.count > 0 ? 3 : 2;
  constexpr letters rows_a = p.batch + p.left + p.summed, turned_a = p.batch + p.summed + p.left;
  constexpr letters rows_b = p.batch + p.summed + p.right, turned_b = p.batch + p.right + p.summed;
  constexpr bool ta = A == turned_a && A != rows_a, tb = B == turned_b && B != rows_b;
  constexpr letters stays = p.batch + p.left + p.right;
  const letter_sizes<A, B> sizes(a, b, loc);
  const Tensor<T, rank> x = as_matrices < rank, A, ta ? turned_a : rows_a,
                        T > (a, sizes, p.batch, ta ? p.summed : p.left, ta ? p.left : p.summed);
  const Tensor<T, rank> y = as_matrices < rank, B, tb ? turned_b : rows_b,
                        T > (b, sizes, p.batch, tb ? p.right : p.summed, tb ? p.summed : p.right);
  shape s;
  for (int i = 0; i < stays.count; ++i) s.push(sizes.size(stays.at[i]));
  const Tensor<T, stays.count> z =
      with_shape<op::reshape, stays.count>(product<rank>(x, y, ta, tb), s);
  return reorder<stays, Out, T>(z);
}

template <letters A, letters B, letters Out, class T>
constexpr Tensor<T, Out.count> einsum_two(const Tensor<T, A.count>& a, const Tensor<T, B.count>& b,
                                          caller loc) {
  constexpr letters in_a = A.among(B + Out), in_b = B.among(A + Out);
  const Tensor<T, in_a.count> kept_a = einsum_keep<A, B + Out, T>(a);
  const Tensor<T, in_b.count> kept_b = einsum_keep<B, A + Out, T>(b);
  const Tensor<T, in_a.count> x = grow_ones<in_a, in_b, T>(kept_a, kept_b);
  const Tensor<T, in_b.count> y = grow_ones<in_b, in_a, T>(kept_b, kept_a);
  constexpr einsum_pair p(in_a, in_b, Out);
  if constexpr (p.is_product()) {
    return einsum_product<in_a, in_b, Out, T>(x, y, loc);
  } else {
    constexpr letters all = Out + p.summed;
    [[maybe_unused]] const letter_sizes<in_a, in_b> sizes(x, y, loc);
    const Tensor<T, all.count> z = align<in_a, all, T>(x) * align<in_b, all, T>(y);
    return einsum_keep<all, Out, T>(z);
  }
}

template <letters A, letters B, letters C, letters Out, class T>
constexpr Tensor<T, Out.count> einsum_three(const Tensor<T, A.count>& a,
                                            const Tensor<T, B.count>& b,
                                            const Tensor<T, C.count>& c, caller loc) {
  constexpr letters between = (A + B).among(C + Out);
  return einsum_two<between, C, Out, T>(einsum_two<A, B, between, T>(a, b, loc), c, loc);
}

template <EinsumText Text, class T, int... R>
constexpr auto einsum(caller loc, const Tensor<T, R>&... x) {
  constexpr einsum_formula f = spread_ellipses(parse_einsum(Text.text), {R...});
  constexpr bool count_fits = f.operands == sizeof...(R) && sizeof...(R) <= 3;
  constexpr bool ranks = count_fits && ranks_fit(f, {R...});
  static_assert(f.legal, "xla::einsum: the text holds letters, commas, spaces, ... and one ->");
  static_assert(count_fits, "xla::einsum: takes one to three tensors, and as many in the text");
  static_assert(!count_fits || ranks,
                "xla::einsum: an operand has another number of letters than its tensor has axes");
  static_assert(result_fits(f),
                "xla::einsum: a letter of the result is repeated, or is in no operand");
  static_assert(!std::is_same_v<T, bool>, "xla::einsum: needs numbers, not bool; cast first");
  if constexpr (f.legal && ranks && result_fits(f)) {
    if constexpr (f.operands == 1)
      return reorder<f.in[0].among(f.out), f.out, T>(einsum_keep<f.in[0], f.out, T>(x...));
    else if constexpr (f.operands == 2) return einsum_two<f.in[0], f.in[1], f.out, T>(x..., loc);
    else return einsum_three<f.in[0], f.in[1], f.in[2], f.out, T>(x..., loc);
  }
}

}  // namespace detail

/// Sums of products in Einstein's notation, of one, two or three tensors: einsum<"ij,jk->ik">(a,
/// b). A letter names an axis. Letters missing in the result are summed over; a letter that an
/// operand repeats takes its diagonal. "..." stands for the unnamed axes, which broadcast; so does
/// size 1 of a letter. Without "->" the result has the axes of "...", then the letters that occur
/// once. A letter with several sizes is a shape_error.
template <EinsumText Text, class T, int A>
constexpr auto einsum(const Tensor<T, A>& a, caller loc = here()) {
  return detail::einsum<Text>(loc, a);
}
template <EinsumText Text, class T, int A, int B>
constexpr auto einsum(const Tensor<T, A>& a, const Tensor<T, B>& b, caller loc = here()) {
  return detail::einsum<Text>(loc, a, b);
}
template <EinsumText Text, class T, int A, int B, int C>
constexpr auto einsum(const Tensor<T, A>& a, const Tensor<T, B>& b, const Tensor<T, C>& c,
                      caller loc = here()) {
  return detail::einsum<Text>(loc, a, b, c);
}
template <EinsumText Text, class T, int... R>
  requires(sizeof...(R) > 3)
constexpr auto einsum(const Tensor<T, R>&... x) {
  return detail::einsum<Text>(detail::unknown_caller, x...);  // refused
}

}  // namespace xla
