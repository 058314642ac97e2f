// SPDX-License-Identifier: Apache-2.0
// Where values are: never over one that lives, in little memory, in gradients' memory if possible.
#include <random>

#include "catch.hpp"
#include "support/modes.hpp"
#include "support/steps.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/plan/memory_plan.hpp"
#include "xla/xla.hpp"

namespace {

using xla::detail::arena_planner;

struct life {
  std::int64_t bytes;
  int first, last;
};

struct block {
  std::int64_t bytes;
  int first, last;
};

/// The most bytes that live at once.
std::int64_t peak(const std::vector<life>& lives, int steps) {
  std::int64_t most = 0;
  for (int i = 0; i < steps; ++i) {
    std::int64_t now = 0;
    for (const life& x : lives) now += x.first <= i && i <= x.last ? x.bytes : 0;
    most = std::max(most, now);
  }
  return most;
}

arena_planner planned(const std::vector<life>& lives, const std::vector<block>& donated) {
  arena_planner p;
  for (const block& b : donated) p.donate(b.bytes, b.first, b.last);
  for (const life& x : lives) p.add(x.bytes, x.first, x.last);
  p.run();
  return p;
}

/// A network whose every layer keeps something for backward; the activation of a row reads and
/// writes the same shape.
struct net {
  xla::nn::LinearNoBias a{24, 24}, b{24, 24}, c{24, 24};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    const auto h = xla::silu(a(x));
    return xla::softmax(c(xla::gelu(b(h)) + h));
  }
  XLA_MODULE(a, b, c)
};

constexpr auto train = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mean(xla::square(model(x) - 0.25f));
  loss.backward();
  optimizer.step();
  return loss;
};

/// Has to read the gradients of before: their memory is not free.
constexpr auto add_gradients = [](auto& model, auto& x) {
  auto loss = xla::mean(xla::square(model(x) - 0.25f));
  loss.backward();
  return loss;
};

}  // namespace

TEST_CASE("values that live at the same time never share bytes") {
  std::mt19937 random(1);
  auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    constexpr int steps = 30;
    std::vector<life> lives;
    std::vector<block> donated;
    for (int i = up_to(60); i >= 0; --i) {
      const int first = up_to(steps);
      lives.push_back({64 * (1 + up_to(40)) - up_to(64), first, first + up_to(steps - first)});
    }
    for (int i = up_to(4); i > 0; --i) {
      const int first = up_to(steps);
      donated.push_back({64 * up_to(60) + up_to(64), first, first + up_to(steps - first)});
    }
    const arena_planner p = planned(lives, donated);
    CAPTURE(round);
    for (std::size_t i = 0; i < lives.size(); ++i) {
      const life& x = lives[i];
      const auto at = p.where(static_cast<int>(i));
      REQUIRE(at.offset % arena_planner::alignment == 0);
      if (at.block == arena_planner::own) {
        REQUIRE(at.offset + x.bytes <= p.size());
      } else {
        const block& b = donated[static_cast<std::size_t>(at.block)];
        REQUIRE(at.offset + x.bytes <= b.bytes);
        REQUIRE((b.first <= x.first && x.last <= b.last));
      }
      for (std::size_t k = 0; k < i; ++k) {
        const life& y = lives[k];
        const auto other = p.where(static_cast<int>(k));
        if (other.block != at.block || x.last < y.first || y.last < x.first) continue;
        REQUIRE((at.offset + x.bytes <= other.offset || other.offset + y.bytes <= at.offset));
      }
    }
  }
}

TEST_CASE("an arena is little larger than what lives at once") {
  std::mt19937 random(2);
  double ratio = 0;
  constexpr int rounds = 50;
  for (int round = 0; round < rounds; ++round) {
    std::vector<life> lives;
    for (int i = 0; i < 100; ++i) {
      const int first = static_cast<int>(random() % 100u);
      const int more = static_cast<int>(random() % 20u);
      lives.push_back({64 * (1 + static_cast<std::int64_t>(random() % 30u)), first, first + more});
    }
    const auto size = planned(lives, {}).size();
    REQUIRE(size >= peak(lives, 120));
    ratio += static_cast<double>(size) / static_cast<double>(peak(lives, 120)) / rounds;
  }
  CHECK(ratio < 1.1);
}

TEST_CASE("values that fit into donated memory need no arena") {
  const auto p = planned({{640, 0, 3}, {640, 4, 6}, {64, 2, 9}}, {{640, 0, 7}, {100, 1, 9}});
  CHECK(p.size() == 0);
  CHECK(p.total() == 2 * 640 + 64);
  CHECK(planned({{640, 0, 8}}, {{640, 0, 7}}).size() == 640);
  CHECK(planned({{640, 0, 7}}, {{639, 0, 7}}).size() == 640);
}

TEST_CASE("a step's values are in the memory of gradients, and old gradients stay as they were") {
  const xla::eager_mode_guard eager;
  net model;
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  const auto x = test::numbers<float>({16, 24});
  auto step = xla::compile(train, {.name = "lending"});
  const auto m = step.memory_analysis(model, x, optimizer);
  const auto adding = xla::compile(add_gradients).memory_analysis(model, x);
  CHECK(m.arena + 24 * 24 * 4 < adding.arena);
  step(model, x, optimizer);
  const auto held = model.a.weight.grad();
  const auto before = held.to_vector();
  step(model, x, optimizer);
  CHECK(held.to_vector() == before);
  CHECK(model.a.weight.grad().to_vector() != before);
}

TEST_CASE("values are in the memory of a result that is not written yet") {
  const xla::eager_mode_guard eager;
  const auto x = test::numbers<float>({48, 48});
  auto chain = xla::compile([](auto& x) {
    return xla::matmul(xla::matmul(xla::matmul(x, x), xla::matmul(x, x) + x), x);
  });
  constexpr std::int64_t matrix = 48 * 48 * 4;
  const auto m = chain.memory_analysis(x);
  CHECK(m.arena + m.reused >= 3 * matrix);
  CHECK(m.arena <= 2 * matrix);
  CHECK(chain(x).to_vector() ==
        xla::matmul(xla::matmul(xla::matmul(x, x), xla::matmul(x, x) + x), x).to_vector());
}

TEST_CASE("steps are the same in every mode where memory is shared") {
  const xla::eager_mode_guard eager;
  auto run = [](auto&& step, bool traced) {
    xla::manual_seed(3);
    net model;
    xla::optim::AdamW optimizer{model, {.lr = 0.01}};
    const auto x = test::numbers<float>({16, 24});
    std::vector<float> numbers;
    for (int i = 0; i < 4; ++i) {
      const xla::eager_mode_guard mode(!traced);
      auto loss = step(model, x, optimizer);
      if (traced) xla::sync();
      numbers.push_back(loss.item());
      for (float v : model.b.weight.grad().to_vector()) numbers.push_back(v);
    }
    return numbers;
  };
  const auto want = run(train, false);
  CHECK(run(train, true) == want);
  CHECK(run(xla::compile(train), false) == want);
}

TEST_CASE("a class out of range leaves the gradients of before") {
  const xla::eager_mode_guard eager;
  net model;
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  const auto x = test::numbers<float>({4, 24});
  auto step = xla::compile(test::class_step);
  const auto good = xla::tensor<std::int64_t>({0, 1, 2, 23});
  const auto bad = xla::tensor<std::int64_t>({0, 1, 2, 24});
  step(model, x, good, optimizer);
  const auto before = model.c.weight.grad().to_vector();
  CHECK_THROWS_AS(step(model, x, bad, optimizer), xla::index_error);
  CHECK(model.c.weight.grad().to_vector() == before);
}

TEST_CASE("values without number are placed in steps that follow their number") {
  const auto lives = [](int n) {
    std::mt19937 random(3);
    std::vector<life> all;
    for (int i = 0; i < n; ++i) {
      const int length = i % 50 == 0 ? n / 10 : static_cast<int>(random() % 4);
      all.push_back({64 << random() % 6, i, std::min(i + length, n)});
    }
    return all;
  };
  constexpr int many = 100'000;
  const auto few = planned(lives(many / 4), {}), all = planned(lives(many), {});
  CHECK(all.steps() < 2 * arena_planner::max_steps);
  CHECK(all.steps() - few.steps() < 40 * many);
  const auto placed = lives(many);
  CHECK(all.size() < 2 * peak({placed.begin(), placed.begin() + 6000}, 6000) * 4);

  // Never two in one place at one time: of each address, who is there from then on.
  std::vector<std::vector<int>> starts(many + 1);
  for (int i = 0; i < many; ++i)
    starts[static_cast<std::size_t>(placed[static_cast<std::size_t>(i)].first)].push_back(i);
  std::vector<int> until(static_cast<std::size_t>(all.size() / 64), -1);
  int overlaps = 0;
  for (const auto& now : starts)
    for (const int i : now) {
      const life& x = placed[static_cast<std::size_t>(i)];
      const auto& spot = all.where(i);
      REQUIRE(spot.block == arena_planner::own);
      for (auto a = spot.offset / 64; a < (spot.offset + x.bytes) / 64; ++a) {
        overlaps += until[static_cast<std::size_t>(a)] >= x.first;
        until[static_cast<std::size_t>(a)] = x.last;
      }
    }
  CHECK(overlaps == 0);
}

TEST_CASE("signatures share arenas, and what is kept can be given back") {
  const bool traced = GENERATE(false, true);
  const xla::eager_mode_guard mode(!traced);
  auto body = [](auto& x) { return xla::sum(xla::cumsum(xla::cumsum(xla::exp(x), 0), 1), {1}); };
  auto compiled = xla::compile(body, {.max_signatures = 1000});
  auto run = [&](std::int64_t n) {
    auto x = test::numbers<float>({n, n});
    auto y = traced ? body(x) : compiled(x);
    if (traced) xla::sync(true);
    return y.to_vector();
  };
  xla::empty_cache();
  const std::int64_t before = xla::memory_allocated();
  const auto first = run(400);
  const xla::MemoryInfo info = xla::get_memory_info();
  CHECK(info.bytes_used == xla::memory_allocated());
  CHECK(info.peak_bytes_used == xla::max_memory_allocated());
  CHECK(info.peak_bytes_used >= before + 400 * 400 * 4);
  CHECK(info.bytes_limit > info.peak_bytes_used);
  const std::int64_t one = xla::memory_allocated() - before;
  CHECK(one >= 400 * 400 * 4);
  for (std::int64_t n = 399; n > 360; --n) run(n);
  CHECK(xla::memory_allocated() - before <= 2 * one + 4096);
  for (int round = 0; round < 3; ++round) {
    CHECK(run(400) == first);
    run(390);
    run(380);
  }
  CHECK(xla::memory_reserved() > xla::memory_allocated());
  xla::empty_cache();
  CHECK(xla::memory_allocated() <= before);
  CHECK(xla::memory_reserved() == xla::memory_allocated());
  CHECK(run(400) == first);
}

TEST_CASE("freed memory beyond the limit goes back to the system") {
  const xla::eager_mode_guard eager;
  constexpr std::int64_t tensor = 1 << 20;
  const auto kept = [] { return xla::memory_reserved() - xla::memory_allocated(); };
  auto make = [](int n) {
    std::vector<xla::Tensor<float, 1>> all;
    for (int i = 0; i < n; ++i) all.push_back(xla::zeros<float>({tensor / 4}));
  };
  xla::empty_cache();
  CHECK(kept() == 0);
  make(4);
  CHECK(kept() >= 4 * tensor);
  xla::set_cache_limit(2 * tensor);
  CHECK(kept() <= std::max<std::int64_t>(2 * tensor, xla::memory_allocated()));
  make(8);
  CHECK(kept() <= std::max<std::int64_t>(2 * tensor, xla::memory_allocated()));
  xla::empty_cache();
  xla::zeros<float>({16 * tensor});  // one that is larger than all that may be kept
  CHECK(kept() <= std::max<std::int64_t>(2 * tensor, xla::memory_allocated()));
  xla::set_cache_limit(std::int64_t{256} << 20);
}

TEST_CASE("each of many signatures is found again") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return x + x.size(0); }, {.max_signatures = 1500});
  const auto compilations = [] { return xla::counter_value("UncachedCompile").value_or(0); };
  const auto before = compilations();
  for (int round = 0; round < 2; ++round)
    for (std::int64_t n = 1; n <= 1500; ++n) {
      const auto x = xla::zeros<float>({n});
      const auto y = f(x);
      REQUIRE(y.numel() == n);
      REQUIRE(y.data()[n - 1] == static_cast<float>(n));
    }
  CHECK(compilations() - before == 1500);
  const auto more = xla::zeros<float>({1501});
  CHECK_THROWS_WITH(f(more), Catch::Matchers::Contains("max_signatures"));
}
