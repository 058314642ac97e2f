// SPDX-License-Identifier: Apache-2.0
#include "support/pytorch.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {
xla::Tensor<float, 2> logits() { return numbers<float>({6, 5}); }
}  // namespace

TEST_CASE("losses over classes, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto target = xla::tensor<std::int64_t>({0, 1, 4, 2, 2, 3});
  check_pytorch(
      "cross_entropy", 1e-6, [&](const auto& x) { return cross_entropy(x, target); }, logits());
  check_pytorch(
      "cross_entropy/smooth", 1e-6,
      [&](const auto& x) { return cross_entropy(x, target, {.label_smoothing = 0.1}); }, logits());
  check_pytorch(
      "cross_entropy/ignore", 1e-6,
      [&](const auto& x) { return cross_entropy(x, target, {.ignore_index = 2}); }, logits());
  check_pytorch(
      "cross_entropy/extreme", 1e-5, [&](const auto& x) { return cross_entropy(x * 100, target); },
      logits());
  check_pytorch(
      "nll_loss", 1e-6, [&](const auto& x) { return nll_loss(x, target); }, logits());
}

TEST_CASE("losses between tensors, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<float>({3, 5}), b = numbers<float>({3, 5}, 1);
  check_pytorch(
      "mse_loss", 1e-6, [&](const auto& x) { return mse_loss(x, b); }, a);
  check_pytorch(
      "l1_loss", 1e-6, [&](const auto& x) { return l1_loss(x, b); }, a);
  check_pytorch(
      "smooth_l1_loss", 1e-6, [&](const auto& x) { return smooth_l1_loss(x, b); }, a);
  check_pytorch(
      "huber_loss", 1e-6, [&](const auto& x) { return huber_loss(x, b); }, a);
  const auto p = sigmoid(b);
  check_pytorch(
      "bce_with_logits", 1e-6,
      [&](const auto& x) { return binary_cross_entropy_with_logits(x, p); }, a * 20);
  const auto q = softmax(b);
  check_pytorch(
      "kl_div", 1e-6,
      [&](const auto& x) { return kl_div(log_softmax(x), q, xla::reduction::batchmean); }, a);
}
