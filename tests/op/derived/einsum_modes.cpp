// SPDX-License-Identifier: Apache-2.0
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/einsum.hpp"

using test::numbers;
using xla::einsum;

TEST_CASE("einsum is the same in every mode, with its gradients") {
  auto all = [](auto& p, auto& x) {
    const auto y = einsum<"bij,bkj->bik">(p, x);
    const auto z = einsum<"bij,bij->bi">(p, p);
    const auto w = einsum<"bik,bi,bkj->jb">(y, z, x);
    const auto d = einsum<"bii->b">(y);
    (sum(w * w) + sum(d)).backward();
    return std::tuple(y, z, w, d, einsum<"bij->ji">(x));
  };
  auto p = xla::Parameter<float, 3>::like(xla::zeros({2, 3, 5}));
  p.copy_(numbers<float>({2, 3, 5}));
  test::check_modes(all, p, numbers<float>({2, 3, 5}, 1));
}

TEST_CASE("the gradients of einsum") {
  const auto a = numbers<double>({2, 3}), b = numbers<double>({3, 4}, 1);
  test::check_gradient([](auto& x, auto& y) { return einsum<"ij,jk->ki">(x, y); }, a, b);
  test::check_gradient([](auto& x, auto& y) { return einsum<"ij,jk->j">(x, y); }, a, b);
  test::check_gradient([](auto& x) { return einsum<"ij,kj,ij->ik">(x, x, x); }, a);
  test::check_gradient([](auto& x) { return einsum<"ii->i">(x); }, numbers<double>({3, 3}));
  const auto x = numbers<double>({2, 1, 3}), y = numbers<double>({4, 3, 2}, 1);
  test::check_gradient([](auto& p, auto& q) { return einsum<"...i,...ij->...j">(p, q); }, x, y);
  test::check_gradient([](auto& p, auto& q) { return einsum<"aij,bik->bjk">(p, q); },
                       numbers<double>({2, 1, 3}), y);
}

TEST_CASE("einsum's ellipsis is the same in every mode, with its gradients") {
  auto all = [](auto& p, auto& x) {
    const auto y = einsum<"...ij,...kj->...ik">(p, x);
    const auto z = einsum<"...i,i->...">(p, x[0][0]);
    const auto w = einsum<"bij,ij->b...">(p, xla::ones<float>({1, 1}));
    (sum(y * y) + sum(z)).backward();
    return std::tuple(y, z, w, einsum<"b...->...b">(x));
  };
  test::check_modes(all, test::parameter(numbers<float>({2, 3, 5})), numbers<float>({2, 3, 5}, 1));
}
