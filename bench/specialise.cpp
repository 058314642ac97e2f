// SPDX-License-Identifier: Apache-2.0
// What the first call with new sizes costs: the step of a residual net of 64 blocks, at one batch
// size after another.

#include "measure.hpp"
#include "residual.hpp"

int main() {
  constexpr int blocks = 64, sizes = 40;
  xla::set_num_threads(1);
  xla::eager_mode(true);
  bench::Residual<blocks> model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 1e-4f, .momentum = 0.9f}};
  auto step = xla::compile(bench::residual_step, {.name = "residual"});
  std::vector<double> first, steady, extra, compile;
  for (int i = 0; i < sizes; ++i) {
    const int batch = 8 + i;
    auto data = xla::randn<float>({batch, bench::width});
    auto target = xla::zeros<std::int64_t>({batch});
    xla::clear_metrics();
    const auto call = [&] { bench::touch(step(model, data, target, loss_fn, optimizer).data()); };
    const double once = bench::seconds_per_call(call, 1);
    const auto metric = xla::metric_data("CompileTime");
    std::vector<double> later;
    for (int k = 0; k < 9; ++k) later.push_back(bench::seconds_per_call(call, 1));
    first.push_back(once * 1e3);
    steady.push_back(bench::spread_of(later).median * 1e3);
    extra.push_back(first.back() - steady.back());
    if (metric) compile.push_back(metric->accumulator / 1e6);
  }
  bench::record{"specialise"}
      .add("blocks", blocks)
      .add("signatures", sizes)
      .add("first_ms", bench::spread_of(first))
      .add("steady_ms", bench::spread_of(steady))
      .add("extra_ms", bench::spread_of(extra))
      .add("compile_time_ms", bench::spread_of(compile.empty() ? extra : compile))
      .print();
}
