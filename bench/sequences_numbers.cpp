// SPDX-License-Identifier: Apache-2.0
// Loops over single numbers with their gradients: Lorenz's equations by Runge-Kutta, and a chain of
// nodes as in jax-ml/jax#40150.

#include <array>
#include <utility>

#include "sequences.hpp"

#ifndef NODES  // fewer take less time to compile
#define NODES 30
#endif

namespace {

using number = xla::Tensor<double, 0>;
using state = std::array<number, 3>;
using xla::Parameter;

// As in peers/sequences_task.py.
constexpr int steps = 100'000, every = 250;
constexpr double time_step = 0.005, coupling = 30;

struct lorenz {
  Parameter<double, 0> sigma{xla::tensor(10.)}, rho{xla::tensor(28.)}, beta{xla::tensor(8. / 3)};

  /// The derivative by time, where x is pulled to what was measured.
  constexpr state operator()(const state& s, const number& measured) const {
    const auto& [x, y, z] = s;
    return {sigma * (y - x) + coupling * (measured - x), x * (rho - z) - y, x * y - beta * z};
  }
  XLA_MODULE(sigma, rho, beta)
};

template <class State>
constexpr State moved(const State& s, const State& by, double much) {
  return {s[0] + by[0] * much, s[1] + by[1] * much, s[2] + by[2] * much};
}
/// The four derivatives of a step of the Runge-Kutta method of order four.
template <class State>
constexpr std::array<State, 4> slopes(const auto& f, const State& s, const auto& measured) {
  const State a = f(s, measured), b = f(moved(s, a, time_step / 2), measured),
              c = f(moved(s, b, time_step / 2), measured), d = f(moved(s, c, time_step), measured);
  return {a, b, c, d};
}
template <class State>
constexpr State runge_kutta(const auto& f, const State& s, const auto& measured) {
  const auto [a, b, c, d] = slopes(f, s, measured);
  const State once = moved(moved(s, a, time_step / 6), d, time_step / 6);
  return moved(moved(once, b, time_step / 3), c, time_step / 3);
}

constexpr auto follow = [](auto& model, const auto& measured) {
  model.zero_grad();
  const auto step = [&](const state& s, const number& at) {
    return std::pair(runge_kutta(model, s, at), s[0]);
  };
  const number one = xla::ones_like(xla::select(measured, 0, 0));
  const auto path =
      xla::scan(step, state{one, one, one * 20.0}, measured, {.checkpoint_every = every}).second;
  const auto difference = path - measured;
  auto loss = xla::mean(difference * difference);
  loss.backward();
  return loss;
};

auto measurements() { return bench::drawn<double>(1, {steps}, 10); }

/// The same in plain C++, with checkpoints as often.
class lorenz_by_hand {
  using numbers = std::array<double, 3>;

 public:
  /// Of sigma, rho and beta.
  numbers gradient{};

  double run(const double* measured) {
    std::vector<numbers> kept(steps / every), states(every);
    numbers s{1, 1, 20};
    double loss = 0;
    for (int t = 0; t < steps; ++t) {
      if (t % every == 0) kept[static_cast<std::size_t>(t / every)] = s;
      loss += (s[0] - measured[t]) * (s[0] - measured[t]);
      s = runge_kutta(derivative, s, measured[t]);
    }
    gradient = {};
    numbers g{};
    for (int block = steps / every - 1; block >= 0; --block) {
      const double* const m = measured + block * every;
      s = kept[static_cast<std::size_t>(block)];
      for (std::size_t t = 0; t < every; ++t) {
        states[t] = s;
        s = runge_kutta(derivative, s, m[t]);
      }
      for (std::size_t t = every; t-- > 0;) {
        g = back(states[t], m[t], g);
        g[0] += 2. / steps * (states[t][0] - m[t]);
      }
    }
    return loss / steps;
  }

 private:
  static constexpr double sigma = 10, rho = 28, beta = 8. / 3;
  static constexpr auto derivative = [](const numbers& s, double measured) -> numbers {
    const auto [x, y, z] = s;
    return {sigma * (y - x) + coupling * (measured - x), x * (rho - z) - y, x * y - beta * z};
  };
  /// The gradient of what a derivative was taken of.
  numbers back(const numbers& s, const numbers& g) {
    const auto [x, y, z] = s;
    gradient[0] += (y - x) * g[0];
    gradient[1] += x * g[1];
    gradient[2] -= z * g[2];
    return {(rho - z) * g[1] + y * g[2] - (sigma + coupling) * g[0], sigma * g[0] - g[1] + x * g[2],
            -x * g[1] - beta * g[2]};
  }
  numbers back(const numbers& s, double measured, const numbers& g) {
    const auto [a, b, c, d] = slopes(derivative, s, measured);
    constexpr double h = time_step;
    const numbers none{};
    const numbers of_d = back(moved(s, c, h), moved(none, g, h / 6));
    const numbers of_c = back(moved(s, b, h / 2), moved(moved(none, g, h / 3), of_d, h));
    const numbers of_b = back(moved(s, a, h / 2), moved(moved(none, g, h / 3), of_c, h / 2));
    const numbers of_a = back(s, moved(moved(none, g, h / 6), of_b, h / 2));
    return moved(moved(moved(moved(g, of_a, 1), of_b, 1), of_c, 1), of_d, 1);
  }
};

/// Each node has a mean and a precision, and learns the mean of the one below; the lowest learns
/// what is measured. A number of each is a value of its own.
constexpr int nodes = NODES, turns = 614;
struct chain {
  Parameter<float, 0> rate{xla::tensor(0.5f)}, memory{xla::tensor(0.9f)};
  XLA_MODULE(rate, memory)
};

constexpr auto learn = [](auto& model, const auto& measured) {
  using one = xla::Tensor<float, 0>;
  using means_and_precisions = std::pair<std::array<one, nodes>, std::array<one, nodes>>;
  model.zero_grad();
  const auto step = [&](const means_and_precisions& s, const one& at) {
    means_and_precisions next = s;
    for (int i = 0; i < nodes; ++i) {
      const one difference = (i == 0 ? at : s.first[i - 1]) - s.first[i];
      const one precision = model.memory * s.second[i] + 0.1f / (1.0f + difference * difference);
      next.first[i] = s.first[i] + model.rate * difference * precision;
      next.second[i] = precision;
    }
    return std::pair(next, next.first[nodes - 1]);
  };
  const one first = xla::ones_like(xla::select(measured, 0, 0));
  means_and_precisions init;
  for (int i = 0; i < nodes; ++i) init.first[i] = init.second[i] = first * 0.5f;
  const auto path = xla::scan(step, init, measured).second;
  auto loss = xla::mean(path * path);
  loss.backward();
  return loss;
};

template <class Model, class X>
bench::sequence_answer run(const auto& function, const char* name, const X& measured, int threads) {
  Model model;
  auto step = xla::compile(function, {.name = name});
  return bench::least_time(
      threads, [&] { bench::touch(step(model, measured).data()); },
      [&] { return bench::gradient_magnitude(model); });
}

}  // namespace

bench::sequence_answer bench::run_numbers(std::string_view task, int threads) {
  if (task == "scalars")
    return run<chain>(learn, "chain", bench::drawn<float>(1, {turns}, 1), threads);
  if (task == "lorenz") return run<lorenz>(follow, "lorenz", measurements(), threads);
  lorenz_by_hand lorenz;
  const auto measured = measurements().to_vector();
  double loss = 0;
  return least_time(
      threads, [&] { bench::touch((loss = lorenz.run(measured.data()), &loss)); },
      [&] {
        const auto& [sigma, rho, beta] = lorenz.gradient;
        return std::abs(sigma) + std::abs(rho) + std::abs(beta);
      });
}
