// SPDX-License-Identifier: Apache-2.0
// Several steps in each turn of a loop: the same results; of gradients sums in another order.
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"

using test::numbers;

namespace {

/// Carries and results as trees; whatever number of steps is left over.
template <int Unroll, bool Reverse>
struct steps_in_turns {
  constexpr auto operator()(const auto& w, const auto& xs, const auto& h) const {
    const auto body = [&](const auto& carry, const auto& x) {
      const auto& [c, n] = carry;
      const auto next = tanh(matmul(c, w) + matmul(std::get<0>(x), w));
      return std::pair(std::tuple(next, n + 1), std::array{next * c, std::get<1>(x) - next});
    };
    const auto [last, ys] =
        xla::scan(body, std::tuple(h, xla::tensor<std::int64_t>(0)), std::tuple(xs, xs * 2.0f),
                  {.reverse = Reverse, .unroll = Unroll});
    return std::tuple(last, ys);
  }
};

}  // namespace

TEST_CASE("unrolled loops have the results of loops, and of steps written out") {
  for (std::int64_t steps : {0, 1, 2, 3, 6, 7}) {
    const auto w = numbers<float>({3, 3}), h = numbers<float>({2, 3});
    const auto xs = numbers<float>({steps, 2, 3});
    test::check_modes(steps_in_turns<2, false>(), w, xs, h);
    test::check_modes(steps_in_turns<3, true>(), w, xs, h);
    test::check_modes(steps_in_turns<3, false>(), w, xs, h);
  }
}

TEST_CASE("numbers of unrolled steps") {
  const auto sums = [](const auto& x, const auto& from, const auto& to) {
    const auto body = [](const auto& i, const auto& c) { return c * 0.5f + xla::cast<float>(i); };
    return std::tuple(
        xla::fori_loop(from.size(0), to.size(0), body, x, {.unroll = 3}),
        xla::fori_loop(0, 6, body, x, {.unroll = 3}), xla::fori_loop(2, 9, body, x, {.unroll = 2}));
  };
  for (std::int64_t to : {2, 3, 4, 5, 9})
    test::check_modes(sums, numbers<float>({4}), xla::zeros<float>({2}), xla::zeros<float>({to}));
}

namespace {

template <int Unroll, int Every, bool Reverse>
struct gradients {
  constexpr auto operator()(auto& w, auto& xs, auto& h) const {
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = tanh(matmul(c, w) + x);
      return std::pair(next, next * c);
    };
    const auto [last, ys] = xla::scan(
        body, h, xs, {.reverse = Reverse, .checkpoint_every = Every, .unroll = Unroll});
    const auto loss = sum(last) + sum(ys * ys);
    loss.backward();
    return loss;
  }
};

/// Those of the compiled function are those of steps one by one, to rounding.
template <int Unroll, int Every, bool Reverse>
void check_gradients(std::int64_t steps) {
  const xla::eager_mode_guard eager;
  const gradients<Unroll, Every, Reverse> f;
  const auto all = [&](auto&& run) {
    auto w = test::parameter(numbers<double>({3, 3}));
    auto xs = test::parameter(numbers<double>({steps, 2, 3}));
    auto h = test::parameter(numbers<double>({2, 3}));
    run(w, xs, h);
    return std::tuple(w.grad(), xs.grad(), h.grad());
  };
  const auto [w, xs, h] = all(f);
  const auto [same_w, same_xs, same_h] = all(xla::compile(f));
  test::check_equal(same_w, w, 1e-12);
  test::check_equal(same_xs, xs, 1e-12);
  test::check_equal(same_h, h, 1e-12);
}

}  // namespace

TEST_CASE("gradients of unrolled loops, with checkpoints too") {
  for (std::int64_t steps : {1, 4, 5}) {
    check_gradients<2, 0, false>(steps);
    check_gradients<3, 0, true>(steps);
    check_gradients<2, 3, false>(steps);
    check_gradients<2, 1, true>(steps);
  }
}
