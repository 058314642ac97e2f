// SPDX-License-Identifier: Apache-2.0
#include "xla/optim/average.hpp"

#include "support/weights.hpp"
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
