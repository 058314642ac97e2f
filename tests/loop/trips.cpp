// SPDX-License-Identifier: Apache-2.0
// Numbers of steps are no signatures: a function runs with any of them, has one program, and keeps
// as many plans as it may have signatures. Sizes that are no number of steps are refused as before.
#include <atomic>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/reference.hpp"
#include "support/sanitized.hpp"
#include "xla/compile.hpp"
#include "xla/loop.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/state/metrics.hpp"

using test::numbers;

namespace {

std::int64_t count(const char* counter) { return xla::counter_value(counter).value_or(0); }

/// A recurrence whose results of all steps, and their number, are used after the loop.
constexpr auto recurrence = [](const auto& xs, const auto& w) {
  const auto step = [&](const auto& c, const auto& x) {
    const auto next = tanh(c * w + x);
    return std::pair(next, next * w);
  };
  const auto [last, all] = xla::scan(step, xla::zeros_like(w), xs);
  return sum(last) + sum(all * all) + xs.size(0);
};
constexpr auto with_gradient = [](const auto& xs, auto& w) {
  auto loss = recurrence(xs, w);
  loss.backward();
  return loss;
};
constexpr auto doubled = [](const auto& x, const auto& times) {
  return xla::fori_loop(0, times.size(0), [](const auto&, const auto& c) { return c + c; }, x);
};

}  // namespace

TEST_CASE("ten thousand numbers of steps keep one program, and few plans") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(with_gradient, {.name = "ten_thousand"});
  xla::Parameter<float, 1> w(numbers<float>({3}));
  const auto all = numbers<float>({10000, 3}, 1);
  const auto plans = count("UncachedCompile"), gone = count("EvictedCompile"),
             warnings = count("VaryingSizeWarning");
  constexpr int most = test::sanitized ? 1000 : 10000;
  std::string program;
  const auto rows = [&](int n) { return slice(all, 0, 0, n); };
  for (int n = 0; n < most; ++n) {
    const auto xs = rows(n);
    CHECK(f.memory_analysis(xs, w).arena >= 0);
    if (n % (most / 4) != 1) continue;
    const std::string now = f.graph(xla::Stage::lowered, xs, w);
    CHECK((n == 1 || now == program));
    program = now;
    f(xs, w);
  }
  CHECK(count("UncachedCompile") == plans + most);
  CHECK(count("EvictedCompile") == gone + most - 64);
  CHECK(count("VaryingSizeWarning") == warnings);
  const auto longest = rows(most - 1), shortest = rows(1);
  f(longest, w);
  CHECK(count("UncachedCompile") == plans + most);  // one of those that are there
  f(shortest, w);
  CHECK(count("UncachedCompile") == plans + most + 1);
}

TEST_CASE("a function whose plans come and go has the bits of eager mode") {
  for (const std::int64_t n : {1, 2, 3, 1, 5, 64, 2, 7, 65, 8, 3}) {
    static auto f = xla::compile(with_gradient, {.name = "come_and_go", .max_signatures = 2});
    const auto run = [&](bool compiled) {
      const xla::eager_mode_guard eager;
      xla::Parameter<float, 1> w(numbers<float>({3}));
      const auto xs = numbers<float>({n, 3}, 1);
      auto bits = (compiled ? f(xs, w) : with_gradient(xs, w)).to_vector();
      for (float g : w.grad().to_vector()) bits.push_back(g);
      return bits;
    };
    INFO(n << " steps");
    CHECK(run(true) == run(false));
  }
}

TEST_CASE("memory of a function that has run with many numbers of steps is that of few") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(with_gradient, {.name = "many"});
  xla::Parameter<float, 1> w(numbers<float>({256}));
  constexpr int most = test::sanitized ? 100 : 300;
  const auto all = numbers<float>({most, 256}, 1);
  f(all, w);
  const auto arena = f.memory_analysis(all, w).arena, before = xla::memory_allocated();
  for (int n = 0; n < most; ++n) {
    const auto xs = slice(all, 0, 0, n);
    f(xs, w);
  }
  CHECK(xla::memory_allocated() <= before + 3 * arena);
}

TEST_CASE("other sizes are signatures, whatever the numbers of steps, and each keeps a plan") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(recurrence, {.name = "wide", .max_signatures = 2});
  const auto call = [&](std::int64_t steps, std::int64_t width) {
    const auto plans = count("UncachedCompile");
    f(numbers<float>({steps, width}), numbers<float>({width}));
    return count("UncachedCompile") - plans;
  };
  CHECK(call(1, 3) == 1);
  CHECK(call(1, 4) == 1);
  for (int n = 2; n < 20; ++n) CHECK(call(n, 3) == 1);
  CHECK(call(1, 4) == 0);
  CHECK(call(19, 3) == 0);
  CHECK_THROWS_WITH(call(1, 5), test::contains("max_signatures"));
  CHECK(call(2, 4) == 1);
  CHECK(call(19, 3) == 0);
  CHECK_THROWS_WITH(call(19, 5), test::contains("2 (wide)"));
}

TEST_CASE("a new width takes the place of a number of steps, not of another width") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(recurrence, {.name = "wider", .max_signatures = 3});
  const auto call = [&](std::int64_t steps, std::int64_t width) {
    const auto plans = count("UncachedCompile");
    f(numbers<float>({steps, width}), numbers<float>({width}));
    return count("UncachedCompile") - plans;
  };
  for (int n : {1, 2, 3}) CHECK(call(n, 3) == 1);
  CHECK(call(1, 4) == 1);
  CHECK(call(3, 3) == 0);
  CHECK(call(1, 5) == 1);
  CHECK(call(3, 3) == 0);
  CHECK(call(1, 4) == 0);
  CHECK_THROWS_WITH(call(1, 6), test::contains("max_signatures"));
}

TEST_CASE("numbers of steps come from any size: of fori_loop, of nested loops, in terms") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(doubled, {.max_signatures = 1});
  auto x = xla::ones<float>({2});
  for (int n : {0, 1, 2, 10, 1}) {
    auto times = xla::zeros<float>({n});
    CHECK(f(x, times).to_vector()[1] == static_cast<float>(1 << n));
  }
  const auto sums = [](auto& xs, auto& ys) {  // over each x, but the first, and y next to it
    const auto rest = slice(xs, 0, 1, xs.size(0));
    const auto row = [](const auto& c, const auto& xy) {
      const auto one = [](const auto& s, const auto& v) {
        return std::pair(s + v, std::tuple<>());
      };
      const auto& [x, y] = xy;
      return std::pair(xla::scan(one, c, x).first + y, std::tuple<>());
    };
    return xla::scan(row, xla::zeros_like(sum(ys)), std::tuple(rest, ys)).first;
  };
  auto g = xla::compile(sums, {.max_signatures = 1});
  for (int n = 0; n < 4; ++n)
    for (int m = 0; m < 4; ++m) {
      auto xs = xla::ones<float>({n + 1, m});
      auto ys = xla::ones<float>({n});
      CHECK(g(xs, ys).item() == static_cast<float>(n * m + n));
    }
}

TEST_CASE("threads run with numbers of steps that others' take the place of") {
  auto f = xla::compile(recurrence, {.name = "threads", .max_signatures = 2});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const xla::eager_mode_guard eager;
      for (int n = 0; n < 40; ++n) {
        const auto xs = numbers<float>({(n * (t + 1)) % 7, 3});
        const auto w = numbers<float>({3});
        if (f(xs, w).item() != recurrence(xs, w).item()) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}
