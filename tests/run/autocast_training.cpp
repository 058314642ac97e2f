// SPDX-License-Identifier: Apache-2.0
// Training in mixed precision: steps in autocast have the same bits in every mode.
#include "support/decoder.hpp"
#include "xla/xla.hpp"

using test::numbers;
using xla::autocast;
using xla::Tensor;
namespace nn = xla::nn;

namespace {

struct Net {
  nn::Conv2d<3, 1, 1> conv1{1, 32};
  nn::BatchNorm2d norm{32};
  nn::Conv2d<3, 2> conv2{32, 33};
  nn::Linear fc{33 * 9, 5};
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return fc(xla::flatten<1>(xla::relu(conv2(xla::relu(norm(conv1(x)))))));
  }
  XLA_MODULE(conv1, norm, conv2, fc)
};

constexpr auto step = [](auto& model, auto& x, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  const auto logits = model(x);
  auto loss = cross_entropy(reshape(logits, {-1, logits.size(-1)}), flatten(target));
  loss.backward();
  optimizer.step();
  return loss;
};
/// The same with the forward pass alone in autocast.
constexpr auto step_of_forward = [](auto& model, auto& x, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  const auto logits = autocast(x, [&] { return model(x); });
  auto loss = cross_entropy(reshape(logits, {-1, logits.size(-1)}), flatten(target));
  loss.backward();
  optimizer.step();
  return loss;
};

/// Some steps of a fresh model, by f: losses, parameters, gradients.
template <class Model, class X, class F>
test::snapshot train(bool eager, const X& x, const auto& target, F f) {
  const xla::eager_mode_guard as_told(eager);
  xla::manual_seed(3);
  Model model;
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  test::snapshot s;
  auto data = x;
  auto to = target;
  for (int i = 0; i < 3; ++i) s.add(f(model, data, to, optimizer));
  s.add(model);
  return s;
}
/// Steps in autocast are the same in every mode, and others than in float32.
template <class Model>
void check_training(const auto& x, const auto& target) {
  const auto want = train<Model>(true, x, target, autocast(step));
  CHECK(want.difference(train<Model>(true, x, target, step)) != "");
  CHECK(train<Model>(false, x, target, autocast(step)).difference(want) == "");
  CHECK(train<Model>(false, x, target, xla::compile(autocast(step))).difference(want) == "");
  CHECK(train<Model>(true, x, target, step_of_forward).difference(want) == "");
  CHECK(train<Model>(false, x, target, xla::compile(step_of_forward)).difference(want) == "");
}

}  // namespace

TEST_CASE("training in autocast: a perceptron, a network of convolutions") {
  const test::batch b(8);
  check_training<test::Mlp>(b.data, b.target);
  check_training<Net>(numbers<float>({4, 1, 8, 8}, 1), xla::tensor<std::int64_t>({0, 4, 2, 1}));
}

TEST_CASE("training in autocast: a decoder, also with checkpoints") {
  constexpr auto checkpointed = [] {
    auto c = test::tiny_gpt;
    c.checkpoint_layers = true;
    return c;
  }();
  const auto tokens = test::text_batch(2, 6, 0, 0), next = test::text_batch(2, 6, 0, 1);
  check_training<nn::Decoder<test::tiny_gpt>>(tokens, next);
  const auto want = train<nn::Decoder<test::tiny_gpt>>(true, tokens, next, autocast(step));
  using Checkpointed = nn::Decoder<checkpointed>;
  for (const bool eager : {true, false})
    CHECK(train<Checkpointed>(eager, tokens, next, autocast(step)).difference(want) == "");
  CHECK(train<Checkpointed>(false, tokens, next, xla::compile(autocast(step))).difference(want) ==
        "");
}
