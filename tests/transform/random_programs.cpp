// SPDX-License-Identifier: Apache-2.0
// Programs drawn at random mean the same in every mode: every pass, the memory plan, in-place state.
#include "support/layouts.hpp"
#include "support/modes.hpp"
#include "support/programs.hpp"
#include "support/sanitized.hpp"

using test::mode;
using test::numbers;
using test::random_program;

namespace {

struct arguments {
  random_program::Weight v, w;
  random_program::Matrix x, y;
  explicit arguments(std::int64_t n)
      : v(random_program::Weight::like(numbers<float>({n, n}))), w(v),
        x(numbers<float>({n, n}, 3)), y(numbers<float>({n, n}, 4)) {
    v.copy_(numbers<float>({n, n}, 1) * 0.25);
    w.copy_(numbers<float>({n, n}, 2) * 0.25);
  }
};

}  // namespace

TEST_CASE("random programs are the same eager and traced") {
  const xla::eager_mode_guard eager;
  const arguments given[] = {arguments(5), arguments(1), arguments(17)};
  constexpr unsigned programs = test::sanitized ? 150 : 300;  // more of them in tests/attack.cmake
  for (unsigned i = 0; i < programs; ++i) {
    const unsigned seed = XLA_TEST_SEED + i;
    const arguments& a = given[seed % 3];
    const random_program f{seed, 40};
    const auto want = test::check_traced(f, seed, a.v, a.w, a.x, a.y);
    INFO("on the interpreter, seed " << seed);
    const test::on_backend op_by_op("interpreter");
    REQUIRE(test::run_mode<mode::traced>(f, a.v, a.w, a.x, a.y).difference(want) == "");
  }
}

TEST_CASE("random programs are the same traced with any one pass disabled") {
  const xla::eager_mode_guard eager;
  const arguments a(5);
  for (const auto& pass : xla::detail::pass_labels) {
    if (pass.is == xla::detail::pass_label::kind::needed) continue;
    const test::traced_without one("-" + std::string(pass.name));
    INFO("without " << pass.name);
    for (unsigned i = 0; i < (test::sanitized ? 10u : 20u); ++i) {
      const unsigned seed = XLA_TEST_SEED + i;
      test::check_traced(random_program{seed, 40}, seed, a.v, a.w, a.x, a.y);
    }
  }
}

TEMPLATE_TEST_CASE_SIG("random programs are the same compiled", "", ((int Seed), Seed), 1, 2, 3, 4,
                       5) {
  if constexpr (!test::few_compiled || Seed <= 2) {
    const xla::eager_mode_guard eager;
    using program = test::fixed_program<XLA_TEST_SEED + Seed, 30>;
    constexpr auto f = [] {
      if constexpr (Seed % 2 == 0) return xla::autocast(program{});
      else return program{};
    }();
    for (const std::int64_t n : {5, 1, 17}) {
      const arguments a(n);
      INFO("size " << n);
      test::check_modes<xla::tags::verified>(f, a.v, a.w, a.x, a.y);
    }
  }
}

TEST_CASE("random programs whose values are in random orders are the same compiled") {
  const xla::eager_mode_guard eager;
  using program = test::fixed_program<XLA_TEST_SEED + 6, 30>;
  for (const std::int64_t n : {5, 1, 17}) {
    const arguments a(n);
    INFO("size " << n);
    constexpr auto shuffled = test::fixed_shuffled_program<XLA_TEST_SEED + 6, program>{};
    test::check_modes<xla::tags::verified>(shuffled, a.v, a.w, a.x, a.y);
  }
}
