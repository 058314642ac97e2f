// SPDX-License-Identifier: Apache-2.0
// As functions.cpp: what is made of signals, images and volumes.
#include "support/modes.hpp"
#include "support/pytorch.hpp"
#include "xla/functions.hpp"

using test::numbers;

namespace {

template <class F, class... X>
void check(const std::string& name, double tolerance, F f, const X&... x) {
  test::check_pytorch("functions/" + name, tolerance, f, x...);
}
xla::Tensor<float, 5> volume() { return numbers<float>({2, 3, 6, 5, 7}, 2); }

}  // namespace

TEST_CASE("channels that mix and normalise, against PyTorch") {
  const auto image = numbers<float>({2, 4, 7, 5}, 1);
  check("channel_shuffle", 0, [](const auto& x) { return channel_shuffle(x, 2); }, image);
  for (const int size : {1, 2, 5})
    check("local_response_norm/" + std::to_string(size), 1e-6, [size](const auto& x) {
      return local_response_norm(x, size, {.alpha = 0.1, .beta = 0.5, .k = 2});
    }, image);
  check("local_response_norm/signal", 1e-6,
        [](const auto& x) { return local_response_norm(x, 2, {.alpha = 0.1}); },
        numbers<float>({2, 3, 9}));
  CHECK_THROWS_AS(channel_shuffle(image, 3), xla::shape_error);
  const auto all = [](auto& x) {
    const auto y = local_response_norm(channel_shuffle(x, 2), 3);
    sum(y * y).backward();
    return y;
  };
  test::check_modes(all, test::parameter(image));
}

TEST_CASE("pools of norms and of volumes, against PyTorch") {
  const auto signal = numbers<float>({2, 3, 9});
  const auto image = numbers<float>({2, 4, 7, 5}, 1);
  check("lp_pool1d", 1e-6, [](const auto& x) { return lp_pool1d(x, 2, 3); }, signal);
  check("lp_pool2d", 1e-6, [](const auto& x) {
    return lp_pool2d(x, 2, {3, 2}, {.stride = {2, 1}, .ceil_mode = true});
  }, image);
  check("lp_pool2d/3", 2e-6, [](const auto& x) { return lp_pool2d(abs(x), 3, 2); }, image);
  check("lp_pool3d", 1e-6, [](const auto& x) { return lp_pool3d(x, 2, {2, 3, 2}); }, volume());
  check("max_pool3d", 0, [](const auto& x) {
    return max_pool3d(x, {3, 2, 3}, {.stride = {2, 1, 2}, .padding = {1, 0, 1}});
  }, volume());
  check("max_pool3d/ceil", 0, [](const auto& x) {
    return max_pool3d(x[0] * 1, 2, {.dilation = {1, 2, 1}, .ceil_mode = true});
  }, volume());
  check("avg_pool3d", 5e-7, [](const auto& x) {
    return avg_pool3d(x, {3, 2, 3}, {.stride = {2, 1, 2}, .padding = {1, 0, 1}});
  }, volume());
  check("avg_pool3d/inside", 5e-7, [](const auto& x) {
    return avg_pool3d(x, 3, {.stride = 2, .padding = 1, .ceil_mode = true,
                             .count_include_pad = false});
  }, volume());
  check("avg_pool3d/divisor", 5e-7, [](const auto& x) {
    return avg_pool3d(x[0] * 1, 2, {.divisor_override = 3});
  }, volume());
  check("adaptive_avg_pool3d", 5e-7,
        [](const auto& x) { return adaptive_avg_pool3d(x, {4, xla::none, 2}); }, volume());
  check("adaptive_max_pool3d", 0,
        [](const auto& x) { return adaptive_max_pool3d(x, {4, xla::none, 2}); }, volume());
  CHECK_THROWS_WITH(max_pool3d(volume(), {7, 1, 1}),
                    test::contains("max_pool3d") && test::contains("along the depth"));
  const auto all = [](auto& x) {
    const auto y = max_pool3d(x, 2);
    const auto z = avg_pool3d(x, {2, 1, 3}, {.padding = {1, 0, 1}});
    (sum(y * y) + sum(z * z)).backward();
    return std::tuple(y, z, adaptive_avg_pool3d(x, 2), adaptive_max_pool3d(x, 2),
                      lp_pool3d(x, 2, 2));
  };
  test::check_modes(all, test::parameter(volume()));
}

TEST_CASE("convolutions of volumes, against PyTorch") {
  const auto bias = numbers<float>({4}, 4);
  check("conv3d", 3e-5, [](const auto& x, const auto& w, const auto& b) {
    return conv3d(x * 1, w * 1, b * 1);
  }, volume(), numbers<float>({4, 3, 3, 2, 3}, 3), bias);
  check("conv3d/options", 3e-5, [](const auto& x, const auto& w) {
    return conv3d(x * 1, w * 1, {.stride = {2, 1, 2}, .padding = {1, 1, 0}, .dilation = {2, 1, 1},
                                 .groups = 3});
  }, volume(), numbers<float>({3, 1, 2, 2, 3}, 5));
  const auto small = narrow(narrow(narrow(volume(), 2, 0, 3), 3, 0, 3), 4, 0, 2);
  check("conv_transpose3d", 3e-5, [](const auto& x, const auto& w, const auto& b) {
    return conv_transpose3d(x * 1, w * 1, b * 1);
  }, small, numbers<float>({3, 4, 3, 2, 3}, 3), bias);
  check("conv_transpose3d/options", 3e-5, [](const auto& x, const auto& w) {
    return conv_transpose3d(x * 1, w * 1, {.stride = {3, 1, 2}, .padding = {1, 1, 0},
                                           .output_padding = {2, 0, 1}, .groups = 3,
                                           .dilation = {2, 1, 1}});
  }, small, numbers<float>({3, 2, 2, 2, 3}, 5));
  CHECK_THROWS_WITH(conv3d(volume(), numbers<float>({4, 2, 1, 1, 1})), test::contains("conv3d"));
  CHECK_THROWS_WITH(conv3d(volume(), numbers<float>({4, 3, 7, 1, 1})),
                    test::contains("larger than the padded input"));
  const auto all = [](auto& x, auto& w) {
    const auto y = conv3d(x, w, {.padding = 1});
    const auto z = conv_transpose3d(x, transpose(w, 0, 1), {.stride = 2});
    (sum(y * y) + sum(z * z)).backward();
    return std::tuple(y, z);
  };
  test::check_modes(all, test::parameter(small),
                    test::parameter(numbers<float>({2, 3, 2, 3, 2}, 3)));
}

TEST_CASE("images read at places, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto image = numbers<float>({2, 4, 7, 5}, 1);
  auto grid = numbers<float>({2, 3, 5, 2}, 6) / 3;
  auto finite = grid * 1;
  grid[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  grid[0][1][0][1] = std::numeric_limits<float>::infinity();
  finite[0][0][0][0] = 0.3f, finite[0][1][0][1] = 0.5f;
  grid[1][2][4] = finite[1][2][4] = xla::tensor<float>({1, -1});
  const std::pair<xla::GridPadding, const char*> paddings[] = {
      {xla::GridPadding::zeros, "zeros"},
      {xla::GridPadding::border, "border"},
      {xla::GridPadding::reflection, "reflection"}};
  for (const bool align : {false, true}) {
    const std::string end = align ? "/True" : "/False";
    check("affine_grid" + end, 1e-6, [align](const auto& t) { return affine_grid(t, 3, 4, align); },
          numbers<float>({2, 2, 3}, 7));
    for (const auto& [padding, name] : paddings)
      for (const auto mode : {xla::Interpolation::bilinear, xla::Interpolation::nearest}) {
        const auto y = grid_sample(image, padding == xla::GridPadding::zeros ? grid : finite,
                                   {mode, padding, align});
        const std::string kind = mode == xla::Interpolation::nearest ? "nearest/" : "bilinear/";
        test::check_pytorch("functions/grid_sample/" + kind + name + end, y, 2e-6);
      }
  }
  check("grid_sample", 5e-6, [](const auto& x, const auto& g) { return grid_sample(x * 1, g * 1); },
        image, numbers<float>({2, 3, 5, 2}, 8) / 5);
  CHECK_THROWS_AS(grid_sample(image, numbers<float>({1, 3, 5, 2})), xla::shape_error);
  const auto all = [](auto& x, auto& theta) {
    const auto y = grid_sample(x, affine_grid(theta, 4, 3));
    sum(y * y).backward();
    return std::tuple(y, grid_sample(x, affine_grid(theta, 2, 2, true),
                                     {.mode = xla::Interpolation::nearest,
                                      .padding_mode = xla::GridPadding::reflection}));
  };
  test::check_modes(all, test::parameter(image), test::parameter(numbers<float>({2, 2, 3}, 7) / 4));
}

TEST_CASE("dropout for SELU") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto x = xla::randn<float>({100, 100});
  const auto y = alpha_dropout(x, 0.3, true);
  // PyTorch's: mean and variance stay, and what is dropped has one value.
  CHECK(mean(y).item() == Approx(0).margin(0.04));
  CHECK(var(y).item() == Approx(1).epsilon(0.05));
  const double least = -1.7580993408473766;
  const double scale = 1 / std::sqrt((least * least * 0.3 + 1) * 0.7);
  const auto dropped = abs(y - static_cast<float>(least * scale * 0.7)) < 1e-5f;
  CHECK(mean(xla::cast<float>(dropped)).item() == Approx(0.3).epsilon(0.05));
  const auto kept = x * static_cast<float>(scale) + static_cast<float>(-least * scale * 0.3);
  CHECK(max(abs(where(dropped, kept, y) - kept)).item() < 1e-5f);
  CHECK(sum(abs(alpha_dropout(x, 1, true))).item() == 0);
  CHECK(all(alpha_dropout(x, 0.3) == x).item());
  const auto z = feature_alpha_dropout(xla::zeros<float>({20, 30, 4}), 0.5, true);
  CHECK(all(max(z, {2}) == min(z, {2})).item());
  CHECK(max(z).item() > min(z).item());
  const auto each = [](auto& t) {
    const auto a = alpha_dropout(t, 0.3, true);
    const auto b = feature_alpha_dropout(t, 0.5, true);
    return std::tuple(a, b, dropout3d(unsqueeze(unsqueeze(t, 2), 3), 0.5, true));
  };
  test::check_modes(each, numbers<float>({3, 4, 5}));
}
