// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/conv.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/steps.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/loss.hpp"
#include "xla/nn/pool.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/nn/upsample.hpp"
#include "xla/optim/sgd.hpp"

using test::check_equal;
using test::numbers;
namespace nn = xla::nn;

namespace {

/// Every kind of layer that images go through.
struct Net {
  using stem = nn::Conv2d<nn::Conv2dConfig{.kernel_size = 5, .stride = 2, .padding = 2}>;
  using same = nn::Conv2d<nn::Conv2dConfig{
      .kernel_size = {2, 3}, .padding = xla::tags::same, .groups = 2, .bias = false}>;
  stem conv1{3, 4};
  nn::BatchNorm2d bn1{4};
  nn::MaxPool2d<3, 2, 1> maxpool;
  same conv2{4, 6};
  nn::BatchNorm2d bn2{6};
  nn::ConvTranspose2d<2, 2> up{6, 4};
  nn::AdaptiveAvgPool2d<2, 1> avgpool;
  nn::Dropout2d dropout{0.25};
  nn::Linear fc{8, 3};
  constexpr auto operator()(const xla::Tensor<float, 4>& x) const {
    auto h = maxpool(xla::relu(bn1(conv1(x))));
    h = xla::relu6(bn2(conv2(h)));
    return fc(xla::flatten<1>(dropout(avgpool(up(h)))));
  }
  XLA_MODULE(conv1, bn1, maxpool, conv2, bn2, up, avgpool, dropout, fc)
};

template <class Layer>
double largest(const Layer& layer) {
  return xla::max(xla::abs(layer.weight)).item();
}

}  // namespace

TEST_CASE("a convolutional network trains and evaluates the same in every mode") {
  const auto target = xla::tensor<std::int64_t>({0, 2, 1});
  const auto run = [&](auto step) {
    xla::manual_seed(5);
    Net net;
    nn::CrossEntropyLoss loss_fn;
    xla::optim::SGD optimizer{net, {.lr = 0.05, .momentum = 0.9}};
    test::snapshot all;
    for (const auto& [height, width] : {std::pair(11, 9), {8, 8}, {5, 13}}) {
      const auto x = numbers<float>({3, 3, height, width});
      all.add(step(net, x, target, loss_fn, optimizer));
      xla::sync();
    }
    all.add(net);
    return all;
  };
  const test::snapshot traced = run(test::step_fn);
  const xla::eager_mode_guard eager;
  const test::snapshot now = run(test::step_fn);
  CHECK(traced.difference(now) == "");
  auto compiled = xla::compile(test::step_fn);
  CHECK(run([&](auto&... a) { return compiled(a...); }).difference(now) == "");

  Net net;
  net.eval();
  auto predict = xla::compile(net);
  for (const std::int64_t batch : {1, 4, 0}) {
    const auto x = numbers<float>({batch, 3, 7, 6});
    check_equal(predict(x), net(x));
  }
}

TEST_CASE("layers of images are the same in every mode, one by one") {
  const auto train = [](const auto& layer, auto& x) {
    const auto y = layer(x);
    test::weighted_sum(y).backward();
    return y;
  };
  const auto images = test::parameter(numbers<float>({2, 4, 7, 5}));
  const auto lines = test::parameter(numbers<float>({2, 4, 9}));
  test::check_modes(train, Net::same(4, 6), images);
  test::check_modes(train, nn::ConvTranspose2d<3, 2, 1, 1>(4, 2), images);
  constexpr nn::Conv2dConfig mirrored{
      .kernel_size = 3, .stride = 2, .padding = {2, 1}, .padding_mode = nn::PaddingMode::reflect};
  test::check_modes(train, nn::Conv2d<mirrored>(4, 2), images);
  constexpr nn::Conv1dConfig ring{
      .kernel_size = 4, .padding = xla::tags::same, .padding_mode = nn::PaddingMode::circular};
  test::check_modes(train, nn::Conv1d<ring>(4, 2), lines);
  test::check_modes(train, nn::Conv1d<4, 2, 1, 2, 2, false>(4, 6), lines);
  test::check_modes(train, nn::ConvTranspose1d<4, 3>(4, 2), lines);
  test::check_modes(train, nn::BasicConv2d<double, 3>(4, 2),
                    test::parameter(numbers<double>({1, 4, 3, 3})));
  test::check_modes(train, nn::Sequential{nn::AvgPool2d<2, 1>{}, nn::AdaptiveMaxPool2d<2>{}},
                    images);
  test::check_modes(train, nn::Sequential{nn::MaxPool1d<2>{}, nn::AvgPool1d<2, 1>{}}, lines);
  constexpr nn::UpsampleConfig larger{.scale_factor = {2, 3}, .mode = xla::Interpolation::bilinear};
  test::check_modes(train, nn::Sequential{nn::Upsample<larger>{}, nn::Upsample<9>{}}, images);
  test::check_modes(train, nn::Upsample<nn::UpsampleConfig{.scale_factor = 2}>{}, lines);
}

TEST_CASE("Upsample is interpolate as a layer") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({1, 2, 3, 4});
  check_equal(nn::Upsample<nn::UpsampleConfig{.size = {5, 2}}>{}(x),
              xla::interpolate(x, {.size = {5, 2}}));
  constexpr nn::UpsampleConfig corners{
      .scale_factor = 3, .mode = xla::Interpolation::bilinear, .align_corners = true};
  check_equal(nn::Upsample<corners>{}(x),
              xla::interpolate(x, {.scale_factor = 3,
                                   .mode = xla::Interpolation::bilinear,
                                   .align_corners = true}));
}

TEST_CASE("layers in a row, whose channels only a call tells, are compiled once") {
  const xla::eager_mode_guard eager;
  using same = nn::Conv2d<nn::Conv2dConfig{.kernel_size = 4, .padding = xla::tags::same}>;
  nn::Sequential model{nn::Conv2d<3>{1, 8}, nn::ReLU{},          nn::BatchNorm2d{8},
                       nn::MaxPool2d<2>{},  same{8, 4},          nn::Hardswish{},
                       nn::Flatten<>{},     nn::Linear{4 * 9, 3}};
  model.eval();
  auto predict = xla::compile(model);
  for (const std::int64_t batch : {2, 1}) {
    const auto x = numbers<float>({batch, 1, 8, 9});
    check_equal(predict(x), model(x));
  }
  CHECK_THROWS_WITH(predict(numbers<float>({2, 1, 20, 20})), test::contains("36"));
  CHECK_THROWS_WITH(predict(numbers<float>({2, 1, 2, 9})),
                    test::contains("the kernel is larger than the padded input"));
}

TEST_CASE("convolutions start as PyTorch's do") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  // Bounds of torch.nn's layers: 1 / sqrt(weight.size(1) * the kernel's size).
  const auto check = [](const auto& layer, double bound) {
    for (const auto& values : {layer.weight.to_vector(), layer.bias.to_vector()}) {
      double square = 0;
      for (const float v : values) square += double(v) * v / static_cast<double>(values.size());
      CHECK(square == Approx(bound * bound / 3).epsilon(0.3));
    }
    CHECK(largest(layer) <= bound);
    CHECK(largest(layer) > 0.97 * bound);
  };
  check(nn::Conv2d<3>(16, 64), 1 / std::sqrt(16 * 9.));
  check(nn::Conv2d<3, 1, 0, 1, 8>(16, 64), 1 / std::sqrt(2 * 9.));
  check(nn::ConvTranspose2d<3>(64, 32), 1 / std::sqrt(32 * 9.));
  check(nn::Conv1d<5>(16, 64), 1 / std::sqrt(16 * 5.));
  check(nn::ConvTranspose1d<5, 2, 0, 0, 4>(64, 64), 1 / std::sqrt(16 * 5.));
}

TEST_CASE("states have PyTorch's names and sizes") {
  const xla::eager_mode_guard eager;
  Net net;
  std::string names;
  for (const auto& array : xla::state_dict(net))
    names += array.name + xla::io::sizes_text(array.sizes) + " ";
  CHECK(names ==
        "conv1.weight[4, 3, 5, 5] conv1.bias[4] bn1.weight[4] bn1.bias[4] bn1.running_mean[4] "
        "bn1.running_var[4] bn1.num_batches_tracked[] conv2.weight[6, 2, 2, 3] bn2.weight[6] "
        "bn2.bias[6] bn2.running_mean[6] bn2.running_var[6] bn2.num_batches_tracked[] "
        "up.weight[6, 4, 2, 2] up.bias[4] fc.weight[3, 8] fc.bias[3] ");
}

TEST_CASE("layers of images refuse what does not fit") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH((nn::Conv2d<3, 1, 0, 1, 4>(6, 8)),
                    "nn::Conv2d: 6 inputs and 8 outputs have to be multiples of groups 4, and at "
                    "least that");
  CHECK_THROWS_WITH((nn::ConvTranspose1d<3, 1, 0, 0, 2>(2, 3)),
                    test::contains("nn::ConvTranspose1d: 2 inputs and 3 outputs"));
  CHECK_THROWS_AS(nn::Conv1d<3>(0, 3), xla::error);
  CHECK_THROWS_WITH(nn::Conv2d<3>(2, 3)(numbers<float>({1, 3, 5, 5})),
                    test::contains("conv2d: a weight of shape (3, 2, 3, 3) with groups 1 takes 2 "
                                   "channels, and the input (1, 3, 5, 5) has 3"));
  CHECK_THROWS_WITH(nn::MaxPool2d<3>()(numbers<float>({1, 3, 2, 5})), test::contains("max_pool2d"));
  constexpr nn::Conv2dConfig mirrored{
      .kernel_size = 3, .padding = {2, 1}, .padding_mode = nn::PaddingMode::reflect};
  CHECK_THROWS_WITH(nn::Conv2d<mirrored>(2, 3)(numbers<float>({1, 2, 2, 5})),
                    test::contains("pad: {2, 2} for axis 2 of (1, 2, 2, 7) needs 3 elements"));
}
