// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include <xla/xla.hpp>

#include "catch.hpp"
#include "support/mlp.hpp"

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
  auto x = xla::ones<double>({400, 400});
  for (int i = 0; i < 20; ++i) {
    x = xla::matmul(x, xla::ones<double>({400, 400})) / 400.0;
    xla::sync();
  }
  CHECK(xla::sum(x).item() == Approx(400.0 * 400.0));
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
  const auto y = xla::step([&] { return x + 1.f; });
  CHECK(count("MarkStep") == 2);
  CHECK_THROWS_AS(xla::step([&]() -> int {
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

TEST_CASE("an update in place waits for whoever reads the old value in the same pass") {
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
