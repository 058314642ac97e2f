// SPDX-License-Identifier: Apache-2.0
// Layers of convolutional networks on awkward shapes.
#include "support/pytorch.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;
namespace nn = xla::nn;

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

namespace {

/// numbers(sizes, seed) of the sizes that a tensor has.
template <int R>
xla::Tensor<float, R> numbers_like(const xla::Tensor<float, R>& t, std::uint64_t seed) {
  xla::Size sizes[R];
  for (int i = 0; i < R; ++i) sizes[i] = t.size(i);
  return numbers<float>(sizes, seed);
}

// A case of layer() in images.py: states by their names.
template <std::size_t N>
void check_layer(const std::string& label, auto layer, const xla::Size (&sizes)[N],
                 double tolerance = 2e-5) {
  const xla::eager_mode_guard eager;
  const std::string name = "layer/" + label;
  std::uint64_t seed = 0;
  bool buffers = false;
  xla::named_parameters(layer, [&](const auto&, auto& p) { p.copy_(numbers_like(p, ++seed)); });
  auto x = xla::Parameter<float, static_cast<int>(N)>::like(numbers<float>(sizes));
  x.copy_(numbers<float>(sizes));
  const auto y = layer(x);
  sum(y * numbers_like(y, 99)).backward();
  check_pytorch(name, y, tolerance);
  check_pytorch(name + "/x", x.grad(), tolerance);
  xla::named_parameters(layer, [&](const std::string& part, auto& p) {
    check_pytorch(name + "/" + part, p.grad(), tolerance);
  });
  xla::named_buffers(layer, [&](const std::string& part, auto& b) {
    check_pytorch(name + "/" + part, b, tolerance);
    buffers = true;
  });
  if constexpr (requires { layer.eval(); }) {
    layer.eval();
    if (buffers) check_pytorch(name + "/eval", layer(x), tolerance);
  }
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

TEST_CASE("layers of convolutions, against PyTorch") {
  check_layer("plain", nn::Conv2d<3>(3, 4), {2, 3, 5, 6});
  using stem =
      nn::Conv2d<nn::Conv2dConfig{.kernel_size = 7, .stride = 2, .padding = 3, .bias = false}>;
  check_layer("stem", stem(3, 4), {1, 3, 9, 8});
  check_layer("one_pixel", nn::Conv2d<1>(3, 5), {2, 3, 1, 1});
  using padded = nn::Conv2d<nn::Conv2dConfig{.kernel_size = 5, .padding = 2}>;
  check_layer("larger_kernel", padded(2, 3), {1, 2, 2, 1});
  check_layer("beyond_kernel", nn::Conv2d<2, 3>(2, 3), {1, 2, 7, 8});
  using groups = nn::Conv2d<nn::Conv2dConfig{.kernel_size = 3, .padding = 1, .groups = 3}>;
  check_layer("odd_groups", groups(9, 6), {1, 9, 4, 5});
  check_layer("depthwise", nn::Conv2d<3, 2, 1, 1, 5>(5, 5), {2, 5, 6, 5});
  check_layer("one_channel", nn::Conv2d<2>(1, 1), {1, 1, 3, 3});
  using uneven = nn::Conv2d<nn::Conv2dConfig{
      .kernel_size = {1, 4}, .stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}}>;
  check_layer("uneven", uneven(2, 3), {1, 2, 5, 7});
  using same =
      nn::Conv2d<nn::Conv2dConfig{.kernel_size = {2, 3}, .padding = xla::same, .dilation = {3, 2}}>;
  check_layer("same", same(2, 3), {1, 2, 4, 5});
  check_layer("empty", nn::Conv2d<3>(3, 4), {0, 3, 5, 6});
  check_layer("line", nn::Conv1d<3, 2, 2, 2, 2>(4, 6), {2, 4, 9});
  using same_line =
      nn::Conv1d<nn::Conv1dConfig{.kernel_size = 4, .padding = xla::same, .bias = false}>;
  check_layer("line_same", same_line(2, 3), {2, 2, 5});
}

TEST_CASE("layers of transposed convolutions, against PyTorch") {
  check_layer("transposed", nn::ConvTranspose2d<3>(4, 3), {2, 4, 3, 2});
  using uneven = nn::ConvTranspose2d<nn::ConvTranspose2dConfig{.kernel_size = {3, 2},
                                                               .stride = {2, 3},
                                                               .padding = {1, 0},
                                                               .output_padding = {1, 2},
                                                               .groups = 2,
                                                               .dilation = {2, 1}}>;
  check_layer("transposed_uneven", uneven(4, 6), {2, 4, 3, 2});
  check_layer("transposed_line", nn::ConvTranspose1d<4, 3, 1, 2, 2, false>(4, 6), {1, 4, 5});
}

TEST_CASE("layers that pool, against PyTorch") {
  check_layer("max", nn::MaxPool2d<2>(), {2, 3, 5, 4});
  check_layer("max_resnet", nn::MaxPool2d<3, 2, 1>(), {1, 2, 7, 8});
  using uneven_max = nn::MaxPool2d<nn::MaxPool2dConfig{.kernel_size = {2, 3},
                                                       .stride = {3, 1},
                                                       .padding = {1, 0},
                                                       .dilation = {1, 2},
                                                       .ceil_mode = true}>;
  check_layer("max_uneven", uneven_max(), {1, 2, 7, 8});
  check_layer("max_line", nn::MaxPool1d<3, 2, 1, 1, true>(), {2, 3, 8});
  check_layer("avg", nn::AvgPool2d<2>(), {2, 3, 5, 4});
  using uneven_avg = nn::AvgPool2d<nn::AvgPool2dConfig{.kernel_size = {2, 3},
                                                       .stride = {1, 2},
                                                       .padding = 1,
                                                       .ceil_mode = true,
                                                       .count_include_pad = false}>;
  check_layer("avg_uneven", uneven_avg(), {1, 2, 5, 6});
  using divided = nn::AvgPool2d<nn::AvgPool2dConfig{.kernel_size = 3, .divisor_override = 5}>;
  check_layer("avg_divided", divided(), {1, 2, 6, 6});
  check_layer("avg_line", nn::AvgPool1d<3, 2, 1, false, false>(), {2, 3, 7});
  check_layer("adaptive_avg", nn::AdaptiveAvgPool2d<1>(), {2, 3, 5, 4});
  check_layer("adaptive_avg_uneven", nn::AdaptiveAvgPool2d<3, xla::none>(), {1, 2, 5, 4});
  check_layer("adaptive_avg_larger", nn::AdaptiveAvgPool2d<3, 4>(), {1, 2, 2, 1});
  check_layer("adaptive_avg_line", nn::AdaptiveAvgPool1d<3>(), {2, 3, 7});
  check_layer("adaptive_max_line", nn::AdaptiveMaxPool1d<2>(), {2, 3, 5});
  check_layer("adaptive_max", nn::AdaptiveMaxPool2d<2, 3>(), {1, 2, 5, 7});
}

TEST_CASE("layers that normalize channels, against PyTorch") {
  using nn::BasicBatchNorm, nn::BatchNormOptions;
  check_layer("batch_norm1d", nn::BatchNorm1d(3), {4, 3, 5});
  check_layer("batch_norm2d", nn::BatchNorm2d(3, 1e-3, 0.3), {2, 3, 4, 5});
  check_layer("batch_norm_average",
              BasicBatchNorm<float, 2, BatchNormOptions{.cumulative = true}>(3), {2, 3, 4, 5});
  check_layer("batch_norm_plain", BasicBatchNorm<float, 2, BatchNormOptions{.affine = false}>(3),
              {2, 3, 4, 5});
  check_layer("batch_norm_own",
              BasicBatchNorm<float, 2, BatchNormOptions{.track_running_stats = false}>(3),
              {2, 3, 4, 5});
  check_layer("group_norm", nn::GroupNorm<2>(4), {2, 4, 3, 5});
  check_layer("instance_norm", nn::BasicInstanceNorm<float, 2, true>(3), {2, 3, 4, 5});
  check_layer("instance_norm_line", nn::InstanceNorm1d(3), {2, 3, 5});
}
