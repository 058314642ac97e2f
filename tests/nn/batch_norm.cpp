// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/batch_norm.hpp"
#include "data/optim.inc"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/stored.hpp"
#include "xla/nn/group_norm.hpp"
#include "xla/op/derived/elementwise.hpp"

using test::check_equal;
using test::check_stored;
using test::numbers;
namespace nn = xla::nn;

namespace {

nn::BatchNorm1d make_layer() {
  nn::BatchNorm1d layer(4);
  layer.weight.copy_(numbers<float>({4}, 1));
  layer.bias.copy_(numbers<float>({4}, 2));
  return layer;
}

}  // namespace

TEST_CASE("BatchNorm1d trains and evaluates as PyTorch's does") {
  const xla::eager_mode_guard eager;
  auto layer = make_layer();
  layer(numbers<float>({6, 4}, 3));
  auto x = test::parameter({5, 4}, 4);
  const auto y = layer(x);
  check_stored(y, reference::batch_norm);
  test::weighted_sum(y).backward();
  check_stored(x.grad(), reference::batch_norm_grad_x, 2e-5);
  check_stored(layer.weight.grad(), reference::batch_norm_grad_w, 2e-5);
  check_stored(layer.bias.grad(), reference::batch_norm_grad_b);
  check_stored(layer.running_mean, reference::batch_norm_running_mean);
  check_stored(layer.running_var, reference::batch_norm_running_var);
  CHECK(layer.num_batches_tracked.item() == 2);
  layer.eval();
  check_stored(layer(numbers<float>({5, 4}, 5)), reference::batch_norm_eval);
  CHECK(layer.num_batches_tracked.item() == 2);
  check_stored(layer.running_mean, reference::batch_norm_running_mean);
  CHECK(layer(numbers<float>({1, 4})).sizes() == test::sizes_t{1, 4});
}

TEST_CASE("running statistics are written through a const model, the same in every mode") {
  const xla::eager_mode_guard eager;
  const auto layer = make_layer();
  auto step = [](const auto& model, const auto& x) {
    const auto y = model(x);
    test::weighted_sum(y).backward();
    return y;
  };
  test::check_modes(step, layer, numbers<float>({6, 4}));
  auto compiled = xla::compile(step);
  compiled(layer, numbers<float>({6, 4}));
  compiled(layer, numbers<float>({3, 4}));
  CHECK(layer.num_batches_tracked.item() == 2);
  auto other = make_layer();
  step(other, numbers<float>({6, 4}));
  step(other, numbers<float>({3, 4}));
  check_equal(layer.running_var, other.running_var);
  check_equal(layer.running_mean, other.running_mean);

  other.eval();
  auto predict = xla::compile(other);
  check_equal(predict(numbers<float>({1, 4})), other(numbers<float>({1, 4})));
  CHECK(other.num_batches_tracked.item() == 2);
}

TEST_CASE("batches that have no variance are refused before anything is written") {
  const xla::eager_mode_guard eager;
  nn::BatchNorm1d layer(4);
  auto step = xla::compile([](auto& model, auto& x) { return model(x); });
  const auto x = numbers<float>({1, 4});
  const auto sentence = "one element per channel has no variance";
  CHECK_THROWS_WITH(step(layer, x), test::contains(sentence));
  CHECK_THROWS_WITH(layer(x), test::contains(sentence));
  CHECK_THROWS_WITH(layer(numbers<float>({3, 5})), test::contains("(3, 5)"));
  CHECK(layer.running_mean.to_vector() == std::vector<float>(4, 0));
  CHECK(layer.running_var.to_vector() == std::vector<float>(4, 1));
}

TEST_CASE("an empty batch gives an empty result and moves no running statistics, in every mode") {
  auto step = [](auto& model, auto& free, auto& x, auto& moved) {
    auto before = model(moved);
    auto y = model(x);
    auto z = free(x);
    (sum(y * y) + sum(z) + sum(before * before)).backward();
    return std::tuple(y, z, before);
  };
  constexpr nn::BatchNormOptions cumulative{.cumulative = true};
  for (const std::int64_t height : {0, 4})
    test::check_modes(step, nn::BatchNorm2d(3), nn::BasicBatchNorm<float, 2, cumulative>(3),
                      test::parameter(numbers<float>({height == 0 ? 2 : 0, 3, height, 5})),
                      numbers<float>({2, 3, 4, 5}, 1));
  const xla::eager_mode_guard eager;
  nn::BatchNorm2d layer(3);
  layer.running_mean.copy_(xla::full<float>({3}, 7));
  auto x = test::parameter(numbers<float>({0, 3, 4, 5}));
  const auto y = layer(x);
  CHECK(y.sizes() == test::sizes_t{0, 3, 4, 5});
  sum(y).backward();
  CHECK(x.grad().sizes() == test::sizes_t{0, 3, 4, 5});
  check_equal(layer.weight.grad(), xla::zeros({3}));
  check_equal(layer.bias.grad(), xla::zeros({3}));
  check_equal(layer.running_mean, xla::full<float>({3}, 7));
  check_equal(layer.running_var, xla::ones({3}));
  CHECK(layer.num_batches_tracked.item() == 1);
}

namespace {

/// Adds what a layer makes of itself on x up into a number to differentiate.
constexpr auto train = [](const auto& layer, auto& x) {
  const auto y = layer(x);
  test::weighted_sum(y).backward();
  return y;
};

}  // namespace

TEST_CASE("batch norm of lines and images is that of their pixels as rows") {
  const xla::eager_mode_guard eager;
  const auto rows = [](const auto& x) {
    return xla::reshape(xla::permute(x, {0, 2, 3, 1}), {x.size(0) * x.size(2) * x.size(3), 4});
  };
  auto layer = make_layer();
  nn::BatchNorm2d images(4);
  images.weight.copy_(layer.weight);
  images.bias.copy_(layer.bias);
  const auto x = numbers<float>({3, 4, 5, 2});
  const auto y = images(x);
  check_equal(rows(y), layer(rows(x)), 1e-5);
  check_equal(images.running_mean, layer.running_mean, 1e-6);
  check_equal(images.running_var, layer.running_var, 1e-6);
  CHECK(images.num_batches_tracked.item() == 1);
  nn::BatchNorm1d lines(4);
  lines.weight.copy_(layer.weight);
  lines.bias.copy_(layer.bias);
  check_equal(xla::reshape(lines(xla::reshape(x, {3, 4, 10})), {3, 4, 5, 2}), y, 1e-5);
  images.eval();
  layer.eval();
  check_equal(rows(images(x)), layer(rows(x)), 1e-6);
}

TEST_CASE("normalization of channels is the same in every mode") {
  const xla::eager_mode_guard eager;
  nn::BatchNorm2d images(4);
  const auto x = test::parameter({3, 4, 5, 2});
  test::check_modes(train, images, x);
  test::check_modes(train, images, test::parameter({17, 4, 1, 1}));
  test::check_modes(train, images, test::parameter({1, 4, 1, 45}));
  test::check_modes(train, nn::BatchNorm1d(4), test::parameter({2, 4, 33}));
  const auto evaluate = [](auto& layer, auto& x) {
    layer.eval();
    return train(layer, x);
  };
  test::check_modes(evaluate, images, x);
  test::check_modes(train, nn::GroupNorm<2>(4), x);
  test::check_modes(train, nn::GroupNorm<2>(4), test::parameter({0, 4, 5, 2}));
  test::check_modes(train, nn::InstanceNorm2d(4), x);
  test::check_modes(train, nn::GroupNorm<2>(4), test::parameter({1, 4, 1, 45}));
  test::check_modes(train, nn::GroupNorm<4>(4), test::parameter({2, 4, 1, 1}));
  test::check_modes(train, nn::InstanceNorm2d(4), test::parameter({1, 4, 1, 45}));
  using affine = nn::BasicInstanceNorm<double, 1, nn::InstanceNormOptions{.affine = true}>;
  test::check_modes(train, affine(3), test::parameter(numbers<double>({2, 3, 33})));
  constexpr nn::InstanceNormOptions all{.affine = true, .track_running_stats = true},
      statistics{.track_running_stats = true};
  const nn::BasicInstanceNorm<float, 2, all> tracked(4);
  test::check_modes(train, tracked, x);
  test::check_modes(evaluate, tracked, x);
  test::check_modes(train, nn::BasicInstanceNorm<float, 1, statistics>(4),
                    test::parameter({3, 4, 7}));
}

TEST_CASE("batch norm without parameters, or without running statistics, or with their average") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4, 5, 2}), next = numbers<float>({3, 4, 5, 2}, 1);
  const auto average = [](const auto& t) { return xla::mean(t, {0, 2, 3}); };
  nn::BatchNorm2d all(4);
  nn::BasicBatchNorm<float, 2, nn::BatchNormOptions{.affine = false}> plain(4);
  nn::BasicBatchNorm<float, 2, nn::BatchNormOptions{.track_running_stats = false}> own(4);
  nn::BasicBatchNorm<float, 2, nn::BatchNormOptions{.cumulative = true}> cumulative(4);
  check_equal(plain(x), all(x));
  check_equal(own(x), all(x));
  own.eval();
  check_equal(own(x), all(x));
  cumulative(x);
  check_equal(cumulative.running_mean, average(x), 1e-6);
  cumulative(next);
  check_equal(cumulative.running_mean, (average(x) + average(next)) / 2, 1e-6);
  CHECK(cumulative.num_batches_tracked.item() == 2);
  test::check_modes(train, plain, test::parameter(x));
  test::check_modes(train, own, test::parameter(x));
  test::check_modes(train, cumulative, test::parameter(x));
  int names = 0;
  xla::named_parameters(plain, [&](const std::string&, auto&) { ++names; });
  xla::named_buffers(own, [&](const std::string&, auto&) { ++names; });
  CHECK(names == 0);
}

TEST_CASE("gradients of normalization of channels, also of second order") {
  const auto w = numbers<double>({4}, 1), b = numbers<double>({4}, 2);
  const auto batch = [](auto& x, auto& weight, auto& bias) {
    xla::Buffer<double, 1> mean({4}), var({4});
    return xla::batch_norm(x, mean, var, weight, bias, true, 0.1, 0.01);
  };
  test::check_gradient(batch, numbers<double>({2, 4, 3, 1}), w, b);
  test::check_gradient(
      [](auto& x, auto& weight, auto& bias) { return group_norm(x, 2, weight, bias, 0.01); },
      numbers<double>({2, 4, 3, 1}), w, b);
  test::check_gradient([](auto& x) { return instance_norm(x, 0.01); },
                       numbers<double>({2, 2, 3, 1}));
  test::check_gradient(
      [&](auto& x) {
        const auto loss = sum(square(batch(x, w, b)) * x);
        return xla::grad(loss, x, {.create_graph = true});
      },
      numbers<double>({2, 4, 3, 1}));
  const auto twice = [](auto norm) {
    return [norm](auto& x) {
      const auto loss = sum(square(norm(x)) * x);
      return xla::grad(loss, x, {.create_graph = true});
    };
  };
  test::check_gradient(twice([&](auto& x) { return group_norm(x, 2, w, b, 0.01); }),
                       numbers<double>({2, 4, 2, 2}));
  test::check_gradient(twice([&](auto& x) { return group_norm(x, 2, 0.01); }),
                       numbers<double>({3, 4}));
  test::check_gradient(twice([](auto& x) { return instance_norm(x, 0.01); }),
                       numbers<double>({2, 2, 3}));
}

TEST_CASE("channels that do not fit are refused with the numbers") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 6, 3, 3});
  const auto refuses = [](auto f, const auto& sentence) {
    CHECK_THROWS_AS(f(), xla::shape_error);
    CHECK_THROWS_WITH(f(), test::contains(sentence));
  };
  refuses([&] { return nn::BatchNorm2d(4)(x); },
          "batch_norm: the channels of (2, 6, 3, 3), axis 1, and the parameters (4,) differ");
  refuses([&] { return nn::GroupNorm<2>(4)(x); }, "group_norm: the channels of (2, 6, 3, 3)");
  refuses([&] { return group_norm(x, 4); },
          "group_norm: the 6 channels of (2, 6, 3, 3) are not a multiple of 4 groups");
  refuses([&] { return group_norm(x, 0); }, "num_groups is 0, and has to be at least 1");
  refuses(
      [&] {
        return nn::InstanceNorm2d(6)(numbers<float>({2, 6, 1, 1}));
      },
      "instance_norm: a channel of one element has no variance");
  refuses(
      [&] {
        return nn::BatchNorm2d(6)(numbers<float>({1, 6, 1, 1}));
      },
      "one element per channel has no variance");
  constexpr nn::InstanceNormOptions statistics{.track_running_stats = true};
  const nn::BasicInstanceNorm<float, 2, statistics> tracked(6);
  refuses(
      [&] {
        return tracked(numbers<float>({0, 6, 2, 2}));
      },
      "instance_norm: the batch is empty, it has no mean to train with");
  refuses(
      [&] {
        return tracked(numbers<float>({2, 5, 2, 2}));
      },
      "instance_norm: the channels of (2, 5, 2, 2), axis 1, and the parameters (6,) differ");
  auto group = xla::compile([](auto& t) { return group_norm(t, 4); });
  CHECK_THROWS_AS(group(x), xla::shape_error);
  CHECK_THROWS_WITH((nn::GroupNorm<4>(6)), test::contains("a multiple of the groups"));
  CHECK_THROWS_AS((nn::BatchNorm2d{8, -1}), xla::error);
}
