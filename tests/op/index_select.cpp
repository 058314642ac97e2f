// SPDX-License-Identifier: Apache-2.0
#include "xla/op/index_select.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/index_put.hpp"
#include "xla/op/derived/indexing.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;
using index_t = std::int64_t;

namespace {

template <class T, int R>
void check_select(const xla::Tensor<T, R>& x, int axis, const std::vector<index_t>& index) {
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + R : axis);
  test::sizes_t sizes = x.sizes();
  index_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < at; ++i) outer *= sizes[i];
  for (std::size_t i = at + 1; i < sizes.size(); ++i) inner *= sizes[i];
  std::vector<T> picked, added = x.to_vector();
  for (index_t o = 0; o < outer; ++o)
    for (index_t k : index)
      for (index_t i = 0; i < inner; ++i) {
        const auto from = static_cast<std::size_t>((o * sizes[at] + k) * inner + i);
        picked.push_back(x.data()[from]);
        added[from] = static_cast<T>(added[from] + x.data()[from]);
      }
  sizes[at] = static_cast<index_t>(index.size());
  const auto i = xla::tensor(index);
  const auto y = index_select(x, axis, i);
  check_equal(y, sizes, picked);
  check_equal(index_add(x, axis, i, y), x.sizes(), added);
}

template <class T, int R>
void check_copy(const xla::Tensor<T, R>& x, int axis, const std::vector<index_t>& index) {
  const auto i = xla::tensor(index);
  const auto source = index_select(x, axis, i) * 2;
  auto expected = x;
  for (std::size_t k = 0; k < index.size(); ++k) {
    const auto one = narrow(source, axis, static_cast<index_t>(k), 1);
    expected = index_copy(expected, axis, xla::full<index_t>({1}, index[k]), one);
    check_equal(narrow(expected, axis, index[k], 1), one, 0);
  }
  check_equal(index_copy(x, axis, i, source), expected, 0);
  auto y = x;
  const T* const shared = y.data();
  y.index_copy_(axis, i, source);
  check_equal(y, expected, 0);
  CHECK(x.data() == shared);
  y = x + T(0);
  const T* const own = y.data();
  y.index_copy_(axis, i, source);
  check_equal(y, expected, 0);
  CHECK(y.data() == own);
}

}  // namespace

TEMPLATE_TEST_CASE("index_select and index_add follow their index", "", float, double, index_t,
                   std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_select(numbers<T>({7}), 0, {6, 0, 3, 3});
  check_select(numbers<T>({7, 13}), 0, {6, 0, 3, 3, 1, 1, 1, 2});
  check_select(numbers<T>({7, 13}), 1, {12, 0});
  check_select(numbers<T>({3, 5, 4}), 1, {4, 4, 0});
  check_select(numbers<T>({3, 5, 4}), -1, {3, 1, 2});
  check_select(numbers<T>({1, 1}), 0, {0, 0, 0});
  check_select(numbers<T>({7, 0}), 0, {1, 5});
  check_select(numbers<T>({7, 13}), 0, {});
}

TEMPLATE_TEST_CASE("index_copy replaces slices", "", float, double, index_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_copy(numbers<T>({7}), 0, {6, 0, 3});
  check_copy(numbers<T>({7, 13}), 1, {12, 0});
  check_copy(numbers<T>({3, 5, 4}), -2, {3, 1, 2});
  check_copy(numbers<T>({7, 13}), 0, {});
  check_equal(
      index_copy(xla::zeros<T>({3}), 0, xla::tensor<index_t>({1, 1}), xla::tensor<T>({5, 7})), {3},
      std::vector<T>{0, 7, 0});
  auto x = xla::tensor<T>({1, 2, 3});
  x.index_copy_(0, xla::tensor<index_t>({2, 0, 1}), x);
  check_equal(x, {3}, std::vector<T>{2, 3, 1});
  CHECK_THROWS_WITH(x.index_copy_(0, xla::full<index_t>({1}, 3), xla::full<T>({1}, 5)),
                    test::contains("index_copy: index 3 at position 0 is outside [0, 3)"));
  CHECK_THROWS_WITH(x.index_copy_(0, xla::full<index_t>({1}, 2), xla::zeros<T>({2})),
                    test::contains("index_copy: a source of shape (2,)"));
  check_equal(x, {3}, std::vector<T>{2, 3, 1});
}

TEST_CASE("index_select works on bool, and refuses what does not fit") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 5});
  check_equal(xla::cast<float>(index_select(x > 0, 1, xla::tensor<index_t>({4, 0}))), {4, 2},
              xla::cast<float>(index_select(x, 1, xla::tensor<index_t>({4, 0})) > 0).to_vector());
  CHECK_THROWS_WITH(index_select(x, 2, xla::tensor<index_t>({0})),
                    test::contains("index_select: a tensor with 2 axes has no axis 2"));
  CHECK_THROWS_WITH(index_add(x, 1, xla::tensor<index_t>({0, 1}), x),
                    test::contains("index_add: a source of shape (4, 5) does not fit an index of "
                                   "shape (2,) into a tensor of shape (4, 5) along axis 1"));
}

TEST_CASE("an index out of range is refused in every mode") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({4, 5});
  auto select = [](auto& v, auto& i) { return index_select(v, 1, i); };
  auto add = [](auto& v, auto& i) { return index_add(v, 0, i, v); };
  auto copy = [](auto& v, auto& i) { return index_copy(v, 0, i, v); };
  auto take = [](auto& v, auto& i) { return take_along_dim(v, unsqueeze(i, 0), 1); };
  auto hot = [](auto& v, auto& i) { return one_hot(i, v.size(0)); };
  auto check = [&](auto f, auto compiled, const std::string& words) {
    auto index = xla::tensor<index_t>({0, 1, 2, -1});
    for (bool eager : {true, false}) {
      xla::eager_mode(eager);
      auto run = [&] {
        auto y = f(x, index);
        return y.to_vector();
      };
      CHECK_THROWS_WITH(run(), test::contains(words));
      CHECK_THROWS_AS(run(), xla::index_error);
    }
    CHECK_THROWS_WITH(compiled(x, index), test::contains(words));
  };
  const std::string at = ": index -1 at position 3 is outside [0, ";
  check(select, xla::compile(select), "index_select" + at + "5)");
  check(add, xla::compile(add), "index_add" + at + "4)");
  check(copy, xla::compile(copy), "index_copy" + at + "4)");
  check(take, xla::compile(take), "take_along_dim" + at + "5)");
  check(hot, xla::compile(hot), "one_hot" + at + "4)");
}

TEST_CASE("take_along_dim broadcasts its other axes") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  check_equal(take_along_dim(x, xla::tensor<index_t>({{2, 0}}), 1), {2, 2},
              std::vector<float>{3, 1, 6, 4});
  check_equal(take_along_dim(x, xla::tensor<index_t>({{1}, {0}, {1}}), 0), {3, 3},
              std::vector<float>{4, 5, 6, 1, 2, 3, 4, 5, 6});
  check_equal(take_along_dim(xla::tensor<float>({{7, 8, 9}}), xla::tensor<index_t>({{0}, {2}}), -1),
              {2, 1}, std::vector<float>{7, 9});
  CHECK_THROWS_AS(take_along_dim(x, xla::zeros<index_t>({3, 1}), 1), xla::shape_error);
}

TEST_CASE("one_hot marks one class in each row") {
  const xla::eager_mode_guard eager;
  check_equal(xla::one_hot(xla::tensor<index_t>({2, 0}), 3), {2, 3},
              std::vector<index_t>{0, 0, 1, 1, 0, 0});
  check_equal(xla::one_hot(xla::tensor(index_t{1}), 2), {2}, std::vector<index_t>{0, 1});
  check_equal(xla::one_hot(xla::zeros<index_t>({0, 2}), 5), {0, 2, 5}, {});
  CHECK(xla::one_hot(xla::zeros<index_t>({7, 13}), 1).to_vector() == std::vector<index_t>(91, 1));
}

TEST_CASE("masked_fill puts a number where a mask holds") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, std::nanf("")}});
  check_equal(masked_fill(x, x != x, 0), {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 0});
  check_equal(masked_fill(x, xla::tensor<int>({1, 0, 1}) > 0, -7.5), {2, 3},
              std::vector<float>{-7.5, 2, -7.5, -7.5, 5, -7.5});
  check_equal(masked_fill(xla::tensor<index_t>({1, 2}), xla::tensor<int>({{0, 1}, {1, 1}}) > 0, 9),
              {2, 2}, std::vector<index_t>{1, 9, 9, 9});
}

TEST_CASE("selecting is the same in every mode") {
  auto all = [](auto& p, auto& index) {
    const auto y = index_select(p, 1, index), z = index_add(p, 1, index, y * y);
    const auto t = masked_fill(take_along_dim(p, unsqueeze(index, 0), 1), y > 1, 0);
    sum(y * t).backward();
    const auto first = index_select(p, 0, xla::zeros<index_t>({2})),
               again = index_select(p, 0, xla::arange(p.size(0)));
    return std::tuple(first, again, y, z, t, xla::one_hot(index, p.size(1)),
                      index_select(index, 0, index * 0));
  };
  auto p = xla::Parameter<float, 2>::like(xla::zeros({4, 5}));
  p.copy_(numbers<float>({4, 5}));
  check_modes(all, p, xla::tensor<index_t>({4, 0, 0, 2, 1, 3}));
  check_modes(all, p, xla::zeros<index_t>({0}));
}

TEST_CASE("the gradients of index_select, index_add and take_along_dim") {
  static const auto index = xla::tensor<index_t>({2, 0, 2});
  const auto x = numbers<double>({4, 3}), s = numbers<double>({4, 3}, 1);
  test::check_gradient([](auto& a) { return index_select(a * a, 1, index); }, x);
  test::check_gradient([](auto& a) { return index_select(a * a, 0, index); }, x);
  test::check_gradient([](auto& a, auto& b) { return index_add(a * a, 1, index, b * b); }, x, s);
  test::check_gradient([](auto& a) { return take_along_dim(a * a, unsqueeze(index, 0), -1); }, x);
  test::check_gradient([](auto& a, auto& b) { return index_copy(a * a, 1, index, b * b); }, x, s);
  test::check_gradient(
      [](auto& a, auto& b) { return index_copy(a * a, 0, index, narrow(b, 0, 0, 3) * b[3]); }, x,
      s);
}

TEST_CASE("index_copy is the same in every mode, also in place") {
  auto all = [](auto& p, auto& kept, auto& index) {
    const auto source = index_select(p, 1, index);
    kept.index_copy_(1, index, source);
    sum(index_copy(p * p, 1, index, source * 3) * p + kept).backward();
    return std::tuple(kept + 1, index_copy(p, 1, index, source + 1));
  };
  auto p = test::parameter(numbers<float>({4, 5}));
  xla::Buffer<float, 2> kept{{4, 5}};
  check_modes(all, p, kept, xla::tensor<index_t>({4, 0, 2}));
  check_modes(all, p, kept, xla::zeros<index_t>({0}));
}

TEST_CASE("index_put writes or adds values at places that several indices name") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3, 5});
  const auto i = xla::tensor<index_t>({3, 0, 3}), j = xla::tensor<index_t>({1, 2, 1});
  const auto values = numbers<float>({3, 5}, 1);
  auto want = x.to_vector(), sums = want, ones = want;
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t c = 0; c < 5; ++c) {
      const std::size_t at = std::size_t(i.data()[k] * 15 + j.data()[k] * 5) + c;
      want[at] = values.data()[k * 5 + c];
      sums[at] += values.data()[k * 5 + c];
      ones[at] += 1;
    }
  check_equal(index_put(x, {i, j}, values), {4, 3, 5}, want);
  check_equal(index_put(x, {i, j}, values, true), {4, 3, 5}, sums);
  check_equal(index_put(x, {i, j}, 1, true), {4, 3, 5}, ones);
  check_equal(index_put(x, {i}, unsqueeze(values, 1)),
              index_copy(x, 0, i, expand(unsqueeze(values, 1), {3, 3, 5})));
  const auto all = index_put(x, {unsqueeze(i, 1), unsqueeze(j, 0)}, values[0] * 1);
  check_equal(all.index(3, 2) * 1, values[0] * 1);
  check_equal(all.index(2, 2) * 1, x.index(2, 2) * 1);
  CHECK(index_put(x > 9, {i, j, j}, true).index(0, 2, 2).item());
  check_equal(index_put(x, {xla::zeros<index_t>({0})}, 3), x);
  const auto point = xla::tensor(index_t{2});
  check_equal(index_put(x, {point, point}, 3)[2][2] * 1, xla::full({5}, 3));
}

TEST_CASE("index_put refuses values that do not fit and indices out of range") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3, 5});
  const auto i = xla::tensor<index_t>({3, 0, 3});
  CHECK_THROWS_WITH(index_put(x, {i, i}, 1), test::contains("index_put: index 3 at position 0"));
  CHECK_THROWS_AS(index_put(x, {-i}, 1), xla::index_error);
  CHECK_THROWS_WITH(
      index_put(x, {i}, numbers<float>({4})),
      test::contains("index_put: values of shape (4,) do not broadcast to (3, 3, 5)"));
  CHECK_THROWS_AS(index_put(x, {i, xla::zeros<index_t>({2})}, 1), xla::shape_error);
  CHECK_THROWS_WITH(index_put(x > 0, {i}, true, true),
                    test::contains("bool cannot be accumulated"));
}

TEST_CASE("index_put is the same in every mode, with gradients") {
  auto all = [](auto& p, auto& i, auto& j) {
    const auto v = index_select(p, 0, i) * 2;
    const auto put = index_put(p, {i}, v), added = index_put(p * p, {i, j}, v[0][1] * 1, true);
    sum(put * added).backward();
    return std::tuple(put, added, index_put(p, {i, j}, p.size(0)));
  };
  const auto i = xla::tensor<index_t>({2, 0, 2}), j = xla::tensor<index_t>({1, 4, 1});
  check_modes(all, test::parameter(numbers<float>({3, 5})), i, j);
  static const auto rows = xla::tensor<index_t>({2, 0, 2});
  static const auto columns = xla::tensor<index_t>({1, 0, 1});
  for (const bool add : {false, true})
    test::check_gradient(
        [add](auto& a, auto& b) {
          return index_put(a * a, {rows, columns}, b * b, add) *
                 index_put(a, {rows}, b[1] * 1, add);
        },
        numbers<double>({3, 3}), numbers<double>({3}, 1));
}
