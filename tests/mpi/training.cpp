// SPDX-License-Identifier: Apache-2.0
// Trains a network in compiled mode on this many devices in each of the processes that mpirun has
// started, and says what all replicas have then: see run.cmake.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <xla/ext/mpi.hpp>
#include <xla/parallel.hpp>
#include <xla/xla.hpp>

#include "support/replica_checks.hpp"

namespace {

namespace nn = xla::nn;

struct Net {
  nn::Linear first{24, 40}, second{40, 5};
  nn::Dropout dropout{0.3};
  constexpr auto operator()(xla::Tensor<float, 2> x) const {
    return second(dropout(xla::relu(first(x))));
  }
  XLA_MODULE(first, second, dropout)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = xla::cross_entropy(model(data), target);
  loss.backward();
  xla::reduce_gradients(optimizer);
  xla::optim::clip_grad_norm_(model, 0.5);
  optimizer.step();
  return xla::all_reduce(loss, xla::reduce_type::mean);
};

/// A hash of the model, its moments and the losses.
std::size_t trained(Net& model) {
  xla::optim::AdamW optimizer{model, {.lr = 0.01}};
  auto step = xla::compile(step_fn);
  std::string losses;
  for (std::int64_t turn = 0; turn < 6; ++turn) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < 6 * 24; ++i)
      numbers.push_back(
          static_cast<float>((i * 37 + turn * 11 + xla::global_ordinal() * 5) % 64) / 32 - 1);
    auto data = xla::from_blob(numbers.data(), {6, 24}).to(xla::device());
    auto target = (xla::argmax(data, 1) % std::int64_t{5}).to(xla::device());
    losses += std::to_string(step(model, data, target, optimizer).item()) + " ";
  }
  return test::bits_of(model, optimizer) ^ std::hash<std::string>{}(losses);
}

}  // namespace

// <folder> <devices>
int main(int argc, char** argv) try {
  xla::mpi::Environment env{argc, argv};
  xla::eager_mode(true);
  xla::set_device_count(std::atoi(argv[2]));
  xla::manual_seed(7);
  const auto all = xla::launch(
      [](std::int64_t, Net& model) {
        xla::manual_seed(8);
        return trained(model);
      },
      Net{});
  std::string said = std::to_string(env.size()) + " ranks:";
  for (const std::size_t one : all) said += all[0] == one ? " =" : " other";
  said += " " + std::to_string(all[0]);
  const std::string file = std::string(argv[1]) + "/" + std::to_string(env.rank());
  std::ofstream(file + ".part") << said << '\n';
  std::filesystem::rename(file + ".part", file);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
