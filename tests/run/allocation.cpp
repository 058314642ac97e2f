// SPDX-License-Identifier: Apache-2.0
// What is allocated, and what is left when an allocation fails. Not for the sanitizers, which give
// no memory by aborting.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "support/programs.hpp"
#include "support/steps.hpp"
#include "xla/loop/scan.hpp"
#include "xla/xla.hpp"

namespace {

std::atomic<long> allocations{0}, failures{0}, left{-1}, bytes{0};
std::atomic<bool> all_fail{false};

bool fails() {
  ++allocations;
  if (left < 0 || left-- > 0) return false;
  if (all_fail) left = 0;
  ++failures;
  return true;
}

void* counted(void* p) {
  bytes += static_cast<long>(malloc_usable_size(p));
  return p;
}
void give_back(void* p) {
  bytes -= static_cast<long>(malloc_usable_size(p));
  std::free(p);
}

/// Makes allocation number n from here on fail, counted from 0, or all from that on, until the end
/// of a scope.
struct failing {
  failing(long n, bool all) {
    failures = 0;
    all_fail = all;
    left = n;
  }
  ~failing() { left = -1; }
};

}  // namespace

// Replaced as a pair; g++ 12 looks at one at a time.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t n) {
  if (void* p = fails() ? nullptr : std::malloc(n ? n : 1)) return counted(p);
  throw std::bad_alloc();
}
void* operator new(std::size_t n, std::align_val_t a) {
  const auto alignment = static_cast<std::size_t>(a);
  if (fails() || n > std::size_t{1} << 62) throw std::bad_alloc();
  if (void* p = std::aligned_alloc(alignment, (n + alignment) / alignment * alignment))
    return counted(p);
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }

namespace {

/// Fails each allocation of something that changes a list of texts, which stays as it was.
template <class Change>
int fail_on_list(Change&& change) {
  for (long n = 0;; ++n) {
    xla::detail::list<std::string> all(4, std::string(40, 'a'));
    try {
      const failing scope(n, false);
      change(all);
      return static_cast<int>(n);
    } catch (const std::bad_alloc&) {
      CHECK(all == xla::detail::list<std::string>(4, std::string(40, 'a')));
    }
  }
}

}  // namespace

TEST_CASE("a list that gets no memory stays as it was") {
  using texts = xla::detail::list<std::string>;
  CHECK(fail_on_list([](texts& l) { l.reserve(5); }) == 1);
  CHECK(fail_on_list([](texts& l) { l.emplace_back("short"); }) == 1);
  CHECK(fail_on_list([](texts& l) { l.push_back(l[0]); }) == 2);
  CHECK(fail_on_list([](texts& l) { l = texts(9, l[0]); }) == 10);
  CHECK(fail_on_list([](texts& l) { l.resize(100); }) == 1);
  CHECK_THROWS_AS(xla::detail::list<double>(-1), std::bad_alloc);
}

TEST_CASE("a list moves its elements, keeps their order, and destroys the rest") {
  xla::detail::list<std::unique_ptr<int>> l;
  for (int i = 0; i < 40; ++i) l.push_back(std::make_unique<int>(i));
  l.insert(0, std::make_unique<int>(-2));
  l.remove_if([](const auto& x) { return *x % 2 != 0; });
  auto moved = std::move(l);
  moved.pop_back();
  REQUIRE(moved.size() == 20);
  CHECK(l.empty());
  for (int i = 0; i < moved.size(); ++i) CHECK(*moved[i] == 2 * i - 2);
  moved.resize(21);
  CHECK(moved.back() == nullptr);
}

TEST_CASE("a compiled training step allocates nothing after its first calls") {
  const xla::eager_mode_guard eager;
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto step = xla::compile(test::step_fn);
  const test::batch batches[] = {test::batch(16), test::batch(16)};
  xla::Tensor<float, 0> loss;
  const auto train = [&](int calls) {
    for (int i = 0; i < calls; ++i) {
      const auto& [data, target] = batches[i % 2];
      loss = step(model, data, target, loss_fn, optimizer);
    }
  };
  train(5);
  const long before = allocations;
  train(20);
  CHECK(allocations == before);
  CHECK(loss.item() > 0);
}

namespace {

namespace nn = xla::nn;

struct net {
  nn::Linear a{6, 8};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.25};
  nn::Linear b{8, 3};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return b(drop(xla::relu(norm(a(x)))));
  }
  XLA_MODULE(a, norm, drop, b)
};

/// A model in training with its optimizer, and all that a step changes of them.
struct training {
  net model;
  xla::optim::AdamW<net> optimizer{model, {.lr = 0.01}};

  test::snapshot state() {
    test::snapshot s;
    s.add(model);
    optimizer.visit_state([&](auto& x, auto) { s.add(x); });
    return s;
  }
};

struct batch {
  xla::Tensor<float, 2> x;
  xla::Tensor<std::int64_t, 1> target;
  explicit batch(std::int64_t n)
      : x(xla::sin(xla::cast<float>(xla::reshape(xla::arange(6 * n), {n, 6})))),
        target(xla::arange(n) % 3) {}
};

enum class outcome { no_failure, made_up_for, threw };

/// Runs something whose allocation number n fails, or all from that on; if it throws, once more.
/// What it changes must be as it was in between.
template <class Run, class State>
outcome run_failing(long n, bool all, Run&& run, State&& state) {
  const test::snapshot before = state();
  const auto random = xla::get_rng_state();
  try {
    const failing scope(n, all);
    run();
  } catch (const std::bad_alloc&) {
    CHECK(failures > 0);
    CHECK(state().difference(before) == "");
    CHECK(xla::get_rng_state() == random);
    run();
    return outcome::threw;
  }
  return failures > 0 ? outcome::made_up_for : outcome::no_failure;
}

/// Does that for every allocation, or every n-th: make() gives a training and what to run. All
/// end as `want`.
template <class Make>
void fail_each(const test::snapshot& want, Make&& make, int at_least, int every = 1) {
  for (const bool all : {false, true}) {
    int threw = 0;
    for (long n = 0; n < 1000; n += every) {
      CAPTURE(n, all);
      xla::manual_seed(5);
      training t;
      auto run = make(t);
      const outcome o = run_failing(n, all, run, [&] { return t.state(); });
      REQUIRE(t.state().difference(want) == "");
      threw += o == outcome::threw;
      if (o == outcome::no_failure) break;
    }
    CHECK(threw >= at_least);
  }
}

}  // namespace

TEST_CASE("a compiled step without memory leaves everything as it was, and can be repeated") {
  const xla::eager_mode_guard eager;
  const batch small(4), large(40);
  auto make = [&](training& t) {
    auto compiled = xla::compile(test::class_step);
    return [&, step = std::make_shared<decltype(compiled)>(std::move(compiled))] {
      (*step)(t.model, large.x, large.target, t.optimizer);
    };
  };
  xla::manual_seed(5);
  training t;
  make(t)();
  fail_each(t.state(), make, 40);
}

TEST_CASE("a traced step without memory leaves everything as it was, and can be repeated") {
  const xla::eager_mode_guard traced(false);
  const batch small(4), large(40);
  xla::sync(true);
  auto make = [&](training& t) {
    test::class_step(t.model, small.x, small.target, t.optimizer);
    xla::sync(true);
    return [&] {
      test::class_step(t.model, large.x, large.target, t.optimizer);
      xla::sync(true);
    };
  };
  xla::manual_seed(5);
  training t;
  make(t)();
  fail_each(t.state(), make, 100);
}

namespace {

/// Epochs of training steps, a loop in a loop.
constexpr auto epochs = [](auto& model, auto& data, auto& target, auto& optimizer) {
  const auto step = [&](const auto&, const auto& x) {
    return std::pair(std::tuple<>(), test::class_step(model, x, target, optimizer).detach());
  };
  const auto epoch = [&](const auto&, const auto& batches) {
    return std::pair(std::tuple<>(), xla::scan(step, std::tuple<>(), batches).second);
  };
  return xla::scan(epoch, std::tuple<>(), data).second;
};

}  // namespace

TEST_CASE("a loop in whose nested loop a step has no memory leaves everything as it was") {
  const bool traced = GENERATE(false, true);
  const xla::eager_mode_guard mode(!traced);
  const batch b(24), four(4);
  const auto data = xla::reshape(b.x, {2, 3, 4, 6});
  const auto make = [&](training& t) {
    auto compiled = xla::compile(epochs);
    const auto run = [&, traced, f = std::make_shared<decltype(compiled)>(std::move(compiled))] {
      auto x = data;
      auto target = four.target;
      if (traced) epochs(t.model, x, target, t.optimizer);
      else (*f)(t.model, x, target, t.optimizer);
      xla::sync(true);
    };
    return run;
  };
  xla::manual_seed(5);
  training t;
  make(t)();
  fail_each(t.state(), make, 10, 7);
}

TEST_CASE("an optimizer's step without memory changes nothing, and can be repeated") {
  const bool traced = GENERATE(false, true);
  const xla::eager_mode_guard mode(!traced);
  const batch b(4);
  auto make = [&](training& t) {
    xla::cross_entropy(t.model(b.x), b.target).backward();
    if (traced) xla::sync(true);
    return [&t] { t.optimizer.step(); };
  };
  xla::manual_seed(5);
  training t;
  make(t)();
  fail_each(t.state(), make, 10);
}

/// make() again and again, each time with one allocation more, until all are made: its result.
/// check() is called where make() threw; returns how often that was.
template <class Make, class Check>
std::pair<xla::Tensor<float, 1>, int> fail_until_made(const Make& make, const Check& check) {
  xla::empty_cache();  // so that even a few bytes come from the heap
  int threw = 0;
  for (long n = 0; n < 100; ++n) try {
      const failing scope(n, true);
      return {make(), threw};
    } catch (const std::bad_alloc&) {
      ++threw;
      check();
    }
  FAIL("100 allocations were not enough");
  return {};
}

TEST_CASE("an op without memory draws no numbers") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto want = xla::randn<float>({7}).to_vector();
  xla::manual_seed(3);
  const auto [x, threw] = fail_until_made([] { return xla::randn<float>({7}); },
                                          [] {
                                            CHECK(xla::get_rng_state() == xla::rng_state{3, 0});
                                          });
  CHECK(x.to_vector() == want);
  CHECK(threw > 0);
}

TEST_CASE("an op of many inputs without memory leaves them as they were") {
  const bool traced = GENERATE(false, true);
  const xla::eager_mode_guard mode(!traced);
  const auto x = xla::tensor<float>({1, 2});
  const auto [all, threw] = fail_until_made(
      [&] {
        return xla::cat({x, x, x, x, x, x, x});
      },
      [&] {
        CHECK(x.to_vector() == std::vector<float>{1, 2});
      });
  CHECK(all.to_vector() == std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(threw > 1);
}

TEST_CASE("a failed allocation is an xla::error, a bad_alloc and a std::exception") {
  const bool traced = GENERATE(false, true);
  const xla::eager_mode_guard mode(!traced);
  constexpr std::int64_t much = std::int64_t{1} << 57;
  auto expect = [&](auto&& run) {
    CHECK_THROWS_AS(run(), xla::error);
    CHECK_THROWS_AS(run(), std::bad_alloc);
    CHECK_THROWS_AS(run(), std::exception);
    CHECK_THROWS_WITH(run(), Catch::Matchers::Contains("out of memory") &&
                                 Catch::Matchers::Contains("(144115188075855872,)") &&
                                 Catch::Matchers::Contains("576460752303423488 bytes"));
  };
  expect([&] { return xla::zeros<float>({much}).data(); });
  expect([&] { return xla::rand<float>({much}).data(); });
  if (traced) return;
  const auto x = xla::ones<float>({2});
  auto result = xla::compile([](auto& x) { return xla::full<float>({x.size(0) * (much / 2)}, 1); });
  expect([&] { result(x); });
  auto inside = xla::compile([](auto& x) {
    return xla::sum(xla::cumsum(xla::expand(xla::sum(x), {x.size(0) * (much / 2)}), 0));
  });
  CHECK_THROWS_AS(inside(x), xla::out_of_memory);
  CHECK(x.to_vector() == std::vector<float>{1, 1});
}

namespace {

/// What a random program works on: it changes the parameters and their gradients.
struct weights {
  test::random_program::Weight v, w;
  weights() : v(test::random_program::Weight::like(test::numbers<float>({5, 5}))), w(v) {
    v.copy_(test::numbers<float>({5, 5}, 1) * 0.25);
    w.copy_(test::numbers<float>({5, 5}, 2) * 0.25);
  }
  test::snapshot state() {
    test::snapshot s;
    s.add(v);
    s.add(w);
    return s;
  }
};

/// Runs a program with allocations failing at places drawn at random; what it leaves is what it
/// leaves when none fails.
template <class Make>
int fail_some(Make&& make, unsigned seed) {
  const auto x = test::numbers<float>({5, 5}, 3), y = test::numbers<float>({5, 5}, 4);
  const auto once = [&](auto& f, weights& a) {
    auto own_x = x, own_y = y;
    f(a.v, a.w, own_x, own_y);
    xla::sync(true);
  };
  const auto good = make();
  weights want;
  xla::sync(true);
  xla::manual_seed(5);
  once(*good, want);
  const test::snapshot end = want.state();
  int threw = 0;
  for (unsigned k = 0; k < 12; ++k) {
    auto f = make();
    weights a;
    xla::sync(true);
    const long n = static_cast<long>((seed * 2654435761u + k * 40503u) >> 8 & 127);
    CAPTURE(seed, k, n);
    xla::manual_seed(5);
    const outcome o = run_failing(
        n, k % 2 == 1, [&] { once(*f, a); }, [&] { return a.state(); });
    threw += o == outcome::threw;
    REQUIRE(a.state().difference(end) == "");
  }
  return threw;
}

}  // namespace

TEST_CASE("random programs without memory change nothing, and can be repeated") {
  int threw = 0;
  {
    const xla::eager_mode_guard traced(false);
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned seed = XLA_TEST_SEED + i;
      threw += fail_some(
          [=] {
            return std::make_unique<test::random_program>(test::random_program{seed, 40});
          },
          seed);
    }
  }
  const xla::eager_mode_guard eager;
  threw += fail_some(
      [] {
        using step = decltype(xla::compile(test::fixed_program<XLA_TEST_SEED + 6, 30>{}));
        return std::make_unique<step>(xla::compile(test::fixed_program<XLA_TEST_SEED + 6, 30>{}));
      },
      6);
  CHECK(threw > 20);
}

namespace {

/// What plans take where more are made than their limit allows, in parts of the limit.
template <class Step>
double part_of_limit(Step&& step) {
  constexpr std::int64_t limit = 4 << 20;
  std::int64_t n = 0;
  xla::set_compilation_cache_limit(1);
  step(++n);  // evicts what others have made
  xla::set_compilation_cache_limit(limit);
  xla::clear_counters();
  xla::empty_cache();
  const long before = bytes;
  while (test::count_of("EvictedCompile") < 10) step(++n);
  xla::empty_cache();
  xla::set_compilation_cache_limit(std::int64_t{256} << 20);
  CHECK(n > 30);
  return static_cast<double>(bytes - before) / static_cast<double>(limit);
}

}  // namespace

TEST_CASE("plans take the bytes that their limit counts") {
  const xla::eager_mode_guard eager;
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  const auto train = [&](auto& step, std::int64_t n) {
    test::batch b(n);
    step(model, b.data, b.target, loss_fn, optimizer);
  };
  auto compiled = xla::compile(test::step_fn, {.max_signatures = 1000});
  const double of_compiled = part_of_limit([&](std::int64_t n) { train(compiled, n); });
  CHECK(of_compiled > 0.8);
  CHECK(of_compiled < 1.2);
  const double of_traced = part_of_limit([&](std::int64_t n) {
    const xla::eager_mode_guard traced(false);
    train(test::step_fn, n);
    xla::sync(true);
  });
  CHECK(of_traced > 0.8);
  CHECK(of_traced < 1.2);
}
