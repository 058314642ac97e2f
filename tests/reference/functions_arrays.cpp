// SPDX-License-Identifier: Apache-2.0
// As functions.cpp: what picks, counts and combines elements, and losses with margins.
#include "support/modes.hpp"
#include "support/pytorch.hpp"
#include "xla/functions.hpp"

using test::numbers;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class F, class... X>
void check(const std::string& name, double tolerance, F f, const X&... x) {
  test::check_pytorch("functions/" + name, tolerance, f, x...);
}
template <class X>
void check_value(const std::string& name, double tolerance, const X& x) {
  const xla::eager_mode_guard eager;
  test::check_pytorch("functions/" + name, xla::cast<float>(x), tolerance);
}
xla::Tensor<float, 1> points() {
  return xla::tensor<float>({not_a_number, infinity, -infinity, 0.f, -0.f, 1, -1, 0.5, -0.25,
                             1e-4f, 1e-30f, 2.5, 3, -7.5, 20.5, 88, -89});
}

}  // namespace

TEST_CASE("signs, against PyTorch") {
  check_value("angle/odd", 0, angle(numbers<float>({7, 5})));
  check_value("angle/points", 0, angle(points()));
  check_value("signbit/odd", 0, xla::signbit(numbers<float>({7, 5})));
  check_value("signbit/points", 0, xla::signbit(points().index(xla::Slice(1, 17)) * 1));
  const std::vector<float> few{not_a_number, infinity, -infinity, 0.f, -0.f, 1,
                               -1,           0.5,      1e-30f,    88,  3e38f};
  std::vector<float> a, b;
  for (const float x : few)
    for (const float y : few) a.push_back(x), b.push_back(y);
  check_value("copysign/points", 0, xla::copysign(xla::tensor(a), xla::tensor(b)));
  const auto sign = [](const auto& x, const auto& y) { return xla::copysign(x, y); };
  const auto above = [](const auto& x) { return abs(x) + 0.1f; };
  check("copysign/broadcast", 0, sign, above(numbers<float>({3, 1, 5})),
        above(numbers<float>({4, 1}, 1)));
  check("copysign/same", 0, sign, above(numbers<float>({5, 3}, 2)),
        above(numbers<float>({5, 3}, 3)));
  test::check_modes(
      [](auto& x, auto& y) { return std::tuple(angle(x), xla::signbit(x), xla::copysign(x, y)); },
      numbers<float>({7, 3}), numbers<float>({3}, 1));
}

TEST_CASE("slopes, integrals and correlations, against PyTorch") {
  const auto wide = numbers<float>({3, 5});
  check("corrcoef", 1e-6, [](const auto& x) { return corrcoef(x); }, wide);
  check("cumulative_trapezoid", 5e-7,
        [](const auto& y) { return cumulative_trapezoid(y, 0.5); }, wide);
  check("cumulative_trapezoid/places", 1e-6,
        [](const auto& y, const auto& x) { return cumulative_trapezoid(y, x); }, wide,
        numbers<float>({5}, 3));
  for (const int axis : {0, 1})
    check("gradient/" + std::to_string(axis), 5e-7,
          [axis](const auto& x) { return gradient(x, axis, 0.5); }, wide);
  CHECK_THROWS_AS(gradient(numbers<float>({1, 3}), 0), xla::shape_error);
  const auto all = [](auto& x) {
    return std::tuple(corrcoef(x), cumulative_trapezoid(x), gradient(x, 0), gradient(x, -1),
                      renorm(x, 1, 1, 2));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({2, 3}));
  check("renorm", 1e-6, [](const auto& x) { return renorm(x, 2, 0, 5); },
        numbers<float>({3, 2, 2}));
}

TEST_CASE("medians without NaN, against PyTorch") {
  const auto strange = xla::tensor<float>({{1, not_a_number, 3, 2},
                                           {infinity, 2, -infinity, 1},
                                           {-0.f, 0, -0.f, 0},
                                           {not_a_number, not_a_number, not_a_number, not_a_number},
                                           {100, 200, 300, -1e30f}});
  const xla::eager_mode_guard eager;
  for (const int axis : {0, 1}) {
    const auto [values, indices] = nanmedian(strange, axis);
    check_value("nanmedian/" + std::to_string(axis), 1e-30, values);
    // Which of equals is meant PyTorch does not say.
    const auto at = gather(strange, axis, unsqueeze(indices, axis));
    check_value("nanmedian/" + std::to_string(axis), 1e-30,
                axis == 0 ? xla::squeeze<0>(at) : xla::squeeze<1>(at));
  }
  check("nanmedian", 0, [](const auto& x) { return nanmedian(x); },
        xla::Tensor<float, 2>(strange.index(xla::Slice(0, 3))));
  check_value("nanmedian/nothing", 0, nanmedian(xla::full<float>({4}, not_a_number)));
  test::check_modes([](auto& x) { return std::tuple(nanmedian(x), nanmedian(x, 1)); },
                    numbers<float>({5, 6}));
}

TEST_CASE("combinations and places, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto v = numbers<float>({5}, 3), w = numbers<float>({3}, 4);
  for (const int offset : {0, 1, -2}) {
    check_value("triu_indices/" + std::to_string(offset), 0, xla::triu_indices(3, 4, offset));
    check_value("tril_indices/" + std::to_string(offset), 0, xla::tril_indices(3, 4, offset));
  }
  const auto index = unravel_index(xla::tensor<std::int64_t>({{0, 7}, {23, 14}}), {2, 3, 4});
  for (int i = 0; i < 3; ++i) check_value("unravel_index/" + std::to_string(i), 0, index[i]);
  check("cartesian_prod", 0, [](const auto& x, const auto& y, const auto& z) {
    return cartesian_prod(x * 1, y * 1, z * 1);
  }, v, w, numbers<float>({2}, 5));
  check("combinations", 0, [](const auto& x) { return combinations(x); }, v);
  check("combinations/3", 0, [](const auto& x) { return combinations(x, 3); }, v);
  check("combinations/again", 0, [](const auto& x) { return combinations(x, 3, true); }, w);
  CHECK_THROWS_AS(combinations(w, 4), xla::shape_error);
  check("block_diag", 0, [](const auto& x, const auto& y, const auto& z) {
    return block_diag(x * 1, y * 1, z * 1);
  }, numbers<float>({3, 5}), numbers<float>({4, 4}, 2), numbers<float>({1, 2}, 4));
  const auto each = [](auto& x, auto& y, auto& number) {
    const auto [row, column] = unravel_index(number, {2, 3});
    return std::tuple(cartesian_prod(x, x), block_diag(y, y), row, column);
  };
  test::check_modes(each, v, numbers<float>({2, 3}), xla::arange(6));
  // Of a size that the compiler knows.
  const auto choices = [](auto& x) {
    const auto known = reshape(x, {4});
    const auto y = combinations(known) * pdist(reshape(x, {4, 1}))[0];
    sum(y * y).backward();
    return std::tuple(y, combinations(known, 3, true));
  };
  test::check_modes(choices, test::parameter(numbers<float>({2, 2}, 5)));
}

TEST_CASE("histograms, against PyTorch") {
  const auto x = numbers<float>({7, 5});
  check_value("histc", 0, histc(x, 4));
  check_value("histc/within", 0, histc(x, 6, -1, 2.5));
  check_value("histc/one", 0, histc(xla::ones<float>({3}), 3));
  CHECK(histc(xla::tensor<float>({not_a_number, 1, 2}), 2, 0, 4).to_vector() ==
        std::vector<float>{1, 1});
  CHECK_THROWS_AS(histc(x, 0), xla::shape_error);
  test::check_modes([](auto& y) { return std::tuple(histc(y, 3), histc(y, 2, -1, 1)); }, x);
}

TEST_CASE("elements written by index or mask, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto wide = numbers<float>({3, 5});
  check("index_fill", 0, [](const auto& x) {
    return index_fill(x, 1, xla::tensor<std::int64_t>({3, 0}), 0.5f);
  }, wide);
  check("put", 0, [](const auto& x, const auto& y) {
    return xla::put(x, xla::tensor<std::int64_t>({{14, 2}, {3, 0}}), y);
  }, wide, numbers<float>({2, 2}, 6));
  check("put/added", 5e-7, [](const auto& x, const auto& y) {
    return xla::put(x, xla::tensor<std::int64_t>({{14, 2}, {2, 0}}), y, true);
  }, wide, numbers<float>({2, 2}, 6));
  check("masked_scatter", 0, [](const auto& x, const auto& y) {
    return masked_scatter(x, numbers<bool>({5}, 7), y);
  }, wide, numbers<float>({4, 4}, 8));
  for (const int offset : {0, 1, -1, 3}) {
    const xla::Size n = xla::diagonal(wide, offset).size(0);
    check("diagonal_scatter/" + std::to_string(offset), 0, [offset](const auto& x, const auto& y) {
      return diagonal_scatter(x, y, offset);
    }, wide, numbers<float>({n}, 9));
  }
  CHECK_THROWS_AS(diagonal_scatter(wide, wide[0] * 1), xla::shape_error);
  CHECK_THROWS_AS(index_fill(wide, 0, xla::tensor<std::int64_t>({3}), 1), xla::index_error);
  const auto all = [](auto& x, auto& y, auto& i) {
    return std::tuple(index_fill(x, 0, i, 2), xla::put(x, i, y), masked_scatter(x, x > 0, x),
                      diagonal_scatter(x, y, -1));
  };
  test::check_modes(all, wide, numbers<float>({2}, 1), xla::tensor<std::int64_t>({2, 0}));
}

TEST_CASE("windows for spectra, against PyTorch") {
  for (const int n : {1, 2, 7}) {
    const auto name = [&](const char* window) {
      return std::string(window) + "_window/" + std::to_string(n);
    };
    check_value(name("hann"), 5e-7, xla::hann_window(n));
    check_value(name("hamming"), 5e-7, xla::hamming_window(n));
    check_value(name("blackman"), 5e-7, xla::blackman_window(n));
    check_value(name("bartlett"), 5e-7, xla::bartlett_window(n));
    check_value(name("hann") + "/symmetric", 5e-7, xla::hann_window(n, false));
    check_value(name("hamming") + "/symmetric", 5e-7, xla::hamming_window(n, false));
    check_value(name("blackman") + "/symmetric", 5e-7, xla::blackman_window(n, false));
    check_value(name("bartlett") + "/symmetric", 5e-7, xla::bartlett_window(n, false));
  }
}

TEST_CASE("more losses with margins, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  const auto classes = xla::tensor<std::int64_t>({2, 0, 0, 1});
  check("multi_margin_loss", 5e-7, [&](const auto& t) { return multi_margin_loss(t, classes); }, x);
  check("multi_margin_loss/squares", 1e-6, [&](const auto& t) {
    return multi_margin_loss(t, classes, abs(numbers<float>({3}, 2)), {.p = 2, .margin = 0.5},
                             xla::reduction::none);
  }, x);
  const auto labels = xla::tensor<std::int64_t>({{2, 0, -1}, {-1, 1, 0}, {1, -1, 2}, {0, 1, 2}});
  check("multilabel_margin_loss", 5e-7,
        [&](const auto& t) { return multilabel_margin_loss(t, labels); }, x);
  check("multilabel_margin_loss/none", 5e-7, [&](const auto& t) {
    return multilabel_margin_loss(t, labels, xla::reduction::none);
  }, x);
  CHECK_THROWS_AS(multi_margin_loss(x, classes + 1), xla::index_error);
  const auto y = numbers<float>({4, 3}, 1), z = numbers<float>({4, 3}, 2);
  const auto distance = [](const auto& a, const auto& b) { return pairwise_distance(a, b); };
  check("triplet_margin_with_distance_loss", 1e-6,
        [&](const auto& a, const auto& p, const auto& n) {
          return triplet_margin_with_distance_loss(a * 1, p * 1, n * 1, distance);
        }, x, y, z);
  check("triplet_margin_with_distance_loss/swap", 1e-6,
        [&](const auto& a, const auto& p, const auto& n) {
          return triplet_margin_with_distance_loss(a * 1, p * 1, n * 1, distance,
                                                   {.margin = 2, .swap = true},
                                                   xla::reduction::sum);
        }, x, y, z);
  check("pdist", 1e-6, [](const auto& t) { return pdist(t); }, numbers<float>({5, 3}));
  check("pdist/1", 1e-6, [](const auto& t) { return pdist(t, 1); }, numbers<float>({5, 3}));
  check("rrelu", 1e-7, [](const auto& t) { return rrelu(t); }, x);
  const auto slopes = -rrelu(xla::full<float>({1000}, -1), 0.2, 0.4, true);
  CHECK(min(slopes).item() >= 0.2f);
  CHECK(max(slopes).item() < 0.4f);
  CHECK(mean(slopes).item() == Approx(0.3).epsilon(0.02));
  const auto all = [](auto& t, auto& c, auto& l) {
    const auto loss = multi_margin_loss(t, c) + multilabel_margin_loss(t, l);
    loss.backward();
    return std::tuple(loss, rrelu(t, 0.1, 0.2, true));
  };
  test::check_modes(all, test::parameter(x), classes, labels);
}
