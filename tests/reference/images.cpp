// SPDX-License-Identifier: Apache-2.0
// Layers of convolutional networks on awkward shapes.
#include "support/pytorch.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {

template <int R>
xla::Buffer<float, R> buffer(const xla::Tensor<float, R>& x) {
  auto b = xla::Buffer<float, R>::like(x);
  b.copy_(x);
  return b;
}

// The cases of batch_norm() in images.py.
template <std::size_t N>
void batch_norm(const std::string& name, const xla::Size (&sizes)[N]) {
  const auto x = numbers<float>(sizes);
  const auto weight = numbers<float>({sizes[1]}, 1), bias = numbers<float>({sizes[1]}, 2);
  const auto mean = buffer(numbers<float>({sizes[1]}, 3));
  const auto var = buffer(abs(numbers<float>({sizes[1]}, 4)));
  check_pytorch(
      "batch_norm/" + name + "/eval", 1e-6,
      [&](const auto& x, const auto& w, const auto& b) {
        return xla::batch_norm(x, mean, var, w, b, false, 0.3, 1e-3);
      },
      x, weight, bias);
  check_pytorch(
      "batch_norm/" + name, 1e-5,
      [&](const auto& x, const auto& w, const auto& b) {
        return xla::batch_norm(x, mean, var, w, b, true, 0.3);
      },
      x, weight, bias);
  check_pytorch("batch_norm/" + name + "/mean", mean, 1e-6);
  check_pytorch("batch_norm/" + name + "/var", var, 1e-6);
}

template <std::size_t N>
void group_norm(const std::string& name, const xla::Size (&sizes)[N], std::int64_t groups) {
  const auto x = numbers<float>(sizes);
  check_pytorch(
      "group_norm/" + name, 1e-5, [&](const auto& x) { return xla::group_norm(x, groups); }, x);
  check_pytorch(
      "group_norm/" + name + "/affine", 1e-5,
      [&](const auto& x, const auto& w, const auto& b) {
        return xla::group_norm(x, groups, w, b, 1e-3);
      },
      x, numbers<float>({sizes[1]}, 1), numbers<float>({sizes[1]}, 2));
}

template <std::size_t N>
void instance_norm(const std::string& name, const xla::Size (&sizes)[N]) {
  const auto x = numbers<float>(sizes);
  check_pytorch(
      "instance_norm/" + name, 1e-5, [](const auto& x) { return xla::instance_norm(x); }, x);
  check_pytorch(
      "instance_norm/" + name + "/affine", 1e-5,
      [](const auto& x, const auto& w, const auto& b) { return xla::instance_norm(x, w, b, 1e-3); },
      x, numbers<float>({sizes[1]}, 1), numbers<float>({sizes[1]}, 2));
}

}  // namespace

TEST_CASE("normalization of channels, against PyTorch") {
  const xla::eager_mode_guard eager;
  batch_norm("rows", {5, 4});
  batch_norm("lines", {2, 3, 5});
  batch_norm("images", {3, 4, 5, 2});
  batch_norm("pixels", {6, 3, 1, 1});
  batch_norm("one_channel", {2, 1, 1, 7});
  batch_norm("one_image", {1, 2, 3, 1});
  group_norm("rows", {3, 8}, 2);
  group_norm("lines", {2, 6, 5}, 2);
  group_norm("images", {2, 6, 3, 5}, 3);
  group_norm("one_group", {2, 3, 2, 2}, 1);
  group_norm("each", {2, 3, 5, 1}, 3);
  group_norm("pixels", {2, 6, 1, 1}, 2);
  group_norm("empty", {0, 6, 2, 2}, 2);
  instance_norm("lines", {2, 3, 7});
  instance_norm("images", {2, 3, 4, 5});
  instance_norm("one_channel", {3, 1, 2, 1});
}
