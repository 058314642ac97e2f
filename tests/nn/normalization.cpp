// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/normalization.hpp"

#include "data/optim.inc"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/stored.hpp"

using test::check_equal;
using test::check_stored;
using test::numbers;
using test::parameter;
namespace nn = xla::nn;

TEST_CASE("layer_norm is PyTorch's, and so are its gradients") {
  const xla::eager_mode_guard eager;
  auto x = parameter({3, 7});
  auto w = parameter({7}, 1), b = parameter({7}, 2);
  const auto y = layer_norm(x, w, b);
  check_stored(y, reference::layer_norm);
  test::weighted_sum(y).backward();
  check_stored(x.grad(), reference::layer_norm_grad_x, 2e-5);
  check_stored(w.grad(), reference::layer_norm_grad_w, 2e-5);
  check_stored(b.grad(), reference::layer_norm_grad_b);
}

TEST_CASE("rms_norm is PyTorch's, and so are its gradients") {
  const xla::eager_mode_guard eager;
  auto x = parameter({3, 7});
  auto w = parameter({7}, 1);
  const auto y = rms_norm(x, w);
  check_stored(y, reference::rms_norm);
  test::weighted_sum(y).backward();
  check_stored(x.grad(), reference::rms_norm_grad_x, 2e-5);
  check_stored(w.grad(), reference::rms_norm_grad_w, 2e-5);
}

TEST_CASE("normalization over awkward shapes") {
  const xla::eager_mode_guard eager;
  CHECK(layer_norm(numbers<float>({0, 4})).sizes() == test::sizes_t{0, 4});
  CHECK(rms_norm(numbers<float>({3, 0})).sizes() == test::sizes_t{3, 0});
  check_equal(layer_norm(numbers<float>({5, 1})), {5, 1}, std::vector<float>(5, 0));
  check_equal(rms_norm(xla::tensor<float>({3, -4}), 0), {2},
              std::vector<float>{3 / std::sqrt(12.5f), -4 / std::sqrt(12.5f)}, 1e-6);
  const auto one = numbers<float>({1});
  CHECK_THROWS_WITH(layer_norm(numbers<float>({2, 3}), one, one),
                    test::contains("layer_norm") && test::contains("(2, 3)"));
  CHECK_THROWS_AS(rms_norm(numbers<float>({2, 3}), one), xla::shape_error);
}

TEST_CASE("gradients of normalization") {
  test::check_gradient([](auto& x, auto& w, auto& b) { return layer_norm(x, w, b, 0.01); },
                       numbers<double>({3, 5}), numbers<double>({5}, 1), numbers<double>({5}, 2));
  test::check_gradient([](auto& x, auto& w) { return rms_norm(x, w, 0.01); },
                       numbers<double>({2, 3, 5}), numbers<double>({5}, 1));
}

namespace {
struct Norms {
  nn::LayerNorm layer{13};
  nn::RMSNorm rms{13};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return rms(layer(x)); }
  XLA_MODULE(layer, rms)
};
}  // namespace

TEST_CASE("LayerNorm and RMSNorm are the same in every mode") {
  const xla::eager_mode_guard eager;
  Norms model;
  check_equal(model(numbers<float>({7, 13})), rms_norm(layer_norm(numbers<float>({7, 13}))));
  auto step = [](auto& m, auto& x) {
    const auto y = m(x);
    test::weighted_sum(y).backward();
    return y;
  };
  test::check_modes(step, model, numbers<float>({7, 13}));
  test::check_modes(step, model, numbers<float>({1, 13}));
}

TEST_CASE("a normalization layer is one step forward") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& layer, auto& x) { return layer(x); });
  const auto x = numbers<float>({7, 13});
  auto one_row_step = [](const std::string& lowered) {
    INFO(lowered);
    CHECK(lowered.find("step 0: row kernel") != std::string::npos);
    CHECK(lowered.find("step 1:") == std::string::npos);
  };
  nn::LayerNorm layer(13);
  nn::RMSNorm rms(13);
  one_row_step(f.graph(xla::Stage::lowered, layer, x));
  one_row_step(f.graph(xla::Stage::lowered, rms, x));
}
