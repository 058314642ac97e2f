// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/softmax.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::numbers;

namespace {

/// Softmax of rows in long double.
template <class T>
std::vector<T> rows(const T* x, std::int64_t r, std::int64_t c, bool logarithm) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < r; ++i, x += c) {
    long double most = -HUGE_VALL, total = 0;
    for (std::int64_t k = 0; k < c; ++k) most = std::max(most, static_cast<long double>(x[k]));
    for (std::int64_t k = 0; k < c; ++k) total += std::exp(x[k] - most);
    for (std::int64_t k = 0; k < c; ++k)
      out.push_back(static_cast<T>(logarithm ? x[k] - most - std::log(total)
                                             : std::exp(x[k] - most) / total));
  }
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("softmax and its logarithm", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;
  for (auto [r, c] : {std::pair{7, 13}, {1, 1}, {17, 1}, {3, 1000}, {100, 33}, {0, 4}}) {
    const auto x = numbers<T>({r, c});
    check_equal(softmax(x), {r, c}, rows(x.data(), r, c, false), tolerance);
    check_equal(log_softmax(x), {r, c}, rows(x.data(), r, c, true), tolerance);
  }
  const auto x = numbers<T>({5, 7});
  check_equal(softmax(x, 0), {5, 7}, transpose(softmax(transpose(x))).to_vector(), tolerance);
}

TEST_CASE("softmax does not overflow, and leaves out -infinity") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity();
  check_equal(softmax(xla::tensor<float>({{1e30f, 1e30f}, {-1e30f, -1e30f}, {0, -inf}})), {3, 2},
              std::vector<float>{0.5, 0.5, 0.5, 0.5, 1, 0});
  check_equal(log_softmax(xla::tensor<float>({1000, 0})), {2}, std::vector<float>{0, -1000});
  CHECK(std::isnan(softmax(xla::tensor<float>({std::nanf(""), 1})).to_vector()[1]));
}

TEST_CASE("softmax is the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(softmax(x), log_softmax(x), softmax(x * 2, 0) + 1, x - softmax(x));
  };
  for (auto [r, c] : {std::pair{7, 13}, {1, 1}, {17, 1}, {3, 1000}, {0, 4}})
    check_modes(all, numbers<float>({r, c}));
}

TEST_CASE("gradients of softmax") {
  const auto x = numbers<double>({3, 5});
  check_gradient([](auto& v) { return softmax(v) + log_softmax(v) * 0.5; }, x);
  check_gradient([](auto& v) { return softmax(v, 0); }, x);
}
