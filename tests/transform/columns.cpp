// SPDX-License-Identifier: Apache-2.0
// What is done on rows while they are made or read: sums of columns are added up, elements that an
// index names are looked up or added to.
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/op/derived/cross_entropy.hpp"
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

/// With a map, with reductions over rows, of a value that is only read, and of what depends on
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
                      sizes{700, 130}, sizes{2500, 3}, sizes{2100, 17}, sizes{35, 1030}}) {
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

namespace {

xla::Tensor<std::int64_t, 1> one_a_row(std::int64_t rows, std::int64_t n) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < rows; ++i) v.push_back((i * 7 + n - 1) % n);
  v.push_back(0);
  return xla::from_blob(v.data(), {rows});
}

/// Elements of what is read, kept, or made of other such elements; additions between them and to
/// what is summed along rows and columns.
struct Lookups {
  template <class X, class I>
  constexpr auto operator()(const X& x, const I& of_rows) const {
    const auto index = xla::unsqueeze(of_rows, -1);
    const auto e = xla::exp(x - xla::max(x, {-1}, xla::keepdim));
    const auto picked = xla::gather(e * 0.5, -1, index);
    const auto more = xla::scatter_add(e / xla::sum(e, {-1}, xla::keepdim), -1, index, picked + 1);
    const auto behind = xla::gather(more + x, -1, index);
    const auto twice = xla::scatter_add(more * x, -1, index, behind);
    return std::tuple(picked, more, behind, xla::sum(twice, {-1}), xla::sum(twice, {0}),
                      xla::gather(x, -1, index), xla::relu(xla::gather(x, -1, index)) * x);
  }
};

template <class T>
void check_lookups() {
  const xla::eager_mode_guard eager;
  using sizes = std::pair<std::int64_t, std::int64_t>;
  for (auto [n, m] : {sizes{5, 7}, sizes{1, 1}, sizes{1, 2}, sizes{0, 3}, sizes{40, 1},
                      sizes{31, 16}, sizes{33, 65}, sizes{3, 1200}, sizes{2500, 3}}) {
    INFO(n << " x " << m);
    check_modes(Lookups{}, numbers<T>({n, m}, 1), one_a_row(n, m));
  }
}

}  // namespace

TEST_CASE("elements that an index names in rows are the same in every mode, float") {
  check_lookups<float>();
}
TEST_CASE("elements that an index names in rows are the same in every mode, double") {
  check_lookups<double>();
}

TEST_CASE("gradients of elements that an index names in rows") {
  static const auto index = one_a_row(4, 5);
  test::check_gradient(
      [](auto& x, auto& s) {
        const auto at = xla::unsqueeze(index, -1);
        return xla::gather(xla::exp(x), -1, at) * xla::scatter_add(x * x, -1, at, s * s);
      },
      numbers<double>({4, 5}), numbers<double>({4, 1}, 1));
}

TEST_CASE("fuse: an element of each row is looked up and added to where the rows are") {
  const auto x = numbers<float>({5, 7}, 1);
  const auto index = one_a_row(5, 7);
  auto f = xla::compile(Lookups{});
  const auto rows = f.graph(Stage::lowered, x, index);
  for (const char* apart : {"= gather(", "= scatter_add("}) CHECK(occurrences(rows, apart) == 0);
  auto alone =
      xla::compile([](auto& x, auto& i) { return xla::gather(x, 1, xla::unsqueeze(i, 1)); });
  CHECK(occurrences(alone.graph(Stage::lowered, x, index), "= gather(") == 1);
  // Along another axis, and with several for a row, they are steps of their own.
  auto others = xla::compile([](auto& x, auto& i) {
    const auto y = xla::exp(x) * xla::sum(x, {-1}, xla::keepdim);
    const auto at = xla::unsqueeze(i, 1);
    return std::pair(xla::gather(y, 0, at), xla::gather(y, 1, xla::expand(at, {x.size(0), 2})));
  });
  CHECK(occurrences(others.graph(Stage::lowered, x, index), "= gather(") == 2);
}

TEST_CASE("fuse: layer_norm's rows are walked three times, for all of its gradients") {
  auto f = xla::compile([](auto& x, auto& w, auto& b, auto& g) {
    xla::sum(xla::layer_norm(x, w, b) * g).backward();
    return std::tuple(x.grad(), w.grad(), b.grad());
  });
  auto p = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 3}));
  auto w = xla::Parameter<float, 1>::like(xla::zeros<float>({3})), b = w;
  const auto g = numbers<float>({2, 3});
  const auto lowered = f.graph(Stage::lowered, p, w, b, g);
  CHECK(occurrences(lowered, "row kernel") == 1);
  CHECK(occurrences(lowered, "= sum(") == 0);
}
