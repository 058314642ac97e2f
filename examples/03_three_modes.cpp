// SPDX-License-Identifier: Apache-2.0
// 3. One step function, three modes: eager, traced, compiled.
#include <cstdio>

#include <xla/xla.hpp>

namespace nn = xla::nn;

// A model is a struct: its members are its layers, the call operator is its forward pass.
struct Mlp {
  nn::Linear fc1{4, 16}, fc2{16, 4};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)  // describes the members
};

// A training step is a function. It uses nothing but its arguments.
constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(data);
  auto loss = loss_fn(logits, target);
  loss.backward();
  optimizer.step();
  return loss;
};

// Ten steps from the same start; `step` says in which mode.
template <class Step>
float train(const char* mode, Step step) {
  xla::manual_seed(42);
  Mlp model;
  nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto data = xla::randn<float>({32, 4});
  auto target = xla::argmax(data, 1);
  float first = 0, last = 0;
  for (int i = 0; i < 10; ++i) {
    auto loss = step(model, data, target, loss_fn, optimizer);
    (i == 0 ? first : last) = loss.item();
  }
  std::printf("%s: loss %.3f, then %.3f\n", mode, first, last);
  return last;
}

int main() {
  // Eager: each op runs when it is called. For finding mistakes, and all that is not the hot loop.
  xla::eager_mode(true);
  const float eager = train("eager", step_fn);
  //> eager: loss

  // Compiled: the C++ compiler has run step_fn on tensors without elements while it built this
  // program, and made one fused program of forward, backward and optimizer.
  const float compiled = train("compiled", xla::compile(step_fn, {.name = "mlp_step"}));
  //> compiled: loss

  // Traced: ops are recorded while the program runs; sync() plans what was recorded, or finds it
  // again, and runs it as one graph.
  xla::eager_mode(false);
  const float traced = train("traced", [](auto&... arguments) {
    auto loss = step_fn(arguments...);
    xla::sync();
    return loss;
  });
  //> traced: loss

  // The same bits when built with -ffp-contract=off, otherwise to rounding.
  const auto near = [](float a, float b) { return a - b < 1e-4f && b - a < 1e-4f; };
  const bool same = near(eager, compiled) && near(eager, traced);
  std::printf("the same numbers: %s\n", same ? "yes" : "no");
  //> the same numbers: yes
}
