// SPDX-License-Identifier: Apache-2.0
// Small steps that run side by side: which ones, and with the same bits.
#include <algorithm>
#include <array>

#include "catch.hpp"
#include "support/modes.hpp"
#include "support/steps.hpp"
#include "support/threads.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::numbers;

namespace {

using threads = test::restore_threads;

struct Block {
  xla::nn::Linear fc1{64, 64}, fc2{64, 64};
  constexpr auto operator()(xla::Tensor<float, 2> h) const { return h + fc2(xla::relu(fc1(h))); }
  XLA_MODULE(fc1, fc2)
};
struct Net {
  std::array<Block, 4> blocks;
  constexpr auto operator()(xla::Tensor<float, 2> h) const {
    for (const auto& block : blocks) h = block(h);
    return h;
  }
  XLA_MODULE(blocks)
};
/// Gradients that stay from step to step.
constexpr auto gather = [](auto& net, auto& x, auto& target, auto& loss_fn, auto& optimizer) {
  auto loss = loss_fn(net(x), target);
  loss.backward();
  optimizer.step();
  return loss;
};
constexpr auto two_products = [](auto x, auto w, auto u) {
  return xla::sum(xla::matmul(x, w), {0}) + xla::sum(xla::matmul(x, u), {0});
};
constexpr auto product_of_product = [](auto x, auto w, auto u) {
  return xla::matmul(xla::matmul(x, w), u);
};

struct training {
  Net net;
  xla::nn::MSELoss loss_fn;
  xla::optim::AdamW<Net> optimizer{net, {.lr = 1e-3f}};
  xla::Tensor<float, 2> x = numbers<float>({64, 64}, 1), target = numbers<float>({64, 64}, 2);
};

/// What three steps leave, of the losses and the net.
template <test::mode M, class Step>
test::snapshot train(Step step) {
  const xla::eager_mode_guard as_told(M == test::mode::eager);
  xla::manual_seed(3);
  training t;
  test::snapshot s;
  const auto run = [&](auto& f) {
    for (int i = 0; i < 3; ++i) {
      auto loss = f(t.net, t.x, t.target, t.loss_fn, t.optimizer);
      if constexpr (M == test::mode::traced) xla::sync();
      s.add(loss);
    }
  };
  if constexpr (M == test::mode::compiled) {
    auto compiled = xla::compile(step);
    run(compiled);
  } else {
    run(step);
  }
  s.add(t.net);
  return s;
}

std::vector<xla::ProfileStep> groups(const xla::Profile& p) {
  std::vector<xla::ProfileStep> found;
  for (const xla::ProfileStep& s : p.steps())
    if (s.kind == "parallel") found.push_back(s);
  return found;
}
auto products(const xla::ProfileStep& s) {
  return std::count(s.ops.begin(), s.ops.end(), "matmul");
}

}  // namespace

TEST_CASE("products that do not wait for each other run side by side") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({64, 64}, 1), w = numbers<float>({64, 64}, 2),
             u = numbers<float>({64, 64}, 3);
  {
    const threads two(2);
    auto f = xla::compile(two_products);
    const xla::Profile p = xla::profile(f, x, w, u);
    REQUIRE(groups(p).size() == 1);
    CHECK(products(groups(p)[0]) == 2);
    CHECK(groups(p)[0].flops == 4.0 * 64 * 64 * 64);
    CHECK(groups(p)[0].bytes_read == 3 * 4 * 64 * 64);
    CHECK(groups(p)[0].bytes_written == 2 * 4 * 64 * 64);
    CHECK(std::string_view(p.to_json()).find("side by side: matmul matmul") != std::string::npos);
    auto g = xla::compile(product_of_product);
    CHECK(groups(xla::profile(g, x, w, u)).empty());
    const auto little = numbers<float>({8, 8}, 4);
    CHECK(groups(xla::profile(f, little, little, little)).empty());
  }
  const threads one(1);
  auto f = xla::compile(two_products);
  CHECK(groups(xla::profile(f, x, w, u)).empty());
}

TEST_CASE("set_passes() keeps the steps of new signatures from running side by side") {
  const xla::eager_mode_guard eager;
  const threads two(2);
  const auto x = numbers<float>({64, 64}, 1), w = numbers<float>({64, 64}, 2),
             u = numbers<float>({64, 64}, 3);
  auto f = xla::compile(two_products);
  test::snapshot apart, parallel;
  {
    const test::traced_without one("-side_by_side");
    CHECK(groups(xla::profile(f, x, w, u)).empty());
    apart.add(f(x, w, u));
  }
  auto g = xla::compile(two_products);
  CHECK(groups(xla::profile(g, x, w, u)).size() == 1);
  parallel.add(g(x, w, u));
  CHECK(apart.difference(parallel) == "");
}

TEST_CASE("backward's products run next to the updates of the layer before") {
  const xla::eager_mode_guard eager;
  std::int64_t aliased = 0, arena = 0;
  for (int n : {1, 2, 3}) {
    const threads some(n);
    CAPTURE(n);
    training t;
    auto step = xla::compile(test::step_fn);
    const xla::Profile p = xla::profile(step, t.net, t.x, t.target, t.loss_fn, t.optimizer);
    const auto found = groups(p);
    const auto m = step.memory_analysis(t.net, t.x, t.target, t.loss_fn, t.optimizer);
    if (n == 1) {
      CHECK(found.empty());
      aliased = m.aliased;
      arena = m.arena;
      continue;
    }
    // Eight layers, of which the first has no gradient of its input.
    CHECK(found.size() >= 7);
    for (const xla::ProfileStep& s : found) CHECK(products(s) <= 2);
    CHECK(m.aliased == aliased);  // every update still is where the old value lay
    CHECK(m.arena <= arena + 6 * 4 * 64 * 64);
    // What a group writes none of its steps reads, but for its own old value.
    const xla::ProfileFunction& f = p.functions[0];
    for (std::size_t i = 0; i < f.steps.size(); ++i)
      for (int before : f.steps[i].after) CHECK(before < int(i));
  }
}

TEST_CASE("bits do not depend on what runs side by side") {
  const test::snapshot eager = train<test::mode::eager>(test::step_fn);
  const test::snapshot gathered = train<test::mode::eager>(gather);
  for (int n : {1, 2, 3, 5}) {
    const threads some(n);
    CAPTURE(n);
    CHECK(train<test::mode::traced>(test::step_fn).difference(eager) == "");
    CHECK(train<test::mode::compiled>(test::step_fn).difference(eager) == "");
    CHECK(train<test::mode::traced>(gather).difference(gathered) == "");
    CHECK(train<test::mode::compiled>(gather).difference(gathered) == "");
  }
}

TEST_CASE("a plan of several threads runs on another number of them") {
  const xla::eager_mode_guard eager;
  const threads restore;
  const auto x = numbers<float>({64, 64}, 1), w = numbers<float>({64, 64}, 2),
             u = numbers<float>({64, 64}, 3);
  auto f = xla::compile(two_products);
  xla::set_num_threads(3);
  const auto y = f(x, w, u).to_vector();
  for (int n : {1, 2, 4}) {
    xla::set_num_threads(n);
    CHECK(f(x, w, u).to_vector() == y);
  }
}
