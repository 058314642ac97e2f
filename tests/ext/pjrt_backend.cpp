// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "support/backends.hpp"
#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "support/pjrt.hpp"
#include "xla/ext/pjrt.hpp"
#include "xla/ext/stablehlo.hpp"
#include "xla/run/profile.hpp"

#include "xla/xla.hpp"

using test::count_of;
using test::numbers;
using test::on_backend;

namespace {

/// A model, its optimizer and a step's results: the same numbers each time one is made.
struct trained {
  trained() : seeded((xla::manual_seed(5), 0)) {}
  int seeded;
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD<test::Mlp> optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};

  template <class Step>
  std::vector<float> train(Step&& step, int steps) {
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) {
      test::batch b(4, static_cast<std::uint64_t>(i % 10));
      losses.push_back(step(model, b.data, b.target, loss_fn, optimizer).item());
    }
    return losses;
  }
  std::vector<float> weights() { return model.fc1.weight.to_vector(); }
};

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

struct untold : xla::op::map {
  static constexpr auto name = "test_untold";
  static constexpr auto kernel(auto x) { return x + x; }
};
struct told : xla::op::map {
  static constexpr auto name = "test_told";
  static constexpr auto kernel(auto x) { return x + x; }
};

constexpr auto step_of = [](auto&... x) { return test::step_fn(x...); };
constexpr auto synced_step = [](auto&... x) {
  auto loss = test::step_fn(x...);
  xla::sync();
  return loss;
};

}  // namespace

XLA_ELEMENTWISE_OP(untold);
XLA_ELEMENTWISE_OP(told);
XLA_STABLEHLO_OP(told);

TEST_CASE("without a plugin nothing changes until a program is to run there") {
  const char* const named = std::getenv("XLA_PJRT_PLUGIN");
  const std::string before = named ? named : "";
  ::setenv("XLA_PJRT_PLUGIN", "/nowhere/plugin.so", 1);
  const xla::eager_mode_guard mode;
  auto x = numbers<float>({3, 5});
  auto f = xla::compile(
      [](auto& x) {
        x += 1;
        return exp(x);
      },
      {.backend = xla::pjrt("CPU")});
  const auto was = x.to_vector();
  CHECK_THROWS_WITH(f(x), test::contains("/nowhere/plugin.so"));
  CHECK(x.to_vector() == was);
  {
    const on_backend xla("pjrt:CPU");
    const xla::eager_mode_guard traced(false);
    x += 1;
    for (int again = 0; again < 2; ++again)
      CHECK_THROWS_WITH(xla::sync(), test::contains("/nowhere/plugin.so"));
    xla::set_backend("native");  // what was recorded is there, and runs elsewhere
    CHECK(x.to_vector()[7] == was[7] + 1);
  }
  if (named) ::setenv("XLA_PJRT_PLUGIN", before.c_str(), 1);
  else ::unsetenv("XLA_PJRT_PLUGIN");
  CHECK_THROWS_WITH(xla::set_backend("pjrt"), test::contains("pjrt:CPU"));
}

TEST_CASE("openxla is the device that a program without PJRT_DEVICE has") {
  if (std::getenv("PJRT_DEVICE")) return;
  const on_backend xla("openxla");
  CHECK(xla::backend_name() == "pjrt:CPU");
}

// With a plugin: tests.cmake runs these in a process of their own, with PJRT_DEVICE=CPU.
TEST_CASE("PJRT_DEVICE names the backend of a program", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  CHECK(xla::backend_name() == "pjrt:CPU");
}

TEST_CASE("a step of 200 gives the losses of the library's own, compiled, traced and eager",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend plan("native");
  trained own, compiled, traced, eager;
  auto planned = xla::compile(test::step_fn);
  const auto losses = own.train(planned, 200);
  auto there = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
  xla::clear_all();
  CHECK(largest_difference(compiled.train(there, 200), losses) < 1e-5);
  CHECK(largest_difference(compiled.weights(), own.weights()) < 1e-5);
  CHECK(count_of("Backend::pjrt:CPU") == 200);
  CHECK(count_of("UncachedCompile") == 1);
  {
    const on_backend xla("pjrt:CPU");
    const xla::eager_mode_guard mode(false);
    CHECK(largest_difference(traced.train(synced_step, 200), losses) < 1e-5);
    CHECK(largest_difference(traced.weights(), own.weights()) < 1e-5);
  }
  xla::clear_all();
  const on_backend xla("pjrt:CPU");
  const xla::eager_mode_guard mode;
  CHECK(largest_difference(eager.train(step_of, 20), {losses.begin(), losses.begin() + 20}) < 1e-5);
  CHECK(count_of("Backend::pjrt:CPU") > 400);  // an op is a program,
  CHECK(count_of("UncachedCompile") < 60);     // compiled once
}

TEST_CASE("state is written in place, unless someone else holds it", "[.plugin][in_place]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  trained t;
  auto step = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
  t.train(step, 2);
  const float* const memory = t.model.fc1.weight.data();
  t.train(step, 2);
  CHECK(t.model.fc1.weight.data() == memory);

  const xla::Tensor<float, 2> old = t.model.fc1.weight;
  const auto before = old.to_vector();
  t.train(step, 1);
  CHECK(old.to_vector() == before);
  CHECK(old.data() == memory);
  CHECK(t.weights() != before);
}

TEST_CASE("random numbers are the library's own, and a generator goes on from one to the other",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto f = [](auto& x) { return rand_like(x) + 2 * rand_like(x); };
  auto x = numbers<float>({5, 7});
  auto plan = xla::compile(f, {.backend = "native"});
  auto there = xla::compile(f, {.backend = xla::pjrt("CPU")});
  const auto twice = [&](auto& first, auto& second) {
    xla::manual_seed(-3);
    const auto a = first(x).to_vector();
    return std::pair(a, second(x).to_vector());
  };
  const auto wanted = twice(plan, plan);
  CHECK(twice(there, there) == wanted);
  CHECK(twice(plan, there) == wanted);
}

TEST_CASE("elements at an address that is not of 64 bytes are read as they are, and never written",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  static constexpr xla::detail::memory_space elsewhere{.release = [](void*) {}};
  alignas(64) static float memory[64];
  xla::detail::shape sizes;
  sizes.push(33);
  auto f = xla::compile(
      [](auto& x, auto& y) {
        x += y;
        return y * 2;
      },
      {.backend = xla::pjrt("CPU")});
  float first = 0;
  for (const int at :
       {1, 16, 1}) {  // the second is aligned, the third is another at an old address
    std::vector<float> values(33), twice, changed;
    for (auto& v : values) v = ++first;
    std::copy(values.begin(), values.end(), memory + at);
    xla::Tensor<float, 1> x, y;
    for (auto* const t : {&x, &y})
      xla::detail::machine_of<float>::borrow(*t, xla::dtype_of<float>, sizes,
                                             {&elsewhere, nullptr, memory + at});
    for (const float v : values) twice.push_back(2 * v), changed.push_back(3 * v);
    for (int again = 0; again < 2; ++again) CHECK(f(x, y).to_vector() == twice);
    CHECK(x.to_vector() == changed);
    CHECK(std::equal(values.begin(), values.end(), memory + at));
  }
}

TEST_CASE("a profile has what the plugin took: a compilation, runs, transfers", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto f = xla::compile([](auto& x) { return tanh(x) * 3; }, {.backend = xla::pjrt("CPU")});
  auto x = numbers<float>({3, 5});
  const xla::Profile p = xla::profile({.calls = 2}, f, x);
  const auto samples = [&](std::string_view name) {
    for (const xla::ProfileMetric& m : p.metrics)
      if (m.name == name) return m.samples;
    return std::int64_t{0};
  };
  CHECK(samples("Pjrt::CompileTime") == 1);
  CHECK(samples("UncachedCompile") == 1);
  CHECK(samples("ExecuteTime") >= 2);
  REQUIRE(p.backends.size() == 1);
  CHECK(p.backends[0].name == "pjrt:CPU");
  CHECK(p.backends[0].runs == samples("ExecuteTime"));
  std::ostringstream table;
  table << p;
  CHECK_THAT(table.str(), test::contains("Pjrt::CompileTime"));
}

TEST_CASE("an index that is not there is an error before a call changes anything", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    trained t;
    auto step = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
    t.train(step, 1);
    const auto before = test::add_state(test::snapshot(), t.model, t.optimizer);
    test::batch b(4);
    auto wrong = xla::tensor<std::int64_t>({0, 1, 99, 2});
    CHECK_THROWS_WITH(step(t.model, b.data, wrong, t.loss_fn, t.optimizer), test::contains("99"));
    CHECK(test::add_state(test::snapshot(), t.model, t.optimizer).difference(before) == "");
  }
  // Of what the function computes.
  const xla::eager_mode_guard mode;
  auto f = xla::compile([](auto& x, auto& i) { return index_select(x, 0, i + 1); },
                        {.backend = xla::pjrt("CPU")});
  auto x = numbers<float>({3, 5});
  auto fine = xla::tensor<std::int64_t>({0, 1}), wrong = xla::tensor<std::int64_t>({0, 2});
  CHECK(f(x, fine).to_vector() == index_select(x, 0, fine + 1).to_vector());
  CHECK_THROWS_WITH(f(x, wrong), test::contains("3"));
}

TEST_CASE("an index that its own graph writes in place is looked at before that", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  const xla::eager_mode_guard mode(false);
  xla::Buffer<float, 2> table{xla::zeros<float>({300, 300})};  // large: sync() does not wait
  xla::Buffer<std::int64_t, 1> at{xla::zeros<std::int64_t>({3})};
  xla::Tensor<float, 2> chosen;
  for (int i = 0; i < 4; ++i) {
    chosen = index_select(table, 0, at);
    table += 1;
    at += 1;
    xla::sync();
  }
  CHECK(chosen.to_vector() == std::vector<float>(3 * 300, 3));
  CHECK(at.to_vector() == std::vector<std::int64_t>(3, 4));
}

TEST_CASE("other sizes are another program; empty ones, and other types of elements", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  const xla::eager_mode_guard mode;
  auto f = xla::compile([](auto& x) { return std::tuple(x + x, x > 0.5, sum(x, {0})); });
  for (const std::int64_t n : {3, 1, 0, 17}) {
    auto x = numbers<double>({n, 5});
    const auto [twice, more, all] = f(x);
    const on_backend plan("native");
    CHECK(twice.to_vector() == (x + x).to_vector());
    CHECK(more.to_vector() == (x > 0.5).to_vector());
    CHECK(largest_difference(all.to_vector(), sum(x, {0}).to_vector()) < 1e-12);
  }
}

TEST_CASE("an op of more than three inputs runs there by itself too, and its gradient",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const auto made_by = [](const char* backend) {
    const on_backend by(backend);
    const auto q = test::parameter(numbers<float>({2, 2, 5, 4}, 1)),
               k = test::parameter(numbers<float>({2, 1, 7, 4}, 2)),
               v = test::parameter(numbers<float>({2, 1, 7, 3}, 3));
    const auto y = scaled_dot_product_attention(q, k, v, numbers<float>({5, 7}, 4));
    sum(y * y).backward();
    return xla::cat({flatten(y), flatten(q.grad()), flatten(k.grad()), flatten(v.grad())})
        .to_vector();
  };
  CHECK(largest_difference(made_by("pjrt:CPU"), made_by("native")) < 1e-4);
}

TEST_CASE("products that add up over small m and over large, which are transposed for XLA",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const auto products = [](auto& a, auto& b, auto& c) {
    return std::tuple(matmul(transpose(a), b), matmul(transpose(a), transpose(c)), matmul(c, a));
  };
  const auto check = [](auto f, double bound, auto... inputs) {
    auto there = xla::compile(f, {.backend = xla::pjrt("CPU")});
    const auto got = there(inputs...), want = f(inputs...);
    const auto near = [&](const auto& x, const auto& y) {
      CHECK(largest_difference(x.to_vector(), y.to_vector()) < bound);
    };
    near(std::get<0>(got), std::get<0>(want));
    near(std::get<1>(got), std::get<1>(want));
    near(std::get<2>(got), std::get<2>(want));
  };
  for (const std::int64_t rows : {255, 256, 321})
    for (const std::int64_t columns : {63, 64}) {
      INFO(rows << " rows of " << columns);
      const auto a = numbers<double>({rows, columns}, 1), b = numbers<double>({rows, 5}, 2),
                 c = numbers<double>({3, rows}, 3);
      check(products, 1e-10, a, b, c);
      check(xla::autocast(products), 1e-2, xla::cast<float>(a), xla::cast<float>(b),
            xla::cast<float>(c));
    }
}

TEST_CASE("state is printed, kept and put back wherever it is", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  trained t, other;
  auto step = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
  t.train(step, 3);
  std::ostringstream shown, wanted;
  shown << t.model.fc2.bias;
  wanted << xla::tensor(t.model.fc2.bias.to_vector());
  CHECK(shown.str() == wanted.str());
  CHECK(shown.str().size() > 20);
  const auto state = xla::state_dict(t.model);
  const auto after = t.weights();
  t.train(step, 2);
  CHECK(t.weights() != after);
  xla::load_state_dict(t.model, state);
  CHECK(t.weights() == after);
  // What was put back is what the next step reads.
  other.train(step, 1);
  xla::load_state_dict(other.model, state);
  CHECK(other.train(step, 1) == t.train(step, 1));
}

TEST_CASE("numbers that a function takes, of every type that it reads them in", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto f = xla::compile(
      [](auto& x, auto& i, auto& k) {
        return std::tuple(x * k, cast<double>(x) * k, i * k.template as<std::int64_t>());
      },
      {.backend = xla::pjrt("CPU")});
  auto x = numbers<float>({3});
  auto i = xla::tensor<std::int64_t>({1, 2, 3});
  xla::Scalar k = 3;
  for (const double value : {3., -5.}) {
    k = value;
    const auto [a, b, c] = f(x, i, k);
    CHECK(a.to_vector() == (x * k).to_vector());
    CHECK(b.to_vector() == (cast<double>(x) * k).to_vector());
    CHECK(c.to_vector() == (i * static_cast<std::int64_t>(value)).to_vector());
  }
}

TEST_CASE("calls of several threads", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  auto f = xla::compile([](auto& x) { return matmul(x, x) + 1; }, {.backend = xla::pjrt("CPU")});
  const auto x = numbers<float>({16, 16});
  const auto wanted = (matmul(x, x) + 1).to_vector();
  std::vector<double> worst(4);
  std::vector<std::thread> threads;
  for (double& w : worst)
    threads.emplace_back([&] {
      auto own = x;
      for (int i = 0; i < 50; ++i) w = std::max(w, largest_difference(f(own).to_vector(), wanted));
    });
  for (auto& t : threads) t.join();
  for (const double w : worst) CHECK(w < 1e-4);
}

TEST_CASE("a call reads its arguments' newest elements, however they were written", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const on_backend plan("native");
  auto f = xla::compile([](auto& x, auto& k) { return x * k; }, {.backend = xla::pjrt("CPU")});
  std::vector<xla::Tensor<float, 1>> all;
  for (int i = 0; i < 6; ++i) all.push_back(numbers<float>({33}) + i);
  xla::Scalar k = 2;
  for (const double value : {2., 3., 2.}) {
    k = value;
    for (auto& x : all) {
      CHECK(f(x, k).to_vector() == (x * k).to_vector());
      x += 1;  // in place
      CHECK(f(x, k).to_vector() == (x * k).to_vector());
    }
  }
}

TEST_CASE("a function may run here and there in turn", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  trained own, mixed;
  auto plan = xla::compile(test::step_fn, {.backend = "native"});
  auto there = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
  for (int turn = 0; turn < 3; ++turn) {
    const auto wanted = own.train(plan, 2);
    CHECK(largest_difference(mixed.train(there, 2), wanted) < 1e-5);
    const on_backend host("native");
    mixed.model.fc1.weight.copy_(own.model.fc1.weight * 2);
    own.model.fc1.weight.copy_(own.model.fc1.weight * 2);
    const auto again = own.train(plan, 2);
    CHECK(largest_difference(mixed.train(plan, 2), again) < 1e-5);
    CHECK(largest_difference(mixed.weights(), own.weights()) < 1e-5);
  }
}

// With XLA_PJRT_MEMORY=device.
TEST_CASE("state is on a device: it goes there once and comes back once", "[.device_memory]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const on_backend host("native");
  trained own, there;
  auto plan = xla::compile(test::step_fn, {.backend = "native"});
  auto step = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
  const auto train = [](trained& t, auto& by, int steps) {
    for (int i = 0; i < steps; ++i) {
      test::batch b(4, static_cast<std::uint64_t>(i));
      by(t.model, b.data, b.target, t.loss_fn, t.optimizer);
    }
  };
  const auto sent = [] { return xla::metric_data("OutboundData").value_or(xla::metric_values()); };
  const auto received = [] {
    return xla::metric_data("InboundData").value_or(xla::metric_values()).total_samples;
  };
  constexpr int batch_bytes = 4 * 17 * 4 + 4 * 8;
  train(own, plan, 1);
  xla::clear_all();
  train(there, step, 1);
  const auto first = sent();
  CHECK(first.accumulator > batch_bytes + 2 * 4 * (17 * 33 + 33 + 33 * 5 + 5));
  train(there, step, 9);
  train(own, plan, 9);
  CHECK(sent().total_samples - first.total_samples == 2 * 9);
  CHECK(sent().accumulator - first.accumulator == batch_bytes * 9);
  CHECK(received() == 0);
  for (int again = 0; again < 2; ++again) {
    there.weights();
    there.model.fc2.bias.to_vector();
    CHECK(received() == 2);
  }
  CHECK(largest_difference(there.weights(), own.weights()) < 1e-5);
}

TEST_CASE("other references to a tensor on a device keep its value", "[.device_memory]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const on_backend host("native");
  trained own, there;
  auto plan = xla::compile(test::step_fn, {.backend = "native"});
  auto step = xla::compile(test::step_fn, {.backend = xla::pjrt("CPU")});
  own.train(plan, 2);
  there.train(step, 2);
  const xla::Tensor<float, 2> mine = own.model.fc1.weight, old = there.model.fc1.weight;
  own.train(plan, 3);
  there.train(step, 3);
  CHECK(largest_difference(old.to_vector(), mine.to_vector()) < 1e-5);
  CHECK(largest_difference(there.weights(), own.weights()) < 1e-5);
  CHECK(largest_difference(there.weights(), mine.to_vector()) > 1e-3);

  // A copy of the model, by value, and a call that is refused.
  auto copy = there.model;
  test::batch b(4);
  auto wrong = xla::tensor<std::int64_t>({0, 1, 99, 2});
  CHECK_THROWS_WITH(step(there.model, b.data, wrong, there.loss_fn, there.optimizer),
                    test::contains("99"));
  CHECK(largest_difference(there.weights(), own.weights()) < 1e-5);
  there.train(step, 1);
  CHECK(largest_difference(copy.fc1.weight.to_vector(), own.weights()) < 1e-5);
}

TEST_CASE("an op whose result's size depends on data runs on the host, and is counted",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    xla::clear_all();
    const auto x = numbers<float>({3, 5}) + 1;
    const auto found = masked_select(x, x > 1);
    CHECK(count_of("fallback::masked_select") == 1);
    CHECK(xla::nonzero(x > 1).size(0) == found.size(0));
    CHECK(count_of("fallback::nonzero") == 1);
    for (const float value : (found * 1).to_vector()) CHECK(value > 1);
  }
}

TEST_CASE(
    "an own op without a form runs on the host and is counted; compiled, the error says the cure",
    "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  auto x = numbers<float>({3, 5});
  const auto wanted = (x + x).to_vector();
  auto f = xla::compile([](auto& x) { return xla::elementwise<untold>(x); });
  auto cured = xla::compile([](auto& x) { return xla::elementwise<told>(x); });
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    xla::clear_all();
    CHECK(xla::elementwise<untold>(x).to_vector() == wanted);
    CHECK(count_of("fallback::test_untold") == 1);
    CHECK(count_of("Backend::pjrt:CPU") == 0);
    CHECK(xla::elementwise<told>(x).to_vector() == wanted);
    CHECK(count_of("Backend::pjrt:CPU") == 1);
    CHECK_THROWS_WITH(f(x), test::contains("the backend pjrt:CPU has no test_untold, ") &&
                                test::contains("write XLA_STABLEHLO_OP(type); of <xla"));
    CHECK(cured(x).to_vector() == wanted);
    CHECK(count_of("fallback::test_told") == 0);
  }
}

TEST_CASE("a process that is forked after the backend has run gets an error in every mode",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  const xla::eager_mode_guard mode;
  auto f = xla::compile([](auto& x) { return exp(x) + 1; });
  auto x = numbers<float>({3, 5});
  const auto before = f(x).to_vector();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int right = 0;
    const auto told = [&](auto&& run) {
      try {
        run();
      } catch (const xla::error& e) {
        right +=
            std::string(e.what()).find("was forked after its PJRT client") != std::string::npos;
      }
    };
    told([&] { f(x); });
    told([&] { exp(x * 3).to_vector(); });
    xla::eager_mode(false);
    told([&] { (x * x + 2).to_vector(); });
    xla::set_backend("native");
    xla::eager_mode(true);
    right += (x + 1).to_vector().size() == 15;  // what is the library's own goes on
    std::_Exit(right);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 4));
  CHECK(f(x).to_vector() == before);
}

TEST_CASE("memory that is not there is an error, and state is as it was", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto f = xla::compile(
      [](auto& x, auto& n) {
        x += 1;
        auto column = xla::expand(xla::reshape(x, {4, 1}), {-1, 1});
        auto large = xla::expand(column, {-1, n.size(0)});
        return sum(matmul(transpose(large), large));
      },
      {.backend = xla::pjrt("CPU")});
  auto x = numbers<float>({4});
  auto n = xla::zeros<float>({1 << 24});
  const auto was = x.to_vector();
  CHECK_THROWS_AS(f(x, n), xla::out_of_memory);
  CHECK(x.to_vector() == was);
  n = xla::zeros<float>({8});
  CHECK_NOTHROW(f(x, n));
  CHECK(x.to_vector() != was);
}

TEST_CASE("no program of odd sizes or numbers ends the process", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  constexpr double huge = 1e300, inf = std::numeric_limits<double>::infinity();
  const auto odd = [](auto& x, auto& none, auto& deep) {
    auto least = x * 0 + std::numeric_limits<double>::quiet_NaN();
    return std::tuple(x + huge, x * -inf, least, matmul(transpose(none), none),
                      matmul(none, transpose(none)), sum(none), xla::softmax(none, 1),
                      xla::cat({none, none}, 0), sum(deep, {0, 2, 4}), flip(deep, {5}),
                      xla::permute(deep, {5, 4, 3, 2, 1, 0}));
  };
  auto x = numbers<float>({3});
  auto none = numbers<float>({0, 4});
  auto deep = numbers<float>({2, 1, 3, 1, 2, 2});
  auto planned = xla::compile(odd, {.backend = "native"});
  auto there = xla::compile(odd, {.backend = xla::pjrt("CPU")});
  test::snapshot want, got;
  want.add(planned(x, none, deep));
  got.add(there(x, none, deep));
  CHECK(got.difference(want) == "");
  auto nothing = xla::compile([](auto&) { return std::tuple<>(); }, {.backend = xla::pjrt("CPU")});
  CHECK_NOTHROW(nothing(x));

  const on_backend xla("pjrt:CPU");
  CHECK_THROWS_AS(xla::arange<float>(std::int64_t{1} << 50), xla::error);
  xla::eager_mode(false);  // one graph of a thousand arguments and results
  std::vector<xla::Tensor<float, 1>> all;
  for (int i = 0; i < 1000; ++i) all.push_back(xla::tensor<float>({float(i), 1}));
  auto total = all[0] * 1;
  for (auto& each : all) each = each + 1, total = total + each;
  xla::sync();
  CHECK(total.to_vector() == std::vector<float>{500500, 2001});
  CHECK(all[999].to_vector() == std::vector<float>{1000, 2});
}
