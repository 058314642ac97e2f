// SPDX-License-Identifier: Apache-2.0
#include "support/pytorch.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {

xla::Tensor<float, 3> input() { return numbers<float>({3, 7, 5}); }

// f(x, axes...) over one axis, several and all, as in make.py.
#define OVER_AXES(name, tolerance, f)                                          \
  check_pytorch(                                                               \
      name "/0", tolerance, [](const auto& x) { return f(x, {0}); }, input()); \
  check_pytorch(                                                               \
      name "/1", tolerance, [](const auto& x) { return f(x, {1}); }, input()); \
  check_pytorch(                                                               \
      name "/last", tolerance, [](const auto& x) { return f(x, {-1}); }, input())
#define OVER_MORE(name, tolerance, f) \
  check_pytorch(                      \
      name "/02", tolerance,          \
      [](const auto& x) {             \
        return f(x, {0, 2});          \
      },                              \
      input());                       \
  check_pytorch(                      \
      name "/all", tolerance,         \
      [](const auto& x) {             \
        return f(x, {0, 1, 2});       \
      },                              \
      input())
#define OVER_ONE(name, tolerance, f) \
  check_pytorch(                     \
      name "/one", tolerance, [](const auto& x) { return f(x, {0}); }, numbers<float>({2, 1}, 4))

const float not_a_number = std::numeric_limits<float>::quiet_NaN();
const float inf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("sums and products, against PyTorch") {
  OVER_AXES("sum", 1e-6, sum);
  OVER_MORE("sum", 1e-6, sum);
  OVER_ONE("sum", 1e-6, sum);
  OVER_AXES("mean", 1e-6, mean);
  OVER_MORE("mean", 1e-6, mean);
  OVER_ONE("mean", 1e-6, mean);
  OVER_AXES("prod", 2e-6, prod);
  OVER_ONE("prod", 1e-6, prod);
  const xla::eager_mode_guard eager;
  check_pytorch(
      "prod/zeros", 0, [](const auto& x) { return prod(x, {1}); },
      xla::tensor<float>({{1, 2, 3}, {0, 2, 3}, {0, 2, 0}}));
  check_pytorch("sum/empty", sum(numbers<float>({0, 3}), {0}), 0);
  check_pytorch("prod/empty", prod(numbers<float>({0, 3}), {0}), 0);
}

TEST_CASE("extremes, against PyTorch") {
  OVER_AXES("amax", 0, max);
  OVER_MORE("amax", 0, max);
  OVER_ONE("amax", 0, max);
  OVER_AXES("amin", 0, min);
  OVER_MORE("amin", 0, min);
  OVER_ONE("amin", 0, min);
  const xla::eager_mode_guard eager;
  const auto ties = xla::tensor<float>({{1, 3, 3, 1}, {2, 2, 2, 2}});
  check_pytorch(
      "amax/ties", 1e-7, [](const auto& x) { return max(x, {1}); }, ties);
  check_pytorch(
      "amin/ties", 1e-7, [](const auto& x) { return min(x, {1}); }, ties);
  const auto strange = xla::tensor<float>({{1, not_a_number, 3}, {inf, 2, -inf}});
  check_pytorch("amax/nan", max(strange, {1}), 0);
  check_pytorch("amin/nan", min(strange, {1}), 0);
  check_pytorch("argmax/1", argmax(input(), 1), 0);
  check_pytorch("argmax/last", argmax(input(), -1), 0);
  check_pytorch("argmin/1", argmin(input(), 1), 0);
  check_pytorch("argmin/last", argmin(input(), -1), 0);
  check_pytorch("any", any(numbers<bool>({3, 5}, 3), {1}), 0);
  check_pytorch("all", all(numbers<bool>({3, 5}, 3), {1}), 0);
}

TEST_CASE("statistics, against PyTorch") {
  OVER_AXES("var", 2e-6, var);
  OVER_MORE("var", 2e-6, var);
  OVER_AXES("std", 2e-6, xla::std);
  OVER_MORE("std", 2e-6, xla::std);
  OVER_AXES("norm", 1e-6, norm);
  OVER_MORE("norm", 1e-6, norm);
  OVER_ONE("norm", 1e-6, norm);
  OVER_AXES("logsumexp", 1e-6, logsumexp);
  OVER_MORE("logsumexp", 1e-6, logsumexp);
  OVER_ONE("logsumexp", 1e-6, logsumexp);
  const xla::eager_mode_guard eager;
  check_pytorch(
      "norm/zeros", 1e-7, [](const auto& x) { return norm(x, {1}); },
      xla::tensor<float>({{0, 0, 0}, {3, 0, 4}}));
  check_pytorch("logsumexp/infinite",
                logsumexp(xla::tensor<float>({{-inf, -inf}, {0, inf}, {88, 89}}), {1}), 1e-6);
}

TEST_CASE("rows and running sums, against PyTorch") {
  check_pytorch(
      "softmax/last", 1e-6, [](const auto& x) { return softmax(x); }, input());
  check_pytorch(
      "softmax/1", 1e-6, [](const auto& x) { return softmax(x, 1); }, input());
  check_pytorch(
      "log_softmax/last", 1e-6, [](const auto& x) { return log_softmax(x); }, input());
  check_pytorch(
      "log_softmax/1", 1e-6, [](const auto& x) { return log_softmax(x, 1); }, input());
  check_pytorch(
      "cumsum/1", 1e-6, [](const auto& x) { return cumsum(x, 1); }, input());
}

TEST_CASE("products of matrices, against PyTorch") {
  const auto product = [](const auto& a, const auto& b) { return matmul(a, b); };
  check_pytorch("matmul/matrices", 1e-6, product, numbers<float>({5, 7}),
                numbers<float>({7, 3}, 1));
  check_pytorch("matmul/batch", 1e-6, product, numbers<float>({2, 1, 5, 7}),
                numbers<float>({4, 7, 3}, 1));
  check_pytorch("matmul/vector", 1e-6, product, numbers<float>({5, 7}), numbers<float>({7}, 1));
  check_pytorch("matmul/nothing", 1e-6, product, numbers<float>({2, 0}), numbers<float>({0, 3}, 1));
  check_pytorch(
      "einsum/batched", 1e-6,
      [](const auto& a, const auto& b) { return xla::einsum<"bij,bkj->bik">(a, b); },
      numbers<float>({2, 3, 5}), numbers<float>({2, 4, 5}, 1));
  check_pytorch(
      "einsum/outer", 1e-6,
      [](const auto& a, const auto& b) { return xla::einsum<"i,j->ij">(a, b); },
      numbers<float>({3}), numbers<float>({4}, 1));
}

TEST_CASE("distances and angles, against PyTorch") {
  const xla::eager_mode_guard eager;
  const std::pair<const char*, double> norms[] = {
      {"1", 1}, {"2", 2}, {"3", 3}, {"inf", std::numeric_limits<double>::infinity()}};
  for (const auto& [name, p] : norms)
    check_pytorch(
        std::string("cdist/") + name, 1e-6,
        [p = p](const auto& a, const auto& b) { return cdist(a, b, p); }, numbers<float>({2, 4, 5}),
        numbers<float>({3, 5}, 1));
  check_pytorch("cdist/0", cdist(numbers<float>({2, 4, 5}), numbers<float>({3, 5}, 1), 0), 0);
  check_pytorch(
      "cosine_similarity", 1e-6,
      [](const auto& a, const auto& b) { return cosine_similarity(a, b); },
      numbers<float>({3, 5, 4}), expand(numbers<float>({5, 1}, 1), {5, 4}));
  check_pytorch(
      "cosine_similarity/last", 1e-6,
      [](const auto& a, const auto& b) { return cosine_similarity(a, b, -1); },
      numbers<float>({3, 1, 4}), numbers<float>({5, 4}, 1));
}
