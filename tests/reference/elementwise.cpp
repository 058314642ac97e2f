// SPDX-License-Identifier: Apache-2.0
#include "support/pytorch.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {

const auto same = [](const auto& x) { return x; };
const auto positive = [](const auto& x) { return abs(x) + 0.1f; };

xla::Tensor<float, 1> special() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  return xla::tensor<float>(
      {nan, inf, -inf, 0.f, -0.f, 1, -1, 0.5, -2.5, 1e30f, -1e30f, 1e-30f, 88, -88, 20.5, 3});
}

// The cases of unary() in make.py.
template <class F, class Shift = decltype(same)>
void unary(const std::string& name, double tolerance, F f, Shift shift = same) {
  const xla::eager_mode_guard eager;
  check_pytorch(name + "/odd", tolerance, f, shift(numbers<float>({7, 5})));
  check_pytorch(name + "/one", tolerance, f, shift(numbers<float>({1, 1}, 1)));
  check_pytorch(name + "/empty", tolerance, f, shift(numbers<float>({0, 3})));
  check_pytorch(
      name + "/transposed", tolerance, [f](const auto& x) { return f(transpose(x)); },
      shift(numbers<float>({5, 3}, 2)));
  check_pytorch(name + "/special", f(special()), tolerance);
}

#define UNARY(f, tolerance, ...) \
  unary(#f, tolerance, [](const auto& x) { return f(x); } __VA_OPT__(, ) __VA_ARGS__)

}  // namespace

TEST_CASE("elementwise functions of one tensor, against PyTorch") {
  UNARY(abs, 0);
  unary("neg", 0, [](const auto& x) { return -x; });
  UNARY(sign, 0);
  UNARY(floor, 0);
  UNARY(ceil, 0);
  UNARY(round, 0);
  UNARY(trunc, 0);
  UNARY(relu, 0);
  UNARY(square, 1e-7);
  UNARY(sqrt, 2e-7, positive);
  UNARY(rsqrt, 4e-7, positive);
  UNARY(reciprocal, 2e-7, positive);
}

TEST_CASE("exponentials and trigonometry, against PyTorch") {
  UNARY(exp, 5e-7);
  UNARY(expm1, 5e-7);
  UNARY(log, 5e-7, positive);
  UNARY(log1p, 5e-7, positive);
  UNARY(sin, 5e-7);
  UNARY(cos, 5e-7);
  UNARY(tanh, 2e-6);
  UNARY(sigmoid, 5e-7);
  UNARY(erf, 5e-7);
}

TEST_CASE("activations, against PyTorch") {
  UNARY(gelu, 1e-6);
  unary("gelu_tanh", 1e-6, [](const auto& x) { return gelu(x, xla::approximate_tanh); });
  UNARY(silu, 1e-6);
  UNARY(softplus, 1e-6);
  unary("leaky_relu", 1e-7, [](const auto& x) { return leaky_relu(x, 0.1); });
  UNARY(elu, 1e-6);
  UNARY(hardtanh, 0);
  UNARY(relu6, 0);
  UNARY(hardsigmoid, 2e-7);
  UNARY(hardswish, 1e-6);
  const auto corners = xla::tensor<float>({-3, 0, 3, 6});
  check_pytorch(
      "relu6/corners", 0, [](const auto& x) { return relu6(x); }, corners);
  check_pytorch(
      "hardsigmoid/corners", 2e-7, [](const auto& x) { return hardsigmoid(x); }, corners);
  check_pytorch(
      "hardswish/corners", 1e-6, [](const auto& x) { return hardswish(x); }, corners);
  unary("clip", 0, [](const auto& x) { return clip(x, -1.5, 2); });
  unary("pow3", 1e-6, [](const auto& x) { return pow(x, 3); });
}

TEST_CASE("tests for special values, against PyTorch") {
  const xla::eager_mode_guard eager;
  check_pytorch("isnan/special", isnan(special()), 0);
  check_pytorch("isinf/special", isinf(special()), 0);
  check_pytorch("isfinite/special", isfinite(special()), 0);
}
