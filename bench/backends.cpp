// SPDX-License-Identifier: Apache-2.0
// What a call costs where XLA is the backend.
// backends about: the plugin. backends calls: steps of three ops on n parameters, by the backend,
// by a loop of PJRT calls written by hand, and by the library's own plan. backends disk: the first
// call of the MLP's step. backends <4|64|256>: answers `run N` with the time of N steps on as many.

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include <xla/ext/pjrt.hpp>
#include <xla/ext/pjrt/client.hpp>
#include <xla/ext/stablehlo.hpp>
#include <xla/xla.hpp>

#include "by_hand.hpp"
#include "measure.hpp"
#include "mlp_task.hpp"
#include "serve.hpp"

#ifndef STATES  // a build that does not run it defines fewer, as that takes less time to compile
#define STATES 256
#endif

namespace {

namespace pjrt = xla::ext::pjrt;

struct Cell {
  xla::Parameter<float, 1> w{{4}};
  XLA_MODULE(w)
};
template <int N>
struct Cells {
  std::array<Cell, N> all;
  XLA_MODULE(all)
};
constexpr auto step = [](auto& cells) {
  for (auto& c : cells.all) c.w.copy_(xla::tanh(c.w.detach() * 0.5f + 0.25f));
};

std::string device() {
  const char* const named = std::getenv("PJRT_DEVICE");
  return named && *named ? named : "CPU";
}

void about() {
  const pjrt::client& on = pjrt::client::of(device());
  auto facts = on.loaded_plugin().attributes();
  bench::record{"backends"}
      .add("plugin", on.loaded_plugin().path().c_str())
      .add("pjrt_minor", on.loaded_plugin().version().minor)
      .add("stablehlo", facts["stablehlo_current_version"].c_str())
      .add("device", on.description().c_str())
      .print();
}

/// In turn, so that all see the same machine.
template <int N>
void measure_calls() {
  constexpr int rounds = 41;
  constexpr double sample = 5e-4;
  Cells<N> here, there;
  auto backend = xla::compile(step, {.name = "backend", .backend = xla::pjrt(device())});
  auto plan = xla::compile(step, {.name = "native", .backend = "native"});
  bench::by_hand hand(pjrt::find_plugin(device()));
  hand.compile(xla::stablehlo(step, here));
  const std::array<float, 4> zeros{};
  std::vector<bench::abi::buffer*> state;
  for (int i = 0; i < N; ++i) state.push_back(hand.put(zeros.data(), 4));

  const auto by_backend = [&] { backend(here); };
  const auto by_plan = [&] { plan(there); };
  const auto by_hand = [&] { hand.run(state); };
  for (int i = 0; i < 100; ++i) by_backend(), by_plan(), by_hand();
  std::array<float, 4> last;
  hand.read(state[N - 1], last.data(), 4);
  if (std::abs(last[3] - here.all[N - 1].w.to_vector()[3]) > 1e-6f) std::exit(1);
  const std::int64_t n = bench::calls_for(by_hand, sample), m = bench::calls_for(by_plan, sample);
  std::vector<double> a, b, c, ratio;
  for (int r = 0; r < rounds; ++r) {
    a.push_back(bench::seconds_per_call(by_backend, n) * 1e6);
    b.push_back(bench::seconds_per_call(by_hand, n) * 1e6);
    c.push_back(bench::seconds_per_call(by_plan, m) * 1e6);
    ratio.push_back(a.back() / b.back());
  }
  bench::record{"backends"}
      .add("arguments", N)
      .add("backend_us", bench::spread_of(a))
      .add("by_hand_us", bench::spread_of(b))
      .add("plan_us", bench::spread_of(c))
      .add("times_by_hand", bench::spread_of(ratio))
      .add("least", *std::min_element(a.begin(), a.end()) / *std::min_element(b.begin(), b.end()))
      .print();
}

/// What XLA makes ready once, at the first product of a process whose left factor is turned, in
/// milliseconds.
double first_product() {
  auto square = xla::compile([](auto& x) { return xla::matmul(xla::transpose(x), x); },
                             {.backend = xla::pjrt(device())});
  auto x = xla::ones<float>({64, 64});
  square(x).to_vector();
  return xla::metric_data("ExecuteTime")->accumulator * 1e-6;
}

/// The plugin, its client and what XLA makes once are there before the clock starts.
void first_call() {
  pjrt::client::of(device());
  const double once = first_product();
  xla::clear_all();
  const auto ring = bench::make_batches();
  bench::Mlp model;
  bench::set_weights(model);
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  auto train = xla::compile(bench::step_fn, {.backend = xla::pjrt(device())});
  const double start = bench::now(), worked = bench::time_of(1);
  train(model, ring[0].first, ring[0].second, loss_fn, optimizer).item();
  const double ms = (bench::now() - start) * 1e3, cpu_ms = (bench::time_of(1) - worked) * 1e3;
  const auto part = [](const char* name) {
    const auto m = xla::metric_data(name);
    return m ? m->accumulator * 1e-6 : 0;
  };
  bench::record{"backends"}
      .add("first_ms", ms)
      .add("cpu_ms", cpu_ms)
      .add("once_ms", once)
      .add("compile_ms", part("Pjrt::CompileTime"))
      .add("load_ms", part("Pjrt::LoadTime"))
      .add("from_disk", static_cast<double>(xla::counter_value("PersistentCacheHit").value_or(0)))
      .print();
}

template <int N>
int contend() {
  Cells<N> cells;
  auto f = xla::compile(step, {.name = "cells"});
  f(cells);
  return bench::serve("compiled", [&](int n) {
    const double start = bench::now();
    for (int i = 0; i < n; ++i) f(cells);
    const float last = cells.all[N - 1].w.to_vector()[3];
    return bench::turn{(bench::now() - start) * 1e9, last};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "calls";
  xla::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  if (what == "about") return about(), 0;
  if (what == "disk") return first_call(), 0;
  if (what == "4") return contend<4>();
  if (what == "64") return contend<64>();
  if (what == "256") return contend<STATES>();
  measure_calls<4>();
  measure_calls<64>();
  measure_calls<STATES>();
}
