// SPDX-License-Identifier: Apache-2.0
// What a loop looks like in a printed program, a plan and a profile: the steps of its body are
// below it.
#include <string>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::numbers;

namespace {

/// A product in each step of an outer loop, and two more in each step of an inner one.
constexpr auto nested = [](auto& xs, auto& w) {
  const auto inner = [&](const auto&, const auto& c) { return matmul(tanh(matmul(c, w)), w); };
  const auto outer = [&](const auto& c, const auto& x) {
    const auto next = xla::fori_loop(0, 4, inner, matmul(c + x, w));
    return std::pair(next, std::tuple<>());
  };
  return xla::scan(outer, xla::zeros_like(w), xs).first;
};

}  // namespace

TEST_CASE("the steps of a body are below their loop, in the program and in the plan") {
  auto f = xla::compile(nested);
  auto xs = numbers<float>({3, 5, 5});
  auto w = numbers<float>({5, 5}, 1);
  for (const std::string& text :
       {f.graph(xla::Stage::lowered, xs, w), f.graph(xla::Stage::planned, xs, w)}) {
    INFO(text);
    const auto outer = text.find(" = loop("), product = text.find(" = matmul(");
    const auto inner = text.find(" = loop(", outer + 1);
    REQUIRE(inner != text.npos);
    CHECK(outer < product);
    CHECK(product < inner);
    CHECK_THAT(text, contains("\n  step ") && contains("\n    step "));
  }
  CHECK_THAT(f.graph(xla::Stage::planned, xs, w), contains(" trip 3 ") && contains(" trip 4 "));
}

TEST_CASE("unneeded gradients are removed from a loop's body") {
  auto f = xla::compile([](auto& xs, auto& w, auto& v) {
    const auto step = [&](const auto& c, const auto& x) {
      return std::pair(tanh(matmul(c, w) + matmul(x, v)), std::tuple<>());
    };
    const auto loss = sum(xla::scan(step, xla::zeros_like(w), xs).first);
    loss.backward();
    return loss;
  });
  const auto products = [&](const auto& xs) {
    const auto w = test::parameter(numbers<float>({4, 4}, 1));
    const auto v = test::parameter(numbers<float>({4, 4}, 2));
    const std::string text = f.graph(xla::Stage::planned, xs, w, v);
    int n = 0;
    for (auto at = text.find(" matmul("); at != text.npos; at = text.find(" matmul(", at + 1)) ++n;
    return n;
  };
  const auto plain = numbers<float>({3, 4, 4}, 3);
  auto wanted = plain;
  wanted.requires_grad_();
  CHECK(products(wanted) == 6);  // two, and the gradients of both factors of each
  CHECK(products(plain) == 5);
}

TEST_CASE("a profile has a loop's steps, how often they ran, and what all of that took") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(nested, {.name = "nested"});
  auto xs = numbers<float>({3, 5, 5});
  auto w = numbers<float>({5, 5}, 1);
  const xla::Profile p = xla::profile({.calls = 3, .warmup = 1}, f, xs, w);
  const auto loop_in = [](const std::vector<xla::ProfileStep>& steps) {
    for (const xla::ProfileStep& s : steps)
      if (s.kind == "loop") return s;
    FAIL("no loop");
    return xla::ProfileStep();
  };
  const auto products = [](const std::vector<xla::ProfileStep>& steps) {
    double n = 0;
    for (const xla::ProfileStep& s : steps) n += s.kind == "product" ? s.flops : 0;
    return n / (2 * 5 * 5 * 5);
  };
  const auto seconds = [](const std::vector<xla::ProfileStep>& steps) {
    double sum = 0;
    for (const xla::ProfileStep& s : steps) sum += s.seconds;
    return sum;
  };
  const xla::ProfileStep outer = loop_in(p.steps()), inner = loop_in(outer.body);
  CHECK(outer.runs == 3);
  CHECK(inner.runs == 3 * 4);
  CHECK(products(outer.body) == 3);
  CHECK(products(inner.body) == 2 * 3 * 4);
  CHECK(outer.flops >= inner.flops);
  CHECK(inner.flops >= 2 * 3 * 4 * 2 * 5 * 5 * 5);
  CHECK(seconds(outer.body) > 0);
  CHECK(seconds(outer.body) < 2 * outer.seconds);  // medians of several calls
  CHECK_THAT(p.table(), contains("scan x 3 @seen.cpp:") && contains("  fori_loop x 12 @seen.cpp:"));
  CHECK_THAT(p.to_json(), contains("\"runs\":12,\"body\":[{"));
}

TEST_CASE(
    "the page has a loop with its trips, the steps of its body, and their shares of its bar") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(nested, {.name = "nested"});
  auto xs = numbers<float>({3, 5, 5});
  auto w = numbers<float>({5, 5}, 1);
  const std::string page = xla::profile({.calls = 2, .warmup = 1}, f, xs, w).to_html();
  const auto scan = page.find("\"name\":\"scan\""), loop = page.find("\"name\":\"fori_loop\"");
  REQUIRE(loop != page.npos);
  CHECK(scan < loop);
  CHECK(page.find("\"runs\":3,\"body\":[{", scan) < loop);
  CHECK(page.find("\"runs\":12,\"body\":[{", loop) != page.npos);
  CHECK_THAT(page, contains("inside(s, s.start, s.length"));
}

TEST_CASE("metrics count a loop as one execution of one program, and its memory once") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile(nested);
  auto w = numbers<float>({5, 5}, 1);
  auto few = numbers<float>({3, 5, 5}), many = numbers<float>({300, 5, 5});
  const auto executions = [] {
    const auto data = xla::metric_data("ExecuteTime");
    return data ? data->total_samples : 0;
  };
  const auto before = executions();
  f(many, w);
  CHECK(executions() == before + 1);
  const auto a = f.memory_analysis(few, w), b = f.memory_analysis(many, w);
  CHECK(a.arena > 0);
  CHECK(a.arena == b.arena);
  CHECK(b.arguments - a.arguments == 297 * 5 * 5 * 4);
}

TEST_CASE("a thousand numbers of steps are one graph, specialised for each") {
  const xla::eager_mode_guard eager;
  const auto add_up = [](auto& xs) {
    const auto step = [](const auto& c, const auto& x) { return std::pair(c + x, std::tuple<>()); };
    return xla::scan(step, xla::zeros_like(sum(xs)), xs).first;
  };
  auto f = xla::compile(add_up);
  const auto all = xla::ones<float>({1000});
  std::string graph;
  for (int n = 0; n < 1000; ++n) {
    auto xs = slice(all, 0, 0, n);
    REQUIRE(f(xs).item() == static_cast<float>(n));
    if (n % 100 != 0) continue;
    const std::string now = f.graph(xla::Stage::lowered, xs);
    CHECK((n == 0 || now == graph));
    graph = now;
  }
}

TEST_CASE("a profiled loop gives what it gives otherwise, and a branch runs once or not at all") {
  const xla::eager_mode_guard eager;
  auto choose = xla::compile([](auto& x, auto& w) {
    const auto more = [&](const auto& v) { return matmul(v, w); };
    const auto less = [&](const auto& v) { return matmul(matmul(v, w), w); };
    return xla::cond(sum(x) > 0, more, less, x);
  });
  auto x = xla::ones<float>({4, 4}), w = numbers<float>({4, 4});
  const xla::Profile p = xla::profile(choose, x, w);
  std::int64_t runs = 0;
  int branches = 0;
  for (const xla::ProfileStep& s : p.steps())
    if (s.kind == "loop") runs += s.runs, ++branches;
  CHECK(branches == 2);
  CHECK(runs == 1);
  auto f = xla::compile(nested);
  auto xs = numbers<float>({2, 3, 3});
  auto v = numbers<float>({3, 3}, 1);
  const auto want = f(xs, v).to_vector();
  std::vector<float> got;
  auto call = [&](auto& a, auto& b) { got = f(a, b).to_vector(); };
  xla::profile(call, xs, v);
  CHECK(got == want);
}
