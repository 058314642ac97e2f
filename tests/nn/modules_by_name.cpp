// SPDX-License-Identifier: Apache-2.0
// The layers and losses that programs include by name, against PyTorch's numbers.
#include "data/modules.inc"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/stored.hpp"
#include "xla/nn/alpha_dropout.hpp"
#include "xla/nn/bilinear.hpp"
#include "xla/nn/channels.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/convolution3d.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/likelihood_loss.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/margin_loss.hpp"
#include "xla/nn/pad.hpp"
#include "xla/nn/prelu_mish_glu.hpp"
#include "xla/nn/rearrange.hpp"
#include "xla/nn/shrink.hpp"
#include "xla/nn/upsample.hpp"
#include "xla/nn/volumes.hpp"
#include "xla/op/derived/unit_length.hpp"
#include "xla/op/remainder.hpp"

using test::check_equal;
using test::check_modes;
using test::check_stored;
using test::numbers;
using test::parameter;
namespace nn = xla::nn;
namespace reduction = xla::reduction;

namespace {

using stored = std::vector<double>;

/// The loss of each element, the mean and the sum, and the mean's gradient for x.
template <int R>
void check_loss(const auto& f, const xla::Tensor<float, R>& at, const stored& each,
                const stored& both, const stored& gradient) {
  auto x = parameter(at);
  check_stored(f(x, reduction::none), each, 1e-5);
  const auto mean = f(x, reduction::mean);
  CHECK(mean.item() == Approx(both[0]).epsilon(1e-5));
  CHECK(f(x, reduction::sum).item() == Approx(both[1]).epsilon(1e-5));
  mean.backward();
  check_stored(x.grad(), gradient, 1e-5);
}

xla::Tensor<float, 1> signs() { return xla::tensor<float>({1, -1, -1, 1, -1, 1, -1}); }
xla::Tensor<float, 2> variances() {
  const auto y = numbers<float>({7, 5}, 1);
  auto var = y * y;
  var[0] = 1e-9f;
  return var;
}

}  // namespace

TEST_CASE("prelu, mish, glu and normalize are PyTorch's, and so are their gradients") {
  const xla::eager_mode_guard eager;
  const auto check = [](const auto& f, const stored& want, auto x, const stored& gradient) {
    const auto y = f(x);
    check_stored(y, want);
    test::weighted_sum(y).backward();
    check_stored(x.grad(), gradient, 1e-5);
  };
  auto weight = parameter({4}, 1), one = parameter({1}, 1);
  check([&](auto& x) { return prelu(x, weight); }, reference::prelu, parameter({3, 4, 5}),
        reference::prelu_grad_0);
  check_stored(weight.grad(), reference::prelu_grad_1, 1e-5);
  check([&](auto& x) { return prelu(x, one); }, reference::prelu_one, parameter({3, 4}),
        reference::prelu_one_grad_0);
  check_stored(one.grad(), reference::prelu_one_grad_1, 1e-5);
  check([](auto& x) { return nn::Mish{}(x); }, reference::mish, parameter({3, 7}),
        reference::mish_grad_0);
  check([](auto& x) { return nn::GLU{}(x); }, reference::glu, parameter({3, 8}),
        reference::glu_grad_0);
  check([](auto& x) { return nn::GLU{0}(x); }, reference::glu_rows, parameter({4, 3, 2}),
        reference::glu_rows_grad_0);
  check([](auto& x) { return xla::normalize(x); }, reference::normalize, parameter({3, 7}),
        reference::normalize_grad_0);
  check([](auto& x) { return xla::normalize(x, 3, 0); }, reference::normalize_p, parameter({3, 7}),
        reference::normalize_p_grad_0);
}

TEST_CASE("activations by name over awkward shapes and special values") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(glu(numbers<float>({0, 4})).sizes() == test::sizes_t{0, 2});
  CHECK(mish(numbers<float>({3, 0})).sizes() == test::sizes_t{3, 0});
  check_equal(mish(xla::tensor<float>({0, 100, -200, inf})), {4}, {0, 100, -0.f, inf});
  check_equal(prelu(xla::tensor<float>({2, -2}), xla::tensor<float>({0.5})), {2}, {2, -1});
  check_equal(xla::normalize(xla::zeros<float>({2, 3})), {2, 3}, std::vector<float>(6, 0));
  CHECK_THROWS_WITH(glu(numbers<float>({2, 5})), test::contains("glu") && test::contains("(2, 5)"));
  CHECK_THROWS_AS(glu(numbers<float>({2, 4}), 2), xla::shape_error);
  CHECK_THROWS_WITH(prelu(numbers<float>({2, 4}), numbers<float>({3})),
                    test::contains("prelu") && test::contains("(2, 4)"));
  CHECK_THROWS_AS(prelu(numbers<float>({3}), numbers<float>({3})), xla::shape_error);
  CHECK_THROWS_AS(nn::PReLU(0), xla::error);
}

TEST_CASE("gradients of activations by name") {
  test::check_gradient([](auto& x, auto& w) { return prelu(x, w); }, numbers<double>({2, 3, 2}),
                       numbers<double>({3}, 1));
  test::check_gradient([](auto& x) { return mish(x); }, numbers<double>({2, 5}));
  test::check_gradient([](auto& x) { return glu(x, 0); }, numbers<double>({4, 3}));
  test::check_gradient([](auto& x) { return xla::normalize(x); }, numbers<double>({2, 5}));
}

TEST_CASE("losses by name are PyTorch's, and so are their gradients") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 5}), y = numbers<float>({7, 5}, 1),
             z = numbers<float>({7, 5}, 2);
  check_loss([&](auto& v, auto r) { return nn::TripletMarginLoss{}(v, y, z, r); }, x,
             reference::triplet_none, reference::triplet_mean_sum, reference::triplet_grad);
  const nn::TripletMarginLoss swapped{{.margin = 2.5, .p = 1, .swap = true}};
  check_loss([&](auto& v, auto r) { return swapped(v, y, z, r); }, x, reference::triplet_swap_none,
             reference::triplet_swap_mean_sum, reference::triplet_swap_grad);
  const auto each = reshape(where(xla::arange<std::int64_t>(35) % 3 == 1, -1.f, 1.f), {7, 5});
  check_loss([&](auto& v, auto r) { return nn::MarginRankingLoss{0.5}(v, y, each, r); }, x,
             reference::ranking_none, reference::ranking_mean_sum, reference::ranking_grad);
  check_loss([&](auto& v, auto r) { return nn::CosineEmbeddingLoss{0.1}(v, y, signs(), r); }, x,
             reference::cosine_embedding_none, reference::cosine_embedding_mean_sum,
             reference::cosine_embedding_grad);
  check_equal(nn::CosineSimilarity{}(x, y), cosine_similarity(x, y));
  check_equal(nn::CosineSimilarity{0, 0.5}(x, y), cosine_similarity(x, y, 0, 0.5));
}

TEST_CASE("likelihoods as losses are PyTorch's, and so are their gradients") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 5}), y = numbers<float>({7, 5}, 1),
             z = numbers<float>({7, 5}, 2), var = variances();
  check_loss([&](auto& v, auto r) { return nn::GaussianNLLLoss{}(v, z, var, r); }, x,
             reference::gaussian_none, reference::gaussian_mean_sum, reference::gaussian_grad);
  const auto column = narrow(var, 1, 0, 1);
  check_loss([&](auto& v,
                 auto r) { return nn::GaussianNLLLoss{.full = true, .eps = 0.1}(v, z, column, r); },
             x, reference::gaussian_full_none, reference::gaussian_full_mean_sum,
             reference::gaussian_full_grad);
  check_loss([&](auto& v, auto r) { return nn::GaussianNLLLoss{.eps = 0.5}(x, z, v, r); }, var,
             reference::gaussian_var_none, reference::gaussian_var_mean_sum,
             reference::gaussian_var_grad);
  const auto counts = round(y * y);
  check_loss([&](auto& v, auto r) { return nn::PoissonNLLLoss{}(v, counts, r); }, x,
             reference::poisson_none, reference::poisson_mean_sum, reference::poisson_grad);
  const nn::PoissonNLLLoss rates{.log_input = false, .full = true};
  check_loss([&](auto& v, auto r) { return rates(v, counts, r); }, x * x,
             reference::poisson_full_none, reference::poisson_full_mean_sum,
             reference::poisson_full_grad);
}

TEST_CASE("losses by name refuse other sizes and options") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3}), other = numbers<float>({4, 2});
  CHECK_THROWS_WITH(triplet_margin_loss(x, x, other), test::contains("triplet_margin_loss"));
  CHECK_THROWS_AS(margin_ranking_loss(x, other, x), xla::shape_error);
  CHECK_THROWS_AS(cosine_embedding_loss(x, x, numbers<float>({3})), xla::shape_error);
  CHECK_THROWS_AS(gaussian_nll_loss(x, other, x), xla::shape_error);
  CHECK_THROWS_AS(poisson_nll_loss(x, other), xla::shape_error);
  CHECK_THROWS_AS(nn::TripletMarginLoss{{.margin = -1}}, xla::error);
}

TEST_CASE("paddings as layers are PyTorch's") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4, 5});
  const xla::Tensor<float, 2> flat = x[0][0];
  check_stored(nn::ReflectionPad2d<1, 2, 3, 0>{}(x), reference::reflection_pad);
  check_stored(nn::ReplicationPad3d<1, 2, 0, 1, 2, 0>{}(x), reference::replication_pad);
  check_stored(nn::CircularPad1d<2>{}(flat), reference::circular_pad);
  check_stored(nn::ConstantPad2d<1, -2, -1, 2>{0.5}(x), reference::constant_pad);
  check_equal(nn::ZeroPad1d<1>{}(flat), pad(flat, {{0, 0}, {1, 1}}, 0));
  check_equal(nn::ZeroPad2d<1, 2, 3, 4>{}(x), pad(x, {{0, 0}, {0, 0}, {3, 4}, {1, 2}}, 0));
  CHECK(nn::ZeroPad3d<1>{}(x).sizes() == test::sizes_t{2, 5, 6, 7});
  using xla::PadMode;
  check_equal(nn::CircularPad2d<1>{}(x),
              pad(x, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}, PadMode::circular));
  check_equal(nn::CircularPad3d<1>{}(x),
              pad(x, {{0, 0}, {1, 1}, {1, 1}, {1, 1}}, PadMode::circular));
  check_equal(nn::ReflectionPad3d<1>{}(x),
              pad(x, {{0, 0}, {1, 1}, {1, 1}, {1, 1}}, PadMode::reflect));
  check_equal(nn::ReplicationPad1d<2, 1>{}(flat), pad(flat, {{0, 0}, {2, 1}}, PadMode::replicate));
  check_equal(nn::ConstantPad1d<2, 1>{7}(flat), pad(flat, {{0, 0}, {2, 1}}, 7));
  check_equal(nn::ConstantPad3d<1>{7}(x), pad(x, {{0, 0}, {1, 1}, {1, 1}, {1, 1}}, 7));
  CHECK_THROWS_AS(nn::ReflectionPad1d<5>{}(flat), xla::shape_error);
}

TEST_CASE("PixelShuffle, PixelUnshuffle and Unflatten are their functions") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 8, 3, 4});
  check_equal(nn::PixelShuffle<2>{}(x), pixel_shuffle(x, 2));
  check_equal(nn::PixelUnshuffle<2>{}(nn::PixelShuffle<2>{}(x)), x);
  check_equal(nn::Unflatten<1, 2, -1>{}(x), reshape(x, {2, 2, 4, 3, 4}));
  check_equal(nn::Unflatten<-1, 2, 2>{}(x), reshape(x, {2, 8, 3, 2, 2}));
}

// Of these functions op/functions has PyTorch's numbers.
TEST_CASE("activations as layers are their functions") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 4, 5});
  check_equal(nn::SELU{}(x), selu(x));
  check_equal(nn::CELU{1.5}(x), celu(x, 1.5));
  check_equal(nn::Hardshrink{0.7}(x), hardshrink(x, 0.7));
  check_equal(nn::Softshrink{0.7}(x), softshrink(x, 0.7));
  check_equal(nn::Tanhshrink{}(x), tanhshrink(x));
  check_equal(nn::Softsign{}(x), softsign(x));
  check_equal(nn::Threshold{0.1, 20}(x), xla::threshold(x, 0.1, 20));
  check_equal(nn::Softmin{1}(x), softmin(x, 1));
  check_equal(nn::Softmax2d{}(x), softmax(x, 0));
  nn::RReLU slope{0.2, 0.4};
  const auto drawn = slope(xla::full<float>({100}, -1));
  CHECK(max(drawn).item() > min(drawn).item());
  slope.training.set(false);
  check_equal(slope(x), rrelu(x, 0.2, 0.4));
}

TEST_CASE("layers of channels, images and volumes are their functions") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 4, 6, 5});
  check_equal(nn::ChannelShuffle<2>{}(x), channel_shuffle(x, 2));
  check_equal(nn::LocalResponseNorm<3>{.alpha = 0.1, .k = 2}(x),
              local_response_norm(x, 3, {.alpha = 0.1, .k = 2}));
  using xla::HeightWidth;
  const auto columns = nn::Unfold<nn::UnfoldConfig{.kernel_size = {3, 2}, .padding = 1}>{}(x);
  check_equal(columns, unfold(x, {3, 2}, {.padding = 1}));
  check_equal(nn::Fold<HeightWidth{6, 5}, nn::UnfoldConfig{.kernel_size = {3, 2}, .padding = 1}>{}(
                  columns),
              fold(columns, {6, 5}, {3, 2}, {.padding = 1}));
  check_equal(nn::UpsamplingNearest2d<2>{}(x), interpolate(x, {.scale_factor = 2}));
  check_equal(nn::UpsamplingBilinear2d<HeightWidth{2, 3}>{}(x),
              interpolate(x, {.scale_factor = {2, 3}, .mode = xla::Interpolation::bilinear,
                              .align_corners = true}));
  const auto signal = x[0] * 1;
  check_equal(nn::LPPool1d<3, 1>{.norm_type = 4}(signal), lp_pool1d(signal, 4, 3, {.stride = 1}));
  check_equal(nn::LPPool2d<HeightWidth{3, 2}>{}(x), lp_pool2d(x, 2, {3, 2}));
  const auto v = numbers<float>({2, 2, 4, 6, 5}, 1);
  check_equal(nn::LPPool3d<2>{}(v), lp_pool3d(v, 2, 2));
  check_equal(nn::MaxPool3d<3, 2, 1>{}(v), max_pool3d(v, 3, {.stride = 2, .padding = 1}));
  check_equal(nn::AvgPool3d<3, 2, 1>{}(v), avg_pool3d(v, 3, {.stride = 2, .padding = 1}));
  check_equal(nn::AdaptiveAvgPool3d<2, xla::none, 3>{}(v),
              adaptive_avg_pool3d(v, {2, xla::none, 3}));
  check_equal(nn::AdaptiveMaxPool3d<2>{}(v), adaptive_max_pool3d(v, 2));
}

TEST_CASE("convolutions of volumes and Bilinear as layers, with PyTorch's initialisation") {
  const xla::eager_mode_guard eager;
  const auto v = numbers<float>({2, 2, 4, 6, 5}, 1);
  const nn::Conv3d<nn::Conv3dConfig{.kernel_size = {3, 1, 2}, .padding = 1}> conv(2, 3);
  check_equal(conv(v), conv3d(v, conv.weight * 1, conv.bias * 1, {.padding = 1}));
  CHECK(conv.weight.sizes() == test::sizes_t{3, 2, 3, 1, 2});
  CHECK(max(abs(conv.weight)).item() <= std::sqrt(1.f / 12));
  CHECK(max(abs(conv.weight)).item() > std::sqrt(1.f / 12) / 2);
  const nn::ConvTranspose3d<
      nn::ConvTranspose3dConfig{.kernel_size = 2, .stride = 2, .bias = false}> back(2, 3);
  check_equal(back(v), conv_transpose3d(v, back.weight * 1, {.stride = 2}));
  CHECK_THROWS_WITH((nn::Conv3d<nn::Conv3dConfig{.kernel_size = 1, .groups = 2}>(3, 2)),
                    test::contains("nn::Conv3d"));
  const nn::Bilinear form(3, 4, 2);
  const auto a = numbers<float>({5, 3}), b = numbers<float>({5, 4}, 1);
  check_equal(form(a, b), xla::einsum<"ni,oij,nj->no">(a, form.weight, b) + form.bias);
  CHECK(max(abs(form.weight)).item() <= std::sqrt(1.f / 3));
  CHECK_THROWS_AS(form(b, b), xla::shape_error);
}

TEST_CASE("dropout layers drop while training alone") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 5, 2, 3, 2});
  const auto check = [&](auto layer) {
    CHECK_FALSE(all(layer(x) == x).item());
    layer.training.set(false);
    check_equal(layer(x), x);
  };
  check(nn::AlphaDropout(0.4));
  check(nn::FeatureAlphaDropout(0.4));
  check(nn::Dropout3d(0.4));
  CHECK_THROWS_WITH(nn::AlphaDropout(2), test::contains("nn::AlphaDropout"));
  const auto channels = reshape(nn::Dropout3d()(xla::ones<float>({10, 9, 2, 3, 2})), {90, 12});
  check_equal(max(channels, {1}), min(channels, {1}));
}

TEST_CASE("losses with margins as layers are their functions") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3}), y = numbers<float>({4, 3}, 1);
  const auto z = numbers<float>({4, 3}, 2);
  const auto sign = where(y > 0, 1.f, -1.f), zero_one = xla::cast<float>(y > 0);
  const auto classes = xla::tensor<std::int64_t>({2, 0, 0, 1});
  const auto labels = xla::tensor<std::int64_t>({{2, 0, -1}, {-1, 1, 0}, {1, -1, 2}, {0, 1, 2}});
  check_equal(nn::PairwiseDistance{1, 0.1}(x, y), pairwise_distance(x, y, 1, 0.1));
  check_equal(nn::HingeEmbeddingLoss{2}(x, sign), hinge_embedding_loss(x, sign, 2));
  check_equal(nn::SoftMarginLoss{}(x, sign, reduction::none),
              soft_margin_loss(x, sign, reduction::none));
  check_equal(nn::MultiLabelSoftMarginLoss{}(x, zero_one),
              multilabel_soft_margin_loss(x, zero_one));
  check_equal(nn::MultiLabelMarginLoss{}(x, labels), multilabel_margin_loss(x, labels));
  check_equal(nn::MultiMarginLoss{2, 0.5}(x, classes),
              multi_margin_loss(x, classes, {.p = 2, .margin = 0.5}));
  const auto distance = [](const auto& a, const auto& b) { return pairwise_distance(a, b); };
  check_equal(nn::TripletMarginWithDistanceLoss<>{.swap = true}(x, y, z),
              triplet_margin_with_distance_loss(x, y, z, distance, {.swap = true}));
}

namespace {
struct Volumes {
  nn::Conv3d<3, 1, 1> conv{2, 3};
  nn::AlphaDropout drop{0.3};
  nn::Bilinear form{3, 3, 2};
  XLA_MODULE(conv, drop, form)
};
}  // namespace

TEST_CASE("a model of volumes is the same in every mode") {
  check_modes(
      [](auto& model, auto& x) {
        const auto y = nn::MaxPool3d<2>{}(nn::CELU{}(model.conv(x)));
        const auto z = flatten<1>(nn::AdaptiveAvgPool3d<1>{}(model.drop(y)));
        auto loss = sum(square(model.form(z, z)));
        loss.backward();
        return loss;
      },
      Volumes(), numbers<float>({2, 2, 4, 5, 4}));
}

namespace {
struct Slopes {
  nn::PReLU one, each{8};
  XLA_MODULE(one, each)
};
}  // namespace

TEST_CASE("layers and losses by name are the same in every mode") {
  check_modes(
      [](auto& slopes, auto& x) {
        const auto y = nn::ReflectionPad2d<1>{}(nn::Mish{}(slopes.each(slopes.one(x))));
        const auto z = nn::ReplicationPad2d<0, 1, 1, 0>{}(nn::PixelShuffle<2>{}(y));
        auto loss = sum(square(nn::GLU{2}(nn::ConstantPad2d<1, 1, 1, 0>{0.5}(z))));
        loss.backward();
        return std::tuple(loss, nn::Unflatten<1, 2, -1>{}(x) + 0);
      },
      Slopes{}, parameter({2, 8, 3, 4}));
  check_modes(
      [](auto& triplet, auto& gaussian, auto& x, auto& y, auto& z, auto& target) {
        auto loss = triplet(x, y, z) + gaussian(x, y, z * z) + nn::MarginRankingLoss{0.5}(x, y, z) +
                    nn::PoissonNLLLoss{}(x, y * y) + nn::CosineEmbeddingLoss{0.1}(x, y, target) +
                    sum(nn::CosineSimilarity{}(xla::normalize(x), y));
        loss.backward();
        return loss;
      },
      nn::TripletMarginLoss{{.margin = 2}}, nn::GaussianNLLLoss{}, parameter({7, 5}),
      numbers<float>({7, 5}, 1), numbers<float>({7, 5}, 2), signs());
}
