// SPDX-License-Identifier: Apache-2.0
// The largest error of each function over its range, in units in the last place of the result,
// against the standard library in the next wider type: the bounds that the functions' sentences
// state.
#include <algorithm>
#include <cstdio>

#include "support/reference.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/erfinv.hpp"
#include "xla/op/gamma.hpp"
#include "xla/op/inverse_trigonometric.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/trigonometric.hpp"
#include "xla/run/trace/runtime.hpp"

namespace {

using wide = long double;
constexpr int samples = 100'000;

template <class T>
wide ulps(T got, wide want) {
  using limits = std::numeric_limits<T>;
  if (!(std::abs(want) <= wide(limits::max()))) return static_cast<wide>(got) == want ? 0 : 1e9;
  const int exponent = std::max(std::ilogb(want), limits::min_exponent - 1);
  return std::abs(static_cast<wide>(got) - want) /
         std::ldexp(wide(1), exponent - (limits::digits - 1));
}

/// Numbers from low to high: evenly spaced, and spread over all magnitudes in between.
template <class T>
std::vector<T> range(double low, double high) {
  std::vector<T> x;
  for (int i = 0; i < samples; ++i) {
    const double even = low + (high - low) * (i + test::number<double>(1, i) / 8) / samples;
    const double magnitude = std::exp(-std::abs(test::number<double>(2, i)) * 8);
    for (double v : {even, (i % 2 ? low : high) * magnitude})
      if (v >= low && v <= high) x.push_back(static_cast<T>(v));
  }
  return x;
}

/// The worst of f over the range; the program fails where it is above the bound.
template <class T>
void check(const char* name, double bound, double low, double high, auto f, auto exact) {
  const auto x = range<T>(low, high);
  const auto y = f(xla::tensor(x));
  wide worst = 0;
  T at{};
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const wide e = ulps(y.data()[i], exact(static_cast<wide>(x[i]))); !(e <= worst))
      worst = e, at = x[i];
  std::printf("%-10s %-7s %6.2Lf ulp of %g allowed, at %.17g\n", name,
              xla::name_of(xla::dtype_of<T>).data(), worst, bound, static_cast<double>(at));
  INFO(name);
  CHECK(worst <= bound);
}

wide sigmoid(wide x) { return 1 / (1 + std::exp(-x)); }
wide normal(wide x) { return std::erfc(-x * std::sqrt(wide(0.5))) / 2; }
/// By Newton's method on erf, or erfc in the tails.
wide inverse_of_erf(wide x) {
  const wide a = std::abs(x);
  wide y = a < wide(0.9) ? a : std::sqrt(-std::log(1 - a));
  for (int i = 0; i < 60; ++i) {
    const wide error = a < wide(0.5) ? std::erf(y) - a : (1 - a) - std::erfc(y);
    y -= error / (std::exp(-y * y) * 2 / std::sqrt(std::acos(wide(-1))));
  }
  return std::copysign(y, x);
}
wide gelu_tanh(wide x) {
  return x * sigmoid(std::sqrt(8 / std::acos(wide(-1))) * (x + wide(0.044715) * x * x * x));
}

}  // namespace

TEMPLATE_TEST_CASE("errors in units in the last place", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  constexpr bool narrow = std::is_same_v<T, float>;
  const double low = narrow ? -87.3365 : -708.396, high = narrow ? 88.722 : 709.78;
  const double huge = narrow ? 3e38 : 1e308;
#define XLA_CHECK(function, bound, from, to)                          \
  check<T>(                                                           \
      #function, bound, from, to, [](auto x) { return function(x); }, \
      [](wide x) -> wide { return std::function(x); })
  XLA_CHECK(exp, 1.25, low, high);
  XLA_CHECK(log, 2, 1e-37, 10);
  XLA_CHECK(log, 2, 1, huge);
  XLA_CHECK(expm1, 2, low, high);
  XLA_CHECK(expm1, 2, -2, 2);
  XLA_CHECK(log1p, 2, -1 + 1e-6, 2);
  XLA_CHECK(log1p, 2, 0, huge);
  XLA_CHECK(tanh, narrow ? 6 : 3, -20, 20);
  XLA_CHECK(tanh, narrow ? 6 : 3, -1, 1);
  XLA_CHECK(sin, 3, -10, 10);
  XLA_CHECK(sin, 3, -1e5, 1e5);
  XLA_CHECK(cos, 3, -10, 10);
  XLA_CHECK(cos, 3, -1e5, 1e5);
  XLA_CHECK(erf, 2, -7, 7);
  XLA_CHECK(erf, 2, -1, 1);
  XLA_CHECK(erfc, 5, -7, narrow ? 9 : 26);
  XLA_CHECK(asin, 3, -1, 1);
  XLA_CHECK(acos, 3, -1, 1);
  XLA_CHECK(atan, 1, -1e6, 1e6);
  XLA_CHECK(asinh, 4, -1e6, 1e6);
  XLA_CHECK(acosh, 4, 1, huge);
  XLA_CHECK(atanh, 4, -1, 1);
#undef XLA_CHECK
  auto one = [](const char* name, double bound, double from, double to, auto f, auto exact) {
    check<T>(name, bound, from, to, f, exact);
  };
  one(
      "erfinv", 8, -1 + 1e-6, 1 - 1e-6, [](auto x) { return erfinv(x); }, inverse_of_erf);
  one(
      "lgamma", 8, 3, 1e30, [](auto x) { return lgamma(x); },
      [](wide x) { return std::lgamma(x); });
  one(
      "ndtr", 5, narrow ? -13 : -37, 7, [](auto x) { return ndtr(x); }, normal);
  one(
      "sigmoid", 3, low, 40, [](auto x) { return xla::sigmoid(x); }, sigmoid);
  one(
      "softplus", 3, low, 20, [](auto x) { return softplus(x); },
      [](wide x) { return std::log1p(std::exp(x)); });
  one(
      "gelu", 6, narrow ? -12.5 : -37, 10, [](auto x) { return gelu(x); },
      [](wide x) { return x * normal(x); });
  for (const auto& [bound, from] : {std::pair{8, -1}, std::pair{50, -5}})
    one(
        "gelu_tanh", bound, from, 10, [](auto x) { return gelu(x, xla::approximate_tanh); },
        gelu_tanh);
  one(
      "silu", 4, low, 40, [](auto x) { return silu(x); }, [](wide x) { return x * sigmoid(x); });
  for (T y : {T(1.7), T(-2.3), T(7.5), T(0.1)})
    one(
        "pow", 1, 1e-4, 1e4, [=](auto x) { return pow(x, y); },
        [=](wide x) { return std::pow(x, wide(y)); });
  for (T x : {T(1.0625), T(0.3), T(10), T(2)})
    one(
        "pow", 1, -37, 37, [=](auto y) { return pow(x, y); },
        [=](wide y) { return std::pow(wide(x), y); });
}
