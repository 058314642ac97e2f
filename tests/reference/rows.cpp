// SPDX-License-Identifier: Apache-2.0
#include "support/pytorch.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {

// The cases of rows() in make.py.
template <class F>
void row(const std::string& name, double tolerance, F f) {
  const xla::eager_mode_guard eager;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto strange = xla::tensor<float>({{1, nan, 3, 2},
                                           {inf, 2, -inf, 1},
                                           {-0.f, 0, -0.f, 0},
                                           {inf, inf, -1, 2},
                                           {-inf, -inf, -inf, -inf},
                                           {-0.f, -0.f, -0.f, -0.f}});
  check_pytorch(name + "/strange", f(strange), tolerance);
  check_pytorch(
      name + "/transposed", tolerance, [f](const auto& x) { return f(transpose(x, 0, 2)); },
      numbers<float>({3, 7, 5}));
}

}  // namespace

TEST_CASE("reductions of special values and of transposed tensors, against PyTorch") {
  row("sum", 1e-6, [](const auto& x) { return sum(x, {1}); });
  row("mean", 1e-6, [](const auto& x) { return mean(x, {1}); });
  row("prod", 2e-6, [](const auto& x) { return prod(x, {1}); });
  row("amax", 0, [](const auto& x) { return max(x, {1}); });
  row("amin", 0, [](const auto& x) { return min(x, {1}); });
  row("logsumexp", 1e-6, [](const auto& x) { return logsumexp(x, {1}); });
  row("argmax", 0, [](const auto& x) { return argmax(x, 1); });
  row("argmin", 0, [](const auto& x) { return argmin(x, 1); });
  row("norm", 1e-6, [](const auto& x) { return norm(x, {1}); });
  row("var", 2e-6, [](const auto& x) { return var(x, {1}); });
}

TEST_CASE("rows of special values and of transposed tensors, against PyTorch") {
  row("softmax", 1e-6, [](const auto& x) { return softmax(x, 1); });
  row("log_softmax", 1e-6, [](const auto& x) { return log_softmax(x, 1); });
  row("cumsum", 1e-6, [](const auto& x) { return cumsum(x, 1); });
  row("cumprod", 1e-5, [](const auto& x) { return cumprod(x, 1); });
  row("median", 0, [](const auto& x) { return median(x, 1).first; });
  row("sort", 0, [](const auto& x) { return sort(x, 1).first; });
  row("order", 0, [](const auto& x) { return sort(x, 1).second; });
}

namespace {

xla::Tensor<float, 3> input() { return numbers<float>({3, 7, 5}); }
xla::Tensor<float, 2> zeros() {
  return xla::tensor<float>({{1, -2, 3, 0.5}, {0, 2, 3, 4}, {2, 0, 5, 0}});
}

template <class Y, class X>
auto second(const Y& y, const X& x) {
  const auto s = y.sizes();
  xla::Size sizes[Y::rank];
  for (std::size_t i = 0; i < s.size(); ++i) sizes[i] = s[i];
  return xla::grad(sum(y * numbers<float>(sizes, 7)), x, {.create_graph = true});
}

template <int Axis>
void products() {
  const std::string axis = std::to_string(Axis);
  const auto running = [](const auto& x) { return cumprod(x, Axis); };
  check_pytorch("cumprod/" + axis, 2e-6, running, input());
  check_pytorch("cumprod/zeros" + axis, 1e-6, running, zeros());
  check_pytorch(
      "cumprod/second" + axis, 2e-6, [=](const auto& x) { return second(cumprod(x, Axis), x); },
      zeros());
  check_pytorch(
      "prod/second" + axis, 2e-6, [](const auto& x) { return second(prod(x, {Axis}), x); },
      zeros());
}

}  // namespace

TEST_CASE("running products and second gradients of products, against PyTorch") {
  products<0>();
  products<1>();
  check_pytorch(
      "cumprod/empty", 0, [](const auto& x) { return cumprod(x, 0); }, numbers<float>({0, 3}));
  const xla::eager_mode_guard eager;
  check_pytorch("cumprod/integers", cumprod(numbers<std::int64_t>({3, 40}, 2), 1), 0);
}

TEST_CASE("medians, against PyTorch") {
  const xla::eager_mode_guard eager;
  for (const int axis : {0, 1, -1}) {
    const std::string name = std::to_string(axis);
    check_pytorch(
        "median/" + name, 0, [=](const auto& x) { return median(x, axis).first; }, input());
    check_pytorch("median/index" + name, median(input(), axis).second, 0);
  }
  const auto all = [](const auto& x) { return median(x); };
  check_pytorch("median/all", 0, all, input());
  check_pytorch("median/ties", 0, all, xla::tensor<float>({{1, 3, 3, 5, 3}, {2, 2, 2, 2, 7}}));
  check_pytorch("median/odd", 0, all, numbers<float>({7}, 3));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  check_pytorch("median/nan", 0, all, xla::tensor<float>({1, nan, 2, nan}));
  check_pytorch("median/integers", median(numbers<std::int64_t>({4, 10}, 2), 1).first, 0);
}

TEST_CASE("einsum with ellipses and sizes that broadcast, against PyTorch") {
  using xla::einsum;
  check_pytorch(
      "einsum/batches", 5e-6,
      [](const auto& a, const auto& b) { return einsum<"...ij,...jk->...ik">(a, b); },
      numbers<float>({5, 1, 2, 3}), numbers<float>({4, 3, 2}, 1));
  check_pytorch(
      "einsum/implied", 5e-6,
      [](const auto& a, const auto& b) { return einsum<"...ij,...jk">(a, b); },
      numbers<float>({2, 2, 3}), numbers<float>({3, 4}, 1));
  check_pytorch(
      "einsum/dropped", 5e-6,
      [](const auto& a, const auto& b) { return einsum<"...ij,jk->ik">(a, b); },
      numbers<float>({2, 3, 4}), numbers<float>({4, 2}, 1));
  check_pytorch(
      "einsum/moved", 5e-6,
      [](const auto& a, const auto& b) { return einsum<"i...j,j->...i">(a, b); },
      numbers<float>({2, 3, 4}), numbers<float>({4}, 1));
  check_pytorch(
      "einsum/ones", 5e-6, [](const auto& a, const auto& b) { return einsum<"ij,jk->ik">(a, b); },
      numbers<float>({2, 1}), numbers<float>({3, 4}, 1));
  check_pytorch(
      "einsum/one_row", 5e-6,
      [](const auto& a, const auto& b) { return einsum<"bij,bij->bi">(a, b); },
      numbers<float>({4, 1, 3}), numbers<float>({1, 2, 3}, 1));
  check_pytorch(
      "einsum/diagonal", 5e-6,
      [](const auto& a, const auto& b) { return einsum<"...ii,...->...i">(a, b); },
      numbers<float>({2, 3, 3}), numbers<float>({1}, 1));
  check_pytorch(
      "matmul/transposed", 5e-6,
      [](const auto& a, const auto& b) { return matmul(transpose(a), transpose(b)); },
      numbers<float>({7, 5}), numbers<float>({3, 7}, 1));
}
