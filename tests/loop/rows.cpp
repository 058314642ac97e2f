// SPDX-License-Identifier: Apache-2.0
// Loops whose steps compute the rows of a batch independently run some of the rows on each thread,
// with the bits of one thread.
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"

using test::numbers;

namespace {

/// A cell with gates, normalised rows and a mask of the batch, and its gradient.
constexpr auto gated = [](auto& w, const auto& mask, const auto& xs) {
  w.zero_grad();
  const auto step = [&](const auto& s, const auto& x) {
    const auto& [h, c] = s;
    const auto [i, f, g] = xla::chunk<3>(xla::matmul(h, w) + x, 1);
    const auto next =
        xla::sigmoid(f) * c + xla::sigmoid(i) * xla::tanh(g) * xla::expand_as(mask, c);
    const auto out = xla::softmax(next, 1) + xla::sum(h, {1}, xla::keepdim);
    return std::pair(std::pair(out, next), next);
  };
  const auto first = xla::zeros_like(xla::slice(xla::select(xs, 0, 0), 1, 0, xs.size(2) / 3));
  const auto [last, path] = xla::scan(step, std::pair(first, first), xs);
  const auto loss = xla::sum(path * path) + xla::sum(last.first);
  loss.backward();
  return std::tuple(loss, last, path);
};

/// A cell with gates, whose loop backward is divided, too: it also saves what its steps read.
constexpr auto trained = [](auto& w, const auto& xs) {
  w.zero_grad();
  const auto step = [&](const auto& s, const auto& x) {
    const auto& [h, c] = s;
    const auto [i, f, g] = xla::chunk<3>(xla::matmul(h, w) + x, 1);
    const auto next = xla::sigmoid(f) * c + xla::sigmoid(i) * xla::tanh(g);
    const auto out = xla::tanh(next);
    return std::pair(std::pair(out, next), out);
  };
  const auto first = xla::zeros_like(xla::slice(xla::select(xs, 0, 0), 1, 0, xs.size(2) / 3));
  const auto path = xla::scan(step, std::pair(first, first), xs).second;
  const auto loss = xla::sum(path * path);
  loss.backward();
  return std::tuple(loss, path);
};

/// Each row of a carry needs other rows: by a product with itself, a sum of columns, and rows in
/// reverse order.
template <int Kind>
constexpr auto mixed = [](const auto& xs) {
  const auto step = [](const auto& c, const auto& x) {
    if constexpr (Kind == 0) return std::pair(xla::tanh(matmul(c, transpose(x, 0, 1))), c);
    if constexpr (Kind == 1) return std::pair(xla::tanh(c * x + xla::sum(c, {0}, xla::keepdim)), c);
    if constexpr (Kind == 2) return std::pair(xla::tanh(xla::flip(c, {0}) * 0.5f + x), c);
  };
  return xla::scan(step, xla::select(xs, 0, 0), xs);
};

/// Runs f on one thread and on several: the same bits. Returns the plan on three threads.
template <class F, class... X>
std::string check_threads(F f, const X&... x) {
  const test::restore_threads guard(1);
  const auto on = [&](int threads) {
    xla::set_num_threads(threads);
    auto g = xla::compile(f);
    return test::call_on_copies([&](auto&... c) { return g(c...); }, x...);
  };
  const auto alone = on(1);
  for (const int threads : {2, 3, 4}) {
    INFO(threads << " threads");
    CHECK(on(threads).difference(alone) == "");
  }
  xla::set_num_threads(3);
  auto g = xla::compile(f);
  std::tuple<X...> copies(x...);
  const std::string plan =
      std::apply([&](auto&... c) { return g.graph(xla::Stage::planned, c...); }, copies);
  // A plan for several threads runs on one, too.
  const auto both = [&](int threads) {
    xla::set_num_threads(threads);
    return test::call_on_copies([&](auto&... c) { return g(c...); }, x...);
  };
  CHECK(both(3).difference(alone) == "");
  CHECK(both(1).difference(alone) == "");
  return plan;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("rows of a batch are divided among threads") {
  for (const std::int64_t rows : {16, 17, 11}) {
    CAPTURE(rows);
    const auto plan = check_threads(gated, test::parameter(numbers<float>({16, 48})),
                                    numbers<float>({rows, 1}), numbers<float>({80, rows, 48}));
    CHECK(count(plan, rows == 11 ? "in 2 parts of its 11 rows" : "in 3 parts of its 1") > 0);
  }
}

TEST_CASE("loops backward are divided, too") {
  for (const std::int64_t rows : {16, 13}) {
    CAPTURE(rows);
    const auto plan = check_threads(trained, test::parameter(numbers<float>({16, 48})),
                                    numbers<float>({80, rows, 48}));
    CHECK(count(plan, rows == 13 ? "in 2 parts of its 13 rows" : "in 3 parts of its 16") == 2);
  }
}

TEST_CASE("a product of at most four rows has an order of its own, so parts have more") {
  const auto plan = check_threads(gated, test::parameter(numbers<float>({16, 48})),
                                  numbers<float>({8, 1}), numbers<float>({160, 8, 48}));
  CHECK(0 == count(plan, "parts of its"));
}

TEST_CASE("rows that need each other are not divided") {
  const auto xs = numbers<float>({400, 16, 16});
  CHECK(0 == count(check_threads(mixed<0>, xs), "parts of its"));
  CHECK(0 == count(check_threads(mixed<1>, xs), "parts of its"));
  CHECK(0 == count(check_threads(mixed<2>, xs), "parts of its"));
}
