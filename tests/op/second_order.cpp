// SPDX-License-Identifier: Apache-2.0
// Gradients of gradients: of ops whose rules are built from other ops.
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/einsum.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/derived/normalize.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/prod.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/sort.hpp"

using test::numbers;

namespace {

/// The gradient of the sum of squares of f(x), differentiated once more.
template <class F>
void check_second(F f, const xla::Tensor<double, 2>& x) {
  test::check_gradient(
      [f](auto& a) {
        const auto y = f(a);
        return xla::grad(sum(y * y * y), a, {.create_graph = true});
      },
      x);
}

}  // namespace

TEST_CASE("second gradients of ops that move elements") {
  static const auto index = xla::tensor<std::int64_t>({{0, 2, 2}, {3, 2, 0}});
  static const auto slices = xla::tensor<std::int64_t>({2, 0, 2});
  const auto x = numbers<double>({4, 3});
  check_second([](auto& a) { return gather(a, 0, index); }, x);
  check_second([](auto& a) { return scatter_add(a, 0, index, gather(a * a, 0, index)); }, x);
  check_second([](auto& a) { return scatter(a, 0, index * 0 + 1, gather(a, 0, index)); }, x);
  check_second([](auto& a) { return index_select(a, 1, slices); }, x);
  check_second([](auto& a) { return index_add(a, 1, slices, index_select(a * a, 1, slices)); }, x);
  check_second([](auto& a) { return cumsum(a, 1); }, x);
  check_second([](auto& a) { return topk(sort(a, 0).first * a, 2).first; }, x);
}

TEST_CASE("second gradients of reductions and products") {
  const auto x = numbers<double>({4, 3});
  check_second([](auto& a) { return prod(a, {1}); }, x);
  check_second([](auto& a) { return xla::std(a, {0}); }, x);
  check_second([](auto& a) { return layer_norm(a, 0.1); }, x);
  check_second([](auto& a) { return norm(a, 3, {1}); }, x);
  check_second([](auto& a) { return logsumexp(a, {0}); }, x);
  check_second([](auto& a) { return xla::einsum<"ij,kj->ik">(a, a); }, x);
}
