// SPDX-License-Identifier: Apache-2.0
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"

using test::numbers;

TEST_CASE("one branch runs, in every mode") {
  auto choose = [](auto& p, auto& x, auto& w) {
    const auto around = x * 2.0f;
    return xla::cond(
        sum(p) > 0, [&](const auto& a) { return matmul(a, w) + around; },
        [&](const auto& a) { return tanh(a) - w; }, x);
  };
  for (float p : {-1.0f, 1.0f})
    test::check_modes(choose, xla::full<float>({2}, p), numbers<float>({3, 3}),
                      numbers<float>({3, 3}));
}

TEST_CASE("a branch has gradients") {
  auto train = [](auto& p, auto& x, auto& w) {
    x.zero_grad();
    w.zero_grad();
    const auto around = x * 2.0f;
    const auto y = xla::cond(
        sum(p) > 0, [&](const auto& a) { return matmul(a, w) + around * w; },
        [&](const auto& a) { return tanh(a) - w * around; }, x);
    const auto loss = sum(y * w);
    loss.backward();
    return loss;
  };
  for (float p : {-1.0f, 1.0f})
    test::check_modes(train, xla::full<float>({2}, p), test::parameter(numbers<float>({3, 3})),
                      test::parameter(numbers<float>({3, 3})));
}

TEST_CASE("as long as a condition holds") {
  auto halve = [](auto& x, auto& most) {
    return xla::while_loop([&](const auto& c) { return sum(std::get<0>(c)) > most; },
                           [&](const auto& c) {
                             const auto& [a, n] = c;
                             return std::tuple(a * 0.5f, n + 1);
                           },
                           std::tuple(x, xla::tensor<std::int64_t>(0)));
  };
  for (float most : {1000.0f, 2.5f, 1.25f, 0.1f})
    test::check_modes(halve, xla::ones<float>({5}), xla::tensor<float>(most));
}
