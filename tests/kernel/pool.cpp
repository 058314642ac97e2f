// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/threads.hpp"
#include "xla/kernel/threads/pool.hpp"

using xla::kernel::parallel_for;

TEST_CASE("parallel_for calls every chunk once") {
  const test::restore_threads guard;
  for (const int threads : {1, 2, 4, 3, 1, 8}) {
    xla::set_num_threads(threads);
    CHECK(xla::num_threads() == threads);
    for (const std::int64_t chunks : {0, 1, 2, 3, 17, 1000}) {
      std::vector<int> calls(static_cast<std::size_t>(chunks), 0);
      for (int repeat = 1; repeat <= 20; ++repeat) {
        parallel_for(chunks, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
        for (const int count : calls) REQUIRE(count == repeat);
      }
    }
  }
}

TEST_CASE("a loop that sleeping threads must be woken for") {
  const test::restore_threads guard;
  xla::set_num_threads(4);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> sum{0};
    parallel_for(8, [&](std::int64_t i) { sum += static_cast<int>(i); });
    CHECK(sum == 28);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_CASE("loops inside loops run in the thread that meets them") {
  const test::restore_threads guard;
  xla::set_num_threads(4);
  std::atomic<int> calls{0}, strayed{0};
  parallel_for(8, [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(8, [&](std::int64_t) {
      ++calls;
      if (std::this_thread::get_id() != self) ++strayed;
    });
  });
  CHECK(calls == 64);
  CHECK(strayed == 0);
}

TEST_CASE("several threads may run loops and change the thread count at once") {
  const test::restore_threads guard;
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user)
    users.emplace_back([&, user] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        if (repeat % 50 == 0) xla::set_num_threads(1 + (user + repeat / 50) % 4);
        parallel_for(10, [&](std::int64_t i) { sum += i; });
      }
    });
  for (auto& user : users) user.join();
  CHECK(sum == 3 * 200 * 45);
}

TEST_CASE("the first exception reaches the caller, and the pool goes on") {
  const test::restore_threads guard;
  for (const int threads : {1, 4}) {
    xla::set_num_threads(threads);
    const auto body = [](std::int64_t i) {
      if (i % 5 == 2) throw std::runtime_error("chunk");
    };
    CHECK_THROWS_AS(parallel_for(100, body), std::runtime_error);
    std::atomic<int> calls{0};
    parallel_for(100, [&](std::int64_t) { ++calls; });
    CHECK(calls == 100);
  }
}

// Loops of changing length in quick succession: a late thread must not claim from the next one.
TEST_CASE("every chunk of every loop runs once") {
  const test::restore_threads guard;
  xla::set_num_threads(8);
  int wrong = 0;
  for (int i = 0; i < 50000; ++i) {
    const int chunks = 2 + i * 7 % 40;
    std::atomic<int> calls{0};
    parallel_for(chunks, [&](std::int64_t) { ++calls; });
    wrong += calls != chunks;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a thread leaves a core, and may run there again") {
  using xla::sys::core_set;
  const core_set own = core_set::of_this_thread();
  bool moved = own.count() < 2;
  for (int i = 0; i < 100; ++i) {
    const int core = xla::sys::current_core();
    own.leave(core);
    moved |= xla::sys::current_core() != core;
  }
  CHECK(moved);
  CHECK(core_set::of_this_thread() == own);
}

TEST_CASE("a thread count below one is refused") {
  CHECK_THROWS_AS(xla::set_num_threads(0), xla::error);
  CHECK(xla::num_threads() >= 1);
}
