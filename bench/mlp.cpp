// SPDX-License-Identifier: Apache-2.0
// mlp <compiled|traced|fused|eager> <threads>: answers `run N` with the time of N steps and the
// loss.

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "measure.hpp"
#include "mlp_task.hpp"
#include "serve.hpp"

namespace {

constexpr int warm = 10;  // steps before the clock starts; as in peers/mlp_task.py

/// From the first weights: `warm` steps, then n timed ones.
template <class Step>
bench::turn run(const std::vector<bench::batch>& ring, Step&& step, int n) {
  bench::Mlp model;
  bench::set_weights(model);
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  xla::Tensor<float, 0> loss;
  const auto train = [&](int first, int last) {
    for (int i = first; i < last; ++i) {
      const auto& [data, target] = ring[static_cast<std::size_t>(i) % ring.size()];
      loss = step(model, data, target, loss_fn, optimizer);
    }
    return loss.item();
  };
  train(0, warm);
  const double start = bench::now();
  const float last = train(warm, warm + n);
  return {(bench::now() - start) * 1e9, last};
}

template <class Step>
int contend(std::string_view mode, Step&& step) {
  const auto ring = bench::make_batches();
  run(ring, step, 3);
  return bench::serve(mode, [&](int n) { return run(ring, step, n); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "compiled";
  xla::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  xla::eager_mode(mode != "traced");
  if (mode == "compiled") return contend(mode, xla::compile(bench::step_fn, {.name = "mlp_step"}));
  if (mode == "fused") xla::eager_mode(xla::Eager::fused);
  if (mode == "eager" || mode == "fused") return contend(mode, bench::step_fn);
  if (mode == "traced")
    return contend(mode, [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
      auto loss = bench::step_fn(model, data, target, loss_fn, optimizer);
      xla::sync();
      return loss;
    });
  std::cerr << "mlp: the mode is compiled, traced, fused or eager\n";
  return 2;
}
