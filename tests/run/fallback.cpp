// SPDX-License-Identifier: Apache-2.0
#include <xla/xla.hpp>

#include "catch.hpp"
#include "support/gradient.hpp"

using test::check_equal;
using names = std::vector<std::string>;

namespace {

std::int64_t graphs() {
  const auto m = xla::metric_data("ExecuteTime");
  return m ? m->total_samples : 0;
}

void start(bool eager) {
  xla::sync(true);
  xla::eager_mode(eager);
  xla::clear_all();
}

}  // namespace

TEST_CASE("nonzero lists the places of what is not 0") {
  const xla::eager_mode_guard guard;
  for (bool eager : {true, false}) {
    start(eager);
    const float nan = std::nanf("");
    const auto x = xla::tensor<float>({{0, 1, -0.f}, {nan, 0, -2}});
    check_equal(nonzero(x), {3, 2}, std::vector<std::int64_t>{0, 1, 1, 0, 1, 2});
    check_equal(nonzero(xla::tensor<int>({0, 3, 0, 4})), {2, 1}, std::vector<std::int64_t>{1, 3});
    check_equal(nonzero(xla::zeros({7, 13})), {0, 2}, {});
    check_equal(nonzero(xla::zeros({0, 3, 2})), {0, 3}, {});
    check_equal(nonzero(xla::tensor(true)), {1, 0}, {});
    const auto all = test::numbers<bool>({3, 5, 7});
    const auto places = nonzero(all).to_vector();
    std::vector<std::int64_t> flat, want;
    for (std::size_t i = 0; i < places.size(); i += 3)
      flat.push_back((places[i] * 5 + places[i + 1]) * 7 + places[i + 2]);
    for (std::int64_t i = 0; i < 105; ++i)
      if (all.data()[i]) want.push_back(i);
    CHECK(flat == want);
  }
}

TEST_CASE("masked_select takes what a mask holds; both broadcast") {
  const xla::eager_mode_guard guard;
  for (bool eager : {true, false}) {
    start(eager);
    const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
    check_equal(masked_select(x, x > 2), {4}, std::vector<float>{3, 4, 5, 6});
    check_equal(masked_select(x, xla::tensor<int>({1, 0, 1}) > 0), {4},
                std::vector<float>{1, 3, 4, 6});
    check_equal(masked_select(xla::tensor<int>({7, 8, 9}), x > 2), {4},
                std::vector<int>{9, 7, 8, 9});
    check_equal(masked_select(x, x > 9), {0}, {});
    check_equal(masked_select(xla::zeros({0, 3}), xla::zeros({0, 3}) > 0), {0}, {});
    CHECK_THROWS_AS(masked_select(x, xla::tensor<int>({1, 0}) > 0), xla::shape_error);
  }
}

TEST_CASE("the gradient of masked_select") {
  test::check_gradient([](auto& x) { return masked_select(x * x, x > 0); },
                       test::numbers<double>({3, 5}));
}

TEST_CASE("what depends on elements forces the graph and counts as a fallback") {
  const xla::eager_mode_guard traced(false);
  start(false);
  auto x = xla::tensor<float>({1, 0, 3});
  const auto y = x * 2;
  CHECK(graphs() == 0);
  CHECK(xla::executed_fallback_ops().empty());
  CHECK(nonzero(y).sizes() == test::sizes_t{2, 1});
  CHECK(graphs() == 1);
  CHECK(xla::executed_fallback_ops() == names{"fallback::nonzero"});
  CHECK(sum(y).item() == 8);
  CHECK(masked_select(y, y > 0).sizes() == test::sizes_t{2});
  CHECK(nonzero(y).sizes() == test::sizes_t{2, 1});
  CHECK(xla::executed_fallback_ops() ==
        names{"fallback::item", "fallback::masked_select", "fallback::nonzero"});
  CHECK(xla::counter_value("fallback::nonzero") == 2);
  CHECK(xla::short_metrics_report().find("Counter: fallback::masked_select\n  Value: 1") !=
        std::string::npos);
}
