// SPDX-License-Identifier: Apache-2.0
#include "xla/run/trace/checkpoint.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/steps.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/remainder.hpp"
#include "xla/op/tanh.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/state/metrics.hpp"

namespace nn = xla::nn;
using test::mode;
using test::numbers;

namespace {

constexpr int width = 8, layers = 4;

/// A layer with dropout, normalization over the batch (with running statistics) and a residual.
struct Block {
  nn::Linear fc1{width, 4 * width}, fc2{4 * width, width};
  nn::BatchNorm1d norm{width};
  nn::Dropout drop{0.25};
  constexpr xla::Tensor<float, 2> operator()(const xla::Tensor<float, 2>& x) const {
    return x + drop(fc2(tanh(fc1(norm(x)))));
  }
  XLA_MODULE(fc1, fc2, norm, drop)
};

/// How a net's blocks are run: as they are, each checkpointed, or in twos within each of which the
/// blocks are checkpointed again.
enum class keep { all, inputs, nested };

template <keep Keep>
struct Net {
  std::array<Block, layers> blocks;
  nn::Linear head{width, 3};
  constexpr xla::Tensor<float, 2> operator()(const xla::Tensor<float, 2>& x) const {
    auto h = x;
    if constexpr (Keep == keep::nested) {
      for (std::size_t i = 0; i < layers; i += 2)
        h = xla::checkpoint(
            [](const auto& x, const auto& first, const auto& second) {
              return xla::checkpoint(second, xla::checkpoint(first, x) * 1.5) * 1.5;
            },
            h, blocks[i], blocks[i + 1]);
    } else {
      for (const auto& block : blocks) {
        if constexpr (Keep == keep::inputs) h = xla::checkpoint(block, h) * 1.5;
        else h = block(h) * 1.5;
      }
    }
    return head(h);
  }
  XLA_MODULE(blocks, head)
};

template <keep Keep>
struct run_of_net {
  Net<Keep> model;
  xla::optim::SGD<Net<Keep>> optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  xla::Tensor<float, 2> x;
  xla::Tensor<std::int64_t, 1> target;
  explicit run_of_net(std::int64_t n = 6)
      : x(numbers<float>({n, width}, 5)), target(xla::arange<std::int64_t>(n) % 3) {}
};

/// Two steps in a mode: losses, parameters, gradients, running statistics.
template <mode M, keep Keep>
test::snapshot two_steps() {
  xla::manual_seed(3);
  run_of_net<Keep> r;
  xla::sync(true);
  const xla::eager_mode_guard as_told(M == mode::eager);
  test::snapshot s;
  auto go = [&](auto& step) {
    for (int i = 0; i < 2; ++i) {
      auto loss = step(r.model, r.x, r.target, r.optimizer);
      if constexpr (M == mode::traced) xla::sync();
      s.add(loss);
    }
  };
  if constexpr (M == mode::compiled) {
    auto step = xla::compile(test::class_step);
    go(step);
  } else {
    go(test::class_step);
  }
  s.add(r.model);
  return s;
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("checkpointed layers give the same numbers", "", ((keep K), K), keep::inputs,
                       keep::nested) {
  const auto want = two_steps<mode::eager, keep::all>();
  CHECK(two_steps<mode::eager, K>().difference(want) == "");
  CHECK(two_steps<mode::traced, K>().difference(want) == "");
  CHECK(two_steps<mode::compiled, K>().difference(want) == "");
}

TEST_CASE("four checkpointed layers need three fifths of the arena") {
  const xla::eager_mode_guard eager;
  auto arena = []<keep Keep>() {
    run_of_net<Keep> r(256);
    auto step = xla::compile(test::class_step, {.name = "net"});
    const auto m = step.memory_analysis(r.model, r.x, r.target, r.optimizer);
    step(r.model, r.x, r.target, r.optimizer);
    return m;
  };
  const auto all = arena.operator()<keep::all>();
  const auto inputs = arena.operator()<keep::inputs>();
  const auto nested = arena.operator()<keep::nested>();
  CAPTURE(all.arena, inputs.arena, nested.arena);
  CHECK(static_cast<double>(inputs.arena) < static_cast<double>(all.arena) * 0.6);
  CHECK(nested.arena <= inputs.arena);
  CHECK(all.arguments == inputs.arguments);
  CHECK(all.outputs == inputs.outputs);
  CHECK(all.aliased == inputs.aliased);
  // Weights, momentum and gradients are replaced where they are; activations share their memory.
  CHECK(all.aliased > layers * 2 * 2 * 4 * width * width * 4);
  CHECK(all.reused > all.arena / 2);
}

TEST_CASE("the arena of every plan is among the metrics") {
  const xla::eager_mode_guard eager;
  xla::clear_all();
  run_of_net<keep::inputs> r;
  auto step = xla::compile(test::class_step, {.name = "small net"});
  const auto m = step.memory_analysis(r.model, r.x, r.target, r.optimizer);
  CHECK(xla::metric_data("ArenaBytes::small net")->accumulator == static_cast<double>(m.arena));
  step(r.model, r.x, r.target, r.optimizer);
  CHECK(xla::metric_data("ArenaBytes::small net")->total_samples == 1);
  CHECK(xla::counter_value("UncachedCompile") == 1);
  CHECK(xla::metrics_report().find("Metric: ArenaBytes::small net") != std::string::npos);
  const xla::eager_mode_guard traced(false);
  test::class_step(r.model, r.x, r.target, r.optimizer);
  xla::sync(true);
  CHECK(xla::metric_data("ArenaBytes::traced")->accumulator > 0);
}

TEST_CASE("eager and traced steps hold less at once") {
  auto peak = []<keep Keep, bool Eager>() {
    const xla::eager_mode_guard as_told(Eager);
    run_of_net<Keep> r(256);
    auto once = [&] {
      test::class_step(r.model, r.x, r.target, r.optimizer);
      xla::sync(true);
    };
    once();
    once();
    const auto before = xla::memory_allocated();
    xla::reset_peak_memory_stats();
    CHECK(xla::max_memory_allocated() == before);
    once();
    CHECK(xla::memory_allocated() == before);
    return xla::max_memory_allocated() - before;
  };
  const auto eager_all = peak.operator()<keep::all, true>();
  const auto eager_inputs = peak.operator()<keep::inputs, true>();
  CAPTURE(eager_all, eager_inputs);
  CHECK(eager_inputs < eager_all / 2);
  // In traced mode what is not kept is the arena's, which the plan tells.
  auto arena = [&peak]<keep Keep>() {
    xla::clear_all();
    peak.operator()<Keep, false>();
    const auto all = xla::metric_data("ArenaBytes::traced")->samples;
    double most = 0;
    for (const auto& sample : all) most = std::max(most, sample.value);
    return most;
  };
  const double traced_all = arena.operator()<keep::all>();
  const double traced_inputs = arena.operator()<keep::inputs>();
  CAPTURE(traced_all, traced_inputs);
  CHECK(traced_inputs < traced_all * 0.6);
}

TEST_CASE("tensors are counted while they live") {
  const xla::eager_mode_guard eager;
  const auto before = xla::memory_allocated();
  xla::reset_peak_memory_stats();
  {
    const auto x = xla::zeros({1024, 3});
    CHECK(xla::memory_allocated() == before + 1024 * 3 * 4);
    const auto shared = x;
    CHECK(xla::memory_allocated() == before + 1024 * 3 * 4);
  }
  CHECK(xla::memory_allocated() == before);
  CHECK(xla::max_memory_allocated() >= before + 1024 * 3 * 4);
}

namespace {

constexpr auto curved = [](const auto& x, const auto& w) {
  return xla::checkpoint(
      [](const auto& x, const auto& w) {
        const auto h = tanh(matmul(x, w));
        return std::tuple{exp(h * 0.5) * x, sum(h * h, {1})};
      },
      x, w);
};

}  // namespace

TEST_CASE("gradients of checkpointed functions, against differences and twice over") {
  const auto x = numbers<double>({3, 4}, 1), w = numbers<double>({4, 4}, 2);
  test::check_gradient(
      [](const auto& x, const auto& w) {
        const auto [a, b] = curved(x, w);
        return a * xla::unsqueeze(b, 1);
      },
      x, w);
  auto second = [](auto& x, auto& w, bool checkpointed) {
    auto f = [](const auto& x, const auto& w) { return sum(tanh(matmul(x, w)) * x); };
    auto loss = checkpointed ? xla::checkpoint(f, x, w) : f(x, w);
    auto g = xla::grad(loss, x, {.create_graph = true});
    return xla::grad(sum(g * g), w);
  };
  const xla::eager_mode_guard eager;
  auto p = test::parameter(x);
  auto q = test::parameter(w);
  test::check_equal(second(p, q, true), second(p, q, false), 0);
  const xla::eager_mode_guard traced(false);
  test::check_equal(second(p, q, true), second(p, q, false), 0);
}

TEST_CASE("a value that leaves a checkpointed function by another way is a value as any") {
  const xla::eager_mode_guard eager;
  for (const bool traced : {false, true}) {
    const xla::eager_mode_guard as_told(!traced);
    auto w = test::parameter(numbers<float>({4, 4}, 3));
    const auto x = numbers<float>({4, 4}, 4);
    xla::Tensor<float, 2> inner;
    const auto y = xla::checkpoint(
        [&](const auto& x, const auto& w) {
          inner = tanh(matmul(x, w));
          return exp(inner);
        },
        x, w);
    (sum(y) + sum(inner * inner)).backward();
    const auto got = w.grad();
    w.zero_grad();
    const auto h = tanh(matmul(x, w));
    (sum(exp(h)) + sum(h * h)).backward();
    test::check_equal(got, w.grad(), 1e-6);
    test::check_equal(inner, h, 0);
  }
}

TEST_CASE(
    "values detached in a checkpointed function are computed again, wherever backward has been") {
  const xla::eager_mode_guard eager;
  const auto f = [](const auto& w) {
    const auto h = tanh(w);
    const auto d = (h * w).detach();
    return std::pair(xla::Tensor<float, 2>(w * d), xla::Tensor<float, 2>(h * 3));
  };
  const auto nested = [&](const auto& w) { return xla::checkpoint(f, tanh(w)); };
  const auto gradient = [](const auto& g, bool traced, bool synced) {
    const xla::eager_mode_guard as_told(!traced);
    auto w = test::parameter(numbers<float>({4, 4}, 3));
    const auto [a, b] = g(w);
    if (synced) xla::sync();
    (sum(a) + sum(b)).backward();
    return w.grad();
  };
  const auto checkpointed = [](const auto& f) {
    return [&f](auto& w) { return xla::checkpoint(f, w); };
  };
  for (const bool traced : {false, true})
    for (const bool synced : {false, true}) {
      test::check_equal(gradient(checkpointed(f), traced, synced), gradient(f, false, false), 0);
      const auto want = gradient([&](auto& w) { return f(tanh(w)); }, false, false);
      test::check_equal(gradient(checkpointed(nested), traced, synced), want, 0);
    }
}

TEST_CASE("forward and backward of a checkpointed function in different graphs and modes") {
  auto run = [](bool forward_eager, bool sync_between, bool backward_eager, bool checkpointed) {
    xla::manual_seed(11);
    auto w = test::parameter(numbers<float>({6, 6}, 3));
    const auto x = numbers<float>({6, 6}, 4);
    xla::Tensor<float, 0> loss;
    {
      const xla::eager_mode_guard as_told(forward_eager);
      auto f = [](const auto& x, const auto& w) {
        return xla::dropout(tanh(matmul(x, w)), 0.5) * x;
      };
      loss = sum(checkpointed ? xla::checkpoint(f, x, w) : f(x, w));
      if (sync_between) xla::sync();
      w.copy_(w * 2);  // backward is that of the old value
    }
    const xla::eager_mode_guard as_told(backward_eager);
    loss.backward();
    test::snapshot s;
    s.add(w);
    s.add(loss);
    return s;
  };
  const auto want = run(true, false, true, false);
  for (const bool forward : {true, false})
    for (const bool between : {true, false})
      for (const bool backward : {true, false}) {
        INFO(forward << between << backward);
        CHECK(run(forward, between, backward, true).difference(want) == "");
      }
}

TEST_CASE("an exception in a checkpointed function has no effect on later code") {
  const xla::eager_mode_guard eager;
  auto w = test::parameter(numbers<float>({2, 2}, 3));
  const auto before = xla::memory_allocated();
  CHECK_THROWS_AS(xla::checkpoint(
                      [](const auto& w) {
                        const auto h = tanh(w);
                        if (h.dim() == 2) throw std::runtime_error("no");
                        return h;
                      },
                      w),
                  std::runtime_error);
  CHECK(xla::memory_allocated() == before);
  sum(tanh(w)).backward();
  CHECK(w.grad().defined());
}
