// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/cross_entropy.hpp"

#include "data/optim.inc"
#include "support/gradient.hpp"
#include "support/loss.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/distance_loss.hpp"
#include "xla/op/derived/indexing.hpp"
#include "xla/op/derived/probability_loss.hpp"

using test::check_equal;
using test::check_loss;
using test::numbers;
using indices = xla::Tensor<std::int64_t, 1>;
namespace reduction = xla::reduction;

namespace {

indices classes(bool all) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < 7; ++i) v.push_back(!all && i % 3 == 1 ? -100 : (i * 7 + 3) % 5);
  return xla::tensor(v);
}

}  // namespace

TEST_CASE("cross-entropy in every reduction, with targets left out and smoothed, is PyTorch's") {
  const auto x = test::parameter({7, 5});
  check_loss(
      x, [t = classes(true)](auto& v, auto r) { return cross_entropy(v, t, r); },
      reference::cross_entropy_none, reference::cross_entropy_mean_sum,
      reference::cross_entropy_grad);
  check_loss(
      x, [t = classes(false)](auto& v, auto r) { return cross_entropy(v, t, r); },
      reference::cross_entropy_some_none, reference::cross_entropy_some_mean_sum,
      reference::cross_entropy_some_grad);
  check_loss(
      x,
      [t = classes(false)](auto& v, auto r) {
        return cross_entropy(v, t, {.label_smoothing = 0.1}, r);
      },
      reference::cross_entropy_smooth_none, reference::cross_entropy_smooth_mean_sum,
      reference::cross_entropy_smooth_grad);
  check_loss(
      x, [t = classes(false)](auto& v, auto r) { return nll_loss(v, t, r); },
      reference::nll_loss_none, reference::nll_loss_mean_sum, reference::nll_loss_grad);
}

namespace {

xla::Tensor<std::int64_t, 2> deep_classes() {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < 12; ++i) v.push_back(i % 4 == 1 ? -100 : (i * 7 + 3) % 5);
  return xla::from_blob(v.data(), {3, 4});
}
xla::Tensor<float, 1> class_weights() { return xla::tensor<float>({0.5, 1, 2, 3, 0.25}); }

}  // namespace

TEST_CASE("cross-entropy with weights of classes is PyTorch's, also smoothed") {
  const auto x = test::parameter({7, 5});
  const auto w = class_weights();
  check_loss(
      x, [w, t = classes(false)](auto& v, auto r) { return cross_entropy(v, t, w, {}, r); },
      reference::cross_entropy_weighted_none, reference::cross_entropy_weighted_mean_sum,
      reference::cross_entropy_weighted_grad);
  check_loss(
      x,
      [w, t = classes(false)](auto& v, auto r) {
        return cross_entropy(v, t, w, {.label_smoothing = 0.1}, r);
      },
      reference::cross_entropy_weighted_smooth_none,
      reference::cross_entropy_weighted_smooth_mean_sum,
      reference::cross_entropy_weighted_smooth_grad);
}

TEST_CASE("cross-entropy with probabilities is PyTorch's, also weighted and smoothed") {
  const auto x = test::parameter({7, 5});
  const xla::eager_mode_guard eager;
  const auto soft = softmax(numbers<float>({7, 5}, 1));
  const auto w = class_weights();
  check_loss(
      x, [=](auto& v, auto r) { return cross_entropy(v, soft, r); },
      reference::cross_entropy_soft_none, reference::cross_entropy_soft_mean_sum,
      reference::cross_entropy_soft_grad);
  check_loss(
      x, [=](auto& v, auto r) { return cross_entropy(v, soft, w, {.label_smoothing = 0.1}, r); },
      reference::cross_entropy_soft_smooth_none, reference::cross_entropy_soft_smooth_mean_sum,
      reference::cross_entropy_soft_smooth_grad);
  const auto hard = xla::cast<float>(xla::one_hot(classes(true), 5));
  check_equal(cross_entropy(x, hard), cross_entropy(x, classes(true)), 1e-6);
  check_equal(cross_entropy(x, soft), cross_entropy(x, soft, {.label_smoothing = 0}));
}

TEST_CASE("cross-entropy of further axes, and of one row, is PyTorch's") {
  const auto x = test::parameter({3, 5, 4}, 2);
  const xla::eager_mode_guard eager;
  const auto t = deep_classes();
  const auto soft = softmax(numbers<float>({3, 5, 4}, 3), 1);
  const auto w = class_weights();
  check_loss(
      x, [=](auto& v, auto r) { return cross_entropy(v, t, {}, r); },
      reference::cross_entropy_deep_none, reference::cross_entropy_deep_mean_sum,
      reference::cross_entropy_deep_grad);
  check_loss(
      x, [=](auto& v, auto r) { return cross_entropy(v, t, w, {.label_smoothing = 0.1}, r); },
      reference::cross_entropy_deep_all_none, reference::cross_entropy_deep_all_mean_sum,
      reference::cross_entropy_deep_all_grad);
  check_loss(
      x, [=](auto& v, auto r) { return cross_entropy(v, soft, w, r); },
      reference::cross_entropy_deep_soft_none, reference::cross_entropy_deep_soft_mean_sum,
      reference::cross_entropy_deep_soft_grad);
  const auto all = where(t < 0, 0, t);
  check_equal(cross_entropy(x, all), cross_entropy(x, all, {}), 1e-6);
  check_equal(nll_loss(log_softmax(x, 1), t, -100), cross_entropy(x, t, {}), 1e-6);
  check_equal(nll_loss(log_softmax(x, 1), all, reduction::none),
              cross_entropy(x, all, reduction::none), 1e-6);
  const auto row = test::parameter({5});
  check_loss(
      row, [](auto& v, auto r) { return cross_entropy(v, xla::tensor(std::int64_t{2}), r); },
      reference::cross_entropy_single_none, reference::cross_entropy_single_mean_sum,
      reference::cross_entropy_single_grad);
}

TEST_CASE("every form of cross-entropy is the same in every mode, with gradients") {
  auto all = [](auto& x, auto& deep, auto& t, auto& some, auto& w) {
    const auto soft = softmax(x * 0.5);
    const auto soft_deep = softmax(deep * 0.5, 1);
    auto loss = cross_entropy(x, soft) + cross_entropy(x, t, w, {.label_smoothing = 0.1}) +
                cross_entropy(deep, some, {.ignore_index = -100}) +
                cross_entropy(deep, soft_deep, w, {.label_smoothing = 0.2}, reduction::sum);
    auto each = cross_entropy(deep, some, w, {}, reduction::none);
    (loss + sum(each)).backward();
    return std::tuple(loss, each, cross_entropy(deep, where(some < 0, 1, some), reduction::none));
  };
  test::check_modes(all, test::parameter({7, 5}), test::parameter({3, 5, 4}, 2), classes(true),
                    deep_classes(), class_weights());
  static const auto w = xla::cast<double>(class_weights());
  test::check_gradient(
      [](auto& x, auto& p) {
        return cross_entropy(x, deep_classes(), w, {.label_smoothing = 0.1}) +
               cross_entropy(x, softmax(p, 1), w, reduction::sum);
      },
      numbers<double>({3, 5, 4}), numbers<double>({3, 5, 4}, 1));
}

TEST_CASE("weights and probabilities that do not fit are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 5});
  CHECK_THROWS_WITH(cross_entropy(x, classes(true), xla::ones({4})),
                    test::contains("weights (4,) for logits (7, 5): one weight per class"));
  CHECK_THROWS_WITH(cross_entropy(x, numbers<float>({7, 4})),
                    test::contains("input (7, 5) and target (7, 4) have different sizes"));
  CHECK_THROWS_WITH(cross_entropy(numbers<float>({3, 5, 2}), deep_classes(), {}),
                    test::contains("logits (3, 5, 2) and target (3, 4)"));
}

TEST_CASE(
    "nll_loss after log_softmax is cross-entropy; options that change nothing change nothing") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({7, 5});
  const auto t = classes(true);
  check_equal(nll_loss(log_softmax(x), t), cross_entropy(x, t), 1e-15);
  check_equal(nll_loss(log_softmax(x), t, reduction::sum), cross_entropy(x, t, reduction::sum));
  check_equal(cross_entropy(x, t, {}), cross_entropy(x, t), 1e-15);
  check_equal(cross_entropy(x, where(t == 3, 99, t), {.ignore_index = 99}),
              cross_entropy(x, where(t == 3, -100, t)), 1e-15);
  check_equal(nll_loss(x, where(t == 3, 99, t), 99), nll_loss(x, where(t == 3, -100, t)));
}

TEST_CASE("classes out of range and sizes that differ are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 5});
  const auto wrong = xla::tensor<std::int64_t>({0, 5});
  const auto negative = xla::tensor<std::int64_t>({0, -1}),
             left_out = xla::tensor<std::int64_t>({0, -100});
  CHECK_THROWS_WITH(cross_entropy(x, wrong), test::contains("cross_entropy: index 5"));
  CHECK_THROWS_WITH(cross_entropy(x, wrong, {}), test::contains("cross_entropy: index 5"));
  CHECK_THROWS_WITH(nll_loss(x, wrong), test::contains("nll_loss: index 5"));
  CHECK_THROWS_WITH(cross_entropy(x, negative), test::contains("cross_entropy: index -1"));
  CHECK_THROWS_AS(nll_loss(x, negative), xla::index_error);
  CHECK_THROWS_AS(nll_loss(x, left_out, -1), xla::index_error);
  CHECK_THROWS_AS(cross_entropy(x, left_out, {.ignore_index = 1}), xla::index_error);
  CHECK_THROWS_AS(cross_entropy(x, classes(true)), xla::shape_error);
  CHECK_THROWS_AS(cross_entropy(x, classes(true), {}), xla::shape_error);
  CHECK_THROWS_AS(nll_loss(x, classes(true)), xla::shape_error);
}

TEST_CASE("of an empty batch the mean of losses is NaN and the sum 0, in every mode") {
  auto f = [](auto& w, auto& x, auto& t, auto& p) {
    const auto y = matmul(x, w);
    const auto all = [&](auto reduction) {
      return stack(
          std::array{cross_entropy(y, t, reduction), cross_entropy(y, t, {}, reduction),
                     cross_entropy(y, p, reduction), nll_loss(y, t, reduction),
                     mse_loss(y, p, reduction), l1_loss(y, p, reduction),
                     binary_cross_entropy_with_logits(y, p, reduction)},
          0);
    };
    auto means = all(reduction::mean), sums = all(reduction::sum);
    auto each = cross_entropy(y, t, reduction::none);
    (sum(means) + sum(sums)).backward();
    return std::tuple(means, sums, each);
  };
  const auto x = numbers<float>({0, 4}), p = numbers<float>({0, 5});
  const indices t = xla::zeros<std::int64_t>({0});
  test::check_modes(f, test::parameter({4, 5}), x, t, p);
  const xla::eager_mode_guard eager;
  auto own = numbers<float>({4, 5});
  own.requires_grad_();
  const auto [means, sums, each] = f(own, x, t, p);
  for (const float mean : means.to_vector()) CHECK(std::isnan(mean));
  CHECK(sums.to_vector() == std::vector<float>(7, 0));
  CHECK(each.sizes() == test::sizes_t{0});
  CHECK(own.grad().to_vector() == std::vector<float>(20, 0));
}

TEST_CASE("rows of class -100 are left out whatever is in them, in every mode") {
  auto f = [](auto& x, auto& deep, auto& t, auto& some, auto& w) {
    auto each = cross_entropy(deep, some, reduction::none);
    auto loss = cross_entropy(x, t) + nll_loss(log_softmax(x), t) + cross_entropy(deep, some) +
                cross_entropy(x, t, w, reduction::mean) + cross_entropy(x, t, reduction::sum);
    (loss + sum(each * each)).backward();
    return std::tuple(loss, each);
  };
  auto x = numbers<float>({7, 5});
  test::check_modes(f, test::parameter(x), test::parameter({3, 5, 4}, 2), classes(false),
                    deep_classes(), class_weights());
  const xla::eager_mode_guard eager;
  const auto t = classes(false);
  const auto hidden = unsqueeze(t == -100, 1);
  auto lost = test::parameter(where(hidden, -std::numeric_limits<float>::infinity(), x));
  auto loss = cross_entropy(lost, t);
  check_equal(loss, cross_entropy(x, t));
  loss.backward();
  auto seen = test::parameter(x);
  cross_entropy(seen, t).backward();
  check_equal(where(hidden, 0, lost.grad()), seen.grad());
  check_equal(where(hidden, seen.grad(), 0), xla::zeros({7, 5}));
  test::check_gradient(
      [](auto& v, auto& d) {
        return cross_entropy(v, classes(false)) + cross_entropy(d, deep_classes()) +
               nll_loss(d, deep_classes());
      },
      numbers<double>({7, 5}), numbers<double>({3, 5, 4}));
}

TEST_CASE("where every row is left out the mean is NaN, the sum 0, and so is the gradient") {
  auto step = [](auto& x, auto& t, auto& w) {
    auto mean = cross_entropy(x, t);
    auto all = std::tuple(mean, nll_loss(x, t), cross_entropy(x, t, {}),
                          cross_entropy(x, t, w, reduction::mean),
                          cross_entropy(x, t, reduction::sum), nll_loss(x, t, reduction::sum));
    mean.backward();
    return all;
  };
  const auto none = xla::full<std::int64_t>({7}, -100);
  test::check_modes(step, test::parameter({7, 5}), none, class_weights());
  const xla::eager_mode_guard eager;
  auto x = test::parameter({7, 5});
  const auto w = class_weights();
  const auto [a, b, c, d, e, f] = xla::compile(step)(x, none, w);
  for (const auto* mean : {&a, &b, &c, &d}) CHECK(std::isnan(mean->item()));
  for (const auto* sum : {&e, &f}) CHECK(sum->item() == 0);
  check_equal(x.grad(), xla::zeros({7, 5}));
}

TEST_CASE("a mean loses nothing of many rows that count, of bfloat16 too") {
  const xla::eager_mode_guard eager;
  const auto x = xla::zeros<xla::bfloat16>({601, 2});
  const auto t = xla::zeros<std::int64_t>({601});
  CHECK(static_cast<float>(cross_entropy(x, t).item()) == Approx(std::log(2.)).epsilon(4e-3));
  CHECK(static_cast<float>(nll_loss(x + 1, t).item()) == -1);
}

TEST_CASE("extreme logits give numbers, and gradients that are numbers") {
  const xla::eager_mode_guard eager;
  const float inf = std::numeric_limits<float>::infinity();
  auto x = xla::tensor<float>({{1e4f, -1e4f, 0}, {-3e38f, 0, 1}, {0, -inf, 1}});
  const auto t = xla::tensor<std::int64_t>({1, 2, 0});
  for (const bool smooth : {false, true}) {
    auto p = xla::Parameter<float, 2>::like(x);
    p.copy_(x);
    auto loss = smooth ? cross_entropy(p, t, {.label_smoothing = 0}) : cross_entropy(p, t);
    loss.backward();
    CHECK(loss.item() ==
          Approx((20000 + std::log(1 + std::exp(-1.)) + 1 + std::log(1 + std::exp(-1.))) / 3));
    for (float g : p.grad().to_vector()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("cross-entropy with options is the same in every mode") {
  auto step = [](auto& x, auto& t, auto& smoothing, auto& left_out) {
    const xla::CrossEntropyOptions options{left_out, smoothing};
    auto each = cross_entropy(x, t, options, reduction::none);
    auto loss = cross_entropy(x, t, options) + nll_loss(x, t, left_out) +
                cross_entropy(x, t, options, reduction::sum);
    loss.backward();
    return std::tuple(loss, each);
  };
  auto x = test::parameter({7, 5});
  test::check_modes(step, x, classes(false), xla::Scalar(0.1), xla::Scalar(-100));
  test::check_modes(step, x, classes(true), xla::Scalar(0), xla::Scalar(3));
}

TEST_CASE("gradients of cross-entropy with options") {
  test::check_gradient(
      [](auto& v) { return cross_entropy(v, classes(false), {.label_smoothing = 0.2}); },
      numbers<double>({7, 5}));
  test::check_gradient([](auto& v) { return nll_loss(v, classes(false), -100, reduction::none); },
                       numbers<double>({7, 5}));
}
