// SPDX-License-Identifier: Apache-2.0
// The functions of xla/functions.hpp against PyTorch's, at ordinary and special points, with their
// gradients; and in every mode. The cases are those of functions.py.
#include "xla/functions.hpp"

#include "support/modes.hpp"
#include "support/pytorch.hpp"

using test::numbers;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

xla::Tensor<float, 1> points() {
  return xla::tensor<float>({not_a_number, infinity, -infinity, 0.f, -0.f, 1, -1, 0.5, -0.25, 1e-4f, 1e-30f, 2.5, 3,
                             -7.5, 20.5, 88, -89});
}
xla::Tensor<float, 2> strange() {
  return xla::tensor<float>({{1, not_a_number, 3, 2},
                             {infinity, 2, -infinity, 1},
                             {-0.f, 0, -0.f, 0},
                             {not_a_number, not_a_number, not_a_number, not_a_number},
                             {100, 200, 300, -1e30f}});
}

template <class F, class... X>
void check(const std::string& name, double tolerance, F f, const X&... x) {
  test::check_pytorch("functions/" + name, tolerance, f, x...);
}
template <class X>
void check_value(const std::string& name, double tolerance, const X& x) {
  if constexpr (std::is_same_v<typename X::value_type, float>)
    test::check_pytorch("functions/" + name, x, tolerance);
  else test::check_pytorch("functions/" + name, xla::cast<float>(x), tolerance);
}

/// The cases of unary() in functions.py.
template <class F>
void unary(const std::string& name, double tolerance, F f, const xla::Tensor<float, 2>& x,
           const xla::Tensor<float, 1>& at = points()) {
  check(name + "/odd", tolerance, f, x);
  check(name + "/points", tolerance, f, at);
}
template <class F>
void unary(const std::string& name, double tolerance, F f) {
  unary(name, tolerance, f, numbers<float>({7, 5}));
}
#define UNARY(f, tolerance, ...) \
  unary(#f, tolerance, [](const auto& x) { return xla::f(x); } __VA_OPT__(, ) __VA_ARGS__)

/// The cases of binary().
template <class F>
void binary(const std::string& name, double tolerance, F f, float low = 0, bool gradient = true) {
  std::vector<float> a, b;
  const std::vector<float> few{not_a_number, infinity, -infinity, 0.f, -0.f, 1, -1, 0.5, 1e-30f, 88, 3e38f};
  for (const float x : few)
    for (const float y : few) a.push_back(x), b.push_back(y);
  const xla::eager_mode_guard eager;
  check_value(name + "/points", tolerance, f(xla::tensor(a), xla::tensor(b)));
  const auto shift = [&](const auto& x) { return low > 0 ? abs(x) + low : x * 1; };
  const auto each = [&](const char* kind, const auto& x, const auto& y) {
    if (gradient) check(name + kind, tolerance, f, x, y);
    else check_value(name + kind, tolerance, f(x, y));
  };
  each("/broadcast", shift(numbers<float>({3, 1, 5})), shift(numbers<float>({4, 1}, 1)));
  each("/same", shift(numbers<float>({5, 3}, 2)), shift(numbers<float>({5, 3}, 3)));
}
#define BINARY(f, tolerance, ...)                                              \
  binary(                                                                      \
      #f, tolerance, [](const auto& x, const auto& y) { return xla::f(x, y); } \
      __VA_OPT__(, ) __VA_ARGS__)

}  // namespace

TEST_CASE("functions of one tensor, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto unit = numbers<float>({7, 5}) * (1 / 4.1f), magnitude = abs(numbers<float>({7, 5}));
  UNARY(asin, 5e-7, unit);
  UNARY(acos, 5e-7, unit);
  UNARY(atanh, 1e-6, unit);
  UNARY(erfinv, 2e-6, unit);
  UNARY(atan, 5e-7);
  UNARY(asinh, 5e-7);
  UNARY(acosh, 5e-7, magnitude + 1.1f);
  UNARY(sinh, 1e-6);
  UNARY(cosh, 1e-6);
  check("sinc/odd", 1e-6, [](const auto& x) { return xla::sinc(x); }, numbers<float>({7, 5}));
  check_value("sinc/points", 1e-6, xla::sinc(points()));
  auto small = xla::tensor<double>({0, 1e-4, -0.1});
  small.requires_grad_();
  sum(xla::sinc(small)).backward();
  const auto slopes = small.grad().to_vector();
  CHECK(slopes[0] == 0);
  CHECK(slopes[1] == Approx(-3.28986813e-4).epsilon(1e-8));
  CHECK(slopes[2] == Approx(0.325754).epsilon(1e-4));
  UNARY(exp2, 5e-7);
  UNARY(frac, 0);
  UNARY(nan_to_num, 0);
  UNARY(deg2rad, 1e-7);
  UNARY(rad2deg, 1e-7);
  UNARY(log2, 5e-7, magnitude + 0.1f);
  UNARY(log10, 5e-7, magnitude + 0.1f);
  UNARY(lgamma, 2e-6, magnitude + 0.1f);
  check("digamma/odd", 2e-6, [](const auto& x) { return xla::digamma(x); }, magnitude + 0.1f);
  check_value("digamma/points", 2e-6, xla::digamma(points()));
  check("logit/odd", 1e-6, [](const auto& x) { return xla::logit(x); }, abs(unit) + 0.01f);
  check_value("logit/points", 1e-6, xla::logit(points()));
  for (const char* kind : {"odd", "points"}) {
    const auto x = kind[0] == 'o' ? xla::flatten<0>(numbers<float>({7, 5})) : points();
    const auto check_bool = [&](const std::string& name, const xla::Tensor<bool, 1>& got) {
      if (kind[0] == 'o') check_value(name + "/odd", 0, xla::reshape(got, {7, 5}));
      else check_value(name + "/points", 0, got);
    };
    check_bool("isposinf", xla::isposinf(x));
    check_bool("isneginf", xla::isneginf(x));
  }
  const auto all = [](auto& x) {
    return std::tuple(xla::sinh(x), xla::cosh(x), xla::sinc(x), xla::exp2(x), xla::frac(x),
                      xla::nan_to_num(x), xla::deg2rad(x), xla::rad2deg(x), xla::log2(x),
                      xla::log10(x), xla::logit(x), isposinf(x), isneginf(x));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({17, 3}));
  test::check_modes(all, points());
  check("polygamma", 2e-6, [](const auto& x) { return xla::polygamma(1, x); },
        abs(numbers<float>({7})) + 1);
  check("mvlgamma", 2e-6, [](const auto& x) { return xla::mvlgamma(x, 3); },
        abs(numbers<float>({7})) + 1.5f);
}

TEST_CASE("functions of two tensors, against PyTorch") {
  BINARY(logaddexp, 5e-7);
  BINARY(hypot, 5e-7);
  BINARY(xlogy, 5e-7, 0.1f);
  BINARY(xlog1py, 5e-7, 0.1f);
  BINARY(fmax, 0);
  BINARY(fmin, 0);
  BINARY(heaviside, 0, 0, false);
  BINARY(isclose, 0, 0, false);
  binary(
      "isclose_nan", 0,
      [](const auto& x, const auto& y) {
        return xla::isclose(x, y, {.rtol = 0.1, .atol = 0.01, .equal_nan = true});
      },
      0, false);
  const auto x = numbers<float>({3, 5}), y = numbers<float>({3, 5}, 1);
  check("logaddexp2", 5e-7, [](const auto& a, const auto& b) { return logaddexp2(a, b); }, x, y);
  check("ldexp", 5e-7, [](const auto& a, const auto& b) { return xla::ldexp(a, b); }, x,
        xla::round(y));
  check("fmax/ties", 0, [](const auto& a, const auto& b) { return xla::fmax(a, b); },
        xla::tensor<float>({1, 2, 3}), xla::tensor<float>({1, not_a_number, 2}));
  check("logit/eps", 1e-6, [](const auto& a) { return xla::logit(a, 0.1); },
        xla::tensor<float>({0, 0.5, 0.95}));
  check(
      "xlogy/zero", 0,
      [](const auto& a) { return xla::xlogy(a, xla::tensor<float>({0, 2, -1, 1})); },
      xla::tensor<float>({0, 0, 0, 0.5}));
  const auto all = [](auto& a, auto& b) {
    const auto y = logaddexp(a, b) + xla::hypot(a, b) + xlog1py(a, abs(b));
    sum(y * y).backward();
    return std::tuple(y, xlogy(a, b), fmax(a, b), fmin(a, b), xla::heaviside(a, b), isclose(a, b),
                      logaddexp2(a, b), xla::ldexp(a, b));
  };
  test::check_modes(all, test::parameter(numbers<float>({3, 4, 5})),
                    test::parameter(numbers<float>({4, 5}, 1)));
  test::check_modes(all, test::parameter(numbers<double>({5})),
                    test::parameter(numbers<double>({17, 5}, 1)));
  const xla::eager_mode_guard eager;
  CHECK(allclose(x, x + 1e-9f).item());
  CHECK_FALSE(allclose(x, y).item());
}

TEST_CASE("more activations, against PyTorch") {
  UNARY(selu, 5e-7);
  unary("celu", 5e-7, [](const auto& x) { return celu(x, 1.5); });
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 5});
  const xla::Tensor<float, 1> no_nan = points().index(xla::Slice(1, 17));
  UNARY(hardshrink, 0, x, no_nan);
  unary("softshrink", 0, [](const auto& t) { return softshrink(t, 0.25); }, x, no_nan);
  UNARY(tanhshrink, 5e-7);
  UNARY(softsign, 5e-7);
  unary("threshold", 0, [](const auto& x) { return threshold(x, 0.5, 20); });
  check("softmin", 5e-7, [](const auto& x) { return softmin(x, 1); }, numbers<float>({3, 7, 2}));
  const auto all = [](auto& x) {
    const auto y = selu(x) + celu(x, 1.5) * softsign(x) + tanhshrink(x);
    sum(y * y).backward();
    return std::tuple(y, hardshrink(x), softshrink(x), threshold(x, 0.5, 20), softmin(x));
  };
  test::check_modes(all, test::parameter(numbers<float>({7, 13})));
  const auto noisy = [](auto& x) { return gumbel_softmax(x, 0.5, 1); };
  test::check_modes(noisy, numbers<float>({3, 7}));
  const auto sums = sum(gumbel_softmax(numbers<float>({50, 7})), {1}).to_vector();
  for (const float s : sums) CHECK(s == Approx(1).epsilon(1e-5));
}

TEST_CASE("more reductions, against PyTorch") {
  check("nansum", 0, [](const auto& x) { return nansum(x, {1}); }, strange());
  check("nansum/all", 5e-7, [](const auto& x) { return nansum(x); }, numbers<float>({3, 4}));
  const auto totals = [](auto& bytes, auto& flags) {
    const xla::Tensor<std::int64_t, 0> all = nansum(bytes);
    const xla::Tensor<std::int64_t, 1> rows = nansum(flags, {1});
    const xla::Tensor<std::int64_t, 2> kept = nansum(bytes, {0}, xla::keepdim);
    return std::tuple(all, rows, kept);
  };
  const auto bytes = xla::full<std::uint8_t>({2, 2}, 250);
  test::check_modes(totals, bytes, bytes > 1);
  CHECK(nansum(bytes).item() == 1000);
  CHECK(nansum(bytes > 1, {1}).to_vector() == std::vector<std::int64_t>{2, 2});
  check("nanmean", 5e-7, [](const auto& x) { return nanmean(x, {1}); },
        xla::Tensor<float, 2>(strange().index(xla::Slice(0, 3))));
  check_value("nanmean/nothing", 0, nanmean(xla::full<float>({4}, not_a_number)));
  check("nanmean/all", 5e-7, [](const auto& x) { return nanmean(x); }, numbers<float>({3, 4}));
  check_value("count_nonzero", 0, count_nonzero(strange(), {1}));
  const auto x = numbers<float>({3, 4});
  check("aminmax/least", 0, [](const auto& t) { return aminmax(t).first; }, x);
  check("aminmax/largest", 0, [](const auto& t) { return aminmax(t).second; }, x);
  check("var_mean/0", 5e-7, [](const auto& t) { return var_mean(t).first; }, x);
  check("var_mean/1", 5e-7, [](const auto& t) { return var_mean(t).second; }, x);
  check("std_mean/0", 5e-7, [](const auto& t) { return std_mean(t).first; }, x);
  check("std_mean/1", 5e-7, [](const auto& t) { return std_mean(t).second; }, x);
  check("dist", 1e-6, [](const auto& t, const auto& u) { return dist(t, u, 3); }, x,
        numbers<float>({4}, 1));
  for (const int axis : {0, 1}) {
    const auto along = [axis](const auto& t) { return logcumsumexp(t, axis); };
    check("logcumsumexp/" + std::to_string(axis), 1e-6, along, numbers<float>({5, 4}) * 30);
    check_value("logcumsumexp/strange" + std::to_string(axis), 1e-6, along(strange()));
  }
  check("logcumsumexp/large", 1e-6, [](const auto& t) { return logcumsumexp(t, 0); },
        xla::tensor<float>({100, 100, -200, 101}));
  const auto all = [](auto& t) {
    return std::tuple(nansum(t), nansum(t, {0}, xla::keepdim), nanmean(t, {1}, xla::keepdim),
                      count_nonzero(t), dist(t, t * 2), logcumsumexp(t, 1));
  };
  test::check_modes(all, numbers<float>({7, 13}));
  test::check_modes(all, numbers<double>({1, 2}));
  const auto step = [](auto& t) {
    const auto y = logcumsumexp(t, -1);
    sum(y * y).backward();
    return y;
  };
  test::check_modes(step, test::parameter(numbers<float>({5, 9})));
}

TEST_CASE("more of matrices, against PyTorch") {
  const auto wide = numbers<float>({3, 5}), tall = numbers<float>({5, 2}, 1);
  const auto square = numbers<float>({4, 4}, 2);
  xla::Tensor<float, 2> odd = square;
  odd[0][1] = infinity, odd[2][0] = not_a_number;
  const auto named = [](const auto& x, std::string name) { return std::pair(x, name); };
  for (const auto& [x, name] :
       {named(wide, "wide"), named(tall, "tall"), named(square, "square"), named(odd, "odd")})
    for (const int offset : {0, 1, -1})
      check("diagonal/" + name + std::to_string(offset), 0,
            [offset](const auto& t) { return diagonal(t, offset); }, x);
  check("trace/odd", 5e-7, [](const auto& t) { return trace(t); }, odd);
  check("trace/wide", 5e-7, [](const auto& t) { return trace(t); }, wide);
  const auto box = numbers<float>({2, 3, 4});
  check("diagonal/first", 0, [](const auto& t) { return diagonal(t, 1); }, box);
  check("diagonal/last", 0, [](const auto& t) { return xla::diagonal<-2, -1>(t, 1); }, box);
  check("diagonal/turned", 0, [](const auto& t) { return xla::diagonal<2, 0>(t, 1); }, box);
  check("diag_embed/offset", 0, [](const auto& t) { return diag_embed(t, -1); },
        numbers<float>({2, 3}));
  check("diag_embed", 0, [](const auto& t) { return diag_embed(t); },
        xla::tensor<float>({{infinity, 1, not_a_number}, {2, 3, -infinity}}));
  check("diag/vector", 0, [](const auto& t) { return diag(t); }, numbers<float>({3}));
  check("diag/matrix", 0, [](const auto& t) { return diag(t, 1); }, square);
  check("diagflat", 0, [](const auto& t) { return diagflat(t); }, numbers<float>({2, 2}));
  const auto b = numbers<float>({2, 3, 4}), c = numbers<float>({2, 4, 5}, 1);
  const auto v = numbers<float>({3}, 3), w = numbers<float>({5}, 4);
  check("addmv", 1e-6, [](const auto& x, const auto& m, const auto& y) {
    return addmv(x, m, y, 0.5, 2);
  }, numbers<float>({3}), wide, numbers<float>({5}, 3));
  check("addr", 1e-6,
        [](const auto& x, const auto& y, const auto& z) { return addr(x, y, z, 0.5, 2); }, wide, v,
        w);
  check("baddbmm", 1e-6,
        [](const auto& x, const auto& y, const auto& z) { return baddbmm(x, y, z, 0.5, 2); },
        numbers<float>({2, 3, 5}, 2), b, c);
  check("addbmm", 1e-6,
        [](const auto& x, const auto& y, const auto& z) { return addbmm(x, y, z, 0.5, 2); }, wide,
        b, c);
  check_value("matrix_power/0", 0, matrix_power(square, 0));
  for (const int n : {1, 3, 6})
    check("matrix_power/" + std::to_string(n), 2e-6,
          [n](const auto& x) { return matrix_power(x, n); }, square * 0.25f);
  CHECK_THROWS_WITH(matrix_power(square, -1), test::contains("matrix_power: n is -1, below 0"));
  check("cov", 1e-6, [](const auto& x) { return cov(x); }, wide);
  check("diff", 0, [](const auto& x) { return diff(x); }, wide);
  check("diff/twice", 0, [](const auto& x) { return diff(x, 2, 0); }, tall);
  check("trapezoid", 5e-7, [](const auto& y) { return trapezoid(y, 0.5); }, wide);
  check("trapezoid/places", 1e-6, [](const auto& y, const auto& x) { return trapezoid(y, x); },
        wide, numbers<float>({5}, 6));
  for (const int k : {1, 2, -1, 4})
    check("rot90/" + std::to_string(k), 0, [k](const auto& x) { return rot90(x, k); }, wide);
  CHECK_THROWS_AS(diagonal(wide, 6), xla::shape_error);
  const auto all = [](auto& x) {
    return std::tuple(diagonal(x), diagonal(x, 1), diagonal(x > 0), diag_embed(x, 2), trace(x), diag_embed(x), matrix_power(x, 3),
                      cov(x), diff(x), trapezoid(x), rot90(x), hstack(x, x), take(x, argsort(x)));
  };
  test::check_modes(all, square);
  test::check_modes(all, numbers<double>({1, 1}));
}

TEST_CASE("more ways to join, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto v = numbers<float>({3}), w = numbers<float>({3}, 1);
  const auto m = numbers<float>({2, 3}, 2), n = numbers<float>({2, 3}, 3);
#define JOIN(f)                                                                         \
  check(#f "/vectors", 0, [](const auto& x, const auto& y) { return f(x * 1, y * 1); }, v, w); \
  check(#f "/matrices", 0, [](const auto& x, const auto& y) { return f(x * 1, y * 1); }, m, n)
#define ATLEAST(f)                                                                             \
  check(#f "/number", 0, [](const auto& x) { return f(x); }, numbers<float>({1})[0] * 1); \
  check(#f "/vector", 0, [](const auto& x) { return f(x); }, v);                               \
  check(#f "/matrix", 0, [](const auto& x) { return f(x); }, m)
  JOIN(hstack);
  JOIN(vstack);
  JOIN(dstack);
  JOIN(column_stack);
  JOIN(row_stack);
  ATLEAST(atleast_1d);
  ATLEAST(atleast_2d);
  ATLEAST(atleast_3d);
  check("take", 0,
        [](const auto& x) { return take(x, xla::tensor<std::int64_t>({{0, 5}, {2, 2}})); }, m);
  CHECK_THROWS_AS(take(m, xla::tensor<std::int64_t>({6})), xla::index_error);
}

TEST_CASE("losses with margins, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3}), y = numbers<float>({4, 3}, 1);
  const auto sign = xla::where(y > 0, 1.f, -1.f), zero_one = xla::cast<float>(y > 0);
  check("pairwise_distance", 1e-6,
        [](const auto& a, const auto& b) { return pairwise_distance(a, b); }, x, y);
  check("hinge_embedding_loss", 5e-7,
        [&](const auto& t) { return hinge_embedding_loss(t, sign, 2); }, x);
  check("hinge_embedding_loss/sum", 5e-7,
        [&](const auto& t) { return hinge_embedding_loss(t, sign, 1, xla::reduction::sum); }, x);
  check("soft_margin_loss", 5e-7, [&](const auto& t) { return soft_margin_loss(t, sign); }, x);
  // PyTorch's overflows there.
  CHECK(soft_margin_loss(xla::tensor<float>({200, -200}), xla::full<float>({2}, -1)).item() == 100);
  check("multilabel_soft_margin_loss", 5e-7,
        [&](const auto& t) { return multilabel_soft_margin_loss(t, zero_one); }, x);
  check("multilabel_soft_margin_loss/none", 5e-7, [&](const auto& t) {
    return multilabel_soft_margin_loss(t, zero_one, xla::reduction::none);
  }, x);
  const auto all = [](auto& a, auto& b) {
    return std::tuple(pairwise_distance(a, b), hinge_embedding_loss(a, b),
                      soft_margin_loss(a, b), multilabel_soft_margin_loss(a, b));
  };
  test::check_modes(all, x, sign);
  CHECK_THROWS_AS(soft_margin_loss(x, xla::ones<float>({4, 2})), xla::shape_error);
}
