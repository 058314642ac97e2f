// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/any_all.hpp"

#include "support/modes.hpp"

using test::numbers;

namespace {

std::vector<int> truth(const xla::Tensor<bool, 1>& x) { return xla::cast<int>(x).to_vector(); }

/// Over axis 1 of (rows, columns).
template <class T>
void check_rows(const xla::Tensor<T, 2>& x) {
  const auto rows = x.sizes()[0], columns = x.sizes()[1];
  std::vector<int> some, every;
  for (std::int64_t r = 0; r < rows; ++r) {
    int hits = 0;
    for (std::int64_t c = 0; c < columns; ++c) hits += x.data()[r * columns + c] != T{};
    some.push_back(hits > 0);
    every.push_back(hits == columns);
  }
  CHECK(truth(any(x, {1})) == some);
  CHECK(truth(all(x, {-1})) == every);
  CHECK(any(x, {1}, xla::keepdim).sizes() == test::sizes_t{rows, 1});
  CHECK(all(x, {0}, xla::keepdim).sizes() == test::sizes_t{1, columns});
}

}  // namespace

TEMPLATE_TEST_CASE("any and all over axes", "", bool, float, double, std::int32_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_rows(numbers<T>({7, 13}));
  check_rows(numbers<T>({100, 2}));
  check_rows(xla::zeros<T>({3, 33}));
  check_rows(xla::ones<T>({3, 33}));
  check_rows(numbers<T>({3, 0}));
  check_rows(numbers<T>({0, 3}));
}

TEST_CASE("any and all of everything, of nothing and of NaN") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{0, 0}, {-0.f, 3}});
  CHECK(any(x).item());
  CHECK_FALSE(all(x).item());
  CHECK_FALSE(any(x == 7).item());
  CHECK(all(x < 7).item());
  CHECK_FALSE(any(xla::zeros({0, 3})).item());
  CHECK(all(xla::zeros({0, 3})).item());
  CHECK(all(xla::tensor<float>({std::nanf(""), 1})).item());
  CHECK(any(xla::tensor(true)).item());
  CHECK_THROWS_WITH(any(x, {2}), test::contains("any: axis 2"));
  CHECK_THROWS_WITH(all(x, {0, 0}), test::contains("all: axis 0"));
}

TEST_CASE("any and all are the same in every mode") {
  auto f = [](auto& x) {
    return std::tuple(any(x), all(x != 1), any(x > 1, {0}), all(x > -3, {1}, xla::keepdim),
                      where(any(x == 2, {0}), sum(x, {0}), 0), sum(x > 0, {1}), sum(x > 0));
  };
  test::check_modes(f, numbers<float>({7, 13}));
  test::check_modes(f, numbers<std::int32_t>({17, 3}));
  test::check_modes(f, numbers<double>({0, 3}));
}
