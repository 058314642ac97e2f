// SPDX-License-Identifier: Apache-2.0
// Loops: what a step costs beyond its kernels, what a new number of steps costs, and the memory of
// a scan of 10,000 steps with checkpoints against theory.

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "trips.hpp"

namespace {

/// A recurrence of several carries, which are `Carries` products of a row and a map each; Unroll
/// steps are one turn of the loop.
template <int Carries, int Unroll>
struct products {
  constexpr auto operator()(const auto& w, const auto& steps) const {
    const auto step = [&](const auto&, const auto& all) {
      auto next = all;
      for (auto& c : next) c = xla::tanh(xla::matmul(c, w));
      return next;
    };
    std::array<xla::Tensor<float, 2>, Carries> first;
    for (auto& c : first) c = xla::slice(w, 0, 0, 1);
    return xla::fori_loop(0, steps.size(0), step, first, {.unroll = Unroll});
  }
};

/// The same kernels in longer turns have fewer steps of the loop, and the rest is equal.
template <int Carries>
void measure_step() {
  constexpr int together = 8, steps = 4000, calls = 25;
  const auto w = xla::ones<float>({8, 8}) * 0.1f;
  const auto rows = xla::zeros<float>({steps, 1});
  auto each = xla::compile(products<Carries, 1>());
  auto turns = xla::compile(products<Carries, together>());
  const auto ns = [&](auto& f) {
    const double start = bench::time_of(1);
    bench::touch(std::get<0>(f(w, rows)).data());
    return (bench::time_of(1) - start) / steps * 1e9;
  };
  ns(each), ns(turns);
  std::vector<double> beyond, whole;
  for (int i = 0; i < calls; ++i) {
    const double a = ns(each), b = ns(turns);
    whole.push_back(a);
    beyond.push_back((a - b) * together / (together - 1));
  }
  bench::record{"loops"}
      .add("what", "step")
      .add("carries", Carries)
      .add("ns", bench::spread_of(whole))
      .add("beyond_kernels_ns", bench::spread_of(beyond))
      .print();
}

constexpr std::int64_t width = 64, length = 10000, every = 100;

/// Keeps the carry before every so-manieth step, and runs the steps of a block again.
constexpr auto with_checkpoints = [](auto& w, auto& h, const auto& rows) {
  w.zero_grad();
  h.zero_grad();
  const auto body = [&](const auto&, const auto& c) { return xla::tanh(xla::matmul(c, w)); };
  const xla::ForiLoopOptions options{.checkpoint_every = every};
  const auto loss = xla::sum(xla::fori_loop(0, rows.size(0), body, h, options));
  loss.backward();
  return loss;
};

void measure_memory() {
  xla::Parameter<float, 2> w(xla::ones<float>({width, width}) * 0.01f);
  xla::Parameter<float, 2> h(xla::ones<float>({width, width}));
  const auto rows = xla::zeros<float>({length, 1});
  auto train = xla::compile(with_checkpoints);
  const auto planned = train.memory_analysis(w, h, rows).arena;
  train(w, h, rows);
  xla::empty_cache();
  xla::reset_peak_memory_stats();
  const auto before = xla::memory_allocated();
  train(w, h, rows);
  const auto allocated = xla::max_memory_allocated() - before;
  constexpr double carry = 4.0 * width * width;
  bench::record{"loops"}
      .add("what", "memory")
      .add("steps", static_cast<double>(length))
      .add("theory_carries", static_cast<double>(length / every + every))
      .add("planned_carries", static_cast<double>(planned) / carry)
      .add("allocated_carries", static_cast<double>(allocated) / carry)
      .print();
}

}  // namespace

int main() {
  xla::set_num_threads(1);
  xla::eager_mode(true);
  measure_step<1>();
  measure_step<4>();
  bench::measure_all_trips("loops", 1000);
  measure_memory();
}
