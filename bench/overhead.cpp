// SPDX-License-Identifier: Apache-2.0
// What a call costs in addition to arithmetic: time of a step of three tiny ops, allocations per
// step.

#include <functional>

#include "allocations.hpp"
#include "measure.hpp"
#include "mlp_task.hpp"

namespace {

constexpr int calls = 2000, rounds = 25;

/// Nanoseconds per call over rounds of many calls; then allocations over as many more.
template <class F>
void report(const char* name, const char* mode, int threads, F&& f) {
  for (int i = 0; i < calls; ++i) f();
  std::vector<double> ns;
  for (int r = 0; r < rounds; ++r) ns.push_back(bench::seconds_per_call(f, calls) * 1e9);
  const long long before = bench::allocations();
  for (int i = 0; i < calls; ++i) f();
  const auto allocated = static_cast<double>(bench::allocations() - before) / calls;
  bench::record{"overhead"}
      .add("step", name)
      .add("mode", mode)
      .add("threads", threads)
      .add("ns", bench::spread_of(ns))
      .add("allocations", allocated)
      .print();
}

constexpr auto tiny = [](auto& a, auto& b, auto& c) { return xla::tanh(a * b + c); };

/// Three ops that write state: the step as it is in training.
struct Cell {
  xla::Parameter<float, 1> w{{4}};
  XLA_MODULE(w)
};
constexpr auto tiny_update = [](auto& cell, auto& a, auto& b) {
  cell.w.copy_(xla::tanh(cell.w.detach() * a + b));
};

void measure_tiny(const char* mode) {
  auto a = xla::full<float>({4}, 0.5f), b = xla::full<float>({4}, 0.25f);
  auto c = xla::full<float>({4}, 0.125f);
  Cell cell;
  xla::sync(true);
  if (mode == std::string_view{"compiled"}) {
    auto f = xla::compile(tiny, {.name = "tiny"});
    auto g = xla::compile(tiny_update, {.name = "tiny_update"});
    report("tanh(a*b+c), 4 elements", mode, 1, [&] { bench::touch(f(a, b, c).data()); });
    report("w = tanh(w*a+b), 4 elements", mode, 1, [&] { g(cell, a, b); });
  } else {
    report("tanh(a*b+c), 4 elements", mode, 1, [&] { bench::touch(tiny(a, b, c).data()); });
    report("w = tanh(w*a+b), 4 elements", mode, 1, [&] {
      tiny_update(cell, a, b);
      xla::sync();
    });
  }
}

void measure_mlp(int threads) {
  xla::set_num_threads(threads);
  const auto ring = bench::make_batches();
  bench::Mlp model;
  bench::set_weights(model);
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  auto step = xla::compile(bench::step_fn, {.name = "mlp_step"});
  std::size_t i = 0;
  report("MLP 784-128-10, batch 64", "compiled", threads, [&] {
    const auto& [data, target] = ring[i++ % ring.size()];
    bench::touch(step(model, data, target, loss_fn, optimizer).data());
  });
}

/// Nanoseconds per op for which eager mode that fuses collects and signs a graph that it has seen
/// before, that of the MLP's step; its ops are recorded before, and run after that.
void measure_graph() {
  const xla::eager_mode_guard fused(xla::Eager::fused);
  const auto ring = bench::make_batches();
  bench::Mlp model;
  bench::set_weights(model);
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  const auto run_steps = [&] {
    for (const auto& [data, target] : ring) bench::step_fn(model, data, target, loss_fn, optimizer);
    xla::sync(true);
  };
  const auto sum_of = [](const char* metric) {
    const auto data = xla::metric_data(metric);
    return data ? data->accumulator : 0;
  };
  run_steps();
  std::vector<double> ns;
  double ops = 0;
  const long long before = bench::allocations();
  for (int r = 0; r < rounds; ++r) {
    xla::clear_metrics();
    run_steps();
    ops += sum_of("TensorsGraphSize");
    ns.push_back(sum_of("LazyTracing") / sum_of("TensorsGraphSize"));
  }
  bench::record{"overhead"}
      .add("step", "an op of a graph seen before")
      .add("mode", "fused")
      .add("threads", 1)
      .add("ns", bench::spread_of(ns))
      .add("allocations", static_cast<double>(bench::allocations() - before) / ops)
      .print();
}

}  // namespace

int main() {
  xla::set_num_threads(1);
  for (const char* mode : {"compiled", "eager", "traced"}) {
    xla::eager_mode(mode != std::string_view{"traced"});
    measure_tiny(mode);
  }
  xla::eager_mode(true);
  measure_graph();
  for (const int threads : {1, 2}) measure_mlp(threads);
}
