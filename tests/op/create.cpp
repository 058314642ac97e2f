// SPDX-License-Identifier: Apache-2.0
#include "xla/op/create.hpp"

#include "support/modes.hpp"
#include "xla/op/clip.hpp"
#include "xla/op/derived/index_put.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/scattering.hpp"
#include "xla/op/index.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/remainder.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

TEMPLATE_TEST_CASE("tensors from numbers", "", float, double, std::int32_t, std::int64_t,
                   std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_equal(xla::full<T>({2, 3}, 7), {2, 3}, std::vector<T>(6, T(7)));
  check_equal(xla::zeros<T>({17}), {17}, std::vector<T>(17));
  check_equal(xla::ones<T>({1, 1, 1}), {1, 1, 1}, std::vector<T>{1});
  check_equal(xla::zeros<T>({0, 4}), {0, 4}, {});
  check_equal(xla::ones_like(xla::zeros<T>({2, 2})), {2, 2}, std::vector<T>(4, T(1)));
  check_equal(xla::full_like(xla::zeros<T>({2}), 5), {2}, std::vector<T>{5, 5});
  check_equal(xla::arange<T>(5), {5}, std::vector<T>{0, 1, 2, 3, 4});
  check_equal(xla::arange<T>(0), {0}, {});
  check_equal(xla::tensor<T>({{1, 2, 3}, {4, 5, 6}}), {2, 3}, std::vector<T>{1, 2, 3, 4, 5, 6});
  check_equal(xla::tensor<T>({{{1}, {2}}, {{3}, {4}}}), {2, 2, 1}, std::vector<T>{1, 2, 3, 4});
  check_equal(xla::tensor(T(9)), {}, std::vector<T>{9});
  std::vector<T> v{3, 1, 2};
  const auto copied = xla::tensor(v);
  const auto from = xla::from_blob(v.data(), {3, 1});
  v.assign(3, T(0));
  check_equal(copied, {3}, std::vector<T>{3, 1, 2});
  check_equal(from, {3, 1}, std::vector<T>{3, 1, 2});
}

TEST_CASE("tensors of bool") {
  const xla::eager_mode_guard eager;
  check_equal(xla::full<bool>({3}, true), {3}, {true, true, true});
  check_equal(xla::tensor<bool>({{true, false}}), {1, 2}, {true, false});
  CHECK(xla::tensor<bool>({true, false, true}).to_vector() == std::vector<bool>{true, false, true});
}

TEST_CASE("large integers are kept exactly") {
  const xla::eager_mode_guard eager;
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  CHECK(xla::tensor(big).item() == big);
  CHECK(xla::full<std::int64_t>({2}, big).to_vector()[1] == big);
  CHECK((xla::zeros<std::int64_t>({1}) + big).to_vector()[0] == big);
}

namespace {

/// Each function that makes V an element of its result, or keeps elements on one side of it.
template <auto V>
constexpr auto with_number = [](auto& x) {
  const auto odd = x % 2 == 1;
  const auto first = xla::arange(1);
  auto written = x * 1;
  written[0] = V;
  return std::tuple(full_like(x, V), xla::where(odd, x, V), xla::where(odd, V, x),
                    masked_fill(x, odd, V), clamp(x, 0, V), pad(x, {{1, 0}}, V),
                    scatter(x, 0, first, V), index_fill(x, 0, first, V), index_put(x, {first}, V),
                    written);
};

template <class T>
void check_refused(auto v) {
  CAPTURE(+v);
  const auto sentence = test::contains("xla: a number does not fit into a tensor of ");
  const auto x = numbers<T>({5});
  const auto odd = x % 2 == 1;
  const auto first = xla::zeros<std::int64_t>({1});
  CHECK_THROWS_WITH(xla::full<T>({2}, v), sentence);
  CHECK_THROWS_WITH(full_like(x, v), sentence);
  CHECK_THROWS_WITH(xla::where(odd, x, v), sentence);
  CHECK_THROWS_WITH(xla::where(odd, v, x), sentence);
  CHECK_THROWS_WITH(masked_fill(x, odd, v), sentence);
  CHECK_THROWS_WITH(clamp(x, 0, v), sentence);
  CHECK_THROWS_WITH(clamp(x, v, 9), sentence);
  CHECK_THROWS_WITH(clamp_min(x, v), sentence);
  CHECK_THROWS_WITH(pad(x, {{1, 0}}, v), sentence);
  CHECK_THROWS_WITH(scatter(x, 0, first, v), sentence);
  CHECK_THROWS_WITH(index_fill(x, 0, first, v), sentence);
  CHECK_THROWS_WITH(index_put(x, {first}, v), sentence);
  if (v > 0) CHECK_THROWS_WITH(pow(x, v), sentence);
  auto written = x * 1;
  CHECK_THROWS_WITH(written[0] = v, sentence);
  check_equal(written, x);
}

}  // namespace

TEST_CASE("a number that a type of integers does not hold is no element, as in PyTorch") {
  const bool eager = GENERATE(true, false);
  const xla::eager_mode_guard mode(eager);
  for (const int v : {256, 300, -256, -300}) check_refused<std::uint8_t>(v);
  for (const std::int64_t v : {std::int64_t{1} << 31, -(std::int64_t{1} << 31) - 1})
    check_refused<std::int32_t>(v);
  check_refused<std::int64_t>(std::uint64_t{1} << 63);
  const auto sentence = test::contains("does not fit into a tensor of std::uint8_t; take a wider");
  CHECK_THROWS_WITH(xla::full<std::uint8_t>({2}, xla::Scalar(300)), sentence);
  CHECK_THROWS_WITH(xla::full<std::uint8_t>({2}, xla::zeros<float>({256}).size(0)), sentence);
  const auto truth = xla::tensor<bool>({true});
  CHECK_THROWS_WITH(xla::where(truth, truth, 2),
                    test::contains("next to a tensor of bool a number is 0 or 1"));
}

TEST_CASE(
    "a number that a type of integers holds is an element; without a sign it takes negatives") {
  const xla::eager_mode_guard eager;
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  check_equal(xla::full<std::uint8_t>({1}, 255), {1}, {255});
  check_equal(xla::full<std::uint8_t>({2}, -1), {2}, {255, 255});
  check_equal(xla::full<std::uint8_t>({1}, -255), {1}, {1});
  check_equal(xla::full<std::int32_t>({1}, 2147483647), {1}, {2147483647});
  check_equal(xla::full<std::int64_t>({1}, lowest), {1}, {lowest});
  const auto bytes = xla::tensor<std::uint8_t>({1, 2, 250});
  check_equal(xla::where(bytes > 2, bytes, -1), {3}, {255, 255, 250});
  check_equal(bytes + 300, {3}, {45, 46, 38});  // what is computed wraps around
  check_equal(bytes * 300, {3}, {44, 88, 248});
  check_modes(with_number<200>, bytes);
  check_modes(with_number<-7>, numbers<std::int32_t>({5}));
}

TEST_CASE("the sizes, element type and device of a tensor") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 5});
  CHECK(x.sizes() == test::sizes_t{2, 3, 5});
  CHECK(x.size(0) == 2);
  CHECK(x.size(-1) == 5);
  CHECK(x.dim() == 3);
  CHECK(x.numel() == 30);
  CHECK(xla::tensor(2.f).numel() == 1);
  CHECK(xla::tensor(2.5f).item() == 2.5f);
  CHECK(xla::tensor(true));
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE(x.grad().defined());
  CHECK_THROWS_AS((xla::Tensor<float, 0>().item()), xla::error);
}

TEST_CASE("negative sizes are refused") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_AS(xla::zeros<float>({2, -3}), xla::shape_error);
  CHECK_THROWS_AS(xla::arange<float>(-1), xla::shape_error);
  const float v[] = {1, 2};
  CHECK_THROWS_AS(xla::from_blob(v, {-2}), xla::shape_error);
}

TEST_CASE("an axis that does not exist has no size") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_AS(numbers<float>({2, 3}).size(2), xla::shape_error);
  CHECK_THROWS_AS(numbers<float>({2, 3}).size(-3), xla::shape_error);
}

TEST_CASE("creation is the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(xla::zeros<float>({x.size(0), 3}), xla::ones_like(x), xla::full_like(x, 2) + x,
                      xla::arange<float>(x.size(1)), xla::arange<std::int64_t>(x.size(0)) * 2,
                      xla::full<float>({2, 2}, 0.5), x * xla::arange<float>(x.size(1)),
                      xla::ones<float>({1, 1}) * 3 + x, x / x.size(0),
                      xla::full<float>({x.size(0), 2}, x.size(0) * x.size(1) + 1));
  };
  check_modes(all, numbers<float>({7, 13}));
  check_modes(all, numbers<float>({1, 1}));
  check_modes(all, numbers<float>({0, 3}));
}
