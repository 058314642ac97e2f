// SPDX-License-Identifier: Apache-2.0
#include "xla/op/permute.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

template <class T>
std::vector<T> permuted(const T* x, const test::sizes_t& s, const std::vector<int>& order) {
  test::sizes_t to, stride(s.size(), 1);
  for (int o : order) to.push_back(s[static_cast<std::size_t>(o)]);
  for (std::size_t i = s.size() - 1; i-- > 0;) stride[i] = stride[i + 1] * s[i + 1];
  std::vector<T> out;
  for (std::int64_t i = 0; i < test::product(to); ++i) {
    std::int64_t rest = i, at = 0;
    for (std::size_t k = to.size(); k-- > 0;) {
      at += rest % to[k] * stride[static_cast<std::size_t>(order[k])];
      rest /= to[k];
    }
    out.push_back(x[at]);
  }
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("transpose and permute", "", float, double, std::int64_t, std::uint8_t, bool) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (auto [r, c] : {std::pair{7, 13}, {1, 1}, {33, 1}, {1, 17}, {100, 33}, {0, 3}}) {
    const auto x = numbers<T>({r, c});
    check_equal(transpose(x), {c, r}, permuted(x.data(), {r, c}, {1, 0}));
  }
  const auto x = numbers<T>({2, 3, 5, 7});
  const test::sizes_t s = x.sizes();
  check_equal(transpose(x), {2, 3, 7, 5}, permuted(x.data(), s, {0, 1, 3, 2}));
  check_equal(transpose(x, 0, 2), {5, 3, 2, 7}, permuted(x.data(), s, {2, 1, 0, 3}));
  check_equal(transpose(x, 1, -1), {2, 7, 5, 3}, permuted(x.data(), s, {0, 3, 2, 1}));
  check_equal(permute(x, {3, 0, 2, 1}), {7, 2, 5, 3}, permuted(x.data(), s, {3, 0, 2, 1}));
  check_equal(permute(x, {-2, 0, -1, 1}), {5, 2, 7, 3}, permuted(x.data(), s, {2, 0, 3, 1}));
  check_equal(permute(x, {0, 1, 2, 3}), x);
  check_equal(swapaxes(x, 0, 2), transpose(x, 0, 2));
  check_equal(movedim(x, 0, 2), permute(x, {1, 2, 0, 3}));
  check_equal(movedim(x, -1, 1), permute(x, {0, 3, 1, 2}));
  check_equal(movedim(x, 2, 2), x);
  // Images whose channels become innermost, and back: squares of vectors, and what is left of them.
  for (auto [n, c, h, w] :
       {std::array{3, 70, 5, 17}, {1, 32, 8, 8}, {2, 3, 11, 9}, {2, 64, 1, 7}}) {
    const auto image = numbers<T>({n, c, h, w});
    check_equal(permute(image, {0, 2, 3, 1}), {n, h, w, c},
                permuted(image.data(), image.sizes(), {0, 2, 3, 1}));
    check_equal(permute(image, {0, 3, 1, 2}), {n, w, c, h},
                permuted(image.data(), image.sizes(), {0, 3, 1, 2}));
    check_equal(permute(image, {2, 3, 0, 1}), {h, w, n, c},
                permuted(image.data(), image.sizes(), {2, 3, 0, 1}));
  }
}

TEST_CASE("permute refuses axes that do not exist or are repeated") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3});
  CHECK_THROWS_AS(permute(x, {0, 0}), xla::shape_error);
  CHECK_THROWS_AS(permute(x, {0, 2}), xla::shape_error);
  CHECK_THROWS_AS(transpose(x, 0, 2), xla::shape_error);
  CHECK_THROWS_AS(movedim(x, 0, 2), xla::shape_error);
}

TEST_CASE("permute is the same in every mode") {
  auto all = [](auto& x) {
    return std::tuple(transpose(x), permute(x, {2, 0, 1}) + 1, transpose(transpose(x * 2)),
                      permute(permute(x, {1, 2, 0}), {2, 0, 1}) - x);
  };
  check_modes(all, numbers<float>({3, 7, 13}));
  check_modes(all, numbers<std::int32_t>({1, 5, 1}));
}

TEST_CASE("the gradient of permute") {
  test::check_gradient(
      [](auto& x) {
        const auto y = permute(x, {2, 0, 1});
        return y * y;
      },
      numbers<double>({2, 3, 4}));
}
