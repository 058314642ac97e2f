// SPDX-License-Identifier: Apache-2.0
#include "xla/data/prefetch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "xla/data/loader.hpp"
#include "xla/xla.hpp"

namespace {

using xla::data::DataLoader;
using xla::data::Prefetcher;
using numbers = std::vector<std::int64_t>;

// Batches are the numbers of their samples; sample `bad` cannot be read.
struct Recorder {
  struct counts {
    std::atomic<int> begun = 0, running = 0;
    std::atomic<bool> at_once = false;
  };
  std::int64_t samples = 10, bad = -1;
  std::shared_ptr<counts> seen = std::make_shared<counts>();

  std::int64_t size() const { return samples; }
  numbers batch(std::span<const std::int64_t> of) const {
    ++seen->begun;
    if (++seen->running > 1) seen->at_once = true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    --seen->running;
    for (const auto i : of)
      if (i == bad) throw std::runtime_error("sample " + std::to_string(i));
    return {of.begin(), of.end()};
  }
};

template <class Loader>
std::vector<numbers> epoch(Loader& loader) {
  std::vector<numbers> out;
  for (auto& batch : loader) out.push_back(batch);
  return out;
}

}  // namespace

TEST_CASE("batches made ahead are the same ones, in the same order") {
  for (const bool shuffle : {false, true})
    for (const std::int64_t ahead : {1, 2, 3, 100}) {
      DataLoader plain{Recorder{}, {.batch_size = 3, .shuffle = shuffle, .seed = 5}};
      DataLoader early{Recorder{},
                       {.batch_size = 3, .shuffle = shuffle, .seed = 5, .prefetch = ahead}};
      for (int i = 0; i < 2; ++i) CHECK(epoch(early) == epoch(plain));
      CHECK_FALSE(early.dataset().seen->at_once);
    }
}

TEST_CASE("tensors are made on the other thread") {
  std::vector<float> x(70);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const xla::data::TensorDataset dataset{xla::from_blob(x.data(), {35, 2}), xla::arange(35)};
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode{eager};
    DataLoader loader{dataset, {.batch_size = 4, .shuffle = true, .seed = 1, .prefetch = 2}};
    std::int64_t sum = 0;
    for (auto& [data, target] : loader) {
      const auto rows = xla::sum(data, {1}).to_vector();
      const auto wanted = xla::cast<float>(target * 4 + 1).to_vector();
      CHECK(rows == wanted);
      sum += xla::sum(target).item();
    }
    CHECK(sum == 34 * 35 / 2);
  }
}

TEST_CASE("no more than the batches asked for are made ahead") {
  DataLoader loader{Recorder{100}, {.batch_size = 2, .prefetch = 3}};
  const auto seen = loader.dataset().seen;
  int taken = 0;
  bool ever_ahead = false;
  for ([[maybe_unused]] auto& batch : loader) {
    ++taken;
    if (taken <= 10) std::this_thread::sleep_for(std::chrono::milliseconds{20});
    const int ahead = seen->begun - taken;
    CHECK(ahead <= 3);
    ever_ahead = ever_ahead || ahead > 0;
  }
  CHECK(taken == 50);
  CHECK(ever_ahead);
}

TEST_CASE("the loop rethrows an exception of the dataset in place of its batch") {
  for (const std::int64_t ahead : {0, 1, 4}) {
    DataLoader loader{Recorder{10, 5}, {.batch_size = 2, .prefetch = ahead}};
    std::vector<numbers> seen;
    const auto loop = [&] {
      for (auto& batch : loader) seen.push_back(batch);
    };
    CHECK_THROWS_WITH(loop(), "sample 5");
    CHECK(seen == std::vector<numbers>{{0, 1}, {2, 3}});
  }
}

TEST_CASE("a loop that is left early ends the thread") {
  DataLoader loader{Recorder{1000}, {.batch_size = 1, .prefetch = 4}};
  const auto seen = loader.dataset().seen;
  for (int i = 0; i < 20; ++i)
    for (auto& batch : loader)
      if (batch[0] == i) break;
  const int begun = seen->begun;
  std::this_thread::sleep_for(std::chrono::milliseconds{10});
  CHECK(seen->begun == begun);
  CHECK(begun <= 20 * 21 / 2 + 20 * 5);
  const auto thrown = [&] {
    for ([[maybe_unused]] auto& batch : loader) throw std::runtime_error("enough");
  };
  CHECK_THROWS_WITH(thrown(), "enough");
}

TEST_CASE("empty datasets and nested loops") {
  DataLoader none{Recorder{0}, {.batch_size = 2, .prefetch = 2}};
  CHECK(epoch(none).empty());
  DataLoader loader{Recorder{4}, {.batch_size = 2, .prefetch = 2}};
  int batches = 0;
  for ([[maybe_unused]] auto& outer : loader) batches += static_cast<int>(epoch(loader).size());
  CHECK(batches == 4);
  CHECK_THROWS_AS((DataLoader{Recorder{}, {.prefetch = -1}}), xla::error);
}

TEST_CASE("a prefetcher gives null after the last value, and its exception again") {
  Prefetcher<int> two{2, 0, [](std::int64_t i) { return static_cast<int>(i); }};
  CHECK(*two.take() == 0);
  CHECK(*two.take() == 1);
  CHECK(two.take() == nullptr);
  Prefetcher<int> failing{3, 5, [](std::int64_t) -> int { throw std::runtime_error("no"); }};
  CHECK_THROWS_WITH(failing.take(), "no");
  CHECK_THROWS_WITH(failing.take(), "no");
}
