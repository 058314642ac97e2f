// SPDX-License-Identifier: Apache-2.0
// What PyTorch/XLA's own tests assert of its modes, by the same counters.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/xla.hpp"

namespace {

std::int64_t count(std::string_view name) { return xla::counter_value(name).value_or(0); }
std::int64_t samples(std::string_view name) {
  const auto m = xla::metric_data(name);
  return m ? m->total_samples : 0;
}
struct fresh {
  xla::eager_mode_guard mode;
  explicit fresh(bool eager) : mode(eager) {
    xla::sync(true);
    xla::clear_all();
  }
};

}  // namespace

TEST_CASE("a compiled function of a compiled function's result: two executions, no eager op") {
  const fresh f(true);
  auto twice = xla::compile([](auto& x) { return tanh(x * 2 + 1); });
  auto x = xla::ones<float>({3, 4});
  xla::sync(true);
  xla::clear_all();
  auto y = twice(x);
  twice(y);
  CHECK(samples("ExecuteTime") == 2);
  CHECK(samples("EagerOpExecuteTime") == 0);
  CHECK(count("UncachedCompile") == 1);
  CHECK(count("CachedCompile") == 1);
}

TEST_CASE("a partial update in place is seen by a later product") {
  const fresh f(false);
  auto t = xla::ones<float>({2, 2});
  const auto before = matmul(t, t);
  t[0][0] = 0;
  const auto after = matmul(t, t);
  xla::sync();
  CHECK(before.to_vector() == std::vector<float>{2, 2, 2, 2});
  CHECK(after.to_vector() == std::vector<float>{1, 1, 1, 2});
  CHECK(count("UncachedCompile") == 1);
}

TEST_CASE("accumulating over micro-steps makes two graphs") {
  const fresh f(false);
  xla::nn::Linear model(3, 2);
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  const auto x = xla::ones<float>({4, 3});
  xla::sync();
  auto step = [&](bool last) {
    sum(model(x)).backward();
    if (last) {
      optimizer.step();
      optimizer.zero_grad();
    }
    xla::sync();
  };
  for (int i = 0; i < 4; ++i) step(i == 3);  // the first finds no gradient to add to
  xla::sync(true);
  xla::clear_all();
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 4; ++i) step(i == 3);
  CHECK(count("UncachedCompile") == 0);
  CHECK(count("CachedCompile") == 12);
}

TEST_CASE("a loop that goes round once more is another graph, and the analysis says so") {
  const fresh f(false);
  const char* const name = "asserted_debug.txt";
  std::remove(name);
  xla::detail::debug_log::instance().set(1, name);
  const auto x = xla::ones<float>({5});
  xla::sync(true);
  xla::clear_all();
  for (const int rounds : {2, 3, 2}) {
    auto y = x * 1.f;
    for (int i = 0; i < rounds; ++i) y = tanh(y);
    xla::sync();
  }
  xla::sync(true);
  xla::detail::debug_log::instance().set(0, "");
  std::stringstream text;
  text << std::ifstream(name).rdbuf();
  std::remove(name);
  CHECK(count("UncachedCompile") == 2);
  CHECK(count("CachedCompile") == 1);
  CHECK_THAT(text.str(), test::contains("What changed: ") && test::contains("tanh"));
}

TEST_CASE("step closures run once, after the step; what they throw comes out of sync") {
  const fresh f(false);
  const auto x = xla::ones<float>({3});
  const auto y = x * 2 + 1;
  int runs = 0;
  xla::add_step_closure([&] {
    ++runs;
    CHECK(samples("ExecuteTime") == 1);
    CHECK(y.to_vector() == std::vector<float>{3, 3, 3});
  });
  CHECK(runs == 0);
  xla::sync();
  CHECK(runs == 1);
  xla::sync();
  CHECK(runs == 1);
  xla::add_step_closure([] { throw std::runtime_error("from the closure"); });
  CHECK_THROWS_WITH(xla::sync(), "from the closure");
  xla::sync();
}

TEST_CASE("running statistics are updated once per step in every mode") {
  auto run = [](auto step, bool eager) {
    const fresh f(eager);
    xla::nn::BatchNorm1d norm(3);
    auto x = xla::ones<float>({4, 3});
    for (int i = 0; i < 3; ++i) {
      step(norm, x);
      if (!eager) xla::sync();
    }
    CHECK(norm.num_batches_tracked.item() == 3);
    return norm.running_mean.to_vector();
  };
  const auto forward = [](auto& norm, auto& x) { return norm(x); };
  const auto want = run(forward, true);
  CHECK(want[0] == Approx(1 - 0.9 * 0.9 * 0.9));
  CHECK(run(forward, false) == want);
  CHECK(run(xla::compile(forward), true) == want);
}
