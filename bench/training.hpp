// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>

#include <xla/xla.hpp>

#include "heap.hpp"
#include "measure.hpp"
#include "serve.hpp"

// <program> <compiled|traced|fused|eager> <threads>: answers `run N` with the time of N steps and
// the loss. <program> <mode> <threads> memory: prints what a training step needs in addition to the
// optimizer's state.
namespace bench {

/// What a training benchmark runs: a task has a Model and its initial weights, an optimizer, a
/// step, a ring of batches, and the number of untimed steps.
template <class Task>
class training {
 public:
  explicit training(int threads) : threads_(threads) {}

  /// Starts from the initial weights, and runs the untimed steps, then n timed ones.
  template <class Step>
  turn run(Step&& step, int n) {
    typename Task::Model model;
    Task::set_weights(model);
    auto optimizer = Task::optimizer(model);
    train(step, model, optimizer, 0, Task::warm);
    const double start = time_of(threads_);
    const float last = train(step, model, optimizer, Task::warm, Task::warm + n);
    return {(time_of(threads_) - start) * 1e9, last};
  }

  /// Prints bytes: parameters and optimizer state by their sizes, as the first step may allocate
  /// them; the peak on the heap in addition; and the peak of resident memory. Call it before
  /// anything is compiled or planned.
  template <class Step>
  int memory(std::string_view mode, Step&& step) {
    const heap counted;
    const long long before = counted.live();
    typename Task::Model model;
    Task::set_weights(model);
    auto optimizer = Task::optimizer(model);
    counted.forget();
    train(step, model, optimizer, 0, 3);
    const long long most = counted.most() - before, all = resident("VmHWM:") - loaded_;
    const long long state = bytes(model) + bytes(optimizer);
    std::cout << R"({"name": "xla )" << mode << R"(", "state": )" << state << R"(, "step": )"
              << most - state << R"(, "resident": )" << all << "}" << std::endl;
    return 0;
  }

 private:
  template <class X>
  static long long bytes(X& x) {
    long long sum = 0;
    for (const xla::NamedArray& array : xla::state_dict(x))
      sum += static_cast<long long>(array.bytes.size());
    return sum;
  }

  template <class Step, class Model, class Optimizer>
  float train(Step& step, Model& model, Optimizer& optimizer, int first, int last) {
    xla::nn::CrossEntropyLoss loss_fn;
    xla::Tensor<float, 0> loss;
    for (int i = first; i < last; ++i) {
      const auto& [data, target] = ring_[static_cast<std::size_t>(i) % ring_.size()];
      loss = step(model, data, target, loss_fn, optimizer);
    }
    return loss.item();
  }

  int threads_;
  const long long loaded_ = resident("VmRSS:");  // before there are batches
  decltype(Task::batches()) ring_ = Task::batches();
};

/// Calls f(mode, function) with a function as it runs in the mode that the program was asked for.
template <class Function, class F>
int in_mode(int argc, char** argv, Function function, const char* name, F&& f) {
  const std::string_view mode = argc > 1 ? argv[1] : "compiled";
  xla::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  xla::eager_mode(mode != "traced");
  if (mode == "compiled") return f(mode, xla::compile(function, {.name = name}));
  if (mode == "fused") xla::eager_mode(xla::Eager::fused);
  if (mode == "eager" || mode == "fused") return f(mode, function);
  if (mode == "traced")
    return f(mode, [function](auto&... arguments) {
      auto result = function(arguments...);
      xla::sync();
      return result;
    });
  std::cerr << argv[0] << ": the mode is compiled, traced, fused or eager\n";
  return 2;
}

template <class Task>
int serve_training(int argc, char** argv) {
  const bool weigh = argc > 3 && std::string_view(argv[3]) == "memory";
  return in_mode(argc, argv, Task::step, "step", [&](std::string_view mode, auto&& step) {
    training<Task> one{xla::num_threads()};
    if (weigh) return one.memory(mode, step);
    one.run(step, 1);
    return serve(mode, [&](int n) { return one.run(step, n); });
  });
}

}  // namespace bench
