// SPDX-License-Identifier: Apache-2.0
// What the first call with new sizes costs: the steps of a residual net of 64 blocks, a decoder of
// 24 layers one by one and as a loop, and ResNet-50, at one batch size after another.

#include <xla/loop/scan_layers.hpp>
#include <xla/models/resnet.hpp>

#include "decoder_task.hpp"
#include "measure.hpp"
#include "residual.hpp"

#ifndef BLOCKS  // a build that does not run it defines less, as that takes less time to compile
#define BLOCKS 64
#define LAYERS 24
#define RESNET ResNet50
#endif

namespace {

constexpr xla::nn::DecoderConfig decoder_of(bool scan_layers) {
  return {.hidden = 32,
          .layers = LAYERS,
          .heads = 4,
          .kv_heads = 2,
          .intermediate = 64,
          .vocabulary = 64,
          .scan_layers = scan_layers};
}

/// Calls the step with data and targets of `sizes` batches, each several times.
template <class Model, template <class...> class Optimizer, class Step, class Batch>
void measure(const char* program, Step step_fn, Batch batch_of, int sizes, int later_calls) {
  Model model;
  xla::nn::CrossEntropyLoss loss_fn;
  Optimizer<Model> optimizer{model, {.lr = 1e-4f}};
  auto step = xla::compile(step_fn, {.name = program});
  std::vector<double> first, steady, extra, compile;
  for (int i = 0; i < sizes; ++i) {
    const auto [data, target] = batch_of(8 + i);
    xla::clear_metrics();
    const auto call = [&] { bench::touch(step(model, data, target, loss_fn, optimizer).data()); };
    const double once = bench::seconds_per_call(call, 1);
    const auto metric = xla::metric_data("CompileTime");
    std::vector<double> later;
    for (int k = 0; k < later_calls; ++k) later.push_back(bench::seconds_per_call(call, 1));
    first.push_back(once * 1e3);
    steady.push_back(bench::spread_of(later).median * 1e3);
    extra.push_back(first.back() - steady.back());
    if (metric) compile.push_back(metric->accumulator / 1e6);
  }
  bench::record{"specialise"}
      .add("program", program)
      .add("signatures", sizes)
      .add("first_ms", bench::spread_of(first))
      .add("steady_ms", bench::spread_of(steady))
      .add("extra_ms", bench::spread_of(extra))
      .add("compile_time_ms", bench::spread_of(compile.empty() ? extra : compile))
      .print();
}

}  // namespace

int main() {
  xla::set_num_threads(1);
  xla::eager_mode(true);
  measure<bench::Residual<BLOCKS>, xla::optim::SGD>(
      "residual net of 64 blocks", bench::step_fn,
      [](int batch) {
        return std::pair(xla::randn<float>({batch, bench::width}),
                         xla::zeros<std::int64_t>({batch}));
      },
      40, 9);
  const auto tokens = [](int batch) {
    return std::pair(xla::zeros<std::int64_t>({batch, 8}), xla::zeros<std::int64_t>({8 * batch}));
  };
  measure<xla::nn::Decoder<decoder_of(false)>, xla::optim::AdamW>(
      "decoder of 24 layers", bench::decoder_step, tokens, 20, 5);
  measure<xla::nn::Decoder<decoder_of(true)>, xla::optim::AdamW>(
      "decoder of 24 layers as a loop", bench::decoder_step, tokens, 20, 5);
  measure<xla::models::RESNET<>, xla::optim::SGD>(
      "ResNet-50", bench::step_fn,
      [](int batch) {
        return std::pair(xla::randn<float>({batch, 3, 32, 32}), xla::zeros<std::int64_t>({batch}));
      },
      10, 3);
}
