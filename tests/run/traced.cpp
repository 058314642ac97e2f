// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <future>
#include <sstream>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "xla/xla.hpp"

namespace {

std::int64_t count(const char* name) { return xla::counter_value(name).value_or(0); }
std::int64_t samples(const char* name) {
  const auto m = xla::metric_data(name);
  return m ? m->total_samples : 0;
}

struct fresh {
  xla::eager_mode_guard traced{false};
  fresh() {
    xla::sync(true);
    xla::clear_all();
  }
};

}  // namespace

TEST_CASE("traced ops wait for sync and run as one graph") {
  const fresh f;
  const auto x = xla::tensor<float>({1, 2, 3});
  const auto y = xla::exp(x * 2.f) + x;
  CHECK(samples("ExecuteTime") == 0);
  xla::sync(true);
  CHECK(samples("ExecuteTime") == 1);
  CHECK(count("MarkStep") == 1);
  CHECK(count("UncachedCompile") == 1);
  CHECK(y.to_vector()[0] == Approx(std::exp(2.0) + 1));
  CHECK(samples("ExecuteTime") == 1);
}

TEST_CASE("a second identical step finds the first one's graph") {
  const fresh f;
  auto x = xla::tensor<float>({1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    x += x * 0.5f;
    xla::sync();
  }
  CHECK(count("UncachedCompile") == 1);
  CHECK(count("CachedCompile") == 2);
  CHECK(x.to_vector()[0] == 3.375f);
}

TEST_CASE("a changed number does not make another graph") {
  const fresh f;
  const auto x = xla::tensor<float>({1, 2});
  for (float s : {2.f, 3.f, 2.f, 0.f, 1.f}) {
    const auto y = x * s + s;
    xla::sync();
    CHECK(y.to_vector()[1] == 2 * s + s);
  }
  CHECK(count("UncachedCompile") == 1);
}

TEST_CASE("printing three times executes once") {
  const fresh f;
  const auto y = xla::tensor<float>({1, 2}) + 1.f;
  std::ostringstream out;
  out << y << y << y;
  CHECK(samples("ExecuteTime") == 1);
  CHECK(out.str().find("tensor([2, 3], device='xla:0')") == 0);
}

TEST_CASE("two in-place updates alias, and a value taken before stays") {
  const fresh f;
  auto a = xla::Parameter<float, 1>::like(xla::ones({1000})), b = a;
  a.copy_(xla::full({1000}, 3.f));
  xla::sync(true);
  xla::clear_all();
  const auto* before = a.data();
  a += 1.f;
  b += 2.f;
  xla::sync(true);
  CHECK(xla::metric_data("InputOutputAliasCount")->accumulator == 2);
  CHECK(a.data() == before);
  const auto old = a.detach();
  a *= 10.f;
  xla::sync(true);
  CHECK(old.to_vector()[999] == 4);
  CHECK(a.to_vector()[999] == 40);
  CHECK(b.to_vector()[0] == 2);
}

TEST_CASE("a large graph runs while the program goes on, in order") {
  const fresh f;
  auto x = xla::ones<float>({256, 256});
  for (int i = 0; i < 20; ++i) {
    x = xla::matmul(x, xla::ones<float>({256, 256})) / 256.f;
    xla::sync();
  }
  CHECK(xla::sum(x).item() == 256.f * 256.f);
}

TEST_CASE("values for backward after a sync are kept, and the graph is used once") {
  const fresh f;
  auto w = xla::tensor<float>({1, 2, 3});
  w.requires_grad_();
  const auto loss = xla::sum(xla::exp(w) * w);
  xla::sync();
  loss.backward();
  xla::sync();
  const auto g = w.grad().to_vector();
  for (int i = 0; i < 3; ++i) CHECK(g[i] == Approx(std::exp(i + 1.0) * (i + 2)));
  CHECK_THROWS_AS(loss.backward(), xla::error);
}

TEST_CASE("changing to eager mode in the middle keeps what is pending") {
  const fresh f;
  const auto y = xla::tensor<float>({1, 2}) * 3.f;
  const xla::eager_mode_guard eager;
  CHECK((y + 1.f).to_vector() == std::vector<float>{4, 7});
}

TEST_CASE("step syncs at entry and exit, also when the body throws") {
  const fresh f;
  auto x = xla::tensor<float>({1});
  const auto y = xla::traced_step([&] { return x + 1.f; });
  CHECK(count("MarkStep") == 2);
  CHECK_THROWS_AS(xla::traced_step([&]() -> int {
                    x += 5.f;
                    throw std::runtime_error("stop");
                  }),
                  std::runtime_error);
  CHECK(count("MarkStep") == 4);
  CHECK(y.item() == 2);
  CHECK(x.to_vector()[0] == 6);
}

TEST_CASE("the last short batch is one more graph, not an error") {
  const fresh f;
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  xla::sync(true);
  xla::clear_all();
  for (int start = 0; start < 100; start += 16) {
    test::batch b(std::min(16, 100 - start));
    test::step_fn(model, b.data, b.target, loss_fn, optimizer);
    xla::sync();
  }
  CHECK(count("UncachedCompile") == 2);
  CHECK(count("CachedCompile") == 5);
}

TEST_CASE("an update in place waits for the readers of the old value in the same pass") {
  const xla::eager_mode_guard guard(false);
  for (std::int64_t n : {1, 3, 5000}) {
    xla::Parameter<float, 1> p({n});
    auto old = xla::Buffer<float, 1>::like(p);
    old.copy_(p.detach());
    p.copy_(p.detach() + 1);
    old.copy_(old.detach() * 0.5f + p.detach());
    xla::sync();
    test::check_equal(p, {n}, std::vector<float>(static_cast<std::size_t>(n), 1));
    test::check_equal(old, {n}, std::vector<float>(static_cast<std::size_t>(n), 1));
  }
}

TEST_CASE("regions longer than a tile compute what eager mode does") {
  auto run = [](bool eager, auto number) {
    using T = decltype(number);
    const xla::eager_mode_guard mode(eager);
    auto m = test::numbers<T>({3, 1531}), g = test::numbers<T>({3, 1531}), w = g * T(0.5);
    const auto bias = test::numbers<T>({3, 1});
    if (!eager) xla::sync();
    for (int i = 0; i < 2; ++i) {  // reads w, m and what they were in turn; truth between numbers
      const auto old = m;
      m = m * T(0.9) + g * T(0.1) + bias;
      const auto up = xla::where((m > old) == (w > T(0)), m / (xla::sqrt(w * w) + T(1)), old - w);
      w = xla::where(up > g, w - up * T(0.01), w + up);
      g = xla::exp(up * T(0.1)) - old;
      if (!eager) xla::sync();
    }
    return std::vector{m.to_vector(), w.to_vector(), g.to_vector()};
  };
  CHECK(run(false, 0.f) == run(true, 0.f));
  CHECK(run(false, 0.0) == run(true, 0.0));
}

TEST_CASE("graphs that wait to run take no memory for their values") {
  const fresh f;
  const auto x = test::numbers<float>({256, 256}) * 0.05f;
  auto y = x;
  xla::sync(true);
  xla::reset_peak_memory_stats();
  const std::int64_t before = xla::memory_allocated();
  for (int i = 0; i < 12; ++i) {
    y = xla::matmul(xla::matmul(xla::matmul(y, x), x), x);
    xla::sync();
  }
  xla::sync(true);
  constexpr std::int64_t matrix = 256 * 256 * 4;
  // Two values between the products and, for each graph under way, the new y.
  CHECK(xla::max_memory_allocated() - before <= 6 * matrix + 4096);
  CHECK(std::isfinite(y.to_vector()[0]));
}

TEST_CASE(
    "a value of a failed graph is refused wherever it is read or used, and all else goes on") {
  const fresh f;
  const auto table = xla::tensor<float>({{1, 2}, {3, 4}});
  const auto x = xla::tensor<float>({10, 20});
  xla::Parameter<float, 1> cell = test::parameter(x);
  xla::sync();
  const auto bad = xla::embedding(xla::tensor<std::int64_t>({5}), table);
  const auto victim = x * 2.f;
  cell.copy_(x * 3.f);
  CHECK_THROWS_AS(xla::sync(), xla::index_error);
  const auto refused = test::contains("of embedding was read or used");
  for (int again = 0; again < 2; ++again) {
    CHECK_THROWS_WITH(bad.to_vector(), refused);
    CHECK_THROWS_WITH(x + bad, refused);
    CHECK_THROWS_WITH(xla::sum(bad), refused);
    auto changed = bad;
    CHECK_THROWS_WITH(changed += 1.f, refused);
    CHECK_THROWS_WITH(victim.to_vector(), test::contains("mul"));
    const auto y = table + x;
    CHECK((table * x + y).to_vector() == std::vector<float>{21, 62, 43, 104});
    CHECK(cell.to_vector() == std::vector<float>{10, 20});
    xla::sync();
  }
  cell.copy_(cell + x);
  CHECK(cell.to_vector() == std::vector<float>{20, 40});
}

TEST_CASE("the gradients of a failed graph do not keep their parameters") {
  const fresh f;
  const auto table = xla::tensor<float>({{1, 2}, {3, 4}});
  std::int64_t before = 0;
  for (int round = 0; round < 4; ++round) {
    auto weight = test::parameter(xla::full<float>({1000}, 2));
    xla::sync();
    if (round == 1) before = xla::memory_allocated();
    if (round > 1) CHECK(xla::memory_allocated() == before);
    xla::sum(weight * weight).backward();
    weight.copy_(weight.detach() - weight.grad());
    const auto bad = xla::embedding(xla::tensor<std::int64_t>({5}), table);
    CHECK_THROWS_AS(xla::sync(), xla::index_error);
    CHECK_THROWS_WITH(weight.grad().to_vector(), test::contains("was read or used"));
    CHECK(weight.to_vector() == std::vector<float>(1000, 2));
    if (round > 0) continue;
    weight.zero_grad();
    xla::sum(weight * 3.f).backward();
    CHECK(weight.grad().to_vector() == std::vector<float>(1000, 3));
  }
}

TEST_CASE("the mode is a thread's, and that of the others is set for all") {
  const xla::eager_mode_guard outer(xla::is_eager_mode());
  const auto elsewhere = [] { return std::async(std::launch::async, xla::is_eager_mode).get(); };
  const bool before = elsewhere();
  {
    const xla::eager_mode_guard guard(!before);
    CHECK(xla::is_eager_mode() == !before);
    CHECK(elsewhere() == before);
    xla::eager_mode(!before);
    CHECK(elsewhere() == !before);
    const xla::eager_mode_guard inner(before);
    CHECK(xla::is_eager_mode() == before);
    CHECK(elsewhere() == !before);
  }
  xla::eager_mode(before);
  CHECK(elsewhere() == before);
}

TEST_CASE("threads train models of their own, each with the numbers that it has alone") {
  const fresh f;
  const test::batch b(8);
  const auto train = [&b] {
    const xla::eager_mode_guard traced(false);
    test::Mlp model;
    xla::nn::CrossEntropyLoss loss_fn;
    int k = 0;
    xla::named_parameters(model, [&](const auto&, auto& p) {
      p.copy_(xla::cumsum(p * 0.f + 0.02f, 0) - 0.1f * static_cast<float>(++k % 3));
    });
    xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
    std::vector<float> losses;
    for (int i = 0; i < 6; ++i) {
      const auto loss = test::step_fn(model, b.data, b.target, loss_fn, optimizer);
      if (i % 2) xla::sync();
      losses.push_back(loss.item());
    }
    return losses;
  };
  const auto alone = train();
  std::vector<std::future<std::vector<float>>> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::async(std::launch::async, train));
  for (auto& losses : all) CHECK(losses.get() == alone);
}

TEST_CASE("values pending on another thread are evaluated when they are read or used") {
  const fresh f;
  const auto x = xla::tensor<float>({1, 2, 3});
  std::promise<xla::Tensor<float, 1>> handed;
  std::atomic<bool> done{false};
  std::thread recorder([&] {
    const xla::eager_mode_guard traced(false);
    auto y = x * 2.f;
    handed.set_value(y);
    while (!done) y = xla::relu(y - x) + x * 0.5f;
  });
  auto y = handed.get_future().get();
  for (int i = 0; i < 20; ++i) {
    CHECK((y + x).to_vector() == std::vector<float>{3, 6, 9});
    CHECK(y.to_vector() == std::vector<float>{2, 4, 6});
  }
  done = true;
  recorder.join();

  const auto left = std::async(std::launch::async, [&] {
                      const xla::eager_mode_guard traced(false);
                      return std::pair{xla::exp(x), x - 1.f};
                    }).get();
  const auto mine = left.second * 3.f;
  xla::sync(true);
  CHECK(mine.to_vector() == std::vector<float>{0, 3, 6});
  CHECK(left.first.to_vector()[0] == Approx(std::exp(1.0)));
}

TEST_CASE("beyond a limit of bytes the graph that was used longest ago is evicted") {
  const fresh f;
  const auto step = [](std::int64_t n) {
    const auto made = count("UncachedCompile");
    const auto x = xla::full<float>({n}, 3.f);
    const auto y = x * 2.f + 1.f;
    xla::sync(true);
    CHECK(y.to_vector() == std::vector<float>(static_cast<std::size_t>(n), 7.f));
    return count("UncachedCompile") > made;
  };
  // Three graphs fit, and hardly more; sizes are those of no other test.
  std::int64_t first = 1000, bytes = 512;
  const auto fit = [&] {
    xla::set_compilation_cache_limit(bytes);
    for (const std::int64_t n : {0, 1, 2}) step(first + n);
    return !step(first) && !step(first + 1) && !step(first + 2);
  };
  for (; !fit(); bytes += bytes / 8) first += 10;
  const auto before = count("EvictedCompile");
  CHECK_FALSE(step(first));
  for (std::int64_t n = first + 3; count("EvictedCompile") == before; ++n) CHECK(step(n));
  CHECK_FALSE(step(first));
  CHECK_FALSE(step(first + 2));
  CHECK(step(first + 1));
  xla::set_compilation_cache_limit(std::int64_t{256} << 20);
}

TEST_CASE("graphs that are evicted before they run give their results") {
  const fresh f;
  xla::set_compilation_cache_limit(1);
  std::vector<xla::Tensor<float, 1>> all;
  for (std::int64_t n = 0; n < 40; ++n) {
    all.push_back(xla::ones<float>({90000 + n}) * 2.f + 1.f);
    xla::sync();
  }
  CHECK(count("UncachedCompile") == 40);
  CHECK(count("EvictedCompile") >= 39);
  for (const auto& y : all)
    CHECK(y.to_vector() == std::vector<float>(static_cast<std::size_t>(y.numel()), 3.f));
  xla::set_compilation_cache_limit(std::int64_t{256} << 20);
}
