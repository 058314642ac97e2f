// SPDX-License-Identifier: Apache-2.0
// Bodies of loops drawn at random, with a loop in them, and their gradients: the same bits in every
// mode, also with one pass disabled.
#include <string>
#include <utility>

#include "support/random_loop.hpp"
#include "support/sanitized.hpp"

#ifndef XLA_TEST_SEED
#define XLA_TEST_SEED 0
#endif

using test::mode;

TEST_CASE("random loops are the same eager and traced") {
  const xla::eager_mode_guard eager;
  const test::loop_arguments a(4, 3);
  for (unsigned i = 0; i < 60; ++i) {
    const test::random_loop f{XLA_TEST_SEED + i, 8};
    INFO("seed " << f.seed);
    const auto want = test::run_mode<mode::eager>(f, a.v, a.w, a.xs);
    REQUIRE(test::run_mode<mode::traced>(f, a.v, a.w, a.xs).difference(want) == "");
  }
}

TEST_CASE("random loops are the same traced with any one pass disabled") {
  const xla::eager_mode_guard eager;
  const test::loop_arguments a(4, 3);
  for (unsigned i = 0; i < 4; ++i) {
    const test::random_loop f{XLA_TEST_SEED + 60 + i, 8};
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

TEMPLATE_TEST_CASE_SIG("random loops are the same compiled", "", ((unsigned Seed), Seed), 1, 2, 3,
                       4, 5, 6) {
  if constexpr (!test::few_compiled || Seed <= 2) {
    using xla::tags::verified;
    using xla::tags::without;
    constexpr xla::Passes passes[] = {verified,
                                      verified & without<"share">,
                                      verified & without<"simplify", "dead">,
                                      verified & without<"rows">,
                                      verified & without<"fuse">,
                                      verified & without<"layouts", "sink_draws">};
    for (const auto& [n, steps] : {std::pair{4, 3}, {1, 1}, {17, 2}}) {
      const test::loop_arguments a(n, steps);
      INFO("size " << n);
      const test::fixed_loop<XLA_TEST_SEED + Seed, 8> f;
      test::check_modes<passes[Seed % 6]>(f, a.v, a.w, a.xs);
    }
  }
}

TEST_CASE("a branch in a loop in a checkpoint goes back by its copy") {
  const test::loop_arguments a(4, 3);
  const test::fixed_loop<2003, 8> f;
  test::check_modes<xla::tags::verified>(f, a.v, a.w, a.xs);
}
