// SPDX-License-Identifier: Apache-2.0
// The program of the README, whose code is counted here and whose build is timed in bench/; with
// EAGER its step runs eagerly.
#include <iostream>
#include <xla/xla.hpp>
namespace nn = xla::nn;

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

int main() {
  xla::eager_mode(true);
  xla::manual_seed(42);
  Mlp model;
  nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};

  auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
    optimizer.zero_grad();
    auto logits = model(data);
    auto loss = loss_fn(logits, target);
    loss.backward();
    optimizer.step();
    return loss;
  };
#ifdef EAGER
  auto& step = step_fn;
#else
  auto step = xla::compile(step_fn, {.name = "mlp_step"});
#endif

  auto data = xla::randn<float>({64, 784});
  auto target = xla::randint(0, 10, {64});
  for (int i = 0; i < 3; ++i)
    std::cout << step(model, data, target, loss_fn, optimizer).item() << '\n';
#ifdef XLA_NO_TRACED
  try {
    xla::eager_mode(false);
    return 1;
  } catch (const xla::error&) {
  }
#endif
}
