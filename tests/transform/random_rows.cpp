// SPDX-License-Identifier: Apache-2.0
// Random programs of matrices, rows and columns: what row regions are made of.
#include "support/layouts.hpp"
#include "support/modes.hpp"
#include "support/programs.hpp"

using test::mode;
using test::numbers;

namespace {

using sizes = std::pair<std::int64_t, std::int64_t>;
const sizes shapes[] = {{5, 7}, {1, 1}, {18, 33}, {1, 100}, {3, 16}, {40, 1}, {0, 3}, {3, 0}, {3, 150}};

template <class T, class F>
void check_compiled(F f) {
  const xla::eager_mode_guard eager;
  for (auto [n, m] : shapes) {
    INFO(n << " x " << m);
    test::check_modes<xla::tags::verified>(f, numbers<T>({n, m}, 3), numbers<T>({n, m}, 4));
  }
}
template <class T, unsigned Seed>
using program = test::fixed_row_program<T, XLA_TEST_SEED + Seed, 30>;

}  // namespace

TEST_CASE("random programs of rows are the same eager and traced") {
  const xla::eager_mode_guard eager;
  for (unsigned i = 0; i < 400; ++i) {
    const unsigned seed = XLA_TEST_SEED + i;
    const auto [n, m] = shapes[seed % std::size(shapes)];
    const auto x = numbers<float>({n, m}, 3), y = numbers<float>({n, m}, 4);
    const test::random_row_program<float> f{seed, 40};
    const auto want = test::check_traced(f, seed, x, y);
    INFO("on the interpreter, seed " << seed);
    const test::on_backend op_by_op("interpreter");
    REQUIRE(test::run_mode<mode::traced>(f, x, y).difference(want) == "");
  }
}

TEST_CASE("random programs of rows are the same traced with any one pass disabled") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({5, 7}, 3), y = numbers<float>({5, 7}, 4);
  for (const auto& pass : xla::detail::pass_labels) {
    if (pass.is == xla::detail::pass_label::kind::needed) continue;
    const test::traced_without one("-" + std::string(pass.name));
    INFO("without " << pass.name);
    for (unsigned i = 0; i < 20; ++i) {
      const unsigned seed = XLA_TEST_SEED + i;
      test::check_traced(test::random_row_program<float>{seed, 40}, seed, x, y);
    }
  }
}

TEST_CASE("random programs of rows are the same compiled, seed 1") {
  check_compiled<float>(program<float, 1>{});
}
TEST_CASE("random programs of rows are the same compiled, seed 2") {
  check_compiled<float>(program<float, 2>{});
}
TEST_CASE("random programs of rows are the same compiled, seed 3") {
  check_compiled<double>(program<double, 3>{});
}
TEST_CASE("random programs of rows in random orders are the same compiled") {
  check_compiled<float>(test::fixed_shuffled_program<XLA_TEST_SEED + 4, program<float, 4>>{});
}
