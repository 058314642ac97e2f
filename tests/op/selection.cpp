// SPDX-License-Identifier: Apache-2.0
// Functions that choose elements, by order, by place or as sets, against PyTorch's. The cases are
// those of reference/selection.py.
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/pytorch.hpp"
#include "xla/functions.hpp"

using test::numbers;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

xla::Tensor<float, 2> strange() {
  return xla::tensor<float>({{1, not_a_number, 3, 2},
                             {infinity, 2, -infinity, 1},
                             {-0.f, 0, -0.f, 0},
                             {not_a_number, not_a_number, not_a_number, not_a_number},
                             {100, 200, 300, -1e30f}});
}
xla::Tensor<float, 2> ties() { return xla::tensor<float>({{1, 3, 3, 2, 3}, {5, 5, 4, 5, 1}}); }
xla::Tensor<std::int64_t, 2> places() {
  return xla::tensor<std::int64_t>({{0, 0, 2, 2, 0}, {1, 3, 1, 1, 1}, {0, 1, 2, 3, 3}});
}

template <class F, class... X>
void check(const std::string& name, F f, const X&... x) {
  test::check_pytorch("selection/" + name, 1e-6, f, x...);
}
template <class X>
void check_value(const std::string& name, const X& x) {
  if constexpr (std::is_same_v<typename X::value_type, float>)
    test::check_pytorch("selection/" + name, x, 1e-6);
  else test::check_pytorch("selection/" + name, xla::cast<double>(x), 1e-6);
}
template <class P>
void check_pair(const std::string& name, const P& p) {
  check_value(name, p.first);
  check_value(name + "/index", p.second);
}

}  // namespace

TEST_CASE("quantiles are PyTorch's, by every interpolation") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4, 5});
  for (const char* name : {"linear", "lower", "higher", "midpoint", "nearest"}) {
    check(
        "quantile/" + std::string(name), [&](auto& t) { return xla::quantile(t, 0.3, 1, name); },
        x);
    check_value("nanquantile/" + std::string(name), xla::nanquantile(strange(), 0.4, 1, name));
  }
  const auto several = xla::tensor<float>({0, 0.3f, 1});
  check(
      "quantile/several", [&](auto& t) { return xla::quantile(t, several, -1); }, x);
  check(
      "quantile/keepdim", [](auto& t) { return xla::quantile(t, 0.75, 0, xla::keepdim); }, x);
  check(
      "quantile/all", [](auto& t) { return xla::quantile(t, 0.9); }, x);
  check_value("quantile/strange", xla::quantile(strange(), 0.4, 1));
  check_value("nanquantile/all", xla::nanquantile(xla::slice(strange(), 0, 0, 3), 0.6));
  check_value("nanquantile/keepdim", xla::nanquantile(strange(), 0.6, 0, xla::keepdim));
  CHECK_THROWS_WITH(xla::quantile(x, 1.5), test::contains("quantile: q is a share"));
  CHECK_THROWS_WITH(xla::quantile(x, 0.5, 1, "cubic"), test::contains("one of linear, lower"));
  CHECK_THROWS_AS(xla::quantile(x, 0.5, 3), xla::shape_error);
  CHECK_THROWS_WITH(xla::quantile(numbers<float>({0}), 0.5), test::contains("no elements"));
}

TEST_CASE("kthvalue, cummax and cummin are PyTorch's, with their places") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4, 5});
  for (const int k : {1, 3}) {
    const auto name = "kthvalue/" + std::to_string(k);
    check(
        name, [&](auto& t) { return xla::kthvalue(t, k, 1).first; }, x);
    check_value(name + "/index", xla::kthvalue(x, k, 1).second);
  }
  check_value("kthvalue/strange", xla::kthvalue(strange(), 3).first);
  CHECK(xla::kthvalue(x, 2, 0, xla::keepdim).second.sizes() == test::sizes_t{1, 4, 5});
  CHECK_THROWS_WITH(xla::kthvalue(x, 0), test::contains("kthvalue: k is from 1"));
  CHECK_THROWS_WITH(xla::kthvalue(x, 6), test::contains("kthvalue: k is from 1"));

  const auto both = [&](const std::string& name, auto f) {
    for (const int axis : {0, 1}) {
      const auto of = name + "/" + std::to_string(axis);
      check(
          of, [&](auto& t) { return f(t, axis).first; }, numbers<float>({5, 4}));
      check_value(of + "/index", f(numbers<float>({5, 4}), axis).second);
    }
    check(
        name + "/ties", [&](auto& t) { return f(t, 1).first; }, ties());
    check_value(name + "/ties/index", f(ties(), 1).second);
    check_pair(name + "/strange", f(strange(), 1));
    CHECK(f(numbers<float>({0, 3}), 0).first.sizes() == test::sizes_t{0, 3});
  };
  both("cummax", [](const auto& t, int axis) { return xla::cummax(t, axis); });
  both("cummin", [](const auto& t, int axis) { return xla::cummin(t, axis); });
}

TEST_CASE("scatter_reduce is PyTorch's, by every reduction") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4}), source = numbers<float>({3, 5}, 1);
  const auto index = places();
  const auto by = [](const std::string& word, const auto& i, int axis, bool own = true) {
    return [=](auto& t, auto& s) { return xla::scatter_reduce(t, axis, i, s, word, own); };
  };
  for (const std::string word : {"sum", "prod", "mean", "amax", "amin"}) {
    check("scatter_reduce/" + word, by(word, index, 1), x, source);
    check("scatter_reduce/" + word + "/without_self", by(word, index, 1, false), x, source);
    const auto whole = numbers<std::int64_t>({3, 4}, 2), parts = numbers<std::int64_t>({3, 5}, 3);
    check_value("scatter_reduce/" + word + "/integers",
                xla::scatter_reduce(whole, 1, index, parts, word));
  }
  const auto zeros = xla::tensor<float>({{0, 2, 0, 3, 4}, {2, 0, 5, 1, 0}, {0, 1, 0, 0, 1}});
  const auto few = xla::slice(zeros, 1, 0, 4);
  check("scatter_reduce/prod/zeros", by("prod", index, 1), few, zeros);
  check("scatter_reduce/amax/ties", by("amax", index, 1), few, zeros);
  const auto rows = xla::slice(xla::slice(index, 0, 0, 2), 1, 0, 3) % 3;
  const auto part = xla::slice(xla::slice(source, 0, 0, 2), 1, 0, 3);
  check("scatter_reduce/rows", by("amin", rows, 0), x, part);
  CHECK_THROWS_WITH(xla::scatter_reduce(x, 1, index, source, "max"),
                    test::contains("reduce is one of sum, prod, mean, amax and amin"));
  CHECK_THROWS_WITH(xla::scatter_reduce(x, 1, index + 1, source, "sum"),
                    test::contains("scatter_reduce: index 4"));
}

TEST_CASE("unique and isin are PyTorch's") {
  const xla::eager_mode_guard eager;
  const auto all = [](const std::string& name, const auto& x) {
    const auto of = [&](const std::string& function, const auto& parts) {
      const auto& [values, inverse, counts] = parts;
      check_value(function + "/" + name + "/values", values);
      if (name != "strange") check_value(function + "/" + name + "/inverse", inverse);
      check_value(function + "/" + name + "/counts", counts);
    };
    of("unique", xla::unique(x, xla::return_inverse, xla::return_counts));
    of("unique_consecutive", xla::unique_consecutive(x, xla::return_inverse, xla::return_counts));
  };
  const auto whole = numbers<std::int64_t>({4, 5}, 4);
  all("whole", whole);
  all("ties", ties());
  all("strange", strange());
  const auto chosen = xla::tensor<std::int64_t>({3, -2, 3, 7});
  check_value("isin/whole", xla::isin(whole, chosen));
  check_value("isin/inverted", xla::isin(whole, chosen, true));
  check_value("isin/strange",
              xla::isin(strange(), xla::tensor<float>({{not_a_number, 0}, {infinity, 200}})));
  CHECK_FALSE(any(xla::isin(whole, xla::zeros<std::int64_t>({0}))).item());

  CHECK(xla::unique(ties()).to_vector() == std::vector<float>{1, 2, 3, 4, 5});
  CHECK(xla::unique(ties(), xla::return_counts).second.sizes() == test::sizes_t{5});
  CHECK(xla::unique(ties(), xla::return_inverse).second.sizes() == test::sizes_t{2, 5});
  CHECK(xla::unique(xla::zeros<float>({0, 3})).sizes() == test::sizes_t{0});
  CHECK(xla::unique(xla::tensor<bool>({true, false, true})).sizes() == test::sizes_t{2});
  CHECK(xla::unique_consecutive(ties(), xla::return_counts).second.sizes() == test::sizes_t{8});
  CHECK(xla::unique_consecutive(ties(), xla::return_inverse).first.sizes() == test::sizes_t{8});
  xla::eager_mode(false);
  const auto traced = xla::unique(ties() * 2) + 1;
  CHECK(traced.to_vector() == std::vector<float>{3, 5, 7, 9, 11});
}

TEST_CASE("kron and cross are PyTorch's") {
  const xla::eager_mode_guard eager;
  const auto kron = [](auto& a, auto& b) { return xla::kron(a, b); };
  check("kron/matrices", kron, numbers<float>({2, 3}), numbers<float>({3, 2}, 1));
  check("kron/ranks", kron, numbers<float>({2, 3, 2}), numbers<float>({4}, 1));
  const auto last = [](auto& a, auto& b) { return xla::cross(a, b); };
  check("cross/last", last, numbers<float>({4, 3}), numbers<float>({4, 3}, 1));
  check("cross/broadcast", last, numbers<float>({4, 3}), numbers<float>({1, 3}, 1));
  check(
      "cross/first", [](auto& a, auto& b) { return xla::cross(a, b, 0); }, numbers<float>({3, 2}),
      numbers<float>({3, 2}, 1));
  CHECK(xla::kron(xla::tensor(2.f), xla::tensor(3.f)).item() == 6);
  CHECK_THROWS_WITH(xla::cross(numbers<float>({3, 2}), numbers<float>({3, 2})),
                    test::contains("cross: a tensor of shape (3, 2), whose axis 1 has to be 3"));
}

TEST_CASE("functions that choose elements are the same in every mode, and their gradients right") {
  test::check_modes(
      [](auto& x, auto& y, auto& index) {
        const auto high = cummax(x, 1).first, low = cummin(x, 0).first;
        const auto part = quantile(x, 0.3, 1, "midpoint");
        const auto parts = quantile(x, y[0], 0);
        const auto some = nanquantile(x, 0.7, 0);
        const auto third = kthvalue(x, 3).first;
        const auto blocks = kron(y, y);
        const auto turned = cross(x, y);
        const auto mean = scatter_reduce(x, 1, index, y, "mean", false);
        const auto product = scatter_reduce(x, 1, index, y, "prod");
        const auto largest = scatter_reduce(x, 1, index, y, "amax");
        const auto smallest = scatter_reduce(x, 0, index, y, "amin", false);
        auto loss = sum(high * low) + sum(part) + sum(parts) + sum(some) + sum(third);
        loss = loss + sum(blocks) + sum(turned * mean) + sum(product * largest) + sum(smallest);
        loss.backward();
        return std::tuple(loss, high, low, part, parts, some, third, blocks, turned, mean, product,
                          largest, smallest, isin(x, y), cummax(x, 0).second);
      },
      test::parameter(numbers<float>({3, 3})),
      test::parameter(abs(numbers<float>({3, 3}, 1)) * 0.2),
      xla::tensor<std::int64_t>({{0, 2, 0}, {1, 1, 1}, {2, 0, 2}}));
  const auto index = places();
  test::check_gradient(
      [&](auto& x, auto& s) {
        return xla::cat({scatter_reduce(x, 1, index, s, "prod", false),
                         quantile(x, 0.35, 1, xla::keepdim), cummax(x, 0).first},
                        1);
      },
      numbers<double>({3, 4}), numbers<double>({3, 5}, 1));
}
