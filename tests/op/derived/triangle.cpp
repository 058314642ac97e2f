// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/triangle.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

/// Elements (.., r, c) for which keep(r, c), 0 elsewhere.
template <class T, int R, class F>
std::vector<T> kept(const xla::Tensor<T, R>& x, F keep) {
  const std::int64_t rows = x.size(-2), columns = x.size(-1);
  std::vector<T> out;
  for (std::int64_t i = 0; i < std::int64_t(x.numel()); ++i)
    out.push_back(keep(i / columns % rows, i % columns) ? x.data()[i] : T{});
  return out;
}

template <class T, int R>
void check_triangles(const xla::Tensor<T, R>& x) {
  check_equal(tril(x), x.sizes(), kept(x, [](auto r, auto c) { return c <= r; }));
  check_equal(triu(x), x.sizes(), kept(x, [](auto r, auto c) { return c >= r; }));
  for (std::int64_t d : {-20, -3, -1, 1, 2, 20}) {
    check_equal(tril(x, d), x.sizes(), kept(x, [d](auto r, auto c) { return c <= r + d; }));
    check_equal(triu(x, d), x.sizes(), kept(x, [d](auto r, auto c) { return c >= r + d; }));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("triangles and the identity", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t, bool) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_triangles(numbers<T>({7, 7}));
  check_triangles(numbers<T>({7, 13}));
  check_triangles(numbers<T>({13, 5}));
  check_triangles(numbers<T>({2, 3, 4, 5}));
  check_triangles(numbers<T>({0, 3}));
  check_triangles(numbers<T>({300, 2}));
  const auto ones = xla::ones<T>({3, 5});
  check_equal(xla::eye<T>(3, 5), {3, 5}, kept(ones, [](auto r, auto c) { return r == c; }));
  check_equal(xla::eye<T>(1), {1, 1}, std::vector<T>{1});
  check_equal(xla::eye<T>(300, 1), {300, 1},
              kept(xla::ones<T>({300, 1}), [](auto r, auto c) { return r == c; }));
}

TEST_CASE("NaN and infinity outside a triangle are gone") {
  const xla::eager_mode_guard eager;
  const auto x = xla::full<float>({2, 2}, std::numeric_limits<float>::quiet_NaN());
  CHECK(tril(x)[0][1].item() == 0);
  CHECK(std::isnan(tril(x)[1][0].item()));
}

TEST_CASE("triangles are the same in every mode, also of constants alone") {
  auto all = [](auto& x) {
    return std::tuple(tril(x) * 2, triu(x, 1), tril(xla::ones<float>({5, 5})),
                      tril(xla::ones<float>({5, 5}), -1) == 0,
                      where(triu(xla::ones<bool>({5, 5}), 1), x, 0), xla::eye(5) * x,
                      tril(xla::ones<float>({x.size(0), x.size(1)})), xla::eye<double>(x.size(0)),
                      triu(xla::ones<std::int64_t>({4, 6}), 2));
  };
  check_modes(all, numbers<float>({5, 5}));
}

TEST_CASE("the gradients of triangles") {
  const auto x = numbers<double>({2, 3, 4});
  test::check_gradient([](auto& a) { return tril(a * a, 1) + triu(a, 1) * a; }, x);
}
