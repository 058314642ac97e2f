// SPDX-License-Identifier: Apache-2.0
#include "xla/parallel/data_parallel.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/mlp.hpp"
#include "support/replica_checks.hpp"
#include "xla/parallel.hpp"
#include "xla/xla.hpp"

namespace {

using test::bits_of;
using xla::parallel::DataParallel;
using numbers = std::vector<std::int64_t>;

[[maybe_unused]] const bool counted = (xla::set_device_count(3), true);

// Batches are the numbers of their samples; the one with sample `bad` cannot be read.
struct Samples {
  std::int64_t count = 10, bad = -1;
  std::int64_t size() const { return count; }
  numbers batch(std::span<const std::int64_t> of) const {
    for (const auto i : of)
      if (i == bad) throw std::runtime_error("sample " + std::to_string(i) + " is damaged");
    return {of.begin(), of.end()};
  }
};

constexpr auto all_batches = [](auto&, auto& loader, const auto&, auto&) {
  std::vector<numbers> seen;
  for (auto& batch : loader) seen.push_back(batch);
  return seen;
};

// The seed's, but for what it returns.
constexpr auto train_loop_fn = [](auto& model, auto& loader, const auto& device, auto& context) {
  xla::nn::CrossEntropyLoss loss_fn;
  auto& optimizer = context.getattr_or("optimizer", [&] {
    return xla::optim::SGD{model, {.lr = 0.1, .momentum = 0.9}};
  });
  model.train();
  std::int64_t samples = 0;
  for (auto& [data, target] : loader) {
    REPLICA_CHECK(data.device() == device);
    REPLICA_CHECK(target.device() == device);
    optimizer.zero_grad();
    auto output = model(data);
    auto loss = loss_fn(output, target);
    loss.backward();
    xla::optimizer_step(optimizer);
    samples += data.sizes()[0];
  }
  return samples;
};

auto loader_of(std::int64_t samples, std::int64_t batch) {
  const test::batch all(samples);
  return xla::data::DataLoader{xla::data::TensorDataset{all.data, all.target},
                               {.batch_size = batch}};
}

std::vector<float> values_of(test::Mlp& model) {
  std::vector<float> all;
  xla::for_each_parameter(model, [&](auto& p) {
    for (const float x : p.to_vector()) all.push_back(x);
  });
  return all;
}

}  // namespace

TEST_CASE("the i-th batch is device i mod n's; what fills no round is dropped and counted") {
  xla::data::DataLoader loader{Samples{.count = 15}, {.batch_size = 2}};  // 8 batches
  DataParallel three{test::Mlp{}};
  const auto dealt = three(all_batches, loader);
  CHECK(dealt ==
        std::vector<std::vector<numbers>>{{{0, 1}, {6, 7}}, {{2, 3}, {8, 9}}, {{4, 5}, {10, 11}}});
  CHECK(three.dropped() == 2);

  std::vector<numbers> list{{0}, {1}, {2}, {3}, {4}, {5}, {6}};  // any range
  CHECK(three(all_batches, list) ==
        std::vector<std::vector<numbers>>{{{0}, {3}}, {{1}, {4}}, {{2}, {5}}});
  CHECK(three.dropped() == 1);
  CHECK(list.back() == numbers{6});

  DataParallel two{test::Mlp{}, {2, 0}};
  CHECK(two(all_batches, list) ==
        std::vector<std::vector<numbers>>{{{0}, {2}, {4}}, {{1}, {3}, {5}}});
  CHECK(two.device_ids() == std::vector{xla::device(2), xla::device(0)});
  loader.set_epoch(0, 3);  // goes on after three batches
  CHECK(two(all_batches, loader)[0] == std::vector<numbers>{{6, 7}, {10, 11}});
  CHECK(two.dropped() == 1);
}

TEST_CASE("all devices, some, one, and none at all") {
  const auto where = [](auto& model, auto&, const auto& device, auto& context) {
    REPLICA_CHECK(model.fc1.weight.device() == device);
    REPLICA_CHECK(context.device() == device);
    REPLICA_CHECK(xla::device() == device);
    return std::pair{device.index, xla::is_eager_mode()};
  };
  using places = std::vector<std::pair<int, bool>>;
  const xla::eager_mode_guard traced(false);
  std::vector<numbers> list{{1}};
  CHECK(DataParallel{test::Mlp{}}(where, list) == places{{0, false}, {1, false}, {2, false}});
  CHECK(DataParallel{test::Mlp{}, {1}}(where, list) == places{{1, false}});
  CHECK(DataParallel{test::Mlp{}, {}}(where, list) == places{{0, true}});
  CHECK(DataParallel{test::Mlp{}, xla::devices()}(where, list).size() == 3);
  CHECK(DataParallel{test::Mlp{}, xla::get_xla_supported_devices()}(where, list).size() == 3);
  CHECK_THROWS_WITH((DataParallel{test::Mlp{}, {3}}), test::contains("there is no device 3"));
  CHECK_THROWS_WITH((DataParallel{test::Mlp{}, {1, 1}}), test::contains("xla:1 is named twice"));
  CHECK_THROWS_WITH((DataParallel{test::Mlp{}, std::vector<std::string>{"cuda:0"}}),
                    test::contains("\"cuda:0\" names no device"));
}

TEST_CASE("the seed's program: replicas begin and stay equal, in every mode and without XLA") {
  std::size_t expected = 0;
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    xla::manual_seed(1);
    const test::Mlp model;
    DataParallel model_parallel{model, {0, 1}};
    auto train_loader = loader_of(48, 8);
    for (int epoch = 0; epoch < 2; ++epoch)
      CHECK(model_parallel(train_loop_fn, train_loader) == numbers{24, 24});
    const auto first = bits_of(model_parallel.model(0));
    CHECK(bits_of(model_parallel.model(1)) == first);
    CHECK(first != bits_of(model));  // which is a copy
    if (expected == 0) expected = first;
    CHECK(first == expected);
  }
}

TEST_CASE("n replicas of batches of b are one of n b, but for rounding") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  const test::Mlp model;
  DataParallel two{model, {0, 1}}, one{model, {2}}, native{model, {}};
  auto small = loader_of(64, 8), large = loader_of(64, 16);
  for (int epoch = 0; epoch < 3; ++epoch) {
    two(train_loop_fn, small);
    one(train_loop_fn, large);
    native(train_loop_fn, large);
  }
  const auto a = values_of(two.model()), b = values_of(one.model());
  CHECK(values_of(native.model()) == b);
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  CHECK(most < 1e-6f);
  CHECK(most > 0);  // sums in another order
}

TEST_CASE("objects in a loop function's context persist over epochs") {
  DataParallel model_parallel{test::Mlp{}, {0, 1}};
  std::vector<numbers> list{{1}, {2}};
  const auto counting = [](auto&, auto& loader, const auto&, auto& context) {
    int& passes = context.getattr_or("passes", [] { return 0; });
    for ([[maybe_unused]] auto& batch : loader) ++passes;
    return passes;
  };
  CHECK(model_parallel(counting, list) == std::vector<int>{1, 1});
  CHECK(model_parallel(counting, list) == std::vector<int>{2, 2});
  const auto other = [](auto&, auto&, const auto&, auto& context) {
    context.getattr_or("passes", [] { return 0.5; });
  };
  CHECK_THROWS_WITH(model_parallel(other, list), test::contains("\"passes\" has another type"));
}

TEST_CASE(
    "errors of the loader and of the loop function come out, with the replica that met them") {
  const xla::eager_mode_guard eager;
  DataParallel model_parallel{test::Mlp{}};
  const auto together = [](auto&, auto& loader, const auto& device, auto&) {
    std::int64_t taken = 0;
    for ([[maybe_unused]] auto& batch : loader) {
      xla::all_reduce(xla::full<float>({1}, 1.f).to(device)).item();
      if (++taken == 2 && device.index == 1) throw std::runtime_error("out of patience");
    }
  };
  xla::data::DataLoader damaged{Samples{.count = 30, .bad = 4}, {.batch_size = 1}};
  CHECK_THROWS_WITH(model_parallel(together, damaged), test::contains("sample 4 is damaged"));
  xla::data::DataLoader good{Samples{.count = 30}, {.batch_size = 1, .prefetch = 2}};
  CHECK_THROWS_WITH(model_parallel(together, good), "replica 1 of 3: out of patience");
  CHECK(model_parallel(all_batches, good)[2].size() == 10);
}

TEST_CASE("after a pass that has failed, the next begins with equal copies") {
  const xla::eager_mode_guard eager;
  DataParallel model_parallel{test::Mlp{}, {0, 1}};
  std::vector<numbers> none;
  const auto write = [](auto& model, auto&, const auto& device, auto&) {
    model.fc1.bias.fill_(static_cast<float>(1 + device.index));
    if (device.index == 1) throw std::runtime_error("in mid-step");
  };
  const auto read = [](auto& model, auto&, const auto&, auto&) {
    return model.fc1.bias.to_vector()[0];
  };
  CHECK(model_parallel(read, none).size() == 2);
  CHECK_THROWS_WITH(model_parallel(write, none), test::contains("in mid-step"));
  CHECK(model_parallel(read, none) == std::vector<float>{1, 1});
}

TEST_CASE("batches are made ahead, and a loop that ends early holds nobody up") {
  struct Endless {  // an iterator over 0, 1, 2, ... that counts what was made
    std::atomic<std::int64_t>* made;
    std::int64_t now = 0;
    std::int64_t operator*() const { return now; }
    Endless& operator++() {
      ++now;
      ++*made;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return false; }
  };
  struct Numbers {
    std::atomic<std::int64_t> made = 0;
    Endless begin() { return {&made}; }
    std::default_sentinel_t end() { return {}; }
  } all;
  DataParallel model_parallel{test::Mlp{}, {0, 1}};
  const auto some = [&](auto&, auto& loader, const auto& device, auto&) {
    std::int64_t sum = 0, taken = 0;
    for (const auto i : loader) {
      if (taken == 0)
        while (all.made < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      sum += i;
      if (++taken == (device.index == 0 ? 2 : 50)) break;
    }
    return sum;
  };
  CHECK(model_parallel(some, all) == numbers{0 + 2, 50 * 50});
  CHECK(all.made < 120);
}
