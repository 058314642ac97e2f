// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counters and timed metrics of the process, cheap to update from any thread. Everything in run/
// counts into it; metrics.hpp has the public functions that read it.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "xla/base/dependent.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/metric_values.hpp"

namespace xla {

namespace detail {

enum class metric_unit { time, bytes, plain };

/// Nanoseconds of the steady clock.
template <class In = void>
inline std::int64_t now_ns() noexcept {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

/// The seconds from the Unix epoch to the zero of the steady clock.
template <class In = void>
inline double steady_origin() noexcept {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(wall).count() - 1e-9 * static_cast<double>(now_ns());
}

/// A named integer; it is listed while its value is not zero, as in PyTorch/XLA.
class counter {
 public:
  /// One relaxed atomic addition.
  void add(std::int64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }
  void clear() noexcept { value_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// A named series of samples, the newest 1,024 kept in a ring; it is listed once it has a sample.
template <class In>
class basic_metric {
 public:
  static constexpr std::size_t capacity = 1024;

  explicit basic_metric(metric_unit unit) noexcept : unit_(unit) {}
  basic_metric(const basic_metric&) = delete;
  basic_metric& operator=(const basic_metric&) = delete;

  void add(double value) noexcept { add_at(now_ns(), value); }

  /// Adds a sample whose time (of `now_ns`) is already known. Does not allocate.
  [[gnu::noinline]] void add_at(std::int64_t time_ns, double value) noexcept {
    const std::lock_guard lock{mutex_};
    ring_[static_cast<std::size_t>(count_++) % capacity] = {time_ns, value};
    accumulator_ += value;
  }

  void clear() noexcept {
    const std::lock_guard lock{mutex_};
    count_ = 0;
    accumulator_ = 0;
  }

  metric_unit unit() const noexcept { return unit_; }

  void before_fork() { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }

  std::int64_t size() const noexcept {
    const std::lock_guard lock{mutex_};
    return count_;
  }

  /// A copy of what is kept, with `origin` seconds added to the times of the steady clock.
  metric_values values(double origin) const {
    metric_values out;
    out.samples.reserve(capacity);
    const std::lock_guard lock{mutex_};
    out.total_samples = count_;
    out.accumulator = accumulator_;
    const auto total = static_cast<std::size_t>(count_);
    for (std::size_t i = total - std::min(total, capacity); i < total; ++i) {
      const auto& [time_ns, value] = ring_[i % capacity];
      out.samples.push_back({origin + 1e-9 * static_cast<double>(time_ns), value});
    }
    return out;
  }

 private:
  struct entry {
    std::int64_t time_ns;
    double value;
  };
  const metric_unit unit_;
  mutable sys::mutex mutex_;
  std::int64_t count_ = 0;
  double accumulator_ = 0;
  std::array<entry, capacity> ring_;
};
using metric = basic_metric<void>;

/// Counters or metrics, sorted by name. Each stays at its address. Lookup by name is slow, but
/// users do it once and keep the reference.
template <class T>
struct named_list {
  struct entry {
    const std::string name;
    T value;
    entry* next = nullptr;
  };
  entry* first = nullptr;

  T* find(std::string_view name) const {
    for (entry* e = first; e; e = e->next)
      if (e->name == name) return &e->value;
    return nullptr;
  }
  /// The entry of that name, made with the arguments if there is none.
  template <class... A>
  [[gnu::cold]] T& get(std::string_view name, A... arguments) {
    entry** at = &first;
    while (*at && (*at)->name < name) at = &(*at)->next;
    if (!*at || (*at)->name != name) *at = new entry{std::string(name), T(arguments...), *at};
    return (*at)->value;
  }
};

/// All counters and metrics of the process by name, and references to those that the library counts
/// by itself.
template <class In>
struct basic_metric_store {
  sys::mutex mutex;
  named_list<counter> counters;
  named_list<metric> metrics;

  // The counters and metrics of the library itself.
  counter& mark_step = counters.get("MarkStep");
  counter& cached_compile = counters.get("CachedCompile");
  counter& uncached_compile = counters.get("UncachedCompile");
  counter& evicted_compile = counters.get("EvictedCompile");
  counter& varying_size = counters.get("VaryingSizeWarning");
  counter& create_tensor = counters.get("CreateXlaTensor");
  metric& compile_time = metrics.get("CompileTime", metric_unit::time);
  metric& execute_time = metrics.get("ExecuteTime", metric_unit::time);
  metric& eager_compile_time = metrics.get("EagerOpCompileTime", metric_unit::time);
  metric& eager_execute_time = metrics.get("EagerOpExecuteTime", metric_unit::time);
  metric& tracing_time = metrics.get("LazyTracing", metric_unit::time);
  metric& graph_size = metrics.get("TensorsGraphSize", metric_unit::plain);
  metric& aliased_outputs = metrics.get("InputOutputAliasCount", metric_unit::plain);

  static constexpr fork_order order = fork_order::stores;
  void before_fork() {
    mutex.lock();
    for (auto* e = metrics.first; e; e = e->next) e->value.before_fork();
  }
  void after_fork(bool) noexcept {
    for (auto* e = metrics.first; e; e = e->next) e->value.after_fork();
    mutex.unlock();
  }
};
using metric_store = basic_metric_store<void>;

/// The store of the process.
template <class In = void>
inline dependent<In, metric_store>& global_metrics() {
  return made_once(the_process.metrics);
}

/// The counter of that name, created on first use. The reference stays valid, also over a clear;
/// the lookup takes a lock.
template <class In = void>
[[gnu::cold]] counter& get_counter(std::string_view name) {
  dependent<In, metric_store>& store = global_metrics();
  const std::lock_guard lock{store.mutex};
  return store.counters.get(name);
}
XLA_INSTANCE(counter& get_counter<void>(std::string_view));

/// The metric of that name, created on first use with `unit`; valid for good, as `get_counter`.
template <class In = void>
[[gnu::cold]] metric& get_metric(std::string_view name, metric_unit unit = metric_unit::time) {
  dependent<In, metric_store>& store = global_metrics();
  const std::lock_guard lock{store.mutex};
  return store.metrics.get(name, unit);
}
XLA_INSTANCE(metric& get_metric<void>(std::string_view, metric_unit));

/// Adds the nanoseconds between its construction and its destruction to a metric.
template <class In>
class basic_timed {
 public:
  explicit basic_timed(metric& target) noexcept : target_(target), start_(now_ns()) {}
  basic_timed(const basic_timed&) = delete;
  basic_timed& operator=(const basic_timed&) = delete;
  std::int64_t start() const noexcept { return start_; }
  ~basic_timed() {
    const auto end = now_ns();
    target_.add_at(end, static_cast<double>(end - start_));
  }

 private:
  metric& target_;
  const std::int64_t start_;
};
using timed = basic_timed<void>;

}  // namespace detail
}  // namespace xla
