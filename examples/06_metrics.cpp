// SPDX-License-Identifier: Apache-2.0
// 6. Metrics, and what recompiled.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <xla/io/text.hpp>
#include <xla/xla.hpp>

#ifdef _WIN32
void setenv(const char* name, const char* value, int) { _putenv_s(name, value); }
#endif

constexpr auto scale = [](auto& x, auto& y) { return xla::tanh(x * 2 + y) * x; };

int main() {
  // XLA_DEBUG=1 in the environment explains every new graph or signature on standard error, or in
  // XLA_DEBUG_FILE. Set here so that the page can show what it says.
  const char* const log = "xla_06_metrics.log";
  std::remove(log);
  setenv("XLA_DEBUG", "1", 1);
  setenv("XLA_DEBUG_FILE", log, 1);

  // Traced: one graph, found again as long as ops and shapes are the same.
  xla::eager_mode(false);
  for (const int n : {100, 100, 200}) {
    auto x = xla::ones<float>({n}), y = xla::zeros<float>({n});
    auto z = scale(x, y);
    xla::sync();
  }
  std::cout << "traced: " << *xla::counter_value("UncachedCompile") << " graphs made, "
            << *xla::counter_value("CachedCompile") << " found again, "
            << *xla::counter_value("MarkStep") << " steps\n";
  //> traced: 2 graphs made, 1 found again, 3 steps

  // Compiled: one program, specialised per signature.
  xla::eager_mode(true);
  xla::clear_all();
  auto compiled = xla::compile(scale, {.name = "scale"});
  for (const int n : {64, 64, 36}) {
    auto x = xla::ones<float>({n}), y = xla::zeros<float>({n});
    compiled(x, y);
  }
  std::cout << "compiled: " << *xla::counter_value("UncachedCompile") << " signatures, "
            << xla::metric_data("ExecuteTime")->total_samples << " executions\n";
  //> compiled: 2 signatures, 3 executions

  // The log names the cause, the memory, and what changed.
  const auto text = xla::io::read_text(log);
  std::cout << text.substr(text.rfind("Compilation Analysis: What changed"));
  //> What changed: argument 0: (64,) -> (36,); argument 1: (64,) -> (36,)
  std::remove(log);

  // The program that runs: four ops became one kernel.
  auto x = xla::ones<float>({8}), y = xla::zeros<float>({8});
  std::cout << compiled.graph(xla::Stage::lowered, x, y);
  //> map kernel 0 over (s1,): mul add tanh mul

  // Metrics and counters in PyTorch/XLA's form; metrics_report() has all of them.
  std::cout << xla::short_metrics_report();
  //> Metric: CompileTime
  //>   TotalSamples: 2
  //> Metric: ExecuteTime
  //>   TotalSamples: 3
  //> Counter: CachedCompile
  //>   Value: 1
  //> Counter: UncachedCompile
  //>   Value: 2
}
