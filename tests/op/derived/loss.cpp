// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/loss.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::numbers;

namespace {

xla::Tensor<std::int64_t, 1> classes(std::int64_t n, std::int64_t count) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back((i * 7 + 3) % count);
  return xla::tensor(v);
}

template <class T>
T reference(const T* x, const std::int64_t* target, std::int64_t n, std::int64_t c) {
  long double loss = 0;
  for (std::int64_t i = 0; i < n; ++i, x += c) {
    long double most = -HUGE_VALL, total = 0;
    for (std::int64_t k = 0; k < c; ++k) most = std::max(most, static_cast<long double>(x[k]));
    for (std::int64_t k = 0; k < c; ++k) total += std::exp(x[k] - most);
    loss += most + std::log(total) - x[target[i]];
  }
  return static_cast<T>(loss / n);
}

}  // namespace

TEMPLATE_TEST_CASE("cross-entropy", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;
  for (auto [n, c] : {std::pair{7, 13}, {1, 1}, {17, 2}, {3, 1000}, {1000, 10}}) {
    const auto x = numbers<T>({n, c});
    const auto target = classes(n, c);
    check_equal(cross_entropy(x, target), {}, std::vector<T>{reference(x.data(), target.data(), n, c)},
                tolerance);
  }
  const auto far = xla::tensor<T>({{1000, 0}, {0, 1000}});
  check_equal(cross_entropy(far, xla::tensor<std::int64_t>({0, 0})), {}, std::vector<T>{500});
}

TEST_CASE("mean squared error") {
  const xla::eager_mode_guard eager;
  check_equal(mse_loss(xla::tensor<float>({1, 2, 3}), xla::tensor<float>({1, 4, 0})), {},
              std::vector<float>{13.f / 3});
  CHECK_THROWS_AS(mse_loss(numbers<float>({3, 2}), numbers<float>({2, 3})), xla::shape_error);
  CHECK_THROWS_AS(mse_loss(numbers<float>({3, 1}), numbers<float>({3, 2})), xla::shape_error);
}

TEST_CASE("losses are the same in every mode, and so are their gradients") {
  auto all = [](auto& logits, auto& target, auto& wanted) {
    auto loss = cross_entropy(logits, target) + mse_loss(logits, wanted) * 2;
    loss.backward();
    return loss;
  };
  for (auto [n, c] : {std::pair{7, 13}, {1, 1}, {64, 10}, {3, 1000}}) {
    auto logits = xla::Parameter<float, 2>::like(numbers<float>({n, c}));
    logits.copy_(numbers<float>({n, c}));
    check_modes(all, logits, classes(n, c), numbers<float>({n, c}, 1));
  }
}

TEST_CASE("gradients of losses") {
  const auto x = numbers<double>({4, 3});
  check_gradient([](auto& v) { return cross_entropy(v, xla::tensor<std::int64_t>({0, 2, 1, 2})); },
                 x);
  check_gradient([](auto& v, auto& w) { return mse_loss(v, w); }, x, numbers<double>({4, 3}, 1));
}
