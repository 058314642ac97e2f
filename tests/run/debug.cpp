// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>
#include <sstream>

#include <xla/run/plan/debug.hpp>
#include <xla/xla.hpp>

#include "catch.hpp"

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
