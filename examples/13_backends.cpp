// SPDX-License-Identifier: Apache-2.0
// 13. Backends: one step on this library's kernels, on an interpreter of its graph, and on XLA.
// CMake's targets xla::interpreter and xla::pjrt bring the other two. XLA is a plugin that is
// looked for when the program runs:
//   pip install lammps-jax-pjrt-cpu && 13_backends
//   XLA_PJRT_PLUGIN=/path/to/plugin.so 13_backends
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <xla/ext/pjrt.hpp>
#include <xla/ext/stablehlo.hpp>
#include <xla/xla.hpp>

namespace nn = xla::nn;

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(data), target);
  loss.backward();
  optimizer.step();
  return loss;
};

// The losses of 50 steps. The function is captured once; who runs its graph is an option of the
// call that compiles it. Random numbers are the same on all backends.
std::vector<float> train(xla::Backend backend) {
  xla::manual_seed(42);
  Mlp model;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto data = xla::randn<float>({64, 784});
  auto target = xla::randint(0, 10, {64});
  auto step = xla::compile(step_fn, {.name = "step", .backend = backend});
  std::vector<float> losses{step(model, data, target, optimizer).item()};
  const auto start = std::chrono::steady_clock::now();
  while (losses.size() < 50) losses.push_back(step(model, data, target, optimizer).item());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  std::printf("  %.2f ms per step, after the first\n", passed.count() * 1e3 / 49);
  return losses;
}

float furthest(const std::vector<float>& a, const std::vector<float>& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

int main() try {
  xla::eager_mode(true);
  std::printf("this library's own backend\n");
  const auto planned = train("native");
  std::printf("  loss %.3f, then %.3f\n", static_cast<double>(planned.front()),
              static_cast<double>(planned.back()));

  // Op by op, without fusion: what differs then is a fault of fusing or planning.
  std::printf("an interpreter of its graph\n");
  const auto interpreted = train("interpreter");
  std::printf("  losses apart by less than 1e-5: %s\n",
              furthest(planned, interpreted) < 1e-5f ? "yes" : "no");
  //> losses apart by less than 1e-5: yes

  // What XLA gets is text, which every tool that reads StableHLO takes.
  const auto tiny = [](const auto& x) { return xla::relu(x) + 1.f; };
  std::printf("%s", xla::stablehlo(tiny, xla::ones<float>({2, 3})).c_str());
  //> module @xla {
  //> (tensor<2x3xf32>
  //> "stablehlo.maximum"

  // Another compiler and other kernels agree to rounding: a second opinion on every gradient.
  // State stays where it is, and XLA writes it in place.
  float difference = 0;
  try {
    std::printf("XLA\n");
    difference = furthest(planned, train(xla::pjrt("CPU")));
    std::printf("  losses apart by less than 1e-4: %s\n", difference < 1e-4f ? "yes" : "no");
  } catch (const xla::runtime_error& e) {
    std::printf("  %s\n", e.what());  // PJRT_DEVICE=CPU: no plugin found; …
  }
  return furthest(planned, interpreted) < 1e-5f && difference < 1e-4f ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "13_backends: %s\n", e.what());
  return 1;
}
