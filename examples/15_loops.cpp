// SPDX-License-Identifier: Apache-2.0
// 15. Loops: a recurrent network whose number of steps only run time knows, gradients through it,
// and what else is a loop in the graph.
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include <xla/loop.hpp>
#include <xla/xla.hpp>

namespace nn = xla::nn;
using Matrix = xla::Tensor<float, 2>;
using Series = xla::Tensor<float, 3>;

// Reads a series (steps, batch, 1), and says of each step what comes next. In a compiled function a
// `for` over the steps would be unrolled: a program for each length. xla::scan is a loop of the
// program. Its body is given the carry, what one step passes on to the next, and an x of xs; it
// returns the new carry, and a y. scan() returns the last carry, and all y.
struct Network {
  nn::Linear in{1, 16}, back{16, 16}, out{16, 1};
  constexpr auto operator()(const Series& xs) const {
    const auto step = [&](const Matrix& h, const Matrix& x) {
      const Matrix next = xla::tanh(in(x) + back(h));
      return std::pair(next, out(next));
    };
    const Matrix start = xla::expand(back.bias * 0, {xs.size(1), 16});
    return xla::scan(step, start, xs).second;
  }
  XLA_MODULE(in, back, out)
};

// backward() through a loop is another one, from the last step to the first.
constexpr auto step_fn = [](auto& model, const auto& xs, const auto& next, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mse_loss(model(xs), next);
  loss.backward();
  optimizer.step();
  return loss;
};

// Four waves of the same length, which begin at different places.
std::pair<Series, Series> waves(int steps) {
  std::vector<float> now, next;
  for (int i = 0; i < steps; ++i)
    for (int k = 0; k < 4; ++k) {
      now.push_back(std::sin(0.3f * static_cast<float>(i + 5 * k)));
      next.push_back(std::sin(0.3f * static_cast<float>(i + 1 + 5 * k)));
    }
  return {xla::from_blob(now.data(), {steps, 4, 1}), xla::from_blob(next.data(), {steps, 4, 1})};
}

int main() {
  xla::manual_seed(1);
  Network model;
  xla::optim::Adam optimizer{model, {.lr = 0.01f}};
  auto train = xla::compile(step_fn);
  float loss = 0;
  for (int i = 0; i < 300; ++i) {
    const auto [now, next] = waves(20 + i % 10);  // ten lengths, one program
    loss = train(model, now, next, optimizer).item();
  }
  std::printf("learned: %s\n", loss < 3e-3f ? "yes" : "no");  //> learned: yes

  // A longer series than any that it has seen.
  auto predict = xla::compile(model);
  const auto [now, next] = waves(200);
  const float error = xla::mse_loss(predict(now), next).item();
  std::printf("after 200 steps: %s\n", error < 1e-2f ? "near" : "far");  //> after 200 steps: near

  // A number of times: i is a tensor, the number may come from a size.
  auto factorial = xla::compile([](const auto& x, const auto& times) {
    const auto body = [](const auto& i, const auto& c) { return c * xla::cast<float>(i); };
    return xla::fori_loop(1, times.size(0) + 1, body, x);
  });
  const auto one = xla::ones<float>({1});
  std::printf("%g\n", factorial(one, xla::zeros<float>({5})).to_vector()[0]);  //> 120

  // As long as a condition holds. Nobody knows how often, so it has no gradient.
  auto root = xla::compile([](const auto& x) {
    return xla::while_loop([&](const auto& c) { return xla::any(xla::abs(c * c - x) > 1e-4f); },
                           [&](const auto& c) { return (c + x / c) * 0.5f; }, x);
  });
  std::printf("%.3f\n", root(xla::tensor<float>({2, 9})).to_vector()[1]);  //> 3.000

  // One of two branches: only that one runs, and backward only through that one.
  auto halve = xla::compile([](const auto& x) {
    const auto half = [](const auto& v) { return v * 0.5f; };
    return xla::cond(xla::max(x) > 1, half, [](const auto& v) { return v; }, x);
  });
  std::printf("%g\n", halve(xla::tensor<float>({1, 4})).to_vector()[1]);  //> 2

  // What a function that is associative makes of all elements up to each.
  const auto add = [](const auto& a, const auto& b) { return a + b; };
  const auto sums = xla::associative_scan(add, xla::tensor<float>({1, 2, 3})).to_vector();
  std::printf("%g %g %g\n", sums[0], sums[1], sums[2]);  //> 1 3 6
}
