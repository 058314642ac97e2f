// SPDX-License-Identifier: Apache-2.0
// replicas <mlp|small|resnet18> <devices>: trains with all processors, on two of the other
// benchmarks' batches in a step, however many devices share them; under `mpirun -n 2` two processes
// do. Answers `run N` with the time of N steps and the mean of the replicas' losses.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#if XLA_HAS_MPI
#include <xla/ext/mpi.hpp>
#endif
#include <xla/models/resnet.hpp>
#include <xla/parallel.hpp>
#include <xla/xla.hpp>

#include "decoder_task.hpp"
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

/// What the first process says to all: how many steps are wanted, 0 at the end.
int told(int steps) {
  const std::int64_t mine = steps;
  return static_cast<int>(xla::broadcast(xla::from_blob(&mine, {1})).to_vector()[0]);
}

template <class Task>
int contend(int devices) {
  xla::set_device_count(devices);
  const auto ring = Task::batches();
  auto step = xla::compile(step_of<Task>{}, {.name = "step"});
  const auto run = [&](int n) {
    return xla::launch([&](std::int64_t index) {
      const auto own = share_of(ring, static_cast<std::size_t>(index),
                                static_cast<std::size_t>(xla::world_size()));
      typename Task::Model model;
      Task::set_weights(model);
      auto optimizer = Task::optimizer(model);
      const auto train = [&](int first, int last) {
        xla::Tensor<float, 0> loss;
        for (int i = first; i < last; ++i) {
          const auto& [data, target] = own[static_cast<std::size_t>(i) % own.size()];
          loss = step(model, data, target, optimizer);
        }
        return loss.item();
      };
      train(0, Task::warm);
      const double start = bench::now();
      const float last = train(Task::warm, Task::warm + n);
      return bench::turn{(bench::now() - start) * 1e9, last};
    })[0];
  };
  run(1);
  if (xla::global_ordinal() > 0) {
    while (const int n = told(0)) run(n);
    return 0;
  }
  const int result = bench::serve("compiled", [&](int n) { return run(told(n)); });
  told(0);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view task = argc > 1 ? argv[1] : "mlp";
  const int devices = argc > 2 ? std::atoi(argv[2]) : 1;
#if XLA_HAS_MPI
  std::optional<xla::mpi::Environment> ranks;
  if (xla::mpi::launched()) ranks.emplace(argc, argv);
#endif
  xla::eager_mode(true);
  if (task == "mlp") return contend<mlp>(devices);
  if (task == "small") return contend<small>(devices);
  if (task == "resnet18") return contend<resnet18>(devices);
  std::cerr << "replicas: the task is mlp, small or resnet18\n";
  return 2;
}
