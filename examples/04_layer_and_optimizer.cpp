// SPDX-License-Identifier: Apache-2.0
// 4. Your own layer and your own optimizer. Both know nothing of modes.
#include <cstdio>

#include <xla/xla.hpp>

namespace nn = xla::nn;

// A layer: parameters are members, the forward pass is ordinary code. What varies from one use to
// the next (`Width`) is part of the type, so that the compiler knows it.
template <std::int64_t Width>
struct Gate {
  nn::Linear mix{Width, Width};
  xla::Parameter<float, 1> strength{{Width}};  // zeros: at the start nothing passes

  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return x + xla::tanh(mix(x)) * strength;
  }
  XLA_MODULE(mix, strength)
};

// An optimizer is a rule: hyper-parameters (xla::Scalar), how many tensors it keeps for each
// parameter, and the update. This one follows the sign of a running mean of the gradient.
struct SignOptions {
  xla::Scalar lr = 1e-3;
  xla::Scalar momentum = 0.9;

  static constexpr int states = 1;
  constexpr int begin(const xla::Tensor<float, 0>&) const { return 0; }
  constexpr void update(int, auto& parameter, const auto& gradient, auto& mean) const {
    mean.copy_(mean.detach() * momentum + gradient * (1 - momentum.as<float>()));
    const auto m = mean.detach();
    const auto sign = xla::where(m > 0, xla::ones_like(m), xla::full_like(m, -1));
    parameter.copy_(parameter.detach() - sign * lr);
  }
  XLA_MODULE(lr, momentum)
};
template <class Model>
struct Sign : xla::optim::Optimizer<Model, SignOptions> {
  using xla::optim::Optimizer<Model, SignOptions>::Optimizer;
};
template <class Model>
Sign(Model&, SignOptions) -> Sign<Model>;

using Net = nn::Sequential<nn::Linear, Gate<8>, nn::Linear>;

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mse_loss(model(data), target);
  loss.backward();
  optimizer.step();
  return loss;
};

int main() {
  xla::eager_mode(true);
  xla::manual_seed(1);
  Net model{nn::Linear{2, 8}, Gate<8>{}, nn::Linear{8, 1}};
  Sign optimizer{model, {.lr = 0.01}};
  xla::named_parameters(model, [](const auto& name, auto& p) {
    if (p.dim() == 1) std::printf("%s (%d)\n", name.c_str(), static_cast<int>(p.numel()));
  });
  //> 0.bias (8)
  //> 1.mix.bias (8)
  //> 1.strength (8)
  //> 2.bias (1)

  auto data = xla::randn<float>({64, 2});
  auto target = xla::sum(data * data, {1}, xla::keepdim);
  auto step = xla::compile(step_fn, {.name = "gated_step"});
  const float before = step(model, data, target, optimizer).item();
  for (int i = 0; i < 300; ++i) {
    optimizer.options.lr = 0.01 * (1 - i / 300.0);  // an input of the step: nothing is recompiled
    step(model, data, target, optimizer);
  }
  const float after = step_fn(model, data, target, optimizer).item();  // the same step, eagerly
  std::printf("a tenth of the loss is left at most: %s\n", after < before / 10 ? "yes" : "no");
  //> a tenth of the loss is left at most: yes
}
