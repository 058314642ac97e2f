// SPDX-License-Identifier: Apache-2.0
// The pass recompute acts on graphs of traced and fused mode as on compiled ones.
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "catch.hpp"
#include "support/modes.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/transform/print.hpp"
#include "xla/xla.hpp"

namespace {

/// What runs in a scope: the steps of the last graph, and the memory of its values.
class last_graph : xla::detail::plan_watch {
 public:
  std::string steps;
  std::int64_t bytes = 0;
  last_graph() : plan_watch{&run_steps, &is_new, &introduce} {
    xla::detail::the_process.watch = this;
  }
  ~last_graph() { xla::detail::the_process.watch = nullptr; }

 private:
  static bool is_new(plan_watch&, const xla::detail::planned&) { return false; }
  static void introduce(plan_watch& self, const xla::detail::planned& e, const std::string&,
                        const xla::detail::list<std::string>&) {
    auto& own = static_cast<last_graph&>(self);
    own.steps = xla::detail::print(e.get_plan().source);
    own.bytes = e.memory().arena;
  }
  static void run_steps(plan_watch&, const xla::detail::planned& e, const xla::detail::frame& f,
                        const xla::rng_state* random) {
    e.run_all(f, random);
  }
};

/// How often a program computes each op, beyond how often another one does.
std::map<std::string, int> more_ops(const std::string& with, const std::string& without) {
  std::map<std::string, int> count;
  const auto add = [&](const std::string& program, int by) {
    std::istringstream lines(program);
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find("step ");
      if (at == line.npos) continue;
      const auto region = line.find(" kernel ");
      std::istringstream ops(region == line.npos ? line.substr(line.find("= ", at) + 2)
                                                 : line.substr(line.find("):", region) + 2));
      for (std::string op; ops >> op && op != "reads";) {
        count[op.substr(0, op.find('('))] += by;
        if (region == line.npos) break;
      }
    }
  };
  add(with, 1);
  add(without, -1);
  std::erase_if(count, [](const auto& of) { return of.second == 0; });
  return count;
}

constexpr auto gated = [](auto& x, auto& w, auto& v) {
  const auto gate = xla::matmul(x, w), up = xla::matmul(x, v);
  const auto h = xla::silu(gate) * up;
  const auto loss = xla::sum(xla::square(xla::matmul(xla::matmul(h, w), v)));
  loss.backward();
  return loss;
};
constexpr auto normed = [](auto& x, auto& w, auto& v) {
  const auto scale = xla::sum(v, {0}), bias = xla::sum(w, {0});
  const auto h = xla::relu(xla::batch_norm(xla::matmul(x, w), scale, bias));
  const auto loss = xla::sum(xla::square(xla::matmul(h, v)));
  loss.backward();
  return loss;
};
constexpr auto attending = [](auto& x, auto& w, auto& v) {
  const auto split = [](const auto& t) {
    return xla::transpose(xla::reshape(t, {48, 4, 4}), 0, 1);
  };
  const auto q = split(xla::matmul(x, w)), k = split(xla::matmul(x, v));
  const auto scores = xla::softmax(xla::matmul(q, xla::transpose(k, 1, 2)));
  const auto loss = xla::sum(xla::square(xla::matmul(scores, k)));
  loss.backward();
  return loss;
};

template <class F>
void check(F f, bool saves) {
  const auto x = test::numbers<float>({48, 16}, 1);
  const auto w = test::parameter(test::numbers<float>({16, 16}, 2)),
             v = test::parameter(test::numbers<float>({16, 16}, 3));
  const auto compiled =
      more_ops(xla::compile(f).graph("lowered", x, w, v),
               xla::compile<xla::tags::without<"recompute">>(f).graph("lowered", x, w, v));
  CHECK(!compiled.empty());
  const auto run = [&](test::mode how) {
    last_graph seen;
    const auto left = test::run_as_told(how, f, x, w, v);
    return std::tuple(left, seen.steps, seen.bytes);
  };
  const auto want = std::get<0>(run(test::mode::eager));
  for (const auto how : {test::mode::traced, test::mode::fused}) {
    const auto [got, with, bytes] = run(how);
    const test::traced_without one("-recompute");
    const auto [same, without, kept] = run(how);
    CAPTURE(with, without);
    CHECK(got.difference(want) == "");
    CHECK(same.difference(want) == "");
    CHECK(more_ops(with, without) == compiled);
    CHECK((bytes < kept) == saves);
  }
}

}  // namespace

TEST_CASE("recompute acts in traced and fused mode as in compiled mode") {
  check(gated, true);
  check(normed, false);  // it stores less, where other values are many
  check(attending, true);
}
