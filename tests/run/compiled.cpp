// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "support/plans.hpp"
#include "xla/xla.hpp"

namespace {

std::int64_t samples(const char* name) {
  const auto m = xla::metric_data(name);
  return m ? m->total_samples : 0;
}
std::int64_t count(const char* name) { return xla::counter_value(name).value_or(0); }

/// Three weights of one shape and one of another; biases have the same sizes as well.
struct equal_layers {
  xla::nn::Linear a{6, 6}, b{6, 6}, c{6, 6}, d{6, 3};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return d(xla::relu(c(xla::tanh(b(xla::relu(a(x)))))));
  }
  XLA_MODULE(a, b, c, d)
};

/// Compares each two maps of a plan, and counts those that have the nest of an earlier one.
struct nest_check {
  int* shared;

  void operator()(const xla::detail::plan& p) const {
    int operands = 0;
    for (int i = 0; i < p.steps.size(); ++i) {
      const auto& s = p.steps[i];
      if (s.kind == xla::detail::step_kind::library && s.exchange < 0) operands += s.operands;
      bool seen = false;
      for (int j = 0; is_map(p, i) && j < i; ++j) {
        if (!is_map(p, j)) continue;
        CHECK((p.steps[j].loops == s.loops) == are_equal(p, p.steps[j], s));
        seen |= p.steps[j].loops == s.loops;
      }
      *shared += seen;
    }
    CHECK(p.operand_shapes.size() == operands);
  }
  static bool is_map(const xla::detail::plan& p, int i) {
    return p.steps[i].kind == xla::detail::step_kind::map && !p.on_parts(i);
  }
  static bool are_equal(const xla::detail::plan& p, const xla::detail::ready_step& a,
                        const xla::detail::ready_step& b) {
    const auto type = [&](const auto& s, int k) {
      return p.source.values[p.operands[s.first_operand + k]].type;
    };
    bool same = a.operands == b.operands;
    for (int k = 0; same && k < a.operands; ++k)
      same = p.shape_of(a, k) == p.shape_of(b, k) && type(a, k) == type(b, k);
    return same;
  }
};

}  // namespace

TEST_CASE("a compiled call executes once, and no op eagerly") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return xla::tanh(xla::exp(x) * 0.5f) + x; });
  auto x = xla::rand<float>({4, 5});
  xla::clear_all();
  auto y = f(x);
  CHECK(samples("ExecuteTime") == 1);
  CHECK(samples("EagerOpExecuteTime") == 0);
  CHECK(samples("CompileTime") == 1);
  CHECK(count("UncachedCompile") == 1);
  y = f(y);
  CHECK(samples("ExecuteTime") == 2);
  CHECK(samples("CompileTime") == 1);
  CHECK(count("CachedCompile") == 1);
}

TEST_CASE("the caller's pending graph does not leak into a compiled call") {
  const xla::eager_mode_guard traced(false);
  auto f = xla::compile([](auto& x) { return x * 2.f; });
  auto pending = xla::tensor<float>({1, 2}) + 1.f;
  xla::sync(true);
  auto input = pending * 3.f;
  xla::clear_all();
  const auto y = f(input);
  CHECK(samples("ExecuteTime") == 2);
  CHECK(y.to_vector() == std::vector<float>{12, 18});
  CHECK_FALSE(xla::is_eager_mode());
}

TEST_CASE("too many signatures are refused by name") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return x + 1.f; }, {.name = "adder", .max_signatures = 2});
  auto a = xla::ones<float>({1}), b = xla::ones<float>({2}), c = xla::ones<float>({3});
  f(a);
  f(b);
  f(a);
  CHECK_THROWS_WITH(f(c), test::contains("Maximum number of different graphs allowed per function "
                                         "exceeded: 2") &&
                              test::contains("adder"));
  CHECK(f(b).to_vector().size() == 2);
}

TEST_CASE("results come as they were returned: pairs, arrays, nothing") {
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({2});
  auto two = xla::compile([](auto& v) { return std::pair{v + 1.f, std::array{v, v * 3.f}}; });
  const auto [a, b] = two(x);
  CHECK(a.to_vector()[0] == 2);
  CHECK(b[0].to_vector()[0] == 1);
  CHECK(b[1].to_vector()[1] == 3);
  auto nothing = xla::compile([](auto& v) { v += 1.f; });
  nothing(x);
  nothing(x);
  CHECK(x.to_vector()[0] == 3);
  CHECK(b[0].to_vector()[0] == 1);
}

TEST_CASE("a step of a run-time sized Sequential checks its sizes when specialised") {
  const xla::eager_mode_guard eager;
  xla::nn::Sequential good{xla::nn::Linear{3, 4}, xla::nn::ReLU{}, xla::nn::Linear{4, 2}};
  xla::nn::Sequential bad{xla::nn::Linear{3, 4}, xla::nn::ReLU{}, xla::nn::Linear{5, 2}};
  auto x = xla::ones<float>({7, 3});
  auto f = xla::compile(good);
  CHECK(f(x).to_vector() == good(x).to_vector());
  auto g = xla::compile(bad);
  CHECK_THROWS_AS(g(x), xla::shape_error);
}

TEST_CASE("one compiled function serves several threads") {
  const xla::eager_mode_guard eager;
  test::Mlp model;
  auto predict = xla::compile(model);
  std::vector<xla::Tensor<float, 2>> inputs;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(test::batch(8 + i, static_cast<std::uint64_t>(i)).data);
    expected.push_back(model(inputs.back()).to_vector());
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        const auto i = static_cast<std::size_t>((t + k) % 4);
        wrong += predict(inputs[i]).to_vector() != expected[i];
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads share a model that is in evaluation, and the body says so as well") {
  const xla::eager_mode_guard eager;
  xla::nn::Dropout drop{0.5};
  drop.eval();
  auto predict = xla::compile([](auto& m, auto& v) {
    m.eval();
    return m(v);
  });
  auto x = test::batch(8).data;
  const auto expected = x.to_vector();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const xla::eager_mode_guard own;
      for (int k = 0; k < 50; ++k)
        wrong += (t % 2 ? drop(x) : predict(drop, x)).to_vector() != expected;
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK_FALSE(drop.is_training());
}

TEST_CASE("training steps from several threads follow one another") {
  const xla::eager_mode_guard eager;
  auto counter = xla::Buffer<float, 1>::like(xla::zeros<float>({100}));
  auto add = xla::compile([](auto& c, auto& x) { c += x; });
  auto one = xla::ones<float>({100});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) add(counter, one);
    });
  for (auto& t : threads) t.join();
  CHECK(counter.to_vector()[99] == 400);
}

TEST_CASE("inputs of several threads get each their own gradient") {
  const xla::eager_mode_guard eager;
  auto step = xla::compile([](auto& model, auto& x) {
    auto loss = xla::sum(xla::exp(model(x)));
    loss.backward();
    return loss;
  });
  xla::nn::Linear frozen{5, 3};
  frozen.weight.requires_grad_(false);
  frozen.bias.requires_grad_(false);
  const auto input = [] {
    auto x = test::numbers<float>({6, 5}, 1);
    x.requires_grad_();
    return x;
  };
  auto x = input();
  step(frozen, x);
  const auto want = x.grad().to_vector();
  std::vector<std::thread> threads;
  int same[4] = {};
  for (int& count : same)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto own = input();
        step(frozen, own);
        count += own.grad().to_vector() == want;
      }
    });
  for (auto& t : threads) t.join();
  for (int count : same) CHECK(count == 50);
}

TEST_CASE("a compiled function moves; what is left refuses calls") {
  const xla::eager_mode_guard eager;
  constexpr auto twice = [](auto& x) { return x * 2; };
  const auto make = [&] { return xla::compile(twice, {.name = "twice"}); };
  using Compiled = decltype(make());
  static_assert(std::is_nothrow_move_constructible_v<Compiled>);
  static_assert(std::is_nothrow_move_assignable_v<Compiled>);
  static_assert(!std::is_copy_constructible_v<Compiled>);
  auto x = xla::ones<float>({3});
  const auto check = [&](Compiled& f) { CHECK(f(x).to_vector() == std::vector<float>{2, 2, 2}); };

  auto first = make();
  check(first);
  std::vector<Compiled> all;
  all.push_back(std::move(first));
  all.push_back(make());
  for (auto& f : all) check(f);
  struct {
    std::optional<Compiled> f;
  } holder;
  holder.f = std::move(all[0]);
  check(*holder.f);
  CHECK_THROWS_WITH(first(x), "xla::compile: this compiled function was moved from");
  CHECK_THROWS_AS(first.memory_analysis(x), xla::error);
  first = std::move(*holder.f);
  check(first);

  xla::nn::Linear layer{3, 2};
  auto one = xla::compile(layer);
  auto other = std::move(one);
  auto batch = xla::ones<float>({4, 3});
  CHECK(other(batch).to_vector() == layer(batch).to_vector());
  CHECK_THROWS_AS(one(batch), xla::error);
}

namespace {
constexpr xla::Tensor<float, 1> thrice(const xla::Tensor<float, 1>& x) { return x * 3; }
}  // namespace

TEST_CASE("a constexpr function is compiled by its name") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile<thrice>({.name = "thrice"});
  CHECK(f(xla::ones<float>({2})).to_vector() == std::vector<float>{3, 3});
}

namespace {

/// Compiled plans may take this many bytes, until the end of the scope.
struct limited {
  explicit limited(std::int64_t bytes) {
    xla::set_compilation_cache_limit(bytes);
    xla::clear_counters();
  }
  ~limited() { xla::set_compilation_cache_limit(std::int64_t{256} << 20); }
};

constexpr auto twice_and_one = [](const auto& x) { return x * 2.f + 1.f; };

/// A limit that plans of three sizes fit below, and hardly more.
std::int64_t room_for_three() {
  for (std::int64_t bytes = 512;; bytes += bytes / 8) {
    const limited by(bytes);
    auto f = xla::compile(twice_and_one);
    for (const std::int64_t n : {1, 2, 3}) f(xla::ones<float>({n}));
    if (count("EvictedCompile") == 0) return bytes;
  }
}

}  // namespace

TEST_CASE("beyond a limit of bytes the signature that was used longest ago is evicted") {
  const xla::eager_mode_guard eager;
  const limited by(room_for_three());
  auto f = xla::compile(twice_and_one);
  const auto call = [&](std::int64_t n) {
    const auto made = count("UncachedCompile");
    const auto y = f(xla::full<float>({n}, 3.f)).to_vector();
    CHECK(y == std::vector<float>(static_cast<std::size_t>(n), 7.f));
    return count("UncachedCompile") > made;
  };
  for (const std::int64_t n : {1, 2, 3}) CHECK(call(n));
  CHECK_FALSE(call(1));
  for (std::int64_t n = 4; count("EvictedCompile") == 0; ++n) CHECK(call(n));
  CHECK(count("EvictedCompile") == 1);
  CHECK_FALSE(call(1));
  CHECK_FALSE(call(3));
  CHECK(call(2));
}

TEST_CASE("signatures are found among however many remain") {
  const xla::eager_mode_guard eager;
  const limited by(7 * room_for_three());
  auto f = xla::compile(twice_and_one, {.max_signatures = 200});
  std::int64_t last = 0;
  while (count("EvictedCompile") < 20) f(xla::ones<float>({++last}));
  CHECK(last > 30);
  const auto made = count("UncachedCompile");
  for (std::int64_t n = last; n > last - 10; --n)
    CHECK(xla::sum(f(xla::ones<float>({n}))).item() == static_cast<float>(3 * n));
  CHECK(count("UncachedCompile") == made);
}

TEST_CASE("the newest signature stays, however large it is, and evicted ones do not count") {
  const xla::eager_mode_guard eager;
  const limited by(1);
  auto f = xla::compile(twice_and_one, {.max_signatures = 2});
  for (std::int64_t n = 1; n <= 20; ++n)
    for (int again = 0; again < 2; ++again)
      CHECK(xla::sum(f(xla::ones<float>({n}))).item() == static_cast<float>(3 * n));
  CHECK(count("UncachedCompile") == 20);
  CHECK(count("CachedCompile") == 20);
  CHECK(count("EvictedCompile") == 19);
  auto x = xla::ones<float>({30});
  CHECK(f.memory_analysis(x).outputs == 30 * 4);
}

TEST_CASE("signatures that run in some threads are evicted by others") {
  const xla::eager_mode_guard eager;
  const limited by(1);
  auto f = xla::compile(twice_and_one);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const xla::eager_mode_guard own;
      for (std::int64_t n = 1; n < 100; ++n) {
        const auto y = f(xla::ones<float>({n * (t + 1)})).to_vector();
        wrong += y != std::vector<float>(static_cast<std::size_t>(n * (t + 1)), 3.f);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(count("EvictedCompile") > 100);
}

TEST_CASE("equal maps of a plan have one nest, other maps have nests of their own") {
  equal_layers model;
  xla::optim::SGD<equal_layers> optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  auto step = xla::compile([](auto& model, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = xla::mean(xla::square(model(x)));
    loss.backward();
    optimizer.step();
    return loss;
  });
  const auto x = xla::randn<float>({4, 6});
  int shared = 0;
  const test::on_each_plan look(nest_check{&shared});
  step(model, x, optimizer);
  CHECK(shared >= 4);  // two weights' and two biases' updates
}
