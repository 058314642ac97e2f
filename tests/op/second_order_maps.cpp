// SPDX-License-Identifier: Apache-2.0
// Gradients of gradients: of ops that work element by element.
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/remainder.hpp"
#include "xla/op/tanh.hpp"
#include "xla/op/trigonometric.hpp"

using test::numbers;

namespace {

/// The gradient of a sum over f(x), differentiated once more.
template <class F>
void check_second(F f) {
  test::check_gradient(
      [f](auto& x) {
        const auto y = f(x);
        return xla::grad(sum(y * y), x, {.create_graph = true});
      },
      numbers<double>({2, 5}));
}

}  // namespace

TEST_CASE("second gradients of exponentials and angles") {
  check_second([](auto& x) { return exp(x * 0.5) + log(x * x + 1) + expm1(x) * log1p(x * x); });
  check_second([](auto& x) { return sin(x) * cos(x * 2) + tan(x * 0.25) + tanh(x); });
  check_second([](auto& x) { return erf(x) + erfc(x * 0.5) * ndtr(x); });
  check_second(
      [](auto& x) { return sigmoid(x) * softplus(x) + logsigmoid(x) + softplus(x, 2, 3); });
}

TEST_CASE("second gradients of powers and pieces") {
  // Scaled, or the largest element's rounding would drown the differences of the others.
  check_second([](auto& x) {
    const auto z = x * 0.5;
    return pow(z * z + 1, z) + pow(x, 3) * 0.1 + pow(x * x + 1, -0.5);
  });
  check_second(
      [](auto& x) { return clamp(x, x * 0 - 1, x * x) * x + x % 1.5 * x + abs(x) * floor(x); });
  check_second([](auto& x) { return maximum(x, x * x - 2) * lerp(x, reciprocal(x * x + 1), 0.3); });
}

TEST_CASE("second gradients of activations") {
  check_second([](auto& x) { return gelu(x) + gelu(x, xla::approximate_tanh) * x; });
  check_second(
      [](auto& x) { return silu(x) + elu(x, 2) * leaky_relu(x) + hardtanh(x, -2, 2) * x; });
}
