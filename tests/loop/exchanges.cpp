// SPDX-License-Identifier: Apache-2.0
// Replicas exchange in the steps of a loop.
#include <tuple>
#include <utility>

#include "support/replicas.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"

using test::numbers;

namespace {

constexpr auto reduced_steps = [](auto& w, auto& xs) {
  const auto step = [&](const auto& seen, const auto& x) {
    w.zero_grad();
    auto loss = xla::mean(xla::square(xla::tanh(xla::matmul(x, w)) - 0.5f));
    loss.backward();
    w.copy_(w.detach() - all_reduce(w.grad(), xla::reduce_type::mean) * 0.1f);
    return std::pair(seen + all_reduce(loss.detach()), loss.detach());
  };
  return xla::scan(step, xla::sum(xs) * 0.0f, xs);
};

}  // namespace

TEST_CASE("training steps of replicas in one call") {
  for (int replicas : {1, 2, 3})
    for (std::int64_t steps : {1, 4}) {
      const auto made = test::check_replicas(replicas, reduced_steps, [&](int i) {
        return std::tuple(test::parameter(numbers<float>({8, 3})),
                          numbers<float>({steps, 5, 8}) * static_cast<float>(i + 1));
      });
      CHECK(made.size() == static_cast<std::size_t>(replicas));
    }
}

TEST_CASE("sums over replicas have gradients through a loop") {
  constexpr auto summed = [](auto& w, auto& xs) {
    w.zero_grad();
    const auto step = [&](const auto& c, const auto& x) {
      const auto next = xla::tanh(all_reduce(c * w) + x);
      return std::pair(next, next * 2.0f);
    };
    const auto [last, ys] = xla::scan(step, w * 2.0f, xs);
    (sum(last) + sum(ys)).backward();
    return std::tuple(last, w.grad());
  };
  test::check_replicas(2, summed, [](int i) {
    return std::tuple(test::parameter(numbers<float>({4})),
                      numbers<float>({3, 4}) * static_cast<float>(i + 1));
  });
}

TEST_CASE("replicas that take other numbers of steps say so") {
  constexpr auto sums = [](auto& x, auto& xs) {
    const auto step = [&](const auto&, const auto& c) { return all_reduce(c) * 0.5f; };
    return xla::fori_loop(0, xs.size(0), step, x);
  };
  auto compiled = xla::compile(sums);
  CHECK_THROWS_WITH(test::replicate(2,
                                    [&](int i) {
                                      auto x = numbers<float>({3});
                                      auto xs = numbers<float>({2 + i, 1});
                                      compiled(x, xs);
                                    }),
                    Catch::Contains("has other sizes or element types than replica"));
}
