// SPDX-License-Identifier: Apache-2.0
// Processes that fork after they have used the library's threads.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "catch.hpp"
#include "support/child.hpp"
#include "support/mlp.hpp"
#include "support/threads.hpp"
#include "xla/base/fork.hpp"
#include "xla/run/explain.hpp"
#include "xla/run/profile/record.hpp"
#include "xla/run/profile/trace.hpp"
#include "xla/xla.hpp"

using test::in_child;
using xla::detail::fork_order;

namespace {

float product() {
  const auto a = xla::ones<float>({200, 200});
  return xla::sum(xla::matmul(a, a)).item();
}

constexpr auto products = [](auto& x) { return xla::sum(xla::matmul(x, x)); };

}  // namespace

TEST_CASE("a forked child computes with threads of its own, in each mode") {
  const test::restore_threads threads(4);
  const float right = 200.f * 200.f * 200.f;
  auto compiled = xla::compile(products);
  auto x = xla::ones<float>({200, 200});
  const auto all = [&] {
    bool good = true;
    {
      const xla::eager_mode_guard eager;
      good &= product() == right && compiled(x).item() == right;
    }
    const xla::eager_mode_guard traced(false);
    auto y = x;
    for (int i = 0; i < 4; ++i) {
      y = xla::matmul(y, x) * 0.005f;
      xla::sync();
    }
    return good && std::abs(xla::sum(y).item() - 40000) < 1;
  };
  REQUIRE(all());
  const xla::eager_mode_guard traced(false);
  const auto pending = x * 3.f;
  CHECK(in_child([] { return true; }) == 0);
  CHECK(in_child(all) == 0);
  CHECK(in_child([&] { return pending.to_vector().back() == 3.f; }) == 0);
  for (const int n : {1, 3})
    CHECK(in_child([&] {
            xla::set_num_threads(n);
            return all();
          }) == 0);
  CHECK(in_child([&] { return in_child(all) == 0 && all(); }) == 0);
  CHECK(pending.to_vector().back() == 3.f);
  CHECK(all());
}

TEST_CASE("a process forks while its other threads compute") {
  const test::restore_threads threads(3);
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (const bool eager : {true, false})
    others.emplace_back([&done, eager] {
      const xla::eager_mode_guard guard(eager);
      while (!done) product();
    });
  auto counting = xla::compile([](auto& count) { count += 1.f; });
  const auto count = [&] {
    auto x = xla::zeros<float>({10});
    for (int i = 0; i < 100; ++i) counting(x);
    return xla::sum(x).item() == 1000;
  };
  others.emplace_back([&] {
    while (!done) count();
  });
  for (int i = 0; i < 20; ++i) {
    const xla::eager_mode_guard guard(i % 2 == 0);
    CHECK(in_child([&] { return product() == 8e6f && count(); }) == 0);
  }
  done = true;
  for (auto& t : others) t.join();
}

TEST_CASE("a process forks while another thread destroys unread values") {
  std::atomic<bool> done{false};
  std::thread other([&done] {
    const xla::eager_mode_guard traced(false);
    const auto x = xla::ones<float>({200, 300});
    while (!done) {
      xla::Buffer<float, 2> table({200, 300});
      table.copy_(x + 1.f);
      xla::sync(true);
    }
  });
  for (int i = 0; i < 100; ++i) CHECK(in_child([] { return true; }) == 0);
  done = true;
  other.join();
}

TEST_CASE("a forked child makes what a model begins with, also while its parent's threads do") {
  const xla::eager_mode_guard eager;
  const auto begun = [](std::uint64_t seed) {
    xla::manual_seed(seed);
    return xla::nn::Linear(300, 200);  // so large that it is drawn when it is read
  };
  const auto want = begun(8).weight.to_vector();
  std::atomic<bool> done{false};
  const auto unread = begun(8);
  std::thread other([&done] {
    const xla::eager_mode_guard guard;
    while (!done) xla::nn::Linear(300, 200).weight.to_vector();
  });
  for (int i = 0; i < 10; ++i)
    CHECK(in_child([&] { return unread.weight.to_vector() == want; }) == 0);
  done = true;
  other.join();
  CHECK(unread.weight.to_vector() == want);
}

TEST_CASE("a process forks while other threads start explanations or write to a profile") {
  const xla::eager_mode_guard eager;
  const auto fork_during = [](auto busy, auto works) {
    std::atomic<bool> done{false};
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i)
      others.emplace_back([&] {
        const xla::eager_mode_guard guard;
        while (!done) busy();
      });
    for (int i = 0; i < 50; ++i) CHECK(in_child(works) == 0);
    done = true;
    for (auto& t : others) t.join();
  };
  const auto explain = [] {
    const xla::detail::basic_explain_recording<void> recording;
    return true;
  };
  fork_during(explain, explain);
  const xla::ProfileRecording recording;
  const auto trace = [] {
    const xla::Trace scope("in a profile");
    return true;
  };
  fork_during(trace, trace);
}

namespace {

/// An object that another thread holds when the process forks; the forking thread says that it is
/// about to wait.
struct awaited {
  static constexpr fork_order order = fork_order::executions;
  std::mutex lock;
  std::atomic<bool> waiting{false};
  void before_fork() {
    waiting = true;
    lock.lock();
  }
  void after_fork(bool) { lock.unlock(); }
};

template <fork_order Order>
struct counted {
  static constexpr fork_order order = Order;
  int taken = 0, released = 0;
  void before_fork() { ++taken; }
  void after_fork(bool) { ++released; }
};

}  // namespace

TEST_CASE("a thread that holds a lock registers more while the process forks and waits for it") {
  using xla::detail::made_once;
  std::atomic<awaited*> awaits{nullptr};
  std::atomic<counted<fork_order::functions>*> first{nullptr};
  std::atomic<counted<fork_order::stores>*> last{nullptr};
  auto& shared = made_once(awaits);
  counted<fork_order::functions>* earlier = nullptr;
  counted<fork_order::stores>* later = nullptr;
  std::atomic<bool> holds{false};
  std::thread other([&] {
    const std::lock_guard guard(shared.lock);
    holds = true;
    while (!shared.waiting) std::this_thread::yield();
    earlier = &made_once(first);
    later = &made_once(last);
  });
  while (!holds) std::this_thread::yield();
  CHECK(in_child([&] {
          return earlier->taken == 1 && earlier->released == 1 && later->taken == 1 &&
                 later->released == 1 && shared.lock.try_lock();
        }) == 0);
  other.join();
  CHECK(earlier->taken == earlier->released);
  CHECK(later->taken == later->released);
  CHECK(shared.lock.try_lock());
  shared.lock.unlock();
}

namespace {

/// An object that another thread is making when the process forks; it needs one that fork() holds.
struct slowly_made {
  static inline std::atomic<bool> begun{false};
  static inline awaited* needed = nullptr;
  slowly_made() {
    begun = true;
    while (!needed->waiting) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    const std::lock_guard guard(needed->lock);
  }
};
struct slowly_made_and_held : slowly_made {
  static constexpr fork_order order = fork_order::stores;
  void before_fork() {}
  void after_fork(bool) {}
};

template <class Part>
void fork_while_made(awaited& needed) {
  std::atomic<Part*> part{nullptr};
  Part::needed = &needed;
  Part::begun = needed.waiting = false;
  std::thread other([&] { xla::detail::made_once(part); });
  while (!Part::begun) std::this_thread::yield();
  CHECK(in_child([&] { return &xla::detail::made_once(part) == part; }) == 0);
  other.join();
}

}  // namespace

TEST_CASE("a process forks while another thread makes what it uses for the first time") {
  std::atomic<awaited*> awaits{nullptr};
  auto& needed = xla::detail::made_once(awaits);
  fork_while_made<slowly_made>(needed);
  fork_while_made<slowly_made_and_held>(needed);
}
