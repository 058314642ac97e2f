// SPDX-License-Identifier: Apache-2.0
#include "xla/op/gather.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;
using index_t = std::int64_t;

namespace {

/// Indices in [0, limit), each of them at places that look random.
template <std::size_t N>
xla::Tensor<index_t, static_cast<int>(N)> indices(const xla::Size (&sizes)[N], index_t limit) {
  std::vector<index_t> v;
  index_t n = 1;
  for (auto s : sizes) n *= index_t(s);
  for (index_t i = 0; i < n; ++i)
    v.push_back((test::number<index_t>(5, static_cast<std::uint64_t>(i)) + 8) % limit);
  v.push_back(0);
  return xla::from_blob(v.data(), sizes);
}

/// Calls f(element of x, element of the index) by counting through coordinates.
template <class F>
void each(const test::sizes_t& x, const test::sizes_t& index, std::size_t axis, const index_t* i,
          F f) {
  for (index_t at = 0; at < test::product(index); ++at) {
    index_t rest = at, to = 0, step = 1;
    for (std::size_t k = index.size(); k-- > 0;) {
      to += (k == axis ? i[at] : rest % index[k]) * step;
      rest /= index[k];
      step *= x[k];
    }
    f(static_cast<std::size_t>(to), static_cast<std::size_t>(at));
  }
}

/// x's elements within smaller sizes, which are at the beginning of every axis.
template <class T>
std::vector<T> corner(const xla::Tensor<T, 3>& x, const test::sizes_t& s) {
  std::vector<T> out;
  for (index_t i = 0; i < s[0]; ++i)
    for (index_t j = 0; j < s[1]; ++j)
      for (index_t k = 0; k < s[2]; ++k)
        out.push_back(x.data()[(i * x.sizes()[1] + j) * x.sizes()[2] + k]);
  return out;
}

template <class T, int R>
void check_all(const xla::Tensor<T, R>& x, int axis, const xla::Tensor<index_t, R>& index) {
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + R : axis);
  const std::vector<T> old = x.to_vector(), source = test::map_each<T>(index, [](index_t i) {
                                              return static_cast<T>(i * 3 + 1);
                                            });
  std::vector<T> picked(source.size()), put = old, added = old;
  each(x.sizes(), index.sizes(), at, index.data(), [&](std::size_t to, std::size_t from) {
    picked[from] = old[to];
    put[to] = source[from];
    added[to] = static_cast<T>(added[to] + source[from]);
  });
  const auto s = xla::cast<T>(index * 3 + 1);
  check_equal(gather(x, axis, index), index.sizes(), picked);
  check_equal(scatter(x, axis, index, s), x.sizes(), put);
  check_equal(scatter_add(x, axis, index, s), x.sizes(), added);
}

}  // namespace

TEMPLATE_TEST_CASE("gather, scatter and scatter_add follow their index", "", float, double, index_t,
                   std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_all(numbers<T>({7}), 0, indices({13}, 7));
  check_all(numbers<T>({7, 13}), 0, indices({3, 13}, 7));
  check_all(numbers<T>({7, 13}), 1, indices({7, 33}, 13));
  check_all(numbers<T>({7, 13}), -1, indices({7, 1}, 13));
  check_all(numbers<T>({3, 5, 4}), 1, indices({3, 9, 4}, 5));
  check_all(numbers<T>({3, 5, 4}), -3, indices({1, 5, 4}, 3));
  check_all(numbers<T>({1, 1}), 0, indices({1, 1}, 1));
  check_all(numbers<T>({7, 0}), 0, indices({3, 0}, 7));
  check_all(numbers<T>({7, 13}), 0, indices({0, 13}, 7));
  check_all(numbers<T>({7, 13}), 0, indices({9, 5}, 7));
  check_all(numbers<T>({7, 13}), 1, indices({2, 33}, 13));
  check_all(numbers<T>({3, 5, 4}), 1, indices({2, 7, 3}, 5));
  check_all(numbers<T>({3, 5, 4}), -1, indices({1, 1, 9}, 4));
  check_all(numbers<T>({3, 5, 4}), 0, indices({9, 0, 4}, 3));
}

TEST_CASE("scatter takes the first elements of a source that is larger than the index") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 5, 4}), source = numbers<float>({4, 6, 5}, 2);
  for (const auto& index : {indices({3, 6, 4}, 5), indices({2, 3, 2}, 5), indices({3, 0, 4}, 5)}) {
    const auto s = corner(source, index.sizes());
    const auto part = xla::from_blob(s.data(), {index.size(0), index.size(1), index.size(2)});
    check_equal(scatter(x, 1, index, source), scatter(x, 1, index, part));
    check_equal(scatter_add(x, 1, index, source), scatter_add(x, 1, index, part));
  }
}

TEST_CASE("scatter puts one number at all places; of several for one place the last stays") {
  const xla::eager_mode_guard eager;
  const auto x = xla::zeros<float>({2, 3});
  const auto index = xla::tensor<index_t>({{0, 2, 2}, {1, 1, 1}});
  check_equal(scatter(x, 1, index, 5), {2, 3}, std::vector<float>{5, 0, 5, 0, 5, 0});
  check_equal(scatter(x, 1, index, xla::tensor<float>({{1, 2, 3}, {4, 5, 6}})), {2, 3},
              std::vector<float>{1, 0, 3, 0, 6, 0});
  const auto marked = scatter(x > 0, 1, index, true);
  check_equal(xla::cast<float>(marked), {2, 3}, std::vector<float>{1, 0, 1, 0, 1, 0});
}

TEST_CASE("gather and scatter copy special values") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor(test::special_values<float>());
  const auto all = xla::arange(x.size(0));
  check_equal(gather(x, 0, all), x);
  check_equal(scatter(xla::zeros_like(x), 0, all, x), x);
}

TEST_CASE("gather and scatter refuse sizes that do not fit") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 5});
  CHECK_THROWS_WITH(
      gather(x, 0, indices({2, 6}, 4)),
      test::contains("gather: an index of shape (2, 6) for a tensor of shape (4, 5)"));
  CHECK_THROWS_WITH(gather(x, 2, indices({2, 5}, 4)), test::contains("2 axes has no axis 2"));
  CHECK_THROWS_AS(gather(x, -3, indices({2, 5}, 4)), xla::shape_error);
  CHECK_THROWS_WITH(
      scatter(x, 0, indices({2, 5}, 4), numbers<float>({3, 4})),
      test::contains("scatter: an index of shape (2, 5) for a source of shape (3, 4)"));
  CHECK_THROWS_AS(scatter_add(x, 1, indices({5, 5}, 4), numbers<float>({5, 5})), xla::shape_error);
}

TEST_CASE("an index out of range is an error in every mode, and changes nothing") {
  const xla::eager_mode_guard guard;
  auto step = [](auto& p, auto& index) {
    p += 1;
    p.copy_(scatter_add(p, 1, index, gather(p, 1, index)));
    return scatter(p, 1, index, 0);
  };
  auto compiled = xla::compile(step);
  auto p = xla::Parameter<float, 2>::like(xla::zeros({2, 3}));
  for (const index_t bad : {index_t{3}, index_t{-1}, index_t{1} << 60}) {
    auto index = xla::tensor<index_t>({{0, 1}, {bad, 2}});
    const std::string words = "index " + std::to_string(bad) + " at position 2 is outside [0, 3)";
    CHECK_THROWS_AS(compiled(p, index), xla::index_error);
    CHECK_THROWS_WITH(compiled(p, index), test::contains(words));
    check_equal(p, xla::zeros({2, 3}));
    xla::eager_mode(true);
    CHECK_THROWS_WITH(gather(p, 1, index), test::contains("gather: " + words));
    CHECK_THROWS_WITH(scatter(p, 1, index, 1), test::contains("scatter: " + words));
    CHECK_THROWS_WITH(scatter_add(p, 1, index, p), test::contains("scatter_add: " + words));
    xla::eager_mode(false);
    const auto y = gather(p, 1, index);
    CHECK_THROWS_WITH(y.to_vector(), test::contains(words));
    step(p, index);
    CHECK_THROWS_WITH(xla::sync(), test::contains(words));
    check_equal(p, xla::zeros({2, 3}));
  }
}

TEST_CASE("gather and scatter are the same in every mode") {
  auto all = [](auto& x, auto& index) {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    const auto picked = gather(x, 1, index);
    return std::tuple(picked, scatter(x, 1, index, picked * 2), scatter_add(x, 1, index, picked),
                      scatter(x * 2, -1, index, 3) + 1,
                      gather(x, 0, index * 0) - xla::cast<T>(index));
  };
  check_modes(all, numbers<float>({7, 13}), indices({7, 13}, 13));
  check_modes(all, numbers<double>({3, 5}), indices({3, 5}, 5));
  check_modes(all, numbers<index_t>({3, 5}), indices({3, 5}, 2));
}

TEST_CASE("an index smaller than x, and a source larger than it, are the same in every mode") {
  auto all = [](auto& p, auto& index, auto& source) {
    const auto y = gather(p, 1, index);
    const auto z = scatter(p, 1, index, source * p[0][0]), w = scatter_add(p, 1, index, source * y);
    sum(z * w).backward();
    return std::tuple(y, z, w);
  };
  check_modes(all, test::parameter(numbers<float>({7, 13})), indices({5, 9}, 13),
              numbers<float>({5, 9}, 3));
  auto larger = [](auto& p, auto& q, auto& index) {
    const auto z = scatter(p, 0, index, q * q), w = scatter_add(p, 0, index, q * 2);
    sum(z * w).backward();
    return z;
  };
  check_modes(larger, test::parameter(numbers<float>({4, 5})),
              test::parameter(numbers<float>({8, 5}, 1)), indices({7, 3}, 4));
  auto compiled = xla::compile([](auto& x, auto& index) { return gather(x, 0, index); });
  auto x = numbers<float>({4, 5});
  auto index = indices({4, 6}, 4);
  CHECK_THROWS_WITH(compiled(x, index),
                    test::contains("gather: axis 1 of argument 0 is 5 and has to be at least 6"));
}

TEST_CASE("scatter and scatter_add update in place what nobody else reads") {
  auto all = [](auto& p, auto& index) {
    const auto old = p.detach();
    p.copy_(scatter(p, 1, index, 7));
    auto h = p * 2;
    h = scatter_add(h, 0, index * 0, h);
    const auto k = scatter_add(h, 1, index, p), l = scatter(h, 1, index, k);
    p.copy_(scatter_add(p, 1, index, p));
    return std::tuple(old, k, l);
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({7, 13}));
  p.copy_(numbers<float>({7, 13}));
  check_modes(all, p, indices({7, 13}, 13));
}

TEST_CASE("gradients of gather and scatter are the same in every mode") {
  auto all = [](auto& p, auto& x, auto& index) {
    const auto y = gather(p, 0, index), z = scatter(p * 2, 0, index, y * x),
               w = scatter_add(p, 0, index, y);
    sum(z * w).backward();
    return z;
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({4, 5}));
  p.copy_(numbers<float>({4, 5}));
  check_modes(all, p, numbers<float>({7, 5}, 3), indices({7, 5}, 4));
}

TEST_CASE("the gradients of gather, scatter and scatter_add") {
  static const auto index = xla::tensor<index_t>({{0, 2, 2}, {3, 2, 0}});
  static const auto apart = xla::tensor<index_t>({{0, 2, 1}, {3, 1, 0}});
  const auto x = numbers<double>({4, 3}), s = numbers<double>({2, 3}, 1);
  test::check_gradient([](auto& a) { return gather(a * a, 0, index); }, x);
  test::check_gradient([](auto& a, auto& b) { return scatter(a * a, 0, apart, b * b); }, x, s);
  test::check_gradient([](auto& a, auto& b) { return scatter(a * a, 0, index, b * b); }, x, s);
  test::check_gradient([](auto& a, auto& b) { return scatter_add(a * a, 0, index, b * b); }, x, s);
  static const auto part = xla::tensor<index_t>({{0, 2}, {3, 2}, {3, 0}});
  const auto large = numbers<double>({4, 3}, 2);
  test::check_gradient([](auto& a) { return gather(a * a, 0, part); }, x);
  test::check_gradient([](auto& a, auto& b) { return scatter(a * a, 0, part, b * b); }, x, large);
  const auto add = [](auto& a, auto& b) { return scatter_add(a * a, 0, part, b * b); };
  test::check_gradient(add, x, large);
  test::check_gradient(
      [=](auto& a) { return xla::grad(test::weighted_sum(add(a, a)), a, {.create_graph = true}); },
      x);
}
