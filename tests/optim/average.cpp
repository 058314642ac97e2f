// SPDX-License-Identifier: Apache-2.0
#include "xla/optim/average.hpp"

#include "support/weights.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/linear.hpp"
#include "xla/optim/sgd.hpp"

using test::check_equal;
using test::numbers;
namespace optim = xla::optim;

namespace {

constexpr auto step_fn = [](auto& model, auto& x, auto& optimizer, auto& average) {
  optimizer.zero_grad();
  test::weights_loss(model, x).backward();
  optimizer.step();
  average.update();
};

}  // namespace

TEST_CASE("an exponential moving average follows the parameters, the same in every mode") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({5, 7}, 3);
  auto train = [&](auto run) {
    auto model = test::make_weights();
    optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.5}};
    optim::ExponentialMovingAverage average{model, {.decay = 0.75}};
    std::vector<float> want = model.w.to_vector();
    for (int i = 0; i < 5; ++i) {
      run(model, x, optimizer, average);
      const auto w = model.w.to_vector();
      for (std::size_t k = 0; k < w.size(); ++k) want[k] = 0.75f * want[k] + 0.25f * w[k];
    }
    auto averaged = model;
    average.copy_to(averaged);
    check_equal(averaged.w, {5, 7}, want, 1e-6);
    CHECK(averaged.w.to_vector() != model.w.to_vector());
    CHECK(&average.model() == &model);
    test::snapshot s;
    s.add(model);
    s.add(averaged);
    return s;
  };
  const auto eager = train(step_fn);
  auto compiled = xla::compile(step_fn);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step_fn).difference(eager) == "");
}

TEST_CASE("an average starts at the parameters, and can be of a part") {
  const xla::eager_mode_guard eager;
  struct Pair {
    test::Weights first = test::make_weights(), second = test::make_weights();
    XLA_MODULE(first, second)
  } model;
  optim::ExponentialMovingAverage average{xla::part<&Pair::second>(model), {.decay = 0.5}};
  model.second.b.zero_();
  auto copy = model.second;
  average.copy_to(copy);
  check_equal(copy.b, numbers<float>({7}, 2));
  average.update();
  average.copy_to(model.second);
  check_equal(model.second.b, numbers<float>({7}, 2) * 0.5);
  check_equal(model.first.b, numbers<float>({7}, 2));
}

namespace {

struct Normed {
  std::array<xla::nn::BatchNorm1d, 2> norms{xla::nn::BatchNorm1d{7}, xla::nn::BatchNorm1d{7}};
  std::tuple<xla::nn::Linear, xla::nn::Linear> lines{xla::nn::Linear{7, 7}, xla::nn::Linear{7, 3}};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return std::get<1>(lines)(norms[1](std::get<0>(lines)(norms[0](x))));
  }
  XLA_MODULE(norms, lines)
};

constexpr auto normed_step = [](auto& model, auto& x, auto& optimizer, auto& average) {
  optimizer.zero_grad();
  const auto y = model(x);
  sum(y * y).backward();
  optimizer.step();
  average.update();
};

/// PyTorch's rule: buffers are averaged or copied; whole numbers are copied.
template <class Step>
test::snapshot check_buffers(Step step, bool use_buffers) {
  xla::manual_seed(2);
  Normed model;
  optim::SGD optimizer{model, {.lr = 0.01}};
  optim::ExponentialMovingAverage average{model, {.decay = 0.5, .use_buffers = use_buffers}};
  auto mean = model.norms[1].running_mean.to_vector();
  auto weight = std::get<1>(model.lines).weight.to_vector();
  auto follow = [](auto& old, const auto& now) {
    for (std::size_t i = 0; i < old.size(); ++i) old[i] = 0.5f * old[i] + 0.5f * now[i];
  };
  for (int i = 0; i < 4; ++i) {
    auto x = numbers<float>({5, 7}, static_cast<std::uint64_t>(i));
    step(model, x, optimizer, average);
    follow(mean, model.norms[1].running_mean.to_vector());
    follow(weight, std::get<1>(model.lines).weight.to_vector());
  }
  const auto last = model.norms[1].running_mean.to_vector();
  model.norms[1].running_mean.fill_(9);
  auto copy = model;
  average.copy_to(copy);
  check_equal(copy.norms[1].running_mean, {7}, use_buffers ? mean : last, 1e-6);
  check_equal(std::get<1>(copy.lines).weight, {3, 7}, weight, 1e-6);
  CHECK(copy.norms[1].num_batches_tracked.item() == 4);
  CHECK(mean != last);
  test::snapshot s;
  s.add(copy);
  return s;
}

}  // namespace

TEST_CASE("an average copies its model's buffers, or averages them, the same in every mode") {
  for (const bool use_buffers : {false, true}) {
    const xla::eager_mode_guard guard;
    const auto eager = check_buffers(normed_step, use_buffers);
    CHECK(check_buffers(xla::compile(normed_step), use_buffers).difference(eager) == "");
    xla::eager_mode(false);
    CHECK(check_buffers(normed_step, use_buffers).difference(eager) == "");
  }
}

TEST_CASE("an average of another model than the step's is refused") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 7}, 3);
  auto model = test::make_weights(), other = test::make_weights();
  optim::SGD optimizer{model, {.lr = 0.1}};
  optim::ExponentialMovingAverage average{other, {.decay = 0.75}};
  auto step = xla::compile(step_fn);
  CHECK_THROWS_WITH(step(model, x, optimizer, average),
                    test::contains("argument 3 is an optimizer of another model"));
}
