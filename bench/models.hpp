// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <xla/models/head.hpp>
#include <xla/xla.hpp>

#include "images_task.hpp"
#include "measure.hpp"
#include "training.hpp"

// The ten models of bench/models.py, a program each; as in peers/models_torch.py.
namespace bench {

/// Trains on 8 images of 224 x 224.
template <class Net>
struct image_model : image_training<Net, 8, 3, 224, 1000, 2, 0> {
  static auto ring(std::int64_t count, std::int64_t batch) {
    return make_images(count, {batch, 3, 224, 1000});
  }
};

/// Trains on 8 texts of 128 tokens of BERT's vocabulary, of two kinds.
template <class Net>
struct text_model : image_training<Net, 8, 0, 0, 0, 2, 0> {
  using batch_type = std::pair<xla::Tensor<std::int64_t, 2>, xla::Tensor<std::int64_t, 1>>;
  static std::vector<batch_type> ring(std::int64_t count, std::int64_t batch) {
    constexpr std::int64_t length = 128, vocabulary = 30522, kinds = 2;
    std::vector<batch_type> made;
    for (std::int64_t b = 0; b < count; ++b)
      made.emplace_back(numbers(1001, b, {batch, length}, vocabulary),
                        numbers(1000, b, {batch}, kinds));
    return made;
  }
  static auto batches() { return ring(2, 8); }

 private:
  /// Part b of a stream, each below a limit.
  template <int R>
  static xla::Tensor<std::int64_t, R> numbers(std::uint32_t stream, std::int64_t b,
                                              const xla::Size (&sizes)[R], std::int64_t limit) {
    std::int64_t n = 1;
    for (const xla::Size& s : sizes) n *= std::int64_t(s);
    std::vector<std::int64_t> values(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      values[static_cast<std::size_t>(i)] = hashed(stream, b * n + i) % limit;
    return xla::from_blob(values.data(), sizes);
  }
};

inline constexpr auto logits_of = [](auto& model, auto& data) { return model(data); };

/// Whether a program has the mode `autocast`. It needs further captures, so only programs that are
/// built for it have it.
#ifdef BENCH_AUTOCAST
inline constexpr bool has_autocast = true;
#else
inline constexpr bool has_autocast = false;
#endif

/// A function or module compiled in autocast; without autocast where a program does not have that
/// mode.
template <class F>
auto compile_mixed(F&& f, const char* name) {
  if constexpr (has_autocast)
    return xla::compile(xla::autocast(std::forward<F>(f)), {.name = name});
  else return xla::compile(std::forward<F>(f), {.name = name});
}

/// One network in every mode: compiled, autocast (compiled in it, if the program supports it),
/// traced (waits after every step), unsynced (traced, waits at the end), eager, fused. For training
/// there are also `model`, where the network alone is compiled and the rest is traced, and `head`,
/// compiled, which trains only the last layer.
template <class Task>
class model_program {
 public:
  explicit model_program(int threads) : threads_(threads) { Task::set_weights(model_); }

  /// Answers `run <training|reading<batch>> <way> <warm> <n>` with the time of n steps after some
  /// untimed ones, and `check <training|evaluation> [autocast]` with the losses of three clipped
  /// steps on two samples, without dropout in training.
  void serve() {
    std::cout << R"({"ready": "xla", "version": ")" << compiler() << R"(", "isa": ")"
              << instruction_set() << "\"}" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words{line};
      std::string command, what, way;
      int warm = 0, n = 1;
      words >> command >> what >> way >> warm >> n;
      if (command == "check") check(what == "training", way == "autocast");
      else if (way == "autocast" && !has_autocast)
        std::cout << R"({"error": "built without BENCH_AUTOCAST"})" << std::endl;
      else if (command == "run" && what == "training") train(way, warm, n);
      else if (command == "run") read(std::stoi(what.substr(7)), way, warm, n);
      else break;
    }
  }

 private:
  using ring_type = decltype(Task::ring(1, 1));
  using loss_type = xla::Tensor<float, 0>;

  ring_type& ring(std::int64_t batch) {
    auto [at, made] = rings_.try_emplace(batch);
    if (made) at->second = Task::ring(batch < 4 ? 4 / batch : 2, batch);
    return at->second;
  }

  static typename Task::Model without_dropout() {
    if constexpr (std::is_constructible_v<typename Task::Model, double>)
      return typename Task::Model(0.0);
    else return {};
  }

  void check(bool training, bool mixed) {
    auto [data, labels] = Task::ring(1, 2).front();
    auto model = without_dropout();
    Task::set_weights(model);
    model.train(training);
    auto optimizer = Task::optimizer(model);
    std::cout << R"({"losses": [)";
    for (int i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      auto loss =
          xla::autocast(model, [&] { return loss_fn_(model(data), labels); }, {.enabled = mixed});
      loss.backward();
      xla::optim::clip_grad_norm_(model, 1.0);
      optimizer.step();
      std::cout << (i ? ", " : "") << json_number(loss.item());
    }
    std::cout << "]}" << std::endl;
  }

  void train(std::string_view way, int warm, int n) {
    model_.train();
    if (!optimizer_) optimizer_.emplace(Task::optimizer(model_));
    train_backbone(way != "head");
    if (way == "head") ++warm;  // the first step drops the gradients of the others
    time<loss_type>(way, ring(8), warm, n, [&](auto& data, auto& labels) -> loss_type {
      if (way == "compiled" || way == "head")
        return step_(model_, data, labels, loss_fn_, *optimizer_);
      if (way == "autocast") return mixed_step_(model_, data, labels, loss_fn_, *optimizer_);
      if (way != "model") return Task::step(model_, data, labels, loss_fn_, *optimizer_);
      optimizer_->zero_grad();
      auto loss = loss_fn_(forward_(model_, data), labels);
      loss.backward();
      optimizer_->step();
      return loss;
    });
  }

  /// Lets all parameters learn, or only those of the last layer.
  void train_backbone(bool whole) {
    xla::for_each_parameter(model_, [&](auto& p) { p.requires_grad_(whole); });
    xla::for_each_parameter(xla::models::head(model_), [](auto& p) { p.requires_grad_(true); });
  }

  void read(std::int64_t batch, std::string_view way, int warm, int n) {
    model_.eval();
    xla::no_grad([&] {
      using logits_type = xla::Tensor<float, 2>;
      time<logits_type>(way, ring(batch), warm, n, [&](auto& data, auto&) -> logits_type {
        if (way == "compiled") return read_(data);
        if (way == "autocast") return mixed_read_(data);
        return model_(data);
      });
    });
  }

  static double number_of(const loss_type& loss) { return loss.item(); }
  static double number_of(const xla::Tensor<float, 2>& logits) {
    double sum = 0;
    for (const float f : logits.to_vector()) sum += std::abs(f);
    return sum;
  }
  static std::int64_t graphs() {
    return xla::counter_value("CachedCompile").value_or(0) +
           xla::counter_value("UncachedCompile").value_or(0);
  }

  /// Prints nanoseconds of n steps by time_of() and by wall-clock time, the nanoseconds in which no
  /// graph ran, graphs per step, and the last loss or sum of logits.
  template <class Result, class Step>
  void time(std::string_view way, ring_type& ring, int warm, int n, Step&& step) {
    const bool unsynced = way == "unsynced", traced = unsynced || way == "traced" || way == "model";
    const auto guard =
        way == "fused" ? xla::eager_mode_guard(xla::Eager::fused) : xla::eager_mode_guard(!traced);
    Result last;
    const auto steps = [&](int first, int end) {
      for (int i = first; i < end; ++i) {
        auto& [data, labels] = ring[static_cast<std::size_t>(i) % ring.size()];
        last = step(data, labels);
        if (traced) xla::sync(!unsynced);
      }
    };
    steps(0, warm);
    if (warm) number_of(last);
    xla::clear_metrics();
    const std::int64_t graphs_before = graphs();
    const double wall = now(), clock = time_of(threads_);
    steps(warm, warm + n);
    const double value = number_of(last);
    const double ns = (time_of(threads_) - clock) * 1e9, wall_ns = (now() - wall) * 1e9;
    const auto ran = xla::metric_data("ExecuteTime");
    std::cout.precision(9);
    std::cout << R"({"ns": )" << ns << R"(, "wall": )" << wall_ns << R"(, "outside": )"
              << wall_ns - (ran ? ran->accumulator : 0) << R"(, "graphs": )"
              << double(graphs() - graphs_before) / n << R"(, "loss": )" << json_number(value)
              << "}" << std::endl;
  }

  int threads_;
  typename Task::Model model_;
  xla::nn::CrossEntropyLoss loss_fn_;
  std::optional<decltype(Task::optimizer(model_))> optimizer_;
  std::map<std::int64_t, ring_type> rings_;
  decltype(xla::compile(Task::step)) step_ = xla::compile(Task::step, {.name = "step"});
  decltype(xla::compile(logits_of)) forward_ = xla::compile(logits_of, {.name = "forward"});
  decltype(xla::compile(model_)) read_ = xla::compile(model_, {.name = "read"});
  decltype(compile_mixed(Task::step, "")) mixed_step_ = compile_mixed(Task::step, "mixed_step");
  decltype(compile_mixed(model_, "")) mixed_read_ = compile_mixed(model_, "mixed_read");
};

/// <program> <threads>: answers; <program> <threads> memory: what a compiled training step needs.
template <class Task>
int serve_model(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  xla::set_num_threads(threads);
  xla::eager_mode(true);
  if (argc > 2 && std::string_view(argv[2]) == "memory")
    return training<Task>{threads}.memory("compiled", xla::compile(Task::step, {.name = "step"}));
  model_program<Task>{threads}.serve();
  return 0;
}

}  // namespace bench
