// SPDX-License-Identifier: Apache-2.0
// What the backward pass of a loop keeps, by the plan and by what is allocated.
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/trace/checkpoint.hpp"

using test::numbers;

namespace {

struct none {
  template <class Steps>
  constexpr xla::Size operator()(const Steps&) const {
    return 0;
  }
};
template <int K>
struct every {
  template <class Steps>
  constexpr xla::Size operator()(const Steps&) const {
    return K;
  }
};
struct every_width {  // known at run time only
  template <class Steps>
  constexpr xla::Size operator()(const Steps& steps) const {
    return steps.size(1);
  }
};

/// A recurrence of as many steps as there are rows of `steps`, with a policy, and its gradient. Of
/// a product, all steps' gradients are kept for that of w, where there are no checkpoints.
template <class Every, bool Product = false>
struct recurrence {
  constexpr auto operator()(auto& w, auto& h, const auto& steps) const {
    w.zero_grad();
    h.zero_grad();
    const auto body = [&](const auto& c, const auto&) {
      if constexpr (Product) return std::pair(tanh(matmul(c, w)), std::tuple<>());
      else return std::pair(tanh(c * w), std::tuple<>());
    };
    const auto last =
        xla::scan(body, h, std::tuple<>(),
                  {.length = steps.size(0), .checkpoint_every = Every()(steps)})
            .first;
    const auto loss = sum(last * 0.5f);
    loss.backward();
    return std::tuple(loss, w.grad(), h.grad());
  }
};

constexpr std::int64_t width = 32, carry_bytes = 4 * width * width;

struct use {
  double planned = 0, allocated = 0;  // in carries
};
/// What a call takes besides arguments and results.
template <class F>
use memory_of(const F& f, std::int64_t steps, std::int64_t every = 1) {
  auto w = test::parameter(numbers<float>({width, width}) * 0.1f);
  auto h = test::parameter(numbers<float>({width, width}));
  const auto rows = xla::zeros<float>({steps, every});
  auto compiled = xla::compile(f);
  const auto planned = compiled.memory_analysis(w, h, rows).arena;
  compiled(w, h, rows);  // the gradients are there, and all that is made once
  xla::empty_cache();
  xla::reset_peak_memory_stats();
  const std::int64_t before = xla::memory_allocated();
  compiled(w, h, rows);
  const auto in_carries = [](std::int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(carry_bytes);
  };
  return {in_carries(planned), in_carries(xla::max_memory_allocated() - before)};
}

}  // namespace

TEST_CASE("a carry that rules read before and after a step is kept once") {
  const use kept = memory_of(recurrence<none>(), 1000);
  CHECK(kept.planned > 1000);
  CHECK(kept.planned < 1.05 * 1000);
}

TEST_CASE("with checkpoints memory grows with the root of the number of steps") {
  // 100 carries before blocks, and those of the 100 steps of a block.
  const use most = memory_of(recurrence<every<100>, true>(), 10000);
  INFO(most.planned << " planned, " << most.allocated << " allocated");
  CHECK(most.planned > 200);
  CHECK(most.planned < 1.3 * 200);
  CHECK(most.allocated < 1.3 * 200);
  const use at_run_time = memory_of(recurrence<every_width, true>(), 10000, 100);
  CHECK(at_run_time.planned < 1.3 * 200);
}

TEST_CASE("a backward() outside keeps what the policy of the loop says") {
  const auto loss_of = []<int Every>(std::integral_constant<int, Every>) {
    return [](const auto& w, const auto& h, const auto& steps) {
      const auto body = [&](const auto& c, const auto&) {
        const auto next = tanh(c * w);
        return std::pair(next, std::tuple<>());
      };
      const auto carried = xla::scan(body, h, std::tuple<>(),
                                     {.length = steps.size(0), .checkpoint_every = Every});
      return sum(carried.first * 0.5f);
    };
  };
  const xla::eager_mode_guard eager;
  std::vector<float> bits[2];
  const auto most = [&](auto& f, std::int64_t steps, std::vector<float>& gradients) {
    auto w = test::parameter(numbers<float>({width, width}) * 0.1f);
    auto h = test::parameter(numbers<float>({width, width}));
    const auto rows = xla::zeros<float>({steps, 1});
    double taken = 0;
    for (int call = 0; call < 2; ++call) {  // the first one makes what is made once
      w.zero_grad();
      h.zero_grad();
      const auto loss = f(w, h, rows);
      xla::empty_cache();
      xla::reset_peak_memory_stats();
      const std::int64_t before = xla::memory_allocated();
      loss.backward();
      taken = static_cast<double>(xla::max_memory_allocated() - before);
    }
    gradients = w.grad().to_vector();
    for (float g : h.grad().to_vector()) gradients.push_back(g);
    return taken / static_cast<double>(carry_bytes);
  };
  // 50 carries before blocks, and those of the 50 steps of a block.
  auto all = xla::compile(loss_of(std::integral_constant<int, 0>()));
  auto some = xla::compile(loss_of(std::integral_constant<int, 50>()));
  const double with_all = most(all, 2500, bits[0]), with_some = most(some, 2500, bits[1]);
  INFO(with_all << " carries, with checkpoints " << with_some);
  CHECK(with_all > 2500);
  CHECK(with_all < 1.05 * 2500);
  CHECK(with_some > 100);
  CHECK(with_some < 1.3 * 100);
  CHECK(bits[0] == bits[1]);
}

TEST_CASE("checkpoints in a loop change no bit, whatever is left for the last block") {
  const auto w = test::parameter(numbers<float>({5, 5}));
  const auto h = test::parameter(numbers<float>({5, 5}));
  for (std::int64_t steps : {1, 3, 6, 7}) {
    const auto rows = xla::zeros<float>({steps, 3});
    test::check_modes(recurrence<every<1>>(), w, h, rows);
    test::check_modes(recurrence<every<3>>(), w, h, rows);
    test::check_modes(recurrence<every_width>(), w, h, rows);
    test::check_modes(recurrence<every<3>, true>(), w, h, rows);
  }
}

TEST_CASE("a checkpoint in the body keeps carries alone") {
  const auto deep = []<bool Checkpoint>(std::bool_constant<Checkpoint>) {
    return [](auto& w, auto& h, const auto& steps) {
      const auto layers = [&](const auto& c) {
        auto x = c;
        for (int i = 0; i < 4; ++i) x = tanh(matmul(x, w)) * x;
        return x;
      };
      const auto body = [&](const auto&, const auto& c) {
        if constexpr (Checkpoint) return xla::checkpoint(layers, c);
        else return layers(c);
      };
      const auto loss = sum(xla::fori_loop(0, steps.size(0), body, h));
      loss.backward();
      return loss;
    };
  };
  const use without = memory_of(deep(std::false_type()), 200);
  const use with = memory_of(deep(std::true_type()), 200);
  CHECK(without.planned > 7 * 200);
  CHECK(with.planned < 1.2 * 200);
}

TEST_CASE("branches, loops and checkpoints in a body that runs again") {
  const auto train = []<int Every>(std::integral_constant<int, Every>) {
    return [](auto& w, auto& h, auto& xs) {
      w.zero_grad();
      h.zero_grad();
      xs.zero_grad();
      const auto body = [&](const auto& c, const auto& x) {
        const auto turned = transpose(c, 0, 1);
        const auto bend = [&](const auto& a) { return tanh(a * w); };
        const auto branch = xla::cond(
            sum(x) > 0.0f, [&] { return xla::checkpoint(bend, turned); },
            [&] { return turned * x; });
        const auto mix = [&](const auto& i, const auto& a) {
          return tanh(a * w + turned * xla::cast<float>(i));
        };
        const auto inner = xla::fori_loop(0, 3, mix, branch, {.checkpoint_every = 2});
        return std::pair(inner * x, branch);
      };
      const auto [last, ys] = xla::scan(body, h, xs, {.checkpoint_every = Every});
      const auto loss = sum(last) + sum(ys * ys);
      loss.backward();
      return std::tuple(loss, w.grad(), h.grad(), xs.grad());
    };
  };
  const auto w = test::parameter(numbers<float>({3, 3}));
  const auto h = test::parameter(numbers<float>({3, 3}));
  for (std::int64_t steps : {1, 4, 5}) {
    const auto xs = test::parameter(numbers<float>({steps, 3, 3}));
    test::check_modes(train(std::integral_constant<int, 0>()), w, h, xs);
    test::check_modes(train(std::integral_constant<int, 1>()), w, h, xs);
    test::check_modes(train(std::integral_constant<int, 2>()), w, h, xs);
  }
}
