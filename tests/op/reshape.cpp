// SPDX-License-Identifier: Apache-2.0
#include "xla/op/reshape.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_gradient;
using test::check_modes;
using test::numbers;

TEST_CASE("reshape keeps the elements in their order") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4});
  const auto v = x.to_vector();
  check_equal(reshape(x, {24}), {24}, v);
  check_equal(reshape(x, {4, 6}), {4, 6}, v);
  check_equal(reshape(x, {-1, 8}), {3, 8}, v);
  check_equal(reshape(x, {x.size(0), -1}), {2, 12}, v);
  check_equal(reshape(x, {1, 2, 1, 3, 4, 1}), {1, 2, 1, 3, 4, 1}, v);
  check_equal(reshape(numbers<float>({1, 1}), {1}), {1}, numbers<float>({1}).to_vector());
  check_equal(reshape(numbers<float>({0, 3}), {3, 0}), {3, 0}, {});
  check_equal(flatten(x), {24}, v);
  check_equal(flatten<1>(x), {2, 12}, v);
  check_equal(flatten<2>(x), {2, 3, 4}, v);
  check_equal(xla::flatten<0, 1>(x), {6, 4}, v);
  check_equal(xla::flatten<1, 1>(x), {2, 3, 4}, v);
  check_equal(xla::flatten<-2, -1>(x), {2, 12}, v);
  check_equal(xla::flatten<0, -1>(numbers<float>({0, 3})), {0}, {});
  check_equal(xla::flatten<0, 1>(numbers<float>({5, 0, 3})), {0, 3}, {});
  check_equal(flatten(xla::tensor(2.f)), {1}, {2.f});
  check_equal(view_as(x, numbers<bool>({6, 4})), {6, 4}, v);
  check_equal(reshape_as(x, flatten(x)), {24}, v);
  check_equal(unsqueeze(x, 0), {1, 2, 3, 4}, v);
  check_equal(unsqueeze(x, -1), {2, 3, 4, 1}, v);
  check_equal(unsqueeze(x, 2), {2, 3, 1, 4}, v);
  check_equal(xla::squeeze<1>(unsqueeze(x, 1)), x);
  check_equal(view(x, {6, -1}), {6, 4}, v);
  check_equal(unflatten(x, 1, {3, 1}), {2, 3, 1, 4}, v);
  check_equal(unflatten(x, -1, {-1, 2}), {2, 3, 2, 2}, v);
  check_equal(xla::squeeze<-1>(unsqueeze(x, 3)), x);
  check_equal(xla::squeeze<0>(numbers<std::int64_t>({1})), {},
              numbers<std::int64_t>({1}).to_vector());
}

TEST_CASE("expand repeats along axes of size 1 and new leading ones") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({3, 1}), y = numbers<double>({1, 1});
  auto repeated = [](const auto& t, const test::sizes_t& to) {
    std::vector<double> out;
    for (std::int64_t i = 0; i < test::product(to); ++i)
      out.push_back(t.data()[test::source_of(i, to, t.sizes())]);
    return out;
  };
  check_equal(expand(x, {3, 7}), {3, 7}, repeated(x, {3, 7}));
  check_equal(expand(x, {2, 3, 5}), {2, 3, 5}, repeated(x, {2, 3, 5}));
  check_equal(expand(x, {-1, 4}), {3, 4}, repeated(x, {3, 4}));
  check_equal(expand(y, {17, 33}), {17, 33}, repeated(y, {17, 33}));
  check_equal(expand(x, {3, 0}), {3, 0}, {});
  check_equal(expand(x, {3, 1}), x);
  check_equal(expand_as(x, numbers<int>({2, 3, 5})), {2, 3, 5}, repeated(x, {2, 3, 5}));
}

TEST_CASE("shapes that do not fit are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3});
  CHECK_THROWS_WITH(reshape(x, {4, 2}), test::contains("(2, 3)") && test::contains("(4, 2)"));
  CHECK_THROWS_AS(reshape(x, {-1, 4}), xla::shape_error);
  CHECK_THROWS_AS(unflatten(x, 1, {2, 2}), xla::shape_error);
  CHECK_THROWS_AS(unflatten(x, 2, {1, 3}), xla::shape_error);
  CHECK_THROWS_AS(unflatten(x, 1, {-1, -1}), xla::shape_error);
  CHECK_THROWS_AS(reshape(x, {-1, -1}), xla::shape_error);
  CHECK_THROWS_AS(reshape(x, {-1, 0}), xla::shape_error);
  CHECK_THROWS_AS(reshape(x, {-2, -3}), xla::shape_error);
  CHECK_THROWS_AS(reshape(x, {6, -2}), xla::shape_error);
  CHECK_THROWS_AS(expand(x, {4, 3}), xla::shape_error);
  CHECK_THROWS_AS(expand(x, {3, 2, 2}), xla::shape_error);
  CHECK_THROWS_WITH(view_as(x, numbers<float>({4, 2})), test::contains("cannot view (2, 3)"));
  CHECK_THROWS_WITH(expand_as(x, numbers<float>({4, 3})), test::contains("only sizes that are 1"));
  CHECK_THROWS_AS(xla::squeeze<0>(x), xla::shape_error);
  CHECK_THROWS_AS(unsqueeze(x, 3), xla::shape_error);
  CHECK_THROWS_AS(unsqueeze(x, -4), xla::shape_error);
}

TEST_CASE("changes of shape are the same in every mode") {
  auto all = [](auto& x) {
    const auto one = xla::ones<typename std::remove_cvref_t<decltype(x)>::value_type>({1});
    return std::tuple(reshape(x, {x.size(1), -1}), flatten<1>(x) * 2, unsqueeze(x, 1) + 1,
                      xla::squeeze<0>(unsqueeze(x, 0)), expand(unsqueeze(x, 0), {3, -1, -1, -1}),
                      flatten(x), unflatten(x, 1, {1, -1}),
                      expand(sum(x, {0}, xla::keepdim), {x.size(0), -1, -1}),
                      reshape(x, {x.size(0) * x.size(1), x.size(2)}) * reshape(x, {-1, x.size(2)}),
                      xla::flatten<0, 1>(x) - view_as(x * 2, xla::flatten<-3, -2>(x)),
                      expand_as(sum(x, {0, 1}), x) + view_as(one, sum(x)));
  };
  check_modes(all, numbers<float>({2, 3, 5}));
  check_modes(all, numbers<float>({7, 13, 33}));
  check_modes(all, numbers<std::int64_t>({1, 1, 1}));
}

TEST_CASE("gradients of changes of shape") {
  const auto x = numbers<double>({3, 4});
  check_gradient([](auto& v) { return reshape(v * v, {2, -1}) * 2; }, x);
  check_gradient([](auto& v) { return xla::flatten<0, 1>(view_as(v * v, unsqueeze(v, 1))); }, x);
  check_gradient([](auto& v) { return expand(unsqueeze(v, 1), {2, 3, 5, 4}) * 0.5; }, x);
  check_gradient(
      [](auto& v) {
        return flatten(v) * flatten(v) + xla::squeeze<0>(sum(v, {0, 1}, xla::keepdim));
      },
      x);
}
