// SPDX-License-Identifier: Apache-2.0
// 12. Devices: the same trainer on one core, two devices, or four machines. What changes is the
// launcher:
//   12_devices                        one device with all cores, then two, each with half of them
//   XLA_NUM_THREADS=1 12_devices 1    one core
//   12_devices 4                      four devices
//   mpirun -n 4 12_devices 1          four processes, where CMake found MPI
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>

#if XLA_HAS_MPI
#include <xla/ext/mpi.hpp>
#endif
#include <xla/data/distributed_sampler.hpp>
#include <xla/parallel.hpp>
#include <xla/train/loop.hpp>
#include <xla/xla.hpp>

#include "digits.hpp"

namespace nn = xla::nn;

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 4> images) const {  // (batch, 1, 28, 28)
    return fc2(xla::relu(fc1(xla::flatten<1>(images))));
  }
  XLA_MODULE(fc1, fc2)
};

// The step of page 8, but for two words: optimizer_step() brings the gradients of all replicas
// together before each updates its copy of the model, and the loss is the mean of theirs. Alone in
// the world a replica does neither: the compiled step is the one of page 8.
constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(data), target);
  loss.backward();
  xla::optimizer_step(optimizer);
  return xla::all_reduce(loss, xla::reduce_type::mean);
};
constexpr auto correct_fn = [](auto& model, auto& data, auto& target) {
  return xla::sum(xla::cast<float>(xla::argmax(model(data), 1) == target));
};

// What every replica does, on its device: learns its part of the images, and asks all replicas how
// many of the others they knew. Returns the share of these.
double train(std::int64_t index, Mlp& model, const SomeDigits& training,
             const SomeDigits& held_out) {
  const auto world = xla::world_size();
  // As many images in a step, however many replicas there are: they learn the same, but for
  // rounding.
  xla::data::DataLoader loader{training,
                               {.batch_size = 64 / world, .shuffle = true, .seed = 42},
                               xla::data::DistributedSampler{}};
  xla::data::DataLoader others{held_out, {.batch_size = 100}, xla::data::DistributedSampler{}};
  xla::broadcast_master_param(model);  // all have drawn the same: it is for who reads a file
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  auto step = xla::compile(step_fn, {.name = "step"});
  auto correct = xla::compile(correct_fn, {.name = "correct"});
  const auto accuracy = [&] {
    double known = 0, asked = 0;
    for (auto& [data, target] : others) {
      known += static_cast<double>(correct(model, data, target).item());
      asked += static_cast<double>(data.sizes()[0]);
    }
    const auto sum = [](const auto& all) {
      double total = 0;
      for (const double x : all) total += x;
      return total;
    };
    return xla::mesh_reduce("known", known, sum) / xla::mesh_reduce("asked", asked, sum);
  };
  const auto report = xla::training::fit(model, step, loader,
                                      {.epochs = 6,
                                       .show = index == 0,
                                       .line = {.unit = "images"},
                                       .interruptible = false,  // all end after the same step
                                       .validate = accuracy,
                                       .validation_name = "accuracy",
                                       .higher_is_better = true},
                                      optimizer);
  if (index == 0) {
    std::printf("replica %d of %d, %d threads, batches of %d\n", static_cast<int>(index),
                static_cast<int>(world), xla::num_threads(), static_cast<int>(64 / world));
    //> replica 0 of 1,
    std::printf("loss %.3f, accuracy on held-out images: %.1f %%\n", report.loss,
                100 * report.validation);
    //> accuracy on held-out images: 9
    //> replica 0 of 2,
    //> accuracy on held-out images: 9
  }
  return report.validation;
}

int main(int argc, char** argv) try {
#if XLA_HAS_MPI
  const xla::mpi::Environment ranks{argc, argv};  // all processes' devices are one world
#endif
  xla::eager_mode(true);
  xla::manual_seed(42);
  const auto [training, held_out] = split_digits(draw_digits(4000));
  double reached = 1;
  for (const int devices : {1, 2}) {
    xla::set_device_count(argc > 1 ? std::atoi(argv[1]) : devices);
    xla::manual_seed(42);
    // A copy of the model for each replica, the same images for all.
    const auto known = xla::launch(train, Mlp{}, std::cref(training), std::cref(held_out));
    reached = std::min(reached, known[0]);
    if (argc > 1) break;
  }
  return reached > 0.9 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "12_devices: %s\n", e.what());
  return 1;
}
