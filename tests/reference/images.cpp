// SPDX-License-Identifier: Apache-2.0
// Layers of convolutional networks on awkward shapes.
#include "support/pytorch.hpp"
#include "xla/nn/max_unpool.hpp"
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

// A case of pool_functions() in images.py.
template <std::size_t N>
void pool(const std::string& name, const xla::Size (&sizes)[N], xla::HeightWidth kernel,
          const xla::MaxPool2dOptions& o) {
  const auto x = numbers<float>(sizes);
  const auto mean = [&](bool outside) {
    return [=](const auto& x) {
      return avg_pool2d(x, kernel,
                        {.stride = o.stride,
                         .padding = o.padding,
                         .ceil_mode = o.ceil_mode,
                         .count_include_pad = outside});
    };
  };
  check_pytorch(
      "max_pool2d/" + name, 0, [&](const auto& x) { return max_pool2d(x, kernel, o); }, x);
  check_pytorch("avg_pool2d/" + name, 1e-6, mean(true), x);
  check_pytorch("avg_pool2d/" + name + "/inside", 1e-6, mean(false), x);
}

void share(const std::string& name, const xla::ImageSize& size) {
  const auto x = numbers<float>({2, 3, 7, 5});
  check_pytorch(
      "adaptive_max_pool2d/" + name, 0, [&](const auto& x) { return adaptive_max_pool2d(x, size); },
      x);
  check_pytorch(
      "adaptive_avg_pool2d/" + name, 1e-6,
      [&](const auto& x) { return adaptive_avg_pool2d(x, size); }, x);
}

void interpolation(const std::string& name, double tolerance, const xla::InterpolateOptions& o) {
  check_pytorch(
      "interpolate/" + name, tolerance, [&](const auto& x) { return interpolate(x, o); },
      numbers<float>({2, 2, 5, 7}));
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

/// Maxima, put back where they were in images of zeros.
template <class Pool, class Unpool>
struct back {
  Pool pool;
  Unpool unpool;
  template <class T, int R>
  constexpr xla::Tensor<T, R> operator()(const xla::Tensor<T, R>& x) const {
    const auto [y, indices] = pool(x);
    if constexpr (R == 4) return unpool(y * y, indices, {x.size(2), x.size(3)});
    else return unpool(y * y, indices, {1, x.size(2)});
  }
  XLA_MODULE(pool, unpool)
};

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
  using same = nn::Conv2d<nn::Conv2dConfig{
      .kernel_size = {2, 3}, .padding = xla::tags::same, .dilation = {3, 2}}>;
  check_layer("same", same(2, 3), {1, 2, 4, 5});
  check_layer("empty", nn::Conv2d<3>(3, 4), {0, 3, 5, 6});
  check_layer("line", nn::Conv1d<3, 2, 2, 2, 2>(4, 6), {2, 4, 9});
  using same_line =
      nn::Conv1d<nn::Conv1dConfig{.kernel_size = 4, .padding = xla::tags::same, .bias = false}>;
  check_layer("line_same", same_line(2, 3), {2, 2, 5});
  using nn::PaddingMode;
  check_layer(
      "mirrored",
      nn::Conv2d<nn::Conv2dConfig{
          .kernel_size = 3, .stride = 2, .padding = {2, 1}, .padding_mode = PaddingMode::reflect}>(
          2, 3),
      {2, 2, 5, 4});
  check_layer("replicated",
              nn::Conv2d<nn::Conv2dConfig{.kernel_size = {2, 3},
                                          .padding = xla::tags::same,
                                          .dilation = {1, 2},
                                          .groups = 2,
                                          .padding_mode = PaddingMode::replicate}>(2, 4),
              {1, 2, 3, 2});
  check_layer("ring", nn::Conv1d<4, 1, 3, 1, 1, false, PaddingMode::circular>(2, 3), {2, 2, 3});
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
  check_layer("max_line", nn::MaxPool1d<3, 2, 1, 1, false, true>(), {2, 3, 8});
  check_layer("max_back", back<nn::MaxPool2d<2, 2, 0, 1, true>, nn::MaxUnpool2d<2>>(),
              {2, 3, 5, 4});
  constexpr nn::MaxPool2dConfig far{
      .kernel_size = {2, 3}, .stride = {3, 4}, .padding = 1, .return_indices = true};
  constexpr nn::MaxUnpool2dConfig back_far{.kernel_size = {2, 3}, .stride = {3, 4}, .padding = 1};
  check_layer("max_back_far", back<nn::MaxPool2d<far>, nn::MaxUnpool2d<back_far>>(), {1, 2, 6, 8});
  check_layer("max_back_line", back<nn::MaxPool1d<2, 3, 0, 1, true>, nn::MaxUnpool1d<2, 3>>(),
              {2, 3, 8});
  check_layer("max_back_shares", back<nn::AdaptiveMaxPool2d<2, 3, true>, nn::MaxUnpool2d<2>>(),
              {1, 2, 4, 6});
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
  using nn::BasicInstanceNorm, nn::InstanceNormOptions;
  check_layer("instance_norm", BasicInstanceNorm<float, 2, InstanceNormOptions{.affine = true}>(3),
              {2, 3, 4, 5});
  check_layer("instance_norm_line", nn::InstanceNorm1d(3), {2, 3, 5});
  constexpr InstanceNormOptions tracked{.affine = true, .track_running_stats = true},
      plain{.track_running_stats = true};
  check_layer("instance_norm_tracked", BasicInstanceNorm<float, 2, tracked>(3, 1e-3, 0.3),
              {2, 3, 4, 5});
  check_layer("instance_norm_tracked_plain", BasicInstanceNorm<float, 1, plain>(3), {4, 3, 5});
}

TEST_CASE("pools, against PyTorch") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  pool("images", {2, 3, 7, 9}, 3, {.stride = 2, .padding = 1});
  pool("whole", {2, 2, 4, 5}, {4, 5}, {});
  pool("far", {1, 2, 7, 8}, 2, {.stride = {3, 5}});
  pool("ceil", {1, 2, 5, 6}, 2, {.stride = 3, .padding = 1, .ceil_mode = true});
  pool("beyond", {1, 1, 3, 4}, 4, {.stride = 2, .padding = 2, .ceil_mode = true});
  pool("pixels", {3, 1, 1, 1}, 1, {.stride = 2});
  pool("empty", {0, 2, 4, 4}, 2, {});
  const auto places = [](const std::string& name, const auto& x, xla::HeightWidth kernel,
                         const xla::MaxPool2dOptions& o) {
    check_pytorch("max_pool2d_with_indices/" + name,
                  xla::cast<float>(max_pool2d_with_indices(x, kernel, o).second), 0);
  };
  places("images", numbers<float>({2, 3, 7, 9}), 3, {.stride = 2, .padding = 1});
  places("channels", numbers<float>({1, 5, 4, 6}), 2,
         {.stride = 1, .padding = 1, .dilation = {1, 2}, .ceil_mode = true});
  const auto special =
      unsqueeze(xla::tensor<float>({{{1, nan, 3, 3}, {nan, 2, 3, -0.f}, {0, -0.f, -nan, 1}}}), 0);
  places("special", special, 2, {.stride = 1});
  check_pytorch(
      "max_pool2d/dilated", 0,
      [](const auto& x) {
        return max_pool2d(x, 3, {.stride = 1, .padding = 1, .dilation = {2, 3}});
      },
      numbers<float>({1, 2, 9, 8}));
  check_pytorch(
      "max_pool2d/special", 0, [](const auto& x) { return max_pool2d(x, 2, {.stride = 1}); },
      special);
  check_pytorch(
      "avg_pool2d/divided", 1e-6,
      [](const auto& x) {
        return avg_pool2d(x, {2, 3}, {.stride = 1, .padding = 1, .divisor_override = 5});
      },
      numbers<float>({1, 2, 4, 5}));
  check_pytorch(
      "max_pool1d", 0,
      [](const auto& x) {
        return max_pool1d(x, 3, {.stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true});
      },
      numbers<float>({2, 3, 11}));
  check_pytorch(
      "avg_pool1d", 1e-6,
      [](const auto& x) {
        return avg_pool1d(
            x, 4, {.stride = 3, .padding = 2, .ceil_mode = true, .count_include_pad = false});
      },
      numbers<float>({2, 3, 11}));
  share("fewer", {3, 4});
  share("one", 1);
  share("more", {10, 2});
  share("kept", {xla::none, 3});
  const auto x = numbers<float>({2, 3, 9});
  check_pytorch(
      "adaptive_max_pool1d", 0, [](const auto& x) { return adaptive_max_pool1d(x, 4); }, x);
  check_pytorch(
      "adaptive_avg_pool1d", 1e-6, [](const auto& x) { return adaptive_avg_pool1d(x, 4); }, x);
}

TEST_CASE("images of other sizes, against PyTorch") {
  const auto bilinear = xla::Interpolation::bilinear, bicubic = xla::Interpolation::bicubic;
  const auto x = numbers<float>({2, 2, 5, 7});
  interpolation("twice", 0, {.scale_factor = 2});
  interpolation("size", 0, {.size = {3, 9}});
  interpolation("scale", 0, {.scale_factor = {1.3, 0.6}});
  interpolation("exact", 0, {.size = {8, 3}, .mode = xla::Interpolation::nearest_exact});
  interpolation("bilinear/twice", 1e-6, {.scale_factor = 2, .mode = bilinear});
  interpolation("bilinear/size", 1e-6, {.size = {8, 3}, .mode = bilinear});
  interpolation("bilinear/scale", 2e-6, {.scale_factor = {1.3, 0.6}, .mode = bilinear});
  interpolation("bilinear/corners", 1e-6,
                {.scale_factor = {2, 0.5}, .mode = bilinear, .align_corners = true});
  interpolation("bilinear/one", 0, {.size = 1, .mode = bilinear, .align_corners = true});
  interpolation("bicubic/twice", 2e-6, {.scale_factor = 2, .mode = bicubic});
  interpolation("bicubic/size", 2e-6, {.size = {8, 3}, .mode = bicubic});
  interpolation("bicubic/scale", 5e-6, {.scale_factor = {1.1, 0.6}, .mode = bicubic});
  interpolation("bicubic/corners", 2e-6,
                {.scale_factor = {2, 0.5}, .mode = bicubic, .align_corners = true});
  interpolation("bicubic/one", 0, {.size = 1, .mode = bicubic, .align_corners = true});
  interpolation("area", 1e-6, {.size = {2, 3}, .mode = xla::Interpolation::area});
  check_pytorch(
      "interpolate/pixels", 1e-6,
      [=](const auto& x) {
        return interpolate(x, {.size = {3, 2}, .mode = bilinear});
      },
      numbers<float>({2, 1, 1, 1}));
  check_pytorch(
      "interpolate/linear", 1e-6,
      [](const auto& x) {
        return interpolate(x, {.size = 11, .mode = xla::Interpolation::linear});
      },
      xla::select(x, 0, 0));
  for (const auto& [name, mode] : {std::pair("pad/reflect", xla::PadMode::reflect),
                                   {"pad/replicate", xla::PadMode::replicate},
                                   {"pad/circular", xla::PadMode::circular}})
    check_pytorch(
        name, 0,
        [mode = mode](const auto& x) {
          return pad(x, {{0, 0}, {0, 0}, {0, 2}, {3, 1}}, mode);
        },
        x);
  check_pytorch(
      "pixel_shuffle", 0, [](const auto& x) { return pixel_shuffle(x, 2); },
      numbers<float>({2, 8, 3, 2}));
  check_pytorch(
      "pixel_unshuffle", 0, [](const auto& x) { return pixel_unshuffle(x, 2); },
      numbers<float>({2, 3, 4, 6}));
  const xla::UnfoldOptions options{.dilation = {1, 2}, .padding = {2, 1}, .stride = {2, 3}};
  check_pytorch(
      "unfold", 0,
      [=](const auto& x) {
        return unfold(x, {3, 2}, options);
      },
      x);
  check_pytorch(
      "fold", 1e-6,
      [=](const auto& x) {
        return fold(x, {5, 7}, {3, 2}, options);
      },
      numbers<float>({2, 12, 12}));
}
