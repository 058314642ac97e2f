// SPDX-License-Identifier: Apache-2.0
// sequences <threads>: answers `run <task> <way> <batch> <hidden>` with the least nanoseconds of a
// call and a sum that all contestants must agree on. A task is lorenz, hand (the same without this
// library), scalars, lstm, gru, normed or speaker, a way reading or training; see sequences.py.

#include "sequences.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <xla/nn/recurrent.hpp>

#ifndef HIDDEN  // a build that does not run it has 64 alone, as that takes less time to compile
#define HIDDEN 256
#endif

namespace {

namespace nn = xla::nn;
using series = xla::Tensor<float, 3>;  // (steps, batch, features)

/// A custom LSTM, with layer normalization of what gates and outputs read.
template <int Hidden>
struct normed_lstm {
  using matrix = xla::Tensor<float, 2>;
  using state = std::pair<matrix, matrix>;
  nn::LinearNoBias in{Hidden, 4 * Hidden}, back{Hidden, 4 * Hidden};
  nn::LayerNorm of_in{4 * Hidden}, of_back{4 * Hidden}, of_c{Hidden};

  constexpr auto operator()(const series& xs) const {
    const auto step = [&](const state& last, const matrix& x) {
      const auto [i, f, g, o] = xla::chunk<4>(of_in(in(x)) + of_back(back(last.first)), 1);
      const matrix c = of_c(xla::sigmoid(f) * last.second + xla::sigmoid(i) * xla::tanh(g));
      const matrix h = xla::sigmoid(o) * xla::tanh(c);
      return std::pair(state(h, c), h);
    };
    const matrix none = xla::zeros<float>({xs.size(1), Hidden});
    const auto [last, y] = xla::scan(step, state(none, none), xs);
    return std::pair(y, last);
  }
  XLA_MODULE(in, back, of_in, of_back, of_c)
};

constexpr auto read = [](auto& model, const auto& x) { return model(x).first; };
constexpr auto train = [](auto& model, const auto& x) {
  model.zero_grad();
  const auto y = model(x).first;
  auto loss = xla::mean(y * y);
  loss.backward();
  return loss;
};

/// Weights as in peers/sequences_task.py: drawn, each parameter from a stream of its own.
template <class Model>
void set_weights(Model& model, int hidden) {
  std::uint32_t stream = 10;
  xla::for_each_parameter(model, [&](auto& p) {
    const double bound = 1 / std::sqrt(static_cast<double>(hidden));
    const auto s = p.dims();
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 1)
      p.copy_(bench::drawn<float>(stream++, {s[0]}, bound));
    else p.copy_(bench::drawn<float>(stream++, {s[0], s[1]}, bound));
  });
}

template <class Model>
bench::sequence_answer run(bool training, const series& x, int hidden, int threads) {
  Model model;
  set_weights(model, hidden);
  if (training) {
    auto step = xla::compile(train, {.name = "train"});
    return bench::least_time(
        threads, [&] { bench::touch(step(model, x).data()); },
        [&] { return bench::gradient_magnitude(model); });
  }
  auto step = xla::compile(read, {.name = "read"});
  series y;
  return bench::least_time(
      threads, [&] { bench::touch((y = step(model, x)).data()); },
      [&] { return bench::magnitude(y); });
}

template <int Hidden>
bench::sequence_answer run(std::string_view task, bool training, int batch, int threads) {
  using lstm = nn::LSTM<nn::LSTMConfig{.input_size = Hidden, .hidden_size = Hidden}>;
  using gru = nn::GRU<nn::GRUConfig{.input_size = Hidden, .hidden_size = Hidden}>;
  const auto x = bench::drawn<float>(1, {100, batch, Hidden}, 1);
  if (task == "lstm") return run<lstm>(training, x, Hidden, threads);
  if (task == "gru") return run<gru>(training, x, Hidden, threads);
  if (task == "normed") return run<normed_lstm<Hidden>>(training, x, Hidden, threads);
  throw std::invalid_argument("sequences: there is no task " + std::string(task));
}

bench::sequence_answer run(std::string_view task, bool training, int batch, int hidden,
                           int threads) {
  if (task == "lorenz" || task == "hand" || task == "scalars")
    return bench::run_numbers(task, threads);
  if (task == "speaker") {
    using speaker = nn::LSTM<nn::LSTMConfig{.input_size = 40, .hidden_size = 256, .num_layers = 3}>;
    return run<speaker>(training, bench::drawn<float>(1, {160, batch, 40}, 1), 256, threads);
  }
  return hidden == 64 ? run<64>(task, training, batch, threads)
                      : run<HIDDEN>(task, training, batch, threads);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  xla::set_num_threads(threads);
  std::cout << R"({"ready": "xla"})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command, task, way;
    int batch = 0, hidden = 0;
    if (!(words >> command >> task >> way >> batch >> hidden) || command != "run") break;
    const auto [ns, sum] = run(task, way == "training", batch, hidden, threads);
    std::cout << R"({"ns": )" << bench::json_number(ns) << R"(, "sum": )" << bench::json_number(sum)
              << "}" << std::endl;
  }
}
