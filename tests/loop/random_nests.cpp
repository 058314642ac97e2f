// SPDX-License-Identifier: Apache-2.0
// Loops, branches and checkpoints drawn at random, in each other: values and gradients are the same
// bits in every mode, also with one pass disabled; gradients of gradients are the same to rounding.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "support/gradient.hpp"
#include "support/random_nest.hpp"

#ifndef XLA_TEST_SEED
#define XLA_TEST_SEED 0
#endif
#if XLA_TEST_SEED == 0
#define XLA_TEST_SEEDS 1
#else  // an attack
#define XLA_TEST_SEEDS 1, 2, 3, 4, 5, 6
#endif

using test::mode;
using test::nest_arguments;
using test::random_nest;

namespace {

constexpr unsigned times = XLA_TEST_SEED == 0 ? 1 : 20;  // as many seeds in an attack


/// Loops of 3 steps, of one and of none.
const nest_arguments& arguments_of(unsigned seed) {
  static const nest_arguments all[] = {nest_arguments(3, 3), nest_arguments(1, 1),
                                       nest_arguments(2, 0), nest_arguments(4, 2)};
  return all[seed % 4];
}

}  // namespace

TEST_CASE("random nests of loops are the same eager, traced and on the interpreter") {
  const xla::eager_mode_guard eager;
  for (unsigned i = 0; i < 30 * times; ++i) {
    const random_nest f{.seed = XLA_TEST_SEED + i, .depth = 1 + static_cast<int>(i % 3)};
    const nest_arguments& a = arguments_of(f.seed);
    INFO("seed " << f.seed << ", depth " << f.depth);
    const auto want = test::run_mode<mode::eager>(f, a.v, a.w, a.xs);
    REQUIRE(test::run_mode<mode::traced>(f, a.v, a.w, a.xs).difference(want) == "");
    const test::on_backend op_by_op("interpreter");
    INFO("on the interpreter");
    REQUIRE(test::run_mode<mode::traced>(f, a.v, a.w, a.xs).difference(want) == "");
  }
}

TEST_CASE("random nests of loops are the same traced with any one pass disabled") {
  const xla::eager_mode_guard eager;
  for (unsigned i = 0; i < 4 * times; ++i) {
    const random_nest f{.seed = XLA_TEST_SEED + 100 + i};
    const nest_arguments& a = arguments_of(f.seed);
    INFO("seed " << f.seed);
    const auto want = test::run_mode<mode::eager>(f, a.v, a.w, a.xs);
    for (const auto& pass : xla::detail::pass_labels) {
      if (pass.is == xla::detail::pass_label::kind::needed) continue;
      const test::traced_without one("-" + std::string(pass.name));
      INFO("without " << pass.name);
      REQUIRE(test::run_mode<mode::traced>(f, a.v, a.w, a.xs).difference(want) == "");
    }
  }
}

namespace {

template <unsigned Seed, bool Unroll = false>
struct fixed_nest {
  static constexpr random_nest drawn{.seed = Seed, .length = 2, .unroll = Unroll};
  constexpr auto operator()(auto& v, auto& w, auto& xs) const { return drawn(v, w, xs); }
};

/// What f makes, and the gradients that it leaves in copies of the arguments.
template <class F>
std::vector<std::vector<double>> numbers_of(F&& f, nest_arguments a, bool eagerly) {
  const xla::eager_mode_guard mode(eagerly);
  const auto made = f(a.v, a.w, a.xs);
  xla::sync();
  std::vector<std::vector<double>> all;
  const auto add = [&](const auto&... t) { (all.push_back(t.to_vector()), ...); };
  std::apply(add, made);
  add(a.v.grad(), a.w.grad(), a.xs.grad());
  return all;
}

/// To rounding, of the largest element of each tensor.
void check_close(const std::vector<std::vector<double>>& got,
                 const std::vector<std::vector<double>>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    INFO("tensor " << k);
    REQUIRE(got[k].size() == want[k].size());
    double largest = 1;
    for (const double x : want[k]) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < want[k].size(); ++i)
      REQUIRE(std::abs(got[k][i] - want[k][i]) <= 1e-10 * largest);
  }
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("random nests of loops are the same compiled", "", ((unsigned Seed), Seed),
                       XLA_TEST_SEEDS) {
  using xla::tags::verified;
  using xla::tags::without;
  constexpr xla::Passes passes[] = {
      verified,
      verified & without<"share">,
      verified & without<"simplify", "dead">,
      verified & without<"rows">,
      verified & without<"fuse">,
      verified & without<"layouts", "sink_draws">,
  };
  for (unsigned i = 0; i < 4; ++i) {
    const nest_arguments& a = arguments_of(i);
    INFO("arguments " << i);
    const fixed_nest<XLA_TEST_SEED + Seed> f;
    test::check_modes<passes[Seed % 6]>(f, a.v, a.w, a.xs);
  }
}

TEST_CASE("gradients of gradients through random nests of loops") {
  for (unsigned i = 0; i < 16 * times; ++i) {
    const random_nest f{.seed = XLA_TEST_SEED + 200 + i};
    const nest_arguments& a = arguments_of(f.seed);
    INFO("seed " << f.seed);
    const auto twice = [&](auto&... x) { return f.twice(x...); };
    check_close(numbers_of(twice, a, false), numbers_of(twice, a, true));
  }
}
