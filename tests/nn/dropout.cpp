// SPDX-License-Identifier: Apache-2.0
#include "xla/nn/dropout.hpp"

#include "support/modes.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/reduce.hpp"
#include "xla/run/state/metrics.hpp"

using test::check_equal;
using test::numbers;
namespace nn = xla::nn;

TEST_CASE("dropout zeroes a part of the elements and keeps the mean") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto y = dropout(xla::ones<float>({100, 100}), 0.25).to_vector();
  double gone = 0;
  for (float v : y) {
    if (v == 0) ++gone;
    else CHECK(v == Approx(1 / 0.75));
  }
  CHECK(gone / 10000 == Approx(0.25).margin(0.02));
}

TEST_CASE("dropout of nothing, of everything, and without training") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({7, 13});
  check_equal(dropout(x, 0), x);
  check_equal(dropout(x, 0.5, false), x);
  CHECK(max(abs(dropout(x, 1))).item() == 0);
  CHECK(dropout(numbers<float>({0, 3}), 0.5).sizes() == test::sizes_t{0, 3});
  for (const float p : {1.5f, -0.1f, NAN})
    CHECK_THROWS_WITH(dropout(x, p), test::contains("between 0 and 1"));
  auto p = xla::Parameter<float, 2>::like(x);
  sum(dropout(p, 1)).backward();
  check_equal(p.grad(), {7, 13}, std::vector<float>(91, 0));
}

TEST_CASE("nn::Dropout takes a probability, and evaluates to its input") {
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(nn::Dropout(1.5), "nn::Dropout: p is 1.5, and has to be from 0 to 1");
  CHECK_THROWS_AS(nn::Dropout(-0.1), xla::error);
  CHECK_THROWS_AS(nn::Dropout(NAN), xla::error);
  nn::Sequential model{nn::Linear{13, 5}, nn::Dropout{0.5}, nn::Linear{5, 3}};
  model.eval();
  const auto x = numbers<float>({7, 13});
  check_equal(model(x), std::get<2>(model.layers)(std::get<0>(model.layers)(x)));
  auto predict = xla::compile(model);
  check_equal(predict(x), model(x));
}

TEST_CASE("dropout in a step is the same in every mode; another probability is no other graph") {
  auto step = [](auto& layer, auto& p, auto& x) {
    p.zero_grad();  // or a compiled step adds to 0, and -0 becomes 0
    auto y = layer(p * x);
    sum(y * x).backward();
    return y;
  };
  auto p = xla::Parameter<float, 2>::like(numbers<float>({7, 13}));
  p.copy_(numbers<float>({7, 13}, 1));
  test::check_modes(step, nn::Dropout(0.3), p, numbers<float>({7, 13}));
  test::check_modes([](auto& layer, auto& x) { return layer(x); }, nn::Dropout(0.3),
                    numbers<double>({33}));

  const xla::eager_mode_guard eager;
  nn::Dropout layer(0.3);
  auto compiled = xla::compile([](auto& l, const auto& x) { return l(x); });
  auto kept = [&] {
    return sum(cast<float>(compiled(layer, xla::ones<float>({1000})) > 0)).item();
  };
  const float most = kept();
  const auto before = xla::counter_value("UncachedCompile");
  layer.p = 0.9;
  CHECK(kept() < most / 2);
  CHECK(xla::counter_value("UncachedCompile") == before);
}

TEST_CASE("dropout of channels zeroes whole ones and keeps the mean") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  const auto x = xla::ones<float>({100, 50, 3, 2});
  const auto y = dropout2d(x, 0.25);
  const auto channels = xla::reshape(y, {5000, 6});
  check_equal(max(channels, {1}), min(channels, {1}));
  CHECK(sum(cast<float>(channels == 0)).item() / 30000 == Approx(0.25).margin(0.02));
  CHECK(max(y).item() == Approx(1 / 0.75));
  const auto lines = dropout1d(xla::ones<float>({100, 50, 6}), 0.25);
  check_equal(max(lines, {2}), min(lines, {2}));
  CHECK(sum(cast<float>(lines == 0)).item() / 30000 == Approx(0.25).margin(0.02));
  check_equal(dropout2d(x, 0.5, false), x);
  CHECK(dropout2d(numbers<float>({0, 3, 2, 2})).sizes() == test::sizes_t{0, 3, 2, 2});
  CHECK_THROWS_WITH(dropout2d(x, 2), "dropout2d: p is a probability, between 0 and 1");
  CHECK_THROWS_WITH(nn::Dropout2d(1.5), "nn::Dropout2d: p is 1.5, and has to be from 0 to 1");
}

TEST_CASE("dropout of channels is the same in every mode") {
  auto step = [](auto& layer, auto& p) {
    p.zero_grad();
    const auto y = layer(p);
    sum(y * y).backward();
    return y;
  };
  test::check_modes(step, nn::Dropout2d(0.3), test::parameter(numbers<float>({7, 13, 3, 1})));
  test::check_modes(step, nn::Dropout1d(0.3), test::parameter(numbers<float>({7, 13, 5})));
  nn::Dropout2d evaluated;
  evaluated.eval();
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4, 5});
  check_equal(evaluated(x), x);
}
