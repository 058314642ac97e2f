// SPDX-License-Identifier: Apache-2.0
// Layers, loss, optimizer, schedule, clipping and average together, in every mode.
#include "support/mlp.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/nn/normalization.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adagrad.hpp"
#include "xla/optim/adam.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/average.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/lion.hpp"
#include "xla/optim/rmsprop.hpp"
#include "xla/optim/schedule.hpp"
#include "xla/run/state/metrics.hpp"

namespace nn = xla::nn;
namespace optim = xla::optim;

namespace {

struct Block {
  nn::LayerNorm norm{24};
  nn::LinearNoBias up{24, 48};
  nn::Linear down{48, 24};
  nn::Dropout dropout{0.1};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return x + dropout(down(xla::relu(up(norm(x)))));
  }
  XLA_MODULE(norm, up, down, dropout)
};

struct Model {
  nn::Linear in{17, 24};
  nn::BatchNorm1d batch_norm{24};
  nn::ModuleArray<Block, 2> blocks;
  nn::RMSNorm norm{24};
  nn::Linear out{24, 5};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return out(norm(blocks(batch_norm(in(x)))));
  }
  XLA_MODULE(in, batch_norm, blocks, norm, out)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer,
                            auto& average) {
  optimizer.zero_grad();
  auto loss = loss_fn(model(data), target);
  loss.backward();
  auto norm = optim::clip_grad_norm_(model, 1.0);
  optimizer.step();
  average.update();
  return std::tuple(loss, norm);
};

}  // namespace

TEST_CASE("a model of many layers learns, the same in every mode and with one compilation") {
  const xla::eager_mode_guard guard;
  auto train = [](auto run) {
    xla::manual_seed(5);
    Model model;
    nn::SmoothCrossEntropyLoss loss_fn{{.label_smoothing = 0.05}};
    optim::AdamW optimizer{model, {.lr = 0.02}};
    optim::ExponentialMovingAverage average{model, {.decay = 0.8}};
    optim::OneCycleLR schedule{optimizer, {.max_lr = 0.02, .total_steps = 30}};
    float first = 0, last = 0;
    for (std::uint64_t i = 0; i < 30; ++i) {
      test::batch b(64, i % 3);
      auto [loss, norm] = run(model, b.data, b.target, loss_fn, optimizer, average);
      schedule.step();
      if (i == 0) first = loss.item();
      last = loss.item();
      CHECK(norm.item() > 0);
    }
    CHECK(last < first * 0.6f);
    auto averaged = model;
    average.copy_to(averaged);
    averaged.eval();
    auto predict = xla::compile(averaged);
    const test::batch b(64, 1);
    const auto logits = averaged(b.data);
    test::check_equal(predict(b.data), logits);
    CHECK(cross_entropy(logits, b.target).item() < first);
    auto s = test::state_of(model, optimizer, averaged);
    s.add(logits);
    return s;
  };
  const auto eager = train(step_fn);
  auto compiled = xla::compile(step_fn);
  const auto graphs = xla::counter_value("UncachedCompile").value_or(0);
  CHECK(train([&](auto&... a) { return compiled(a...); }).difference(eager) == "");
  CHECK(xla::counter_value("UncachedCompile").value_or(0) == graphs + 2);  // the step, predict
  xla::eager_mode(false);
  CHECK(train(step_fn).difference(eager) == "");
}

namespace {

template <class T>
struct Small {
  nn::BasicEmbedding<T> table{5, 4};
  nn::BasicLinear<T> in{4, 6};
  nn::BasicBatchNorm1d<T> batch_norm{6};
  nn::BasicLayerNorm<T> layer_norm{6};
  nn::BasicRMSNorm<T> rms_norm{6};
  nn::BasicLinearNoBias<T> out{6, 3};
  constexpr auto operator()(const xla::Tensor<std::int64_t, 1>& x) const {
    return out(rms_norm(layer_norm(batch_norm(gelu(in(table(x)))))));
  }
  XLA_MODULE(table, in, batch_norm, layer_norm, rms_norm, out)
};

/// The loss of the last of a few steps in a type, from the same parameters.
template <class T, class Optimize, class Step>
double last_loss(Optimize optimize, Step run) {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  Small<float> start;
  Small<T> model;
  xla::load_state_dict(model, xla::state_dict(start));
  auto optimizer = optimize(model);
  optim::ExponentialMovingAverage average{model};
  nn::CrossEntropyLoss loss_fn;
  auto x = xla::tensor<std::int64_t>({0, 3, 4, 1, 1, 2}),
       y = xla::tensor<std::int64_t>({0, 1, 2, 0, 1, 2});
  double last = 0;
  for (int i = 0; i < 4; ++i)
    last = static_cast<double>(std::get<0>(run(model, x, y, loss_fn, optimizer, average)).item());
  return last;
}

}  // namespace

TEST_CASE("a model in double learns as one in float, with every optimizer") {
  const auto check = [](auto optimize) {
    const double real = last_loss<double>(optimize, step_fn);
    CHECK(real == Approx(last_loss<float>(optimize, step_fn)).epsilon(1e-4));
    CHECK(real != last_loss<float>(optimize, step_fn));
    return real;
  };
  const auto adamw = [](auto& m) { return optim::AdamW{m, {.lr = 0.01}}; };
  CHECK(last_loss<double>(adamw, xla::compile(step_fn)) == check(adamw));
  check([](auto& m) { return optim::SGD{m, {.lr = 0.1, .momentum = 0.9, .nesterov = true}}; });
  check([](auto& m) { return optim::Adam{m, {.lr = 0.01, .weight_decay = 0.1}}; });
  check([](auto& m) { return optim::RMSprop{m, {.lr = 0.01, .centered = true}}; });
  check([](auto& m) { return optim::Adagrad{m, {.lr = 0.01, .lr_decay = 0.1}}; });
  check([](auto& m) { return optim::Lion{m, {.lr = 0.001}}; });
}

TEST_CASE("layers in bfloat16 begin as others do and load what was trained in float") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(2);
  Small<float> trained;
  trained.eval();
  Small<xla::bfloat16> small;
  CHECK(static_cast<float>(small.in.weight.to_vector()[0]) != 0);
  xla::load_state_dict(small, xla::state_dict(trained));
  small.eval();
  auto x = xla::tensor<std::int64_t>({0, 3, 4});
  test::check_equal(xla::cast<float>(small(x)), {3, 3}, trained(x).to_vector(), 0.05);
  auto compiled = xla::compile(small);
  test::check_equal(compiled(x), small(x));
}
