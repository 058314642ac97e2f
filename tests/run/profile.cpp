// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "catch.hpp"
#include "support/backends.hpp"
#include "support/steps.hpp"
#include "xla/io/text.hpp"
#include "xla/run/profile.hpp"
#include "xla/run/profile/profiler.hpp"
#include "xla/run/profile/record.hpp"
#include "xla/run/profile/trace.hpp"
#include "xla/xla.hpp"

namespace {

struct Mlp {
  xla::nn::Linear fc1{24, 16}, fc2{16, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

struct training {
  xla::eager_mode_guard eager;
  Mlp model;
  xla::Tensor<float, 2> data = xla::full<float>({32, 24}, 0.5f);
  xla::Tensor<std::int64_t, 1> target = xla::full<std::int64_t>({32}, 3);
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD<Mlp> optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};

  template <class Step>
  xla::Profile profile(Step& step, xla::ProfileOptions options = {}) {
    return xla::profile(options, step, model, data, target, loss_fn, optimizer);
  }
};

int lines(const std::string& s) { return static_cast<int>(std::count(s.begin(), s.end(), '\n')); }

}  // namespace

TEST_CASE("operations and bytes of a product are exact") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& a, auto& b) { return xla::matmul(a, b); }, {.name = "product"});
  auto a = xla::ones<float>({5, 7}), b = xla::ones<float>({7, 3});
  const xla::Profile p = xla::profile(f, a, b);
  REQUIRE(p.functions.size() == 1);
  CHECK(p.functions[0].name == "product");
  CHECK(p.functions[0].signature == "(5, 7) (7, 3)");
  CHECK(p.functions[0].calls == 1);
  REQUIRE(p.steps().size() == 1);
  const xla::ProfileStep& s = p.steps()[0];
  CHECK(s.name == "matmul 5x3x7");
  CHECK(s.kind == "product");
  CHECK(s.ops == std::vector<std::string>{"matmul"});
  CHECK(s.flops == 2 * 5 * 3 * 7);
  CHECK(s.bytes_read == 4 * (5 * 7 + 7 * 3));
  CHECK(s.bytes_written == 4 * 5 * 3);
  CHECK(s.seconds > 0);
  CHECK(s.seconds <= p.functions[0].seconds);
  CHECK(p.peaks.threads == xla::num_threads());
  CHECK(p.peaks.flops > 1e8);
  CHECK(p.peaks.bytes > 1e8);
  CHECK(p.flop_share(s) == Approx(s.flops / s.seconds / p.peaks.flops));
}

TEST_CASE("a batch of products, transposed operands") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& a, auto& b) { return xla::matmul(a, xla::transpose(b, 1, 2)); });
  auto a = xla::ones<double>({2, 5, 7}), b = xla::ones<double>({2, 3, 7});
  const xla::Profile p = xla::profile(f, a, b);
  const xla::ProfileStep& s = p.steps().back();
  CHECK(s.name == "matmul 2x5x3x7");
  CHECK(s.flops == 2 * 2 * 5 * 3 * 7);
  CHECK(p.flop_share(s) == Approx(s.flops / s.seconds / (p.peaks.flops / 2)));
}

TEST_CASE("a fused map reads each input once and computes each op once per element") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x, auto& b) { return xla::tanh(x * x + b) * x; });
  auto x = xla::ones<float>({6, 8});
  auto b = xla::ones<float>({8});
  const xla::Profile p = xla::profile(f, x, b);
  REQUIRE(p.steps().size() == 1);
  const xla::ProfileStep& s = p.steps()[0];
  CHECK(s.kind == "map");
  CHECK(s.ops == std::vector<std::string>{"mul", "add", "tanh", "mul"});
  CHECK(s.name == "map mul add tanh mul (6, 8)");
  CHECK(s.flops == 4 * 48);
  CHECK(s.bytes_read == 4 * (48 + 8));
  CHECK(s.bytes_written == 4 * 48);
}

TEST_CASE("a row region: per element, and per row what has one value there") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return x / xla::sqrt(xla::sum(x * x, {1}, xla::keepdim)); });
  auto x = xla::ones<float>({6, 8});
  const xla::Profile p = xla::profile(f, x);
  REQUIRE(p.steps().size() == 1);
  const xla::ProfileStep& s = p.steps()[0];
  CHECK(s.kind == "row");
  CHECK(s.flops == 48 + 48 + 6 + 48);  // mul, sum; sqrt; div
  CHECK(s.bytes_read + s.bytes_written == 2 * 4 * 48);
}

TEST_CASE("a gather counts only the elements that it reads") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x, auto& at) { return xla::index_select(x, 0, at); });
  auto x = xla::ones<float>({1000, 8});
  auto at = xla::tensor<std::int64_t>({1, 2});
  const xla::Profile p = xla::profile(f, x, at);
  const xla::ProfileStep& s = p.steps().back();
  CHECK(s.name == "index_select (2, 8)");
  CHECK(s.kind == "move");
  CHECK(s.flops == 0);
  CHECK(s.bytes_read == 4 * 16 + 8 * 2);
  CHECK(s.bytes_written == 4 * 16);
  // The check of the index knows its line.
  CHECK_THAT(p.steps()[0].source, test::contains("profile.cpp:"));
}

TEST_CASE("every step of the plan is there once, after those whose results it reads") {
  training t;
  auto step = xla::compile(test::step_fn, {.name = "train"});
  const xla::Profile p = t.profile(step, {.calls = 5, .warmup = 2});
  REQUIRE(p.functions.size() == 1);
  const xla::ProfileFunction& f = p.functions[0];
  CHECK(f.name == "train");
  CHECK(f.signature == "(32, 24) (32,)");
  CHECK(f.calls == 5);
  const std::string plan =
      step.graph(xla::Stage::lowered, t.model, t.data, t.target, t.loss_fn, t.optimizer);
  // Of which two are the data's gradient and its sum, in calls that bring data which requires one.
  CHECK_THAT(plan, test::contains("step " + std::to_string(f.steps.size() + 1) + ": "));
  CHECK_THAT(plan, !test::contains("step " + std::to_string(f.steps.size() + 2) + ": "));
  std::set<int> written;
  double end = 0;
  for (std::size_t i = 0; i < f.steps.size(); ++i) {
    const xla::ProfileStep& s = f.steps[i];
    CAPTURE(i, s.name);
    CHECK((s.once || s.start >= end));
    end = s.start;
    CHECK(s.flops >= 0);
    CHECK(s.bytes_written > 0);
    CHECK(!s.ops.empty());
    for (int a : s.after) CHECK(a < static_cast<int>(i));
    for (int v : s.reads) CHECK(f.values[static_cast<std::size_t>(v)].last >= static_cast<int>(i));
    for (int v : s.writes) {
      CHECK(written.insert(v).second);
      CHECK((s.once || f.values[static_cast<std::size_t>(v)].first == static_cast<int>(i)));
    }
  }
  double products = 0;
  for (const xla::ProfileStep& s : f.steps)
    if (s.kind == "product") products += s.flops;
  // Forward, and backward to the weights and to the hidden layer.
  CHECK(products == 2.0 * 32 * (2 * 24 * 16 + 3 * 16 * 10));
  bool named = false;
  for (const xla::ProfileValue& v : f.values)
    named |= v.name == "argument 0.fc1.weight" && v.shape == "float32 (16, 24)" &&
             v.storage == "argument" && v.bytes == 4 * 16 * 24;
  CHECK(named);
}

TEST_CASE("no two values of the arena are at one storage at one time") {
  training t;
  auto step = xla::compile(test::step_fn);
  const xla::Profile p = t.profile(step);
  const xla::ProfileFunction& f = p.functions[0];
  const std::int64_t n = static_cast<std::int64_t>(f.values.size());
  int pairs = 0;
  std::int64_t top = 0;
  auto value = [&](std::int64_t i) -> const xla::ProfileValue& {
    return f.values[static_cast<std::size_t>(i)];
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& a = value(i);
    if (a.storage != "arena") continue;
    top = std::max(top, a.offset + a.bytes);
    for (std::int64_t k = i + 1; k < n; ++k) {
      const auto& b = value(k);
      if (b.storage != "arena" || a.first > b.last || b.first > a.last) continue;
      if (a.replaces == k || b.replaces == i) continue;
      ++pairs;
      CAPTURE(a.name, a.first, a.last, a.offset, b.name, b.first, b.last, b.offset);
      CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
    }
  }
  CHECK(pairs > 20);
  CHECK(top <= f.arena_bytes);
  CHECK(top > f.arena_bytes - 64);
}

TEST_CASE("an update that writes over what it reads is one storage, and counts what it writes") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x, auto& part) {
    auto y = xla::exp(x);
    y[0] = part;
    return xla::sum(y * x);
  });
  auto x = xla::ones<float>({64, 8});
  auto part = xla::ones<float>({8});
  const xla::Profile p = xla::profile(f, x, part);
  int updates = 0;
  for (const xla::ProfileStep& s : p.steps()) {
    if (s.ops != std::vector<std::string>{"slice_scatter"}) continue;
    ++updates;
    const auto& to = p.functions[0].values[static_cast<std::size_t>(s.writes[0])];
    REQUIRE(to.replaces >= 0);
    CHECK(p.functions[0].values[static_cast<std::size_t>(to.replaces)].offset == to.offset);
    CHECK(s.bytes_read == 4 * 8);
    CHECK(s.bytes_written == 4 * 8);
  }
  CHECK(updates == 1);
}

TEST_CASE("profiled calls are ordinary calls") {
  training a, b;
  b.model = a.model;
  auto step = xla::compile(test::step_fn);
  for (int i = 0; i < 5; ++i) step(a.model, a.data, a.target, a.loss_fn, a.optimizer);
  b.profile(step, {.calls = 3, .warmup = 2});
  CHECK(a.model.fc1.weight.to_vector() == b.model.fc1.weight.to_vector());
}

TEST_CASE("threads: who worked when, inside the step") {
  const xla::eager_mode_guard eager;
  const int before = xla::num_threads();
  xla::set_num_threads(2);
  auto f = xla::compile([](auto& a, auto& b) { return xla::tanh(xla::matmul(a, b)); });
  auto a = xla::ones<float>({256, 256}), b = xla::ones<float>({256, 256});
  const xla::Profile p = xla::profile({.calls = 9, .warmup = 1}, f, a, b);
  xla::set_num_threads(before);
  const xla::ProfileFunction& g = p.functions[0];
  CHECK((g.threads == 1 || g.threads == 2));
  std::size_t spans = 0;
  for (std::size_t i = 0; i < g.steps.size(); ++i) {
    const double end = i + 1 < g.steps.size() ? g.steps[i + 1].start : g.seconds;
    for (const xla::ProfileSpan& s : g.steps[i].spans) {
      ++spans;
      CHECK(s.thread < g.threads);
      CHECK(s.seconds >= 0);
      CHECK(s.start >= g.steps[i].start);
      CHECK(s.start + s.seconds <= end + 1e-9);
    }
  }
  CHECK(spans > 0);
}

TEST_CASE("other threads may call the function during a profile") {
  training t;
  auto f = xla::compile([](auto& a, auto& b) { return xla::exp(a * b); });
  auto a = xla::ones<float>({300, 300}), b = xla::ones<float>({300, 300});
  f(a, b);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) f(a, b);
  });
  for (int i = 0; i < 20; ++i) {
    const xla::Profile p = xla::profile({.calls = 3}, f, a, b);
    CHECK(p.functions.size() == 1);
    CHECK(p.functions[0].calls == 3);
  }
  stop.store(true);
  other.join();
}

TEST_CASE("a traced body is profiled as the graphs that it runs") {
  const xla::eager_mode_guard traced(false);
  auto x = xla::ones<float>({40, 40});
  const xla::Profile p = xla::profile([&] {
    auto y = xla::tanh(xla::matmul(x, x)) + x;
    xla::sync();
  });
  REQUIRE(p.functions.size() == 1);
  CHECK(p.functions[0].name == "traced");
  CHECK(p.functions[0].signature == "(40, 40)");
  std::vector<std::string> names;
  for (const xla::ProfileStep& s : p.steps()) names.push_back(s.name);
  CHECK(names == std::vector<std::string>{"matmul 40x40x40", "map tanh add (40, 40)"});
}

TEST_CASE("the errors of profiling") {
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({4});
  auto f = xla::compile([](auto& v) { return xla::exp(v); });
  CHECK_THROWS_WITH(xla::profile([&] { return xla::exp(x); }),
                    "profile: no compiled function and no traced graph ran; ops in eager mode have "
                    "no plan, so give a function that xla::compile made, switch eager mode off, or "
                    "name a part of the program with xla::Trace");
  CHECK_THROWS_WITH(xla::profile({.calls = 0}, f, x),
                    "profile: needs at least 1 call and no less than 0 for warm-up, got calls = 0, "
                    "warmup = 0");
  // Errors of the call come through, and the profile ends with it.
  CHECK_THROWS_AS(xla::profile([&] { throw std::runtime_error("mine"); }), std::runtime_error);
  CHECK(!xla::detail::profiler::on());
}

namespace {

/// The names of what ran in a scope, in order; of those in none for -1.
std::vector<std::string> within(const xla::Profile& p, int scope) {
  std::vector<std::string> names;
  for (const xla::ProfileEvent& e : p.events)
    if (e.parent == scope) names.push_back(e.name);
  return names;
}
int event(const xla::Profile& p, std::string_view name) {
  const auto at = std::find_if(p.events.begin(), p.events.end(),
                               [&](const xla::ProfileEvent& e) { return e.name == name; });
  return at == p.events.end() ? -1 : static_cast<int>(at - p.events.begin());
}
using names = std::vector<std::string>;

}  // namespace

TEST_CASE("scopes have what ran in them: ops of eager mode, compiled functions, graphs") {
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({4, 4});
  auto f = xla::compile([](auto& v) { return xla::exp(v); }, {.name = "exponential"});
  const auto body = [&] {
    const xla::StepTrace step("step", 7);
    {
      const xla::Trace forward("forward");
      auto y = xla::matmul(x, x) + x;
      f(y);
    }
    const xla::eager_mode_guard traced(false);
    const xla::Trace lazy(std::string("traced"));
    auto z = x * x;
    xla::sync(true);
  };
  body();  // outside of a recording scopes leave nothing
  const xla::Profile p = xla::profile({.calls = 2}, body);
  const int step = event(p, "step"), forward = event(p, "forward"), lazy = event(p, "traced");
  REQUIRE((step >= 0 && forward >= 0 && lazy >= 0));
  CHECK(within(p, -1) == names{"step", "step"});
  CHECK(within(p, step) == names{"forward", "traced"});
  CHECK(within(p, forward) == names{"matmul (4, 4)", "add (4, 4)", "exponential (4, 4)"});
  CHECK(within(p, lazy) == names{"traced (4, 4)"});
  for (const xla::ProfileEvent& e : p.events) {
    CHECK(e.kind == (e.name == "matmul (4, 4)" || e.name == "add (4, 4)"           ? "op"
                     : e.name == "exponential (4, 4)" || e.name == "traced (4, 4)" ? "plan"
                                                                                   : "scope"));
    CHECK(e.step == (e.name == "step" ? 7 : -1));
    CHECK((e.thread == 0 && e.start >= 0 && e.seconds > 0));
    if (e.parent < 0) continue;
    const xla::ProfileEvent& outer = p.events[static_cast<std::size_t>(e.parent)];
    CHECK((outer.start <= e.start && e.start + e.seconds <= outer.start + outer.seconds + 1e-9));
  }
  const std::string table = p.table();
  CHECK_THAT(table, test::contains("\nstep                        2  ") &&
                        test::contains("\n  forward                   2  ") &&
                        test::contains("\n    exponential (4, 4)      2  "));
  CHECK_THAT(p.to_json(), test::contains("{\"name\":\"matmul (4, 4)\",\"kind\":\"op\","
                                         "\"step\":-1,\"thread\":0,"));
  // Without a scope there is nothing of these, and ops alone are a profile where they have one.
  CHECK(xla::profile(f, x).events.empty());
  const auto named = xla::trace_me("alone", [&](auto& v) { return v - v; });
  const xla::Profile ops = xla::profile([&] { named(x); });
  CHECK(ops.functions.empty());
  CHECK(within(ops, event(ops, "alone")) == names{"sub (4, 4)"});
}

TEST_CASE("the end of a StepTrace ends the step of traced mode; a compiled body names nothing") {
  const xla::eager_mode_guard traced(false);
  auto x = xla::ones<float>({4});
  const auto steps = [] { return xla::counter_value("MarkStep").value_or(0); };
  const auto before = steps();
  {
    const xla::StepTrace step("step");
    x = x + x;
  }
  CHECK(steps() == before + 1);
  const auto leave = [&] {
    const xla::StepTrace step("step");
    throw std::runtime_error("mine");
  };
  CHECK_THROWS_WITH(leave(), "mine");
  CHECK(steps() == before + 1);
  auto f = xla::compile([](auto& v) {
    const xla::Trace scope("in the body");
    return v + v;
  });
  CHECK(f(x).to_vector()[0] == 4);
}

TEST_CASE("a profile says which backend ran instead of plans") {
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({4});
  auto f = xla::compile([](auto& v) { return xla::exp(v); });
  f(x);
  CHECK(xla::profile(f, x).backends.empty());
  const auto interpreted = [&] {
    const test::on_backend op_by_op("interpreter");
    f(x);
  };
  interpreted();
  const xla::Profile alone = xla::profile({.calls = 2}, interpreted);
  CHECK(alone.functions.empty());
  CHECK_THROWS_WITH(alone.steps(), test::contains("only plans have steps"));
  CHECK_THAT(alone.table(), test::contains("the backend interpreter ran 2 times\n") &&
                                test::contains("\n  ExecuteTime: 2 samples, ") &&
                                test::contains(", of a run ") &&
                                test::contains("\n  CachedCompile: 2\n"));
  REQUIRE(alone.metrics.size() == 2);
  CHECK((alone.metrics[0].name == "ExecuteTime" && alone.metrics[0].unit == "ns"));
  CHECK(alone.metrics[0].total > 0);
  CHECK_THAT(alone.to_html(), test::contains("CachedCompile: 2\n</pre>"));
  CHECK(xla::profile(f, x).metrics.empty());
  const xla::Profile p = xla::profile([&] {
    interpreted();
    f(x);
  });
  REQUIRE(p.backends.size() == 1);
  CHECK(p.backends[0].name == "interpreter");
  CHECK(p.backends[0].runs == 1);
  CHECK(p.functions.size() == 1);
  CHECK_THAT(p.table(), test::contains("the backend interpreter ran 1 time\n"));
  CHECK_THAT(p.to_json(), test::contains("\"backends\":[{\"name\":\"interpreter\",\"runs\":1}]"));
}

TEST_CASE("a table of the steps, sorted and cut") {
  training t;
  auto step = xla::compile(test::step_fn, {.name = "train"});
  const xla::Profile p = t.profile(step, {.calls = 3});
  const int steps = static_cast<int>(p.steps().size());
  const std::string all = p.table(xla::ProfileSort::order, -1);
  CHECK_THAT(all,
             test::contains("Machine, as measured in this program on ") &&
                 test::contains("FLOP/s of float32 multiply-adds, ") &&
                 test::contains("\ntrain (32, 24) (32,)\n" + std::to_string(steps) + " steps, ") &&
                 test::contains(" (median of 3 calls), ") && test::contains("GFLOP/s  of peak  "));
  CHECK(lines(all) == 1 + 1 + 2 + 1 + 2 + steps);
  const std::string some = p.table(xla::ProfileSort::flops, 2);
  CHECK_THAT(some, test::contains("and " + std::to_string(steps - 2) + " more steps, "));
  CHECK(some.find("matmul 32x16x24") < some.find("and "));
  CHECK(p.to_string() == p.table());
  // Columns are below one another.
  const auto rule = all.find("\n--") + 1;
  const auto width = all.find('\n', rule) - rule;
  for (auto at = rule; at < all.size(); at = all.find('\n', at) + 1)
    CHECK(all.find('\n', at) - at <= width);
}

TEST_CASE("a step that depends on sizes alone runs once") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& w) {
    w.zero_grad();
    auto y = xla::mean(w * w);
    y.backward();
    return y;
  });
  auto w = xla::Parameter<float, 1>::like(xla::ones<float>({32}));
  CHECK_THAT(xla::profile(f, w).table(), test::contains("once"));
}

TEST_CASE("the page and the JSON escape any function name") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return xla::exp(x); },
                        {.name = "a \"b\" \\ </script><b>\n\x01 \xc3\xa4 \xff \xed\xa0\x80"});
  auto x = xla::ones<float>({4});
  const xla::Profile p = xla::profile(f, x);
  const std::string json = p.to_json();
  CHECK_THAT(json, test::contains("{\"name\":\"a \\\"b\\\" \\\\ \\u003c/script>\\u003cb>\\u000a"
                                  "\\u0001 \xc3\xa4 \\ufffd \\ufffd\\ufffd\\ufffd\","));
  CHECK(json.find('<') == std::string::npos);
  const std::string html = p.to_html();
  CHECK(html.find("http") == html.rfind("http"));  // only SVG's name
  CHECK_THAT(html, test::contains("http://www.w3.org/2000/svg"));
}

TEST_CASE("files by their extension; a bad path is one sentence") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return xla::exp(x); });
  auto x = xla::ones<float>({4});
  const xla::Profile p = xla::profile(f, x);
  const std::string name = "profile_test_file";
  for (const char* end : {".html", ".json", ".txt"}) {
    p.write(name + end);
    const std::string text = xla::io::read_text(name + end);
    CHECK(text == (end == std::string(".html")   ? p.to_html()
                   : end == std::string(".json") ? p.to_json()
                                                 : p.table(xla::ProfileSort::time, -1)));
    std::remove((name + end).c_str());
  }
  CHECK_THROWS_MATCHES(p.write("no/such/folder.html"), xla::io_error,
                       Catch::Matchers::Message("profile: cannot open 'no/such/folder.html' for "
                                                "writing: No such file or directory"));
}

// A program of its own for the test below.
TEST_CASE("a recording has what runs between its start and its end") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return xla::exp(x); }, {.name = "first"});
  auto g = xla::compile([](auto& x) { return xla::tanh(x); }, {.name = "second"});
  const auto x = xla::ones<float>({4});
  f(x);
  xla::ProfileRecording all, recording({.calls = 2, .warmup = 1});
  for (int i = 0; i < 5; ++i) g(x);
  const xla::Profile p = recording.stop();
  REQUIRE(p.functions.size() == 1);
  CHECK(p.functions[0].name == "second");
  CHECK(p.functions[0].calls == 2);
  CHECK_THROWS_WITH(recording.stop(), "ProfileRecording::stop: it has been called before");
  {
    const xla::eager_mode_guard traced(false);
    const auto pending = x + 1;  // runs before the recording ends
    CHECK(all.stop().functions.size() == 2);
  }
  CHECK_THROWS_AS(xla::ProfileRecording{}.stop(), xla::runtime_error);  // nothing ran
  CHECK(!xla::detail::profiler::on());
}

TEST_CASE("profiled program", "[.profiled]") {
  training t;
  auto step = xla::compile(test::step_fn, {.name = "train"});
  for (int i = 0; i < 20; ++i) step(t.model, t.data, t.target, t.loss_fn, t.optimizer);
  auto f = xla::compile([](auto& x) { return xla::exp(x); }, {.name = "other"});
  for (const int n : {4, 5}) {
    auto x = xla::ones<float>({n});
    f(x);
  }
  xla::eager_mode(false);
  auto y = xla::tanh(t.data);
  xla::sync();
}

TEST_CASE("XLA_PROFILE profiles a program that knows nothing of it") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  auto run = [&](const std::string& path) {
    const std::string command = "XLA_PROFILE=" + path + " '" + self +
                                "' '[.profiled]' > profile_test_out.txt 2> profile_test_err.txt";
    CHECK(std::system(command.c_str()) == 0);
    const std::string said = xla::io::read_text("profile_test_err.txt");
    std::remove("profile_test_out.txt");
    std::remove("profile_test_err.txt");
    return said;
  };
  const std::string path = "profile_test_program.txt";
  std::remove(path.c_str());
  CHECK(run(path).empty());
  const std::string text = xla::io::read_text(path);
  std::remove(path.c_str());
  CHECK_THAT(text, test::contains("\ntrain (32, 24) (32,)\n") &&
                       test::contains("(median of 10 calls)") && test::contains("\nother (4,)\n") &&
                       test::contains("\nother (5,)\n") && test::contains("\ntraced (32, 24)\n") &&
                       test::contains("map tanh (32, 24)"));
  CHECK_THAT(run("no/such/folder.html"),
             test::contains("XLA_PROFILE: profile: cannot open 'no/such/folder.html' for writing: "
                            "No such file or directory\n"));
}
