// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/activation.hpp"

#include "support/modes.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/linear.hpp"
#include "xla/run/state/metrics.hpp"

using test::check_equal;
using test::numbers;
namespace nn = xla::nn;

TEST_CASE("activation modules are their functions") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  check_equal(nn::Sigmoid{}(x), sigmoid(x));
  check_equal(nn::LogSigmoid{}(x), logsigmoid(x));
  check_equal(nn::GELU{}(x), gelu(x));
  check_equal(nn::GELUTanh{}(x), gelu(x, xla::approximate_tanh));
  check_equal(nn::SiLU{}(x), silu(x));
  check_equal(nn::ReLU6{}(x), relu6(x));
  check_equal(nn::Hardsigmoid{}(x), hardsigmoid(x));
  check_equal(nn::Hardswish{}(x), hardswish(x));
  check_equal(nn::LogSoftmax{}(x), log_softmax(x));
  check_equal(nn::LeakyReLU{}(x), leaky_relu(x, 0.01));
  check_equal(nn::LeakyReLU{0.25}(x), leaky_relu(x, 0.25));
  check_equal(nn::ELU{}(x), elu(x));
  check_equal(nn::ELU{2}(x), elu(x, 2));
  check_equal(nn::Hardtanh{}(x), hardtanh(x));
  check_equal(nn::Hardtanh{-2, 0.5}(x), hardtanh(x, -2, 0.5));
  check_equal(nn::Softplus{}(x), softplus(x));
  check_equal(nn::Softplus{.beta = 2}(x), softplus(x, 2));
}

TEST_CASE("parameters of activations may change without another compilation") {
  nn::Sequential model{nn::LeakyReLU{0.25}, nn::ELU{2}, nn::Hardtanh{-1, 2}, nn::Softplus{2, 5}};
  auto compiled = xla::compile(model);
  auto x = numbers<float>({7, 13});
  auto check = [&] {
    const auto got = compiled(x);
    const xla::eager_mode_guard eager;
    check_equal(got, model(x));
  };
  check();
  const auto before = xla::counter_value("UncachedCompile");
  std::get<0>(model.layers).negative_slope = 0.5;
  std::get<2>(model.layers).max_val = 1;
  check();
  CHECK(xla::counter_value("UncachedCompile") == before);
}
