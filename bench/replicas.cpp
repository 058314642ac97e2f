// SPDX-License-Identifier: Apache-2.0
// replicas <mlp|small|resnet18> <devices>: trains with all processors, on two of the other
// benchmarks' batches in a step, however many devices share them; under `mpirun -n 2` two processes
// do. Answers `run N` with the time of N steps and the mean of the replicas' losses.
// replicas <...> <devices> hidden: prints how many gradients a step exchanges, what that takes
// alone, and how long the step waits for it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if XLA_HAS_MPI
#include <xla/ext/mpi.hpp>
#endif
#include <xla/models/resnet.hpp>
#include <xla/parallel.hpp>
#include <xla/run/profile.hpp>
#include <xla/xla.hpp>

#include "decoder_task.hpp"
#include "exchange.hpp"
#include "images_task.hpp"
#include "measure.hpp"
#include "mlp_task.hpp"
#include "serve.hpp"

namespace {

constexpr std::size_t together = 2;  // batches in a step

struct mlp {
  using Model = bench::Mlp;
  static constexpr int warm = 10;
  static void set_weights(Model& model) { bench::set_weights(model); }
  static auto optimizer(Model& model) {
    return xla::optim::SGD{model, {.lr = 0.1f, .momentum = 0.9f}};
  }
  static auto batches() { return bench::make_batches(); }
  static constexpr auto loss = [](auto& model, auto& data, auto& target) {
    return xla::cross_entropy(model(data), target);
  };
};

struct small {
  using Model = xla::nn::Decoder<xla::nn::small_decoder>;
  static constexpr int warm = 2;
  static void set_weights(Model& model) { bench::set_decoder_weights(model); }
  static auto optimizer(Model& model) { return xla::optim::AdamW{model, {.lr = 1e-4}}; }
  static auto batches() { return bench::make_text(16, 4, 128, Model::config.vocabulary); }
  static constexpr auto loss = [](auto& model, auto& tokens, auto& next) {
    const auto logits = model(tokens);
    return xla::cross_entropy(xla::reshape(logits, {-1, logits.size(2)}), next);
  };
};

struct resnet18 {
  using Model = xla::models::ResNet18<>;
  static constexpr int warm = 2;
  static void set_weights(Model& model) { bench::set_image_weights(model); }
  static auto optimizer(Model& model) {
    return xla::optim::SGD{model, {.lr = 0.001, .momentum = 0.9}};
  }
  static auto batches() { return bench::make_images(4, {8, 3, 224, 1000}); }
  static constexpr auto loss = mlp::loss;
};

template <class Task>
struct step_of {
  constexpr auto operator()(auto& model, auto& data, auto& target, auto& optimizer) const {
    optimizer.zero_grad();
    const auto loss = Task::loss(model, data, target);
    loss.backward();
    xla::optimizer_step(optimizer);
    return xla::all_reduce(loss, xla::reduce_type::mean);
  }
};

/// A replica's batches of every step, in one, on its device.
template <class Batch>
std::vector<Batch> share_of(const std::vector<Batch>& ring, std::size_t replica,
                            std::size_t world) {
  const std::size_t each = together / world;
  std::vector<Batch> own;
  for (std::size_t first = replica * each; first < ring.size(); first += together) {
    Batch batch = ring[first];
    for (std::size_t i = first + 1; i < first + each; ++i) {
      batch.first = xla::concat({batch.first, ring[i].first});
      batch.second = xla::concat({batch.second, ring[i].second});
    }
    own.emplace_back(batch.first.to(xla::device()), batch.second.to(xla::device()));
  }
  return own;
}

/// What the first replica says to all.
std::int64_t told(std::int64_t mine) {
  return xla::broadcast(xla::from_blob(&mine, {1})).to_vector()[0];
}

/// On every replica body(train), where train(n) is n steps more, and the last loss; the first one's
/// result.
template <class Task, class Body>
auto on_replicas(const Body& body) {
  static const auto ring = Task::batches();
  static auto step = xla::compile(step_of<Task>{}, {.name = "step"});
  return xla::launch([&](std::int64_t index) {
    const auto own = share_of(ring, static_cast<std::size_t>(index),
                              static_cast<std::size_t>(xla::world_size()));
    typename Task::Model model;
    Task::set_weights(model);
    auto optimizer = Task::optimizer(model);
    std::size_t next = 0;
    const auto train = [&](int n) {
      xla::Tensor<float, 0> loss;
      for (int i = 0; i < n; ++i) {
        const auto& [data, target] = own[next++ % own.size()];
        loss = step(model, data, target, optimizer);
      }
      return loss.item();
    };
    train(Task::warm);
    return body(train);
  })[0];
}

template <class Task>
int contend() {
  const auto run = [](int n) {
    return on_replicas<Task>([n](auto& train) {
      const double start = bench::now();
      const float last = train(n);
      return bench::turn{(bench::now() - start) * 1e9, last};
    });
  };
  run(1);
  if (xla::global_ordinal() > 0) {
    while (const auto n = told(0)) run(static_cast<int>(n));
    return 0;
  }
  const auto all_run = [&](int n) {
    told(n);
    return run(n);
  };
  const int result = bench::serve("compiled", all_run);
  told(0);
  return result;
}

/// What a profile says of the exchanges that a step starts and waits for.
struct exchanges {
  std::int64_t floats = 0;
  double seconds = 0;

  explicit exchanges(const xla::Profile& p) {
    for (const xla::ProfileStep& s : p.steps()) {
      if (s.kind == "start") floats += static_cast<std::int64_t>(s.bytes_read) / 4;
      if (s.kind == "start" || s.kind == "wait") seconds += s.seconds;
    }
  }
};

template <class Task>
int tell_hidden(std::string_view task) {
  return on_replicas<Task>([task](auto& train) {
    constexpr int calls = 11;
    const auto once = [&] { train(1); };
    std::optional<exchanges> found;
    if (xla::global_ordinal() == 0) found.emplace(xla::profile({.calls = calls}, once));
    else train(calls);
    const bench::all_reduce all{told(found ? found->floats : 0)};
    std::vector<double> alone;
    for (int i = 0; i < calls; ++i) {
      xla::rendezvous("alone");
      alone.push_back(bench::seconds_per_call(all, 1));
    }
    if (found)
      std::printf(R"({"task": "%s", "floats": %lld, "alone_us": %.1f, "waited_us": %.1f})"
                  "\n",
                  std::string(task).c_str(), static_cast<long long>(found->floats),
                  1e6 * bench::spread_of(alone).median, 1e6 * found->seconds);
    return 0;
  });
}

template <class Task>
int run(std::string_view task, bool hidden) {
  return hidden ? tell_hidden<Task>(task) : contend<Task>();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view task = argc > 1 ? argv[1] : "mlp";
#if XLA_HAS_MPI
  std::optional<xla::mpi::Environment> ranks;
  if (xla::mpi::launched()) ranks.emplace(argc, argv);
#endif
  xla::eager_mode(true);
  xla::set_device_count(argc > 2 ? std::atoi(argv[2]) : 1);
  const bool hidden = argc > 3 && std::string_view(argv[3]) == "hidden";
  if (task == "mlp") return run<mlp>(task, hidden);
  if (task == "small") return run<small>(task, hidden);
  if (task == "resnet18") return run<resnet18>(task, hidden);
  std::cerr << "replicas: the task is mlp, small or resnet18\n";
  return 2;
}
