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
  using Output = xla::Tensor<float, 2>;
  static auto ring(std::int64_t count, std::int64_t batch) {
    return make_images(count, {batch, 3, 224, 1000});
  }
};

/// Part b of a stream of whole numbers, each below a limit.
template <int R>
xla::Tensor<std::int64_t, R> numbers(std::uint32_t stream, std::int64_t b,
                                     const xla::Size (&sizes)[R], std::int64_t limit) {
  std::int64_t n = 1;
  for (const xla::Size& s : sizes) n *= std::int64_t(s);
  std::vector<std::int64_t> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] = hashed(stream, b * n + i) % limit;
  return xla::from_blob(values.data(), sizes);
}

using text_batch = std::pair<xla::Tensor<std::int64_t, 2>, xla::Tensor<std::int64_t, 1>>;

/// Texts of so many tokens of BERT's vocabulary, of two kinds.
inline std::vector<text_batch> make_texts(std::int64_t count, std::int64_t batch,
                                          std::int64_t length) {
  constexpr std::int64_t vocabulary = 30522, kinds = 2;
  std::vector<text_batch> made;
  for (std::int64_t b = 0; b < count; ++b)
    made.emplace_back(numbers(1001, b, {batch, length}, vocabulary),
                      numbers(1000, b, {batch}, kinds));
  return made;
}

/// Trains on 8 texts of 128 tokens.
template <class Net>
struct text_model : image_training<Net, 8, 0, 0, 0, 2, 0> {
  using Output = xla::Tensor<float, 2>;
  static auto ring(std::int64_t count, std::int64_t batch) { return make_texts(count, batch, 128); }
  static auto batches() { return ring(2, 8); }
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

/// One network that reads in every mode: compiled, autocast (compiled in it, if the program
/// supports it), traced (waits after every step), unsynced (traced, waits at the end), eager,
/// fused. There all logits are read: it would compute those of equal images once, and none that
/// nobody can read any more.
template <class Task>
class reading_program {
 public:
  explicit reading_program(int threads) : threads_(threads) { Task::set_weights(model_); }

  void read(std::int64_t batch, std::string_view way, int warm, int n) {
    model_.eval();
    xla::no_grad([&] {
      time<typename Task::Output>(way, ring(batch), warm, n,
                                  [&](auto& data, auto&) -> typename Task::Output {
                                    if (way == "compiled") return read_(data);
                                    if (way == "autocast") return mixed_read_(data);
                                    auto logits = model_(data);
                                    if (way == "fused") logits.data();
                                    return logits;
                                  });
    });
  }

 protected:
  using ring_type = decltype(Task::ring(1, 1));

  ring_type& ring(std::int64_t batch) {
    auto [at, made] = rings_.try_emplace(batch);
    if (made) at->second = Task::ring(batch < 4 ? 4 / batch : 2, batch);
    return at->second;
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

 private:
  /// A loss, or the sum of the absolute logits.
  template <int R>
  static double number_of(const xla::Tensor<float, R>& made) {
    if constexpr (R == 0) return made.item();
    double sum = 0;
    for (const float f : made.to_vector()) sum += std::abs(f);
    return sum;
  }
  static std::int64_t graphs() {
    return xla::counter_value("CachedCompile").value_or(0) +
           xla::counter_value("UncachedCompile").value_or(0);
  }

  std::map<std::int64_t, ring_type> rings_;
  decltype(xla::compile(model_)) read_ = xla::compile(model_, {.name = "read"});
  decltype(compile_mixed(model_, "")) mixed_read_ = compile_mixed(model_, "mixed_read");
};

/// The same, which also trains, in two more ways: `model`, where the network alone is compiled and
/// the rest is traced, and `head`, compiled, which trains only the last layer.
template <class Task>
class model_program : public reading_program<Task> {
 public:
  using reading_program<Task>::reading_program;

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
    this->model_.train();
    if (!optimizer_) optimizer_.emplace(Task::optimizer(this->model_));
    train_backbone(way != "head");
    if (way == "head") ++warm;  // the first step drops the gradients of the others
    this->template time<loss_type>(
        way, this->ring(8), warm, n, [&](auto& data, auto& labels) -> loss_type {
          if (way == "compiled" || way == "head")
            return step_(this->model_, data, labels, loss_fn_, *optimizer_);
          if (way == "autocast")
            return mixed_step_(this->model_, data, labels, loss_fn_, *optimizer_);
          if (way != "model") return Task::step(this->model_, data, labels, loss_fn_, *optimizer_);
          optimizer_->zero_grad();
          auto loss = loss_fn_(forward_(this->model_, data), labels);
          loss.backward();
          optimizer_->step();
          return loss;
        });
  }

 private:
  using loss_type = xla::Tensor<float, 0>;

  static typename Task::Model without_dropout() {
    if constexpr (std::is_constructible_v<typename Task::Model, double>)
      return typename Task::Model(0.0);
    else return {};
  }

  /// Lets all parameters learn, or only those of the last layer.
  void train_backbone(bool whole) {
    xla::for_each_parameter(this->model_, [&](auto& p) { p.requires_grad_(whole); });
    xla::for_each_parameter(xla::models::head(this->model_),
                            [](auto& p) { p.requires_grad_(true); });
  }

  xla::nn::CrossEntropyLoss loss_fn_;
  std::optional<decltype(Task::optimizer(std::declval<typename Task::Model&>()))> optimizer_;
  decltype(xla::compile(Task::step)) step_ = xla::compile(Task::step, {.name = "step"});
  decltype(xla::compile(logits_of)) forward_ = xla::compile(logits_of, {.name = "forward"});
  decltype(compile_mixed(Task::step, "")) mixed_step_ = compile_mixed(Task::step, "mixed_step");
};

/// Answers `run <training|reading<batch>> <way> <warm> <n>` with the time of n steps after some
/// untimed ones, and, of a program that trains, `check <training|evaluation> [autocast]` with the
/// losses of three clipped steps on two samples, without dropout in training.
template <class Program>
void answer_ways(Program&& program) {
  std::cout << R"({"ready": "xla", "version": ")" << compiler() << R"(", "isa": ")"
            << instruction_set() << "\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command, what, way;
    int warm = 0, n = 1;
    words >> command >> what >> way >> warm >> n;
    constexpr bool trains = requires { program.train(way, warm, n); };
    if (way == "autocast" && !has_autocast) {
      std::cout << R"({"error": "built without BENCH_AUTOCAST"})" << std::endl;
    } else if (what.starts_with("reading")) {
      program.read(std::stoi(what.substr(7)), way, warm, n);
    } else if constexpr (trains) {
      if (command == "check") program.check(what == "training", way == "autocast");
      else program.train(way, warm, n);
    }
  }
}

/// <program> <threads>: answers; <program> <threads> memory: what a compiled training step needs.
template <class Task>
int serve_model(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  xla::set_num_threads(threads);
  xla::eager_mode(true);
  if (argc > 2 && std::string_view(argv[2]) == "memory")
    return training<Task>{threads}.memory("compiled", xla::compile(Task::step, {.name = "step"}));
  answer_ways(model_program<Task>{threads});
  return 0;
}

}  // namespace bench
