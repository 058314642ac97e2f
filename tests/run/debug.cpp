// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "xla/run/plan/debug.hpp"
#include "xla/run/plan/verify.hpp"
#include "xla/xla.hpp"

namespace {

/// XLA_DEBUG's output while it lives.
class debug_output {
 public:
  explicit debug_output(int level) {
    std::remove(name);
    xla::detail::debug_log::instance().set(level, name);
  }
  ~debug_output() {
    xla::detail::debug_log::instance().set(0, "");
    std::remove(name);
  }
  std::string text() const {
    std::stringstream s;
    s << std::ifstream(name).rdbuf();
    return s.str();
  }

 private:
  static constexpr const char* name = "debug_output.txt";
};

}  // namespace

TEST_CASE("a new signature says which argument changed") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& a, auto& b) { return xla::matmul(a, b); }, {.name = "product"});
  auto a = xla::ones<float>({4, 3}), b = xla::ones<float>({3, 2}), c = xla::ones<float>({6, 3});
  const debug_output out(1);
  f(a, b);
  CHECK_THAT(out.text(), test::contains("Cause: compile") && test::contains("Name: product") &&
                             test::contains("Number of Graph Inputs: 2") &&
                             test::contains("What changed: the first signature"));
  f(a, b);
  const auto before = out.text();
  f(c, b);
  CHECK_THAT(out.text().substr(before.size()),
             test::contains("What changed: argument 0: (4, 3) -> (6, 3)\n"));
}

TEST_CASE("a new graph says which op changed, and what caused it") {
  const xla::eager_mode_guard traced(false);
  const auto x = xla::tensor<float>({{1, 2, 3, 4, 5}});
  const debug_output out(1);
  const auto a = xla::exp(x + x);
  xla::sync(true);
  CHECK_THAT(out.text(), test::contains("Cause: user sync"));
  const auto before = out.text();
  const auto b = xla::exp(x * x);
  b.to_vector();
  CHECK_THAT(out.text().substr(before.size()),
             test::contains("Cause: value read before sync") &&
                 test::contains("op 0: `add` float32 (1, 5) -> `mul` float32 (1, 5)"));
}

TEST_CASE("level 2 shows each execution") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& a) { return a + 1.f; }, {.name = "plus"});
  auto a = xla::ones<float>({4});
  const debug_output out(2);
  f(a);
  f(a);
  const auto text = out.text();
  CHECK(text.find("Execution: plus") != text.rfind("Execution: plus"));
}

namespace {

using sizes = std::pair<std::int64_t, std::int64_t>;

/// What is written, and how often it is counted, as a function takes tensors of such sizes.
std::string warned(auto&& call, const std::vector<sizes>& all) {
  const auto count = [] { return xla::counter_value("VaryingSizeWarning").value_or(0); };
  const auto before = count();
  const debug_output out(0);
  for (const auto& [rows, columns] : all) call(rows, columns);
  const auto text = out.text();
  CHECK(count() - before == (text.empty() ? 0 : 1));
  return text;
}
/// Sizes that begin with some, one after another.
std::vector<sizes> sizes_of(int n, auto&& at) {
  std::vector<sizes> out;
  for (int i = 0; i < n; ++i) out.push_back(at(i));
  return out;
}

}  // namespace

TEST_CASE("sixteen signatures that differ in one size are reported once, with the remedy") {
  const xla::eager_mode_guard eager;
  const auto body = [](auto& weight, auto& tokens, auto& mask) {
    return xla::sum(xla::matmul(tokens, weight) * xla::cast<float>(mask));
  };
  const auto longer = [](std::int64_t i) { return sizes{4, 10 + i}; };
  const auto called = [](auto& f) {
    return [&](std::int64_t rows, std::int64_t length) {
      auto weight = xla::ones<float>({length, length});
      auto tokens = xla::ones<float>({rows, length}), mask = xla::ones<float>({rows, length});
      f(weight, tokens, mask);
    };
  };
  auto f = xla::compile(body, {.name = "score"});
  CHECK(warned(called(f), sizes_of(15, longer)).empty());
  CHECK(warned(called(f), sizes_of(15, longer)).empty());  // known ones
  CHECK(warned(called(f), {{4, 99}}) ==
        "xla::compile: 16 signatures of score differ in one size alone, axis 0 of argument 0; pad "
        "it to few sizes with data::pad_to, or batches with data::Buckets\n");
  CHECK(warned(called(f), sizes_of(40, longer)).empty());
  auto again = xla::compile(body, {.name = "score"});  // another function
  CHECK_THAT(warned(called(again), sizes_of(40, longer)), test::contains("16 signatures of score"));
}

TEST_CASE("the size that varies is found among others, and several are not reported") {
  const xla::eager_mode_guard eager;
  struct Batch {
    xla::Tensor<float, 2> tokens;
    xla::Tensor<float, 1> labels;
    XLA_MODULE(tokens, labels)
  };
  const auto body = [](auto& offset, auto& batch) {
    return xla::sum(batch.tokens + xla::sum(offset)) + xla::sum(batch.labels);
  };
  const auto called = [](auto& f) {
    return [&](std::int64_t rows, std::int64_t length) {
      auto offset = xla::ones<float>({1});
      Batch batch{xla::ones<float>({rows, length}), xla::ones<float>({rows + 1})};
      f(offset, batch);
    };
  };
  auto both = xla::compile(body);
  CHECK(warned(called(both), sizes_of(30, [](int i) { return sizes{2 + i, 2 + 2 * i}; })).empty());
  auto opposed = xla::compile(body);
  CHECK(warned(called(opposed), sizes_of(30, [](int i) { return sizes{2 + i, 40 - i}; })).empty());
  auto few = xla::compile(body);
  const auto grid = sizes_of(45, [](int i) { return sizes{2 + i % 3, 2 + i / 3}; });
  CHECK(warned(called(few), grid).empty());
  // The last batch of an epoch is short.
  auto last = xla::compile(body);
  const auto with_short = sizes_of(31, [](int i) { return sizes{i % 2 ? 8 : 5, 7 + i}; });
  CHECK_THAT(warned(called(last), with_short),
             test::contains("16 signatures of step differ in one size alone, axis 1 of "
                            "argument 1.tokens; pad"));
  // Labels have one more row than tokens have.
  auto rows = xla::compile(body);
  CHECK_THAT(warned(called(rows), sizes_of(16, [](int i) { return sizes{3 + i, 7}; })),
             test::contains("axis 0 of argument 1.tokens"));
}

TEST_CASE("a compiled function shows its graph at every stage") {
  auto f = xla::compile([](auto& a, auto& b) {
    const auto e = xla::exp(a) * 1.f;
    return xla::relu(e + b) + xla::exp(a);
  });
  xla::Tensor<float, 2> a, b;
  const auto captured = f.graph(xla::Stage::captured, a, b);
  CHECK_THAT(captured, test::contains("%0 = input slot 0 : float32 (s0, s1)") &&
                           test::contains("= exp(%0)") && test::contains("= constant 1"));
  const auto simplified = f.graph(xla::Stage::simplified, a, b);
  CHECK_THAT(simplified, !test::contains("mul"));
  auto exps = [](const std::string& s) {
    int n = 0;
    for (std::size_t at = 0; (at = s.find("= exp(", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(exps(simplified) == 2);
  CHECK(exps(f.graph(xla::Stage::shared, a, b)) == 1);
  CHECK_THAT(f.graph(xla::Stage::lowered, a, b),
             test::contains(": exp add relu add reads %0 %1") &&
                 !test::contains("step 1"));
}

namespace {

/// Of a sum of a product of x, traced.
std::string steps_of_two_ops(const xla::Tensor<float, 1>& x) {
  const xla::eager_mode_guard traced(false);
  const debug_output out(1);
  const auto y = x * 2 + 1;
  xla::sync(true);
  CHECK(y.to_vector() == std::vector<float>{3, 5});
  const auto said = out.text();
  const auto at = said.find("Steps: ");
  return at == std::string::npos ? "known" : said.substr(at, 8);
}

}  // namespace

TEST_CASE("a traced graph is made again where other passes run, and found again") {
  const auto x = xla::tensor<float>({1, 2});
  CHECK(steps_of_two_ops(x) == "Steps: 1");
  xla::set_passes("-fuse,-share");
  CHECK(steps_of_two_ops(x) == "Steps: 2");
  xla::set_passes("");
  CHECK(steps_of_two_ops(x) == "known");
}

namespace {

/// Bytes between the steps of a product in autocast of what is made for it, traced.
int bytes_between(const xla::Tensor<float, 2>& x) {
  const xla::eager_mode_guard traced(false);
  const debug_output out(1);
  const auto y = xla::autocast(x, [&] { return xla::matmul(xla::tanh(x), x); });
  xla::sync(true);
  const auto said = out.text();
  const std::string before = "intermediates ";
  return std::stoi(said.substr(said.find(before) + before.size()));
}

}  // namespace

TEST_CASE("a traced graph stores as bfloat16 what products in autocast alone read") {
  const auto x = xla::ones<float>({64, 64});
  CHECK(bytes_between(x) == 64 * 64 * 2);
  xla::set_passes("-bfloat16_storage");
  CHECK(bytes_between(x) == 64 * 64 * 4);
  xla::set_passes("");
}

TEST_CASE("passes that are not there are refused with those that are") {
  std::string all;
  for (const auto& p : xla::detail::pass_labels)
    if (p.is != xla::detail::pass_label::kind::needed)
      all += (all.empty() ? "" : ", ") + std::string(p.name);
  CHECK_THROWS_WITH(xla::set_passes("-share,-shar"),
                    "xla::set_passes: no pass is called \"shar\"; there are " + all);
  CHECK_THROWS_WITH(xla::set_passes("share"),
                    "xla::set_passes: \"share\" disables no pass: write -share, or -share,-fuse");
  CHECK_THROWS_WITH(xla::set_passes("-gradient_uses"),
                    test::contains("no pass is called \"gradient_uses\""));
}

TEST_CASE("a pass that leaves steps in an order that cannot run is refused") {
  using namespace xla::detail;
  // %1 = step 0 of %0, %2 = step 1 of %1.
  const int inputs[] = {0, 1}, outputs[] = {1, 2};
  step steps[2];
  for (int i : {0, 1}) {
    steps[i].first_input = steps[i].first_output = i;
    steps[i].inputs = steps[i].outputs = 1;
  }
  plan p{sized_program{}};
  p.source.steps = steps;
  p.source.inputs = inputs;
  p.source.outputs = outputs;
  p.source.count = {.values = 3, .steps = 2, .inputs = 2, .outputs = 2};
  for (int v : {0, 1, 2}) p.base.push_back(v);
  p.group_of.assign(2, -1);
  const auto said_of_order = [&](int first, int second) {
    p.order.assign(1, first);
    p.order.push_back(second);
    return std::string(verify<void>(p).view());
  };
  CHECK(said_of_order(0, 1) == "");
  CHECK(said_of_order(1, 0) == "step 0 runs before the steps that it reads");
  CHECK(said_of_order(0, 0) == "step 1 has run before");
  p.group_of.assign(2, 0);
  p.groups.push_back({.first = 0, .last = 1, .slices = 4});
  CHECK(said_of_order(0, 1) == "");
  p.groups[0].slices = step_group::whole;
  CHECK(said_of_order(0, 1) == "step 1 runs side by side with a step that it reads");
  p.groups[0].last = 0;
  CHECK(said_of_order(0, 1) == "step 1 is outside of its group");
}

// For tests that begin with XLA_PASSES set; see tests.cmake.
TEST_CASE("XLA_PASSES leaves passes out from the start", "[.environment]") {
  const auto x = xla::tensor<float>({1, 2});
  REQUIRE(std::getenv("XLA_PASSES"));
  CHECK(steps_of_two_ops(x) == "Steps: 2");
}
TEST_CASE("XLA_PASSES with a name that is not there is refused at the first graph",
          "[.wrong_environment]") {
  const xla::eager_mode_guard traced(false);
  const auto y = xla::tensor<float>({1, 2}) * 2;
  CHECK_THROWS_WITH(xla::sync(true), test::contains("XLA_PASSES: no pass is called \"shar\""));
}
