// SPDX-License-Identifier: Apache-2.0
// The three numbers of Lorenz's equations, from noisy measurements of x alone: gradient descent
// through 10,000 Runge-Kutta steps, which are one loop of the compiled function. It writes a
// picture of the path before and after.
//   lorenz [picture.svg] [updates]
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <xla/io/svg.hpp>
#include <xla/loop.hpp>
#include <xla/xla.hpp>

namespace {

using Number = xla::Tensor<double, 0>;
using State = std::array<Number, 3>;

constexpr int steps = 10'000;
constexpr double time_step = 0.005, noise = 0.5, coupling = 30;

struct Lorenz {
  xla::Parameter<double, 0> sigma{xla::tensor(5.)}, rho{xla::tensor(20.)}, beta{xla::tensor(1.)};

  /// The derivative by time, where x is pulled to what was measured: two paths that are pulled so
  /// come together, and gradients through many steps stay small.
  constexpr State operator()(const State& s, const Number& measured) const {
    const auto& [x, y, z] = s;
    return {sigma * (y - x) + coupling * (measured - x), x * (rho - z) - y, x * y - beta * z};
  }
  XLA_MODULE(sigma, rho, beta)
};

constexpr State moved(const State& s, const State& by, double much) {
  return {s[0] + by[0] * much, s[1] + by[1] * much, s[2] + by[2] * much};
}

/// One step of the Runge-Kutta method of order four.
constexpr State runge_kutta(const Lorenz& f, const State& s, const Number& measured) {
  const State a = f(s, measured), b = f(moved(s, a, time_step / 2), measured),
              c = f(moved(s, b, time_step / 2), measured), d = f(moved(s, c, time_step), measured);
  const State once = moved(moved(s, a, time_step / 6), d, time_step / 6);
  return moved(moved(once, b, time_step / 3), c, time_step / 3);
}

/// x, y and z along the measurements, each of (steps).
constexpr auto path = [](const auto& model, const auto& measured) {
  const auto step = [&](const State& s, const Number& at) {
    const State next = runge_kutta(model, s, at);
    return std::pair(next, s);
  };
  const Number one = xla::ones_like(xla::select(measured, 0, 0));
  return xla::scan(step, State{one, one, one * 20.0}, measured).second;
};

constexpr auto update = [](auto& model, const auto& measured, auto& optimizer) {
  optimizer.zero_grad();
  const auto difference = path(model, measured)[0] - measured;
  auto loss = xla::mean(difference * difference);
  loss.backward();
  optimizer.step();
  return loss;
};

/// What is measured: the path of the true equations, on its own, and noise.
constexpr auto measure = [](const auto& model, const auto& errors) {
  const auto step = [&](const State& s, const Number& error) {
    return std::pair(runge_kutta(model, s, s[0]), std::tuple(s, s[0] + error));
  };
  const Number one = xla::ones_like(xla::select(errors, 0, 0));
  return xla::scan(step, State{one, one, one * 20.0}, errors).second;
};

xla::io::chart_series line(const char* label, const std::array<xla::Tensor<double, 1>, 3>& path) {
  return {label, path[0].to_vector(), path[2].to_vector()};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string picture = argc > 1 ? argv[1] : "lorenz.svg";
  const int updates = argc > 2 ? std::atoi(argv[2]) : 200;
  xla::manual_seed(1);
  Lorenz truth, model;
  truth.sigma.fill_(10);
  truth.rho.fill_(28);
  truth.beta.fill_(8. / 3);
  const auto [truth_path, noisy] =
      xla::compile(measure)(truth, xla::randn<double>({steps}) * noise);
  const auto measured = noisy.detach();
  xla::optim::Adam optimizer{model, {.lr = 0.1}};
  auto follow = xla::compile(path);
  const auto before = follow(model, measured);
  auto train = xla::compile(update);
  for (int i = 0; i < updates; ++i) {
    const double loss = train(model, measured, optimizer).item();
    if (i % 20 == 0 || i + 1 == updates)
      std::printf("update %3d  loss %8.4f  sigma %7.4f  rho %7.4f  beta %6.4f\n", i, loss,
                  model.sigma.item(), model.rho.item(), model.beta.item());
  }
  const auto after = follow(model, measured);
  std::ofstream(picture) << xla::io::to_svg({.title = "Lorenz's equations, from noisy x",
                                             .x_label = "x",
                                             .y_label = "z",
                                             .series = {line("true path", truth_path),
                                                        line("before", before),
                                                        line("after", after)},
                                             .height = 560});
}
