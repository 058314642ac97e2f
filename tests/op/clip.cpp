// SPDX-License-Identifier: Apache-2.0
#include "xla/op/clip.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/check_between.hpp"

using test::check_equal;
using test::map_each;
using test::numbers;

namespace {

template <class T>
T one(T x, T low, T high) {
  if (x != x || low != low || high != high) return static_cast<T>(x + low + high);  // NaN
  const T y = x < low ? low : x;
  return y > high ? high : y;
}

template <class T>
void check_tensors(const auto& x, const auto& low, const auto& high) {
  const auto sizes = test::broadcast(x.sizes(), test::broadcast(low.sizes(), high.sizes()));
  std::vector<T> want;
  for (std::int64_t i = 0; i < test::product(sizes); ++i)
    want.push_back(one(x.data()[test::source_of(i, sizes, x.sizes())],
                       low.data()[test::source_of(i, sizes, low.sizes())],
                       high.data()[test::source_of(i, sizes, high.sizes())]));
  check_equal(clamp(x, low, high), sizes, want);
  check_equal(clip(x, low, high), sizes, want);
}

struct share {
  static constexpr auto name = "share: a part";
  static constexpr auto words = "has to be from 0 to 1";
};

}  // namespace

TEMPLATE_TEST_CASE("clamp moves elements to the nearest bound", "", float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  check_tensors<T>(numbers<T>({7, 13}, 1), numbers<T>({7, 13}, 2), numbers<T>({7, 13}, 3));
  check_tensors<T>(numbers<T>({7, 1}, 1), numbers<T>({13}, 2), numbers<T>({1, 1}, 3));
  check_tensors<T>(numbers<T>({1}, 1), numbers<T>({5, 1}, 2), numbers<T>({3}, 3));
  check_tensors<T>(numbers<T>({0, 2}, 1), numbers<T>({1, 2}, 2), numbers<T>({2}, 3));
  const auto special = xla::tensor(test::special_values<T>());
  for (T low : test::special_values<T>())
    for (T high : test::special_values<T>()) {
      check_tensors<T>(special, xla::tensor(low), xla::tensor(high));
      check_equal(clamp(special, low, high), special.sizes(),
                  map_each<T>(special, [&](T v) { return one(v, low, high); }));
    }
  check_equal(clip(special, 0, 1), clamp(special, 0, 1));
  check_equal(clamp_min(special, 1), special.sizes(),
              map_each<T>(special, [](T v) { return v < 1 ? T(1) : v; }));
  check_equal(clamp_max(special, 1), special.sizes(),
              map_each<T>(special, [](T v) { return v > 1 ? T(1) : v; }));
}

TEST_CASE("clamp is the same in every mode") {
  auto all = [](auto& x, auto& low, auto& high) {
    return std::tuple(clamp(x, low, high), clip(x * 2, -1, 3) + 1, clamp_min(x, 0) * low,
                      clamp_max(clamp(x, high, low), 2));
  };
  test::check_modes(all, numbers<float>({7, 13}, 1), numbers<float>({13}, 2),
                    numbers<float>({7, 13}, 3));
  test::check_modes(all, numbers<double>({17, 33}, 1), numbers<double>({17, 33}, 2),
                    numbers<double>({33}, 3));
  test::check_modes(all, numbers<std::int32_t>({7, 13}, 1), numbers<std::int32_t>({13}, 2),
                    numbers<std::int32_t>({7, 13}, 3));
}

TEST_CASE("gradients of clamp") {
  test::check_gradient(
      [](auto& x, auto& low, auto& high) { return clamp(x, low, high) * 2 + clip(x, -1, 1.5) * x; },
      numbers<double>({3, 5}, 1), numbers<double>({5}, 2), numbers<double>({3, 1}, 3));
}

TEST_CASE("the gradient of clamp passes on the bounds, as PyTorch's") {
  const xla::eager_mode_guard eager;
  auto x = xla::Parameter<double, 1>::like(xla::tensor<double>({-2, -1, 0, 1, 2}));
  x.copy_(xla::tensor<double>({-2, -1, 0, 1, 2}));
  sum(clamp(x, -1, 1)).backward();
  check_equal(x.grad(), {5}, std::vector<double>{0, 1, 1, 1, 0});
  x.zero_grad();
  sum(clamp_min(x, 1) + clamp_max(x, -1) * 2).backward();
  check_equal(x.grad(), {5}, std::vector<double>{2, 2, 0, 1, 1});
}

TEST_CASE("values checked against bounds pass unchanged, with their gradients, in every mode") {
  const auto all = [](auto& x) { return xla::check_between<share>(clamp(x, 0, 1), 0, 1) * x; };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 1}));
  test::check_modes(all, numbers<float>({0, 4}));
  test::check_modes([](auto& x) { return grad(sum(xla::check_between<share>(x * x, 0, 1e9)), x); },
                    test::parameter(numbers<float>({3, 5})));
  test::check_gradient([](auto& x) { return xla::check_between<share>(x * x, 0, 1e9) * x; },
                       numbers<double>({3, 5}));
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(xla::check_between<share>(xla::tensor<float>({0, 1, 1.5}), 0, 1),
                    test::contains("share: a part 1.5 at position 2 has to be from 0 to 1"));
}
