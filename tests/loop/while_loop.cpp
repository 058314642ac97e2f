// SPDX-License-Identifier: Apache-2.0
#include "xla/loop.hpp"

#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"

using test::numbers;

namespace {

struct pair_of {
  xla::Tensor<float, 1> a, b;
  XLA_MODULE(a, b)
};

}  // namespace

TEST_CASE("while_loop() runs as long as its condition holds, with the same bits in every mode") {
  auto halve = [](auto& x, auto& most) {
    return xla::while_loop([&](const auto& c) { return sum(std::get<0>(c)) > most; },
                           [&](const auto& c) {
                             const auto& [a, n] = c;
                             return std::tuple(a * 0.5f, n + 1);
                           },
                           std::tuple(x, xla::tensor<std::int64_t>(0)));
  };
  for (float most : {1000.0f, 2.5f, 1.25f, 0.7f, 0.001f})
    test::check_modes(halve, xla::ones<float>({5}), xla::tensor<float>(most));
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({4});
  auto most = xla::tensor<float>(1.0f);
  CHECK(std::get<1>(halve(x, most)).item() == 2);
}

TEST_CASE("carries are structs that change places, layers are read by reference") {
  auto turn = [](auto& m, auto& a, auto& b, auto& times) {
    const auto [last, n] = xla::while_loop(
        [&](const auto& c) { return c.second < sum(times); },
        [&](const auto& c) {
          const auto next = tanh(m(unsqueeze(c.first.b, 0)));
          return std::pair(pair_of{xla::reshape(next, {-1}), c.first.a}, c.second + 1);
        },
        std::pair(pair_of{a, b}, xla::tensor<std::int64_t>(0)));
    return std::tuple(last.a, last.b, n);
  };
  for (std::int64_t times : {0, 1, 2, 3, 8})
    test::check_modes(turn, xla::nn::Linear(4, 4), numbers<float>({4}), numbers<float>({4}),
                      xla::tensor<std::int64_t>({times}));
}

TEST_CASE("while_loop() in loops and branches, and these in its body") {
  auto nested = [](auto& w, auto& xs) {
    const auto below = [](float most) {
      return [most](const auto& c) { return sum(c * c) < most; };
    };
    const auto body = [&](const auto& c, const auto& x) {
      const auto grown = xla::while_loop(
          below(40.0f),
          [&](const auto& a) {
            const auto row = [&](const auto& s, const auto& r) { return std::pair(s + r * r, s); };
            const auto more = xla::scan(row, a, xs).first;
            const auto one_more = [](const auto& b) { return b + 1; };
            return xla::cond(
                sum(x) > 0, [&] { return more * 1.5f + 0.25f; },
                [&] { return xla::while_loop(below(30.0f), one_more, more); });
          },
          c + x * 0.125f);
      return std::pair(tanh(grown * w), grown);
    };
    return xla::scan(body, w * 0.5f, xs);
  };
  for (std::int64_t steps : {1, 2, 5})
    test::check_modes(nested, numbers<float>({5}), numbers<float>({steps, 5}) * 0.5f);
}

TEST_CASE("with max_steps while_loop() may draw, and takes the numbers of all steps") {
  auto walk = [](auto& x, auto& far, auto& room) {
    const auto [last, n] = xla::while_loop(
        [&](const auto& c) { return sum(c.first) < far; },
        [](const auto& c) { return std::pair(c.first + xla::rand_like(c.first), c.second + 1); },
        std::pair(x, xla::tensor<std::int64_t>(0)), {.max_steps = room.size(0)});
    return std::tuple(last, n, xla::rand_like(last));
  };
  for (float far : {-1.0f, 2.0f, 6.0f, 1000.0f})
    for (int most : {0, 1, 6})
      test::check_modes(walk, xla::zeros<float>({5}), xla::tensor<float>(far),
                        xla::zeros<float>({most}));
  const xla::eager_mode_guard eager;
  auto x = xla::zeros<float>({5});
  auto far = xla::tensor<float>(1000.0f);
  auto room = xla::zeros<float>({6});
  const auto before = xla::get_rng_state();
  CHECK(std::get<1>(walk(x, far, room)).item() == 6);
  const auto all = xla::get_rng_state().offset - before.offset;
  far = xla::tensor<float>(2.0f);
  CHECK(std::get<1>(walk(x, far, room)).item() < 6);
  CHECK(xla::get_rng_state().offset == before.offset + 2 * all);
  CHECK_THROWS_WITH(xla::while_loop([](const auto& c) { return sum(c) > 0; },
                                    [](const auto& c) { return c; }, x, {.max_steps = -2}),
                    Catch::Contains("max_steps is -2"));
}

TEST_CASE("gradients stop in front of while_loop(), and go past it") {
  auto train = [](auto& w, auto& x) {
    w.zero_grad();
    const auto scale = xla::while_loop([](const auto& s) { return s > 1; },
                                       [](const auto& s) { return s * 0.5f; }, sum(x * w).detach());
    const auto loss = sum(w * x) * scale;
    loss.backward();
    return std::tuple(loss, scale);
  };
  for (std::int64_t n : {1, 5, 17})
    test::check_modes(train, test::parameter(numbers<float>({n})), numbers<float>({n}));
}

TEST_CASE("a gradient of while_loop() is refused when backward() comes to it") {
  for (bool is_eager : {true, false}) {
    const xla::eager_mode_guard eager(is_eager);
    auto w = test::parameter(xla::ones<float>({3}));
    const auto run = [&](float most) {
      return xla::while_loop([&](const auto& c) { return sum(c) > most; },
                             [&](const auto& c) { return c * w * 0.5f; }, w * 2.0f);
    };
    for (float most : {10.0f, 1.0f})
      CHECK_THROWS_WITH(
          sum(run(most)).backward(),
          Catch::StartsWith("xla::while_loop has no gradient") && Catch::Contains("xla::scan"));
    CHECK(sum(run(1.0f)).item() == 0.75f);
  }
}

TEST_CASE("one program of while_loop(), whatever its steps; a carry that changes its shape") {
  auto count = xla::compile([](auto& most) {
    return xla::while_loop([&](const auto& n) { return n < most; },
                           [](const auto& n) { return n + 1; }, xla::zeros_like(most));
  });
  for (std::int64_t n : {0, 1, 2, 100, 1001}) {
    auto most = xla::tensor<std::int64_t>(n);
    CHECK(count(most).item() == n);
  }
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(xla::while_loop([](const auto& c) { return sum(c) > 0; },
                                    [](const auto& c) {
                                      return xla::cat({c, c});
                                    },
                                    xla::ones<float>({2})),
                    Catch::StartsWith("while_loop: a carry of shape (2,) became one of shape"));
}

TEST_CASE("any pass may be left out of a function with while_loop()") {
  auto f = [](auto& x, auto& w) {
    const auto [last, n] = xla::while_loop(
        [](const auto& c) { return (sum(c.first) > 0.25f) && (c.second < 20); },
        [&](const auto& c) {
          return std::pair(xla::softmax(matmul(c.first, w)) * 0.5f * c.first, c.second + 1);
        },
        std::pair(x, xla::tensor<std::int64_t>(0)));
    return std::tuple(last, n);
  };
  const auto x = xla::ones<float>({3, 4}), w = numbers<float>({4, 4});
  using xla::tags::verified;
  using xla::tags::without;
  test::check_modes<verified>(f, x, w);
  test::check_modes<verified & without<"share", "simplify">>(f, x, w);
  test::check_modes<verified & without<"fuse">>(f, x, w);
  test::check_modes<verified & without<"rows", "layouts", "sink_draws", "dead">>(f, x, w);
}
