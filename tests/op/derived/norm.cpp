// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/norm.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/distance.hpp"

using test::check_equal;
using test::numbers;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> row_norms(const xla::Tensor<T, 2>& x, double p) {
  const auto rows = x.sizes()[0], columns = x.sizes()[1];
  std::vector<T> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    double total = p == -inf ? inf : 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double v = std::abs(static_cast<double>(x.data()[r * columns + c]));
      if (p == inf) total = std::max(total, v);
      else if (p == -inf) total = std::min(total, v);
      else total += p == 0 ? v != 0 : std::pow(v, p);
    }
    out.push_back(static_cast<T>(p == 0 || std::isinf(p) ? total : std::pow(total, 1 / p)));
  }
  return out;
}

template <class T>
void check_norms(const xla::Tensor<T, 2>& x) {
  const auto rows = x.sizes()[0];
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  for (double p : {0.0, 1.0, 2.0, 3.0, 0.5, inf, -inf}) {
    INFO("p = " << p);
    const auto want = row_norms(x, p);
    check_equal(norm(x, p, {1}), {rows}, want, tolerance);
    check_equal(norm(x, p, {-1}, xla::keepdim), {rows, 1}, want, tolerance);
    check_equal(norm(x, p), {}, row_norms(xla::reshape(x, {1, x.numel()}), p), tolerance);
  }
  check_equal(norm(x, {1}), {rows}, row_norms(x, 2), tolerance);
  check_equal(norm(x, {1}, xla::keepdim), {rows, 1}, row_norms(x, 2), tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("norm over axes", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_norms(numbers<T>({7, 13}));
  check_norms(numbers<T>({33, 1}));
  check_norms(numbers<T>({0, 3}));
  check_norms(xla::zeros<T>({2, 3}));
  CHECK(norm(xla::tensor<T>({3, 4})).item() == 5);
  CHECK(norm(xla::zeros<T>({0}), inf).item() == 0);
  CHECK_THROWS_WITH(norm(numbers<T>({2, 3}), 1, {2}), test::contains("norm: axis 2"));
}

TEST_CASE("logsumexp neither overflows nor loses what is small") {
  const xla::eager_mode_guard eager;
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const auto x = xla::tensor<float>({{1000, 1000},
                                     {-1000, -1001},
                                     {-infinity, 3},
                                     {-infinity, -infinity},
                                     {infinity, 1},
                                     {nan, 1}});
  const float two = std::log(2.f);
  const std::vector<float> want{
      1000 + two, -1000 + std::log1p(std::exp(-1.f)), 3, -infinity, infinity, nan};
  check_equal(logsumexp(x, {1}), {6}, want, 1e-6);
  check_equal(logsumexp(x, {-1}, xla::keepdim), {6, 1}, want, 1e-6);
  CHECK(logsumexp(xla::zeros<double>({5, 7})).item() == Approx(std::log(35.0)));
  CHECK(logsumexp(xla::zeros({0})).item() == -infinity);
  CHECK_THROWS_WITH(logsumexp(x, {2}), test::contains("logsumexp: axis 2"));
}

TEST_CASE("norm and logsumexp are the same in every mode, with their gradients") {
  auto all = [](auto& x) {
    return std::tuple(norm(x), norm(x, 1, {0}), norm(x, inf, {1}, xla::keepdim), norm(x, 3, {1}),
                      logsumexp(x), logsumexp(x, {0}), logsumexp(x, {1}, xla::keepdim) - x);
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 33}));
  auto backward = [](auto& p) {
    const auto y = logsumexp(p, {1});
    (sum(y * norm(p, {1})) + norm(p, inf)).backward();
    return y;
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({4, 5}));
  p.copy_(numbers<float>({4, 5}));
  test::check_modes(backward, p);
}

TEST_CASE("the gradients of norm and logsumexp; 0 where they have none") {
  const auto x = numbers<double>({3, 5});
  test::check_gradient([](auto& a) { return norm(a, {1}); }, x);
  test::check_gradient([](auto& a) { return norm(a, 1, {0}); }, x);
  test::check_gradient([](auto& a) { return norm(a, inf, {1}); }, x);
  test::check_gradient([](auto& a) { return norm(a, 3); }, x);
  test::check_gradient([](auto& a) { return logsumexp(a * 3, {1}); }, x);
  test::check_gradient([](auto& a) { return logsumexp(a); }, x);
  const xla::eager_mode_guard eager;
  const std::vector<float> none(4, 0.f);
  for (double p : {0.0, 1.0, 2.0, 3.0, inf}) {
    INFO("p = " << p);
    auto zero = xla::zeros({4});
    zero.requires_grad_();
    const auto y = norm(zero, p) + sum(zero * 0);
    y.backward();
    check_equal(xla::abs(zero.grad()), {4}, none);
  }
  auto nothing = xla::full({4}, -std::numeric_limits<float>::infinity());
  nothing.requires_grad_();
  logsumexp(nothing).backward();
  check_equal(xla::abs(nothing.grad()), {4}, none);
}

TEST_CASE("cosine_similarity and cdist, by plain loops") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<double>({7, 5}), b = numbers<double>({7, 5}, 1);
  const double *x = a.data(), *y = b.data();
  std::vector<double> cosine;
  for (int i = 0; i < 7; ++i) {
    double xy = 0, xx = 0, yy = 0;
    for (int k = i * 5; k < i * 5 + 5; ++k) xy += x[k] * y[k], xx += x[k] * x[k], yy += y[k] * y[k];
    cosine.push_back(xy / std::sqrt(xx * yy));
  }
  check_equal(cosine_similarity(a, b), {7}, cosine, 1e-14);
  check_equal(cosine_similarity(transpose(a), transpose(b), 0), {7}, cosine, 1e-14);
  check_equal(cosine_similarity(a, b[3] * 1, -1), cosine_similarity(a, expand(b[3] * 1, {7, 5})));
  check_equal(cosine_similarity(a * 0, b), {7}, std::vector<double>(7));
  for (const double p : {0., 1., 2., 3.5, inf}) {
    INFO("p = " << p);
    check_equal(cdist(a, b, p)[3] * 1, norm(a[3] * 1 - b, p, {1}));
    CHECK(cdist(a, a, p).index(2, 2).item() == 0);
  }
  CHECK(cdist(numbers<float>({4, 1, 3, 2}), numbers<float>({5, 6, 2})).sizes() ==
        test::sizes_t{4, 5, 3, 6});
  CHECK(cdist(numbers<float>({0, 2}), numbers<float>({6, 2})).sizes() == test::sizes_t{0, 6});
  check_equal(cdist(numbers<float>({2, 0}), numbers<float>({3, 0})), {2, 3}, std::vector<float>(6));
}

TEST_CASE("cosine_similarity and cdist refuse sizes that differ and a negative p") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3}), y = numbers<float>({4, 2});
  CHECK_THROWS_WITH(cosine_similarity(x, y), test::contains("cosine_similarity: vectors of"));
  CHECK_THROWS_WITH(cosine_similarity(x, y[0] * 1, 0), test::contains("only one has axis 0"));
  CHECK_THROWS_AS(cosine_similarity(x, x, 2), xla::shape_error);
  CHECK_THROWS_WITH(cdist(x, y), test::contains("cdist: vectors of different sizes"));
  CHECK_THROWS_WITH(cdist(x, x, -1), test::contains("cdist: p is 0 or more"));
  CHECK_THROWS_AS(cdist(x, x, std::nan("")), xla::shape_error);
}

TEST_CASE("cosine_similarity and cdist are the same in every mode, with gradients") {
  auto all = [](auto& a, auto& b) {
    const auto near = cosine_similarity(a, b);
    const auto far = cosine_similarity(unsqueeze(a, 1), b, -1);
    const auto d = cdist(a, b), e = cdist(a, b, 1) + cdist(b, a, 3);
    (sum(near * near) + sum(far) + sum(d * e)).backward();
    return std::tuple(near, far, d, e);
  };
  test::check_modes(all, test::parameter(numbers<float>({7, 5})),
                    test::parameter(numbers<float>({7, 5}, 1)));
  test::check_modes(all, test::parameter(numbers<float>({33, 17})), numbers<float>({33, 17}, 1));
  const auto x = numbers<double>({4, 3}), y = numbers<double>({4, 3}, 1);
  test::check_gradient([](auto& a, auto& b) { return cosine_similarity(a, b, 0); }, x, y);
  for (const double p : {1., 2., 3., inf})
    test::check_gradient([p](auto& a, auto& b) { return cdist(a, b, p); }, x, y);
  const xla::eager_mode_guard eager;
  auto zero = xla::zeros({2, 3});
  zero.requires_grad_();
  sum(cdist(zero, zero)).backward();
  check_equal(xla::abs(zero.grad()), {2, 3}, std::vector<float>(6));
}
