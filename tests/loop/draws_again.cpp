// SPDX-License-Identifier: Apache-2.0
// A body that draws random numbers, whose steps run again for their gradients: with
// checkpoint_every, with checkpoint() in it, or with a loop in it that draws. What was drawn is
// kept.
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/op/create.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/trace/checkpoint.hpp"

using test::numbers;

namespace {

enum class body { plain, checkpointed, nested };

/// Every: the steps of a block that run again together, or 0.
template <body Body, int Every>
struct noisy {
  constexpr auto operator()(auto& w, const auto& xs) const {
    w.zero_grad();
    const auto noise = [&](const auto& c, const auto& x) {
      return tanh(c * w + x) * (xla::rand_like(c) + 0.5f);
    };
    const auto step = [&](const auto& c, const auto& x) {
      if constexpr (Body == body::checkpointed) {
        const auto next = xla::checkpoint(noise, c, x);
        return std::pair(next, next * 2.0f);
      } else if constexpr (Body == body::nested) {
        const auto inner = [&](const auto&, const auto& s) {
          const auto next = noise(s, x);
          return next * xla::rand_like(next);
        };
        const auto next = xla::fori_loop(0, 3, inner, c * xla::rand_like(c));
        return std::pair(next, next * 2.0f);
      } else {
        const auto next = noise(c, x);
        return std::pair(next, next * 2.0f);
      }
    };
    const auto [last, ys] = xla::scan(step, w * 1.0f, xs, {.checkpoint_every = Every});
    const auto loss = sum(last * last) + sum(ys * xla::rand_like(ys));
    loss.backward();
    return std::tuple(loss, w.grad(), xla::rand_like(w));
  }
};

auto start() { return test::parameter(numbers<float>({5}, 1)); }

/// All modes give the same, and the same as where nothing runs again.
template <body Body, int Every>
void check() {
  for (std::int64_t steps : {0, 1, 7}) {
    INFO(steps << " steps, " << Every << " at a time");
    const auto xs = numbers<float>({steps, 5}, 2);
    test::check_modes<xla::tags::verified>(noisy<Body, Every>{}, start(), xs);
    const auto run = [&](auto f) {
      xla::manual_seed(5);
      auto w = start();
      const auto [loss, gradient, next] = xla::compile(f)(w, xs);
      return std::tuple(loss.item(), gradient.to_vector(), next.to_vector());
    };
    constexpr body without = Body == body::checkpointed ? body::plain : Body;
    CHECK((run(noisy<Body, Every>{}) == run(noisy<without, 0>{})));
  }
}

}  // namespace

TEST_CASE("steps that run again have the numbers that they drew") {
  check<body::plain, 1>();
  check<body::plain, 3>();
  check<body::checkpointed, 0>();
}

TEST_CASE("so do those of a loop in them") { check<body::nested, 2>(); }
