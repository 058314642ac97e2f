// SPDX-License-Identifier: Apache-2.0
// Carries that are updated where they lie: then a loop has one place for them, that of its result.
#include <cstdint>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"

using test::numbers;

namespace {

constexpr std::int64_t rows = 50, columns = 16, bytes = 4 * rows * columns;

struct row_number {
  constexpr auto operator()(const auto& i) const { return xla::reshape(i, {1}); }
};
constexpr row_number row;

/// A loop that carries a table and a number, which counts its steps; body(table, number, x).
template <class Body>
struct table_loop {
  constexpr auto operator()(const auto& table, const auto& xs) const {
    const auto step = [](const auto& carry, const auto& x) {
      const auto& [t, i] = carry;
      return std::pair(std::tuple(Body()(t, i, x), i + 1), std::tuple<>());
    };
    return xla::scan(step, std::tuple(table, xla::tensor<std::int64_t>(0)), xs).first;
  }
};
template <class Body>
bool has_one_place(Body) {
  const table_loop<Body> f;
  const auto table = numbers<float>({rows, columns}), xs = numbers<float>({20, columns});
  test::check_modes(f, table, xs);
  auto compiled = xla::compile(f);
  return compiled.memory_analysis(table, xs).arena < bytes;
}

}  // namespace

TEST_CASE("steps that write some rows of a table copy nothing of it") {
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    return xla::index_copy(t, 0, row(i), unsqueeze(x, 0));
  }));
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    return xla::index_add(t, 0, row(i), unsqueeze(x, 0));
  }));
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    auto next = t;
    next.index_copy_(0, row(i), unsqueeze(x, 0));
    return next;
  }));
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    const auto where = xla::expand(xla::reshape(i, {1, 1}), {1, columns});
    return xla::scatter(t, 0, where, unsqueeze(x, 0));
  }));
  CHECK(has_one_place([](const auto& t, const auto&, const auto& x) {
    auto next = t;
    next[3] = x;
    return next;
  }));
}

TEST_CASE("what a step reads of the old rows, it reads before it writes") {
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    const auto old = xla::index_select(t, 0, row(i));
    return xla::index_copy(t, 0, row(i), old * 0.5f + x);
  }));
  CHECK(has_one_place([](const auto& t, const auto&, const auto& x) {
    return t - 0.1f * tanh(matmul(t, unsqueeze(x, 1))) * x;
  }));
}

TEST_CASE("accumulators are written over what they read") {
  CHECK(has_one_place([](const auto& t, const auto&, const auto& x) { return t + x; }));
}

TEST_CASE("a table of which a step needs the old rows behind its write has two places") {
  CHECK(!has_one_place([](const auto& t, const auto& i, const auto& x) {
    return xla::index_copy(t, 0, row(i), unsqueeze(x, 0)) + xla::flip(t, {0});
  }));
}
