// SPDX-License-Identifier: Apache-2.0
// Sums of columns that are added up where their input is made or read.
#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/op/derived/normalize.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/relu.hpp"

using test::check_modes;
using test::numbers;
using xla::Stage;

namespace {

int occurrences(const std::string& in, const std::string& what) {
  int n = 0;
  for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++n;
  return n;
}

/// Beside a map, beside reductions over rows, of a value that is only read, and of what depends on
/// another sum of columns.
struct Columns {
  template <class X, class Y, class W>
  constexpr auto operator()(const X& x, const Y& y, const W& w) const {
    const auto product = xla::relu(x) * w;
    const auto soft = xla::softmax(y * w) - x;
    const auto centered = y - xla::sum(product, {0}, xla::keepdim);
    return std::tuple(product, xla::sum(product, {0}), xla::sum(soft, {0}), xla::sum(y, {0}),
                      xla::sum(centered * centered, {0}));
  }
};

/// The outer axes of the second are not one: a and b together are walked in two loops.
struct Outer {
  template <class X, class Y>
  constexpr auto operator()(const X& x, const Y& y) const {
    const auto z = x * xla::unsqueeze(y, 1);
    return std::tuple(z, xla::sum(z, {0, 1}), xla::sum(z, {0}), xla::max(z, {0, 1}));
  }
};

template <class T>
void check_columns() {
  const xla::eager_mode_guard eager;
  using sizes = std::pair<std::int64_t, std::int64_t>;
  for (auto [n, m] : {sizes{5, 7}, sizes{1, 1}, sizes{0, 3}, sizes{3, 0}, sizes{1, 40},
                      sizes{40, 1}, sizes{31, 16}, sizes{32, 33}, sizes{33, 100}, sizes{65, 5},
                      sizes{700, 130}, sizes{2500, 3}}) {
    INFO(n << " x " << m);
    check_modes(Columns{}, numbers<T>({n, m}, 1), numbers<T>({n, m}, 2), numbers<T>({m}, 3));
  }
  for (auto [n, m] : {sizes{1, 1}, sizes{3, 5}, sizes{0, 5}, sizes{9, 11}, sizes{16, 700}}) {
    INFO(n << " x " << m);
    check_modes(Outer{}, numbers<T>({n, m, 19}, 1), numbers<T>({n, 19}, 2));
  }
}

}  // namespace

TEST_CASE("sums of columns are the same in every mode, float") { check_columns<float>(); }
TEST_CASE("sums of columns are the same in every mode, double") { check_columns<double>(); }

TEST_CASE("sums of columns do not depend on the number of threads") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({1100, 130}, 1), y = numbers<float>({1100, 130}, 2);
  const auto w = numbers<float>({130}, 3);
  auto compiled = xla::compile(Columns{});
  const test::restore_threads restore;
  auto values = [&](int threads) {
    xla::set_num_threads(threads);
    test::snapshot s;
    auto one = Columns{}(x, y, w);
    auto other = compiled(x, y, w);
    s.add(one);
    s.add(other);
    return s;
  };
  const auto want = values(1);
  for (int threads : {2, 3, 8}) CHECK(values(threads).difference(want) == "");
}

TEST_CASE("sums of columns over many rows are exact where the numbers allow it") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x, auto& y) { return xla::sum(x * y, {0}); });
  for (std::int64_t n : {1, 31, 32, 33, 100, 5000}) {
    const auto x = xla::ones<float>({n, 21}) * 3, y = xla::ones<float>({n, 21});
    const auto want = std::vector<float>(21, 3.f * static_cast<float>(n));
    CHECK(f(x, y).to_vector() == want);
    CHECK(xla::sum(x * y, {0}).to_vector() == want);
  }
}

TEST_CASE("fuse: a sum of columns is made with its input") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({5, 7}, 1);
  const auto w = numbers<float>({7}, 2);
  auto of_map = xla::compile([](auto& x, auto& w) { return xla::sum(x * w, {0}); });
  const auto map = of_map.graph(Stage::lowered, x, w);
  CHECK(occurrences(map, "row kernel") == 1);
  CHECK(occurrences(map, "= sum(") == 0);
  auto of_read =
      xla::compile([](auto& x, auto& w) { return std::pair(xla::sum(x, {0}), xla::relu(x) * w); });
  const auto read = of_read.graph(Stage::lowered, x, w);
  CHECK(occurrences(read, "kernel") == 1);
  CHECK(occurrences(read, "= sum(") == 0);
  auto alone = xla::compile([](auto& x) { return xla::sum(x, {0}); });
  CHECK(occurrences(alone.graph(Stage::lowered, x), "= sum(") == 1);
  auto after = xla::compile([](auto& x) { return x - xla::sum(x * x, {0}, xla::keepdim); });
  CHECK(occurrences(after.graph(Stage::lowered, x), "kernel") == 2);
}
