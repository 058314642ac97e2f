// SPDX-License-Identifier: Apache-2.0
// What xla::explain() says of the three questions that tracing leaves open: what runs when, what
// gets into the graph of a step, and why it was planned again. Compiled with -g1 -O0, for the lines.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "xla/io/text.hpp"
#include "xla/run/explain.hpp"
#include "xla/run/state/scope_watch.hpp"
#include "xla/xla.hpp"

#include "catch.hpp"

using xla::Eager;

namespace {

std::string at(int line) { return "explain.cpp:" + std::to_string(line); }

xla::ExplainedLine find(const xla::Explanation& e, int line) {
  for (const xla::ExplainedLine& l : e.lines)
    if (l.source == at(line)) return l;
  return {};
}
/// The graphs that ended for a cause, wherever that was.
std::vector<xla::ExplainedGraph> ended(const xla::Explanation& e, const std::string& cause) {
  std::vector<xla::ExplainedGraph> all;
  for (const xla::ExplainedLine& l : e.lines)
    for (const xla::ExplainedGraph& g : l.graphs)
      if (g.cause == cause) all.push_back(g);
  return all;
}
std::int64_t ops_of(const xla::ExplainedGraph& g, int line) {
  for (const auto& p : g.parts)
    if (p.source == at(line)) return p.ops;
  return 0;
}
std::int64_t ops_of(const xla::ExplainedGraph& g) {
  std::int64_t n = 0;
  for (const auto& p : g.parts) n += p.ops;
  return n;
}

/// Data as a program prepares them, with one op more in every second batch.
constexpr int prepared = __LINE__ + 2, doubled = prepared + 1;
[[gnu::noinline]] xla::Tensor<float, 2> prepare(int i, std::int64_t rows = 4) {
  auto x = (xla::rand<float>({rows, 3}) - 0.5f) * 0.25f;
  if (i % 2 == 1) x = xla::tanh(x);
  return x;
}

struct training {
  xla::nn::Linear model{3, 2};
  xla::optim::SGD<xla::nn::Linear> optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
};
constexpr int forward = __LINE__ + 3, backward = forward + 1, update = forward + 2;
constexpr auto train_step = [](auto& model, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mean(xla::tanh(model(x)));
  loss.backward();
  optimizer.step();
  return loss;
};

}  // namespace

TEST_CASE("an explanation says of each line what ran at once, what was recorded, and what ran it") {
  const auto step = [](xla::Tensor<float, 2>& y) {
    const auto x = prepare(0);
    y = xla::exp(x);
    return y.to_vector();
  };
  constexpr int exponential = __LINE__ - 3, read = exponential + 1;
  xla::Tensor<float, 2> y;
  {
    const xla::eager_mode_guard eager;
    const xla::Explanation e = xla::explain(step, y);
    CHECK(find(e, prepared).at_once == 3);
    CHECK(find(e, prepared).ops.size() == 3);
    CHECK(find(e, exponential).at_once == 1);
    CHECK(find(e, exponential).ops[0] == std::pair<std::string, std::int64_t>{"exp", 1});
    for (const auto& line : e.lines) {
      CHECK(line.recorded == 0);
      CHECK(line.graphs.empty());
    }
  }
  for (const bool fused : {false, true}) {
    const xla::eager_mode_guard mode =
        fused ? xla::eager_mode_guard(Eager::fused) : xla::eager_mode_guard(false);
    const xla::Explanation e = xla::explain(step, y);
    CHECK(find(e, prepared).recorded == 3);
    CHECK(find(e, prepared).at_once == 0);
    CHECK(find(e, exponential).recorded == 1);
    const auto graphs = find(e, read).graphs;
    REQUIRE(graphs.size() == 1);
    CHECK(graphs[0].cause == "value read before sync");
    CHECK(graphs[0].runs == 1);
    CHECK(ops_of(graphs[0], prepared) == 3);
    CHECK(ops_of(graphs[0], exponential) == 1);
    CHECK(ops_of(graphs[0]) == 4);
    CHECK(e.waiting == 0);
  }
  const xla::eager_mode_guard traced(false);
  const xla::Explanation waits = xla::explain([&] { y = xla::exp(y); });
  const std::string line = at(__LINE__ - 1);
  CHECK(waits.waiting == 1);
  CHECK_THAT(waits.to_string(),
             test::contains(line + "  1 op recorded: exp\n") &&
                 test::contains("1 op is recorded and waiting: sync(), a read, or the next graph"));
  const xla::Explanation ends = xla::explain([] { xla::sync(); });
  CHECK(ends.lines.empty());  // it ran before, so that it does not count here
}

TEST_CASE("the preparation of data does not get into a step's graph") {
  // Each with its own number of rows, as graphs of earlier ones are known.
  const auto loop = [](training& t, std::int64_t rows, auto&& step) {
    for (int i = 0; i < 6; ++i) {
      auto x = prepare(i, rows);
      step(t.model, x, t.optimizer);
    }
  };
  SECTION("eager, with a compiled step") {
    const xla::eager_mode_guard eager;
    training t;
    auto step = xla::compile(train_step, {.name = "train"});
    const xla::Explanation e = xla::explain(loop, t, 5, step);
    CHECK(find(e, prepared).at_once == 18);
    CHECK(find(e, doubled).at_once == 3);
    const auto steps = ended(e, "compiled");
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].name == "train");
    CHECK(steps[0].runs == 6);
    CHECK(steps[0].plans.size() == 1);
    for (const auto& line : e.lines) CHECK(line.recorded == 0);
  }
  SECTION("traced, with a compiled step") {
    const xla::eager_mode_guard traced(false);
    training t;
    auto step = xla::compile(train_step, {.name = "train"});
    const xla::Explanation e = xla::explain(loop, t, 6, step);
    const auto steps = ended(e, "compiled"), data = ended(e, "value read before sync");
    REQUIRE((steps.size() == 1 && data.size() == 1));
    CHECK(steps[0].plans.size() == 1);
    CHECK(data[0].runs == 6);
    CHECK(ops_of(data[0]) == 21);
    CHECK(data[0].plans.size() == 2);
  }
  SECTION("eager and fused") {
    const xla::eager_mode_guard fused(Eager::fused);
    training t;
    const xla::Explanation e = xla::explain(loop, t, 7, train_step);
    const auto steps = ended(e, "optimizer step"), data = ended(e, "forward pass");
    REQUIRE((steps.size() == 1 && data.size() == 1));
    CHECK(steps[0].runs == 6);
    CHECK(steps[0].plans.size() == 1);
    CHECK(ops_of(steps[0], prepared) == 0);
    CHECK(ops_of(steps[0], doubled) == 0);
    for (const int line : {forward, backward, update}) {
      CHECK(ops_of(steps[0], line) > 0);
      CHECK(ops_of(steps[0], line) % 6 == 0);
    }
    CHECK(ops_of(data[0], prepared) == 18);
    CHECK(ops_of(data[0], doubled) == 3);
    CHECK(ops_of(data[0]) == 21);
  }
}

TEST_CASE("an explanation names what made a graph or signature new, with its line") {
  SECTION("a traced step takes in what was prepared, and is planned for each form of it") {
    const xla::eager_mode_guard traced(false);
    training t;
    const xla::Explanation e = xla::explain([&] {
      for (int i = 0; i < 4; ++i) {
        auto x = prepare(i, 8);
        train_step(t.model, x, t.optimizer);
        xla::sync();
      }
    });
    const auto graphs = find(e, __LINE__ - 3).graphs;
    REQUIRE(graphs.size() == 1);
    CHECK(graphs[0].cause == "user sync");
    CHECK(graphs[0].runs == 4);
    CHECK(ops_of(graphs[0], prepared) == 12);
    REQUIRE(graphs[0].plans.size() == 2);
    CHECK(graphs[0].plans[0].run == 1);
    CHECK(graphs[0].plans[1].run == 2);
    CHECK_THAT(graphs[0].plans[1].changed,
               test::contains("-> `tanh` float32 (8, 3), " + at(doubled)));
  }
  SECTION("a compiled step is planned for each signature") {
    const xla::eager_mode_guard eager;
    training t;
    auto step = xla::compile(train_step, {.name = "train"});
    const xla::Explanation e = xla::explain([&] {
      for (const int rows : {4, 4, 2, 4}) {
        auto x = prepare(0, rows);
        step(t.model, x, t.optimizer);
      }
    });
    const auto calls = find(e, __LINE__ - 3).graphs;
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].runs == 4);
    REQUIRE(calls[0].plans.size() == 2);
    CHECK(calls[0].plans[0].changed == "the first signature");
    CHECK(calls[0].plans[1].run == 3);
    CHECK(calls[0].plans[1].changed == "argument 1: (4, 3) -> (2, 3)");
    CHECK_THAT(e.to_string(), test::contains("train called 4 times\n") &&
                                  test::contains("planned in run 3: argument 1: (4, 3) -> (2, 3)"));
  }
}

TEST_CASE("an explained function computes the same, and an exception ends the explanation") {
  const auto weights = [](bool explained) {
    const xla::eager_mode_guard fused(Eager::fused);
    xla::manual_seed(5);
    training t;
    const auto train = [&] {
      for (int i = 0; i < 3; ++i) {
        auto x = prepare(i);
        train_step(t.model, x, t.optimizer);
      }
    };
    if (explained) xla::explain(train);
    else train();
    return t.model.weight.to_vector();
  };
  CHECK(weights(true) == weights(false));
  CHECK_THROWS_AS(xla::explain([] { throw std::runtime_error("no"); }), std::runtime_error);
  CHECK(xla::detail::watched_runs() == nullptr);
  const xla::eager_mode_guard eager;
  xla::Explanation inner;
  const xla::Explanation outer = xla::explain([&] {
    prepare(0);
    inner = xla::explain([] { prepare(1); });
  });
  CHECK(find(outer, prepared).at_once == 6);
  CHECK(find(inner, prepared).at_once == 3);
}

TEST_CASE("explained program", "[.explained]") {
  const xla::eager_mode_guard traced(false);
  const auto x = prepare(0);
  xla::sync();
}

TEST_CASE("XLA_EXPLAIN explains a program that knows nothing of it") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto run = [&](const std::string& to) {
    const std::string command = "XLA_EXPLAIN=" + to + " '" + self +
                                "' '[.explained]' > explain_test_out.txt 2> explain_test_err.txt";
    CHECK(std::system(command.c_str()) == 0);
    const std::string said = xla::io::read_text("explain_test_err.txt");
    std::remove("explain_test_out.txt");
    std::remove("explain_test_err.txt");
    return said;
  };
  const auto check = [](const std::string& said) {
    CHECK_THAT(said, test::contains("What ran when, by line:\n") &&
                         test::contains(at(prepared) + "   3 ops recorded: ") &&
                         test::contains("a graph ended here: user sync\n") &&
                         test::contains("  3 ops of " + at(prepared) + "\n"));
  };
  check(run("1"));
  const std::string path = "explain_test_program.txt";
  std::remove(path.c_str());
  CHECK(run(path).empty());
  check(xla::io::read_text(path));
  std::remove(path.c_str());
  CHECK(run("0").empty());
  CHECK_THAT(run("no/such/folder.txt"),
             test::contains("XLA_EXPLAIN: cannot open 'no/such/folder.txt' for writing"));
}
