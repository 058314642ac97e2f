// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures what this machine can do: operations and bytes per second. Profiles compare steps with
// it; nothing else depends on it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "xla/base/compiler.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/kernel/fused/region.hpp"
#include "xla/kernel/simd/packet.hpp"
#include "xla/run/profile/data.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla {

namespace detail {

/// Operations per second of one burst of about a millisecond, or a few where the compiler does not
/// optimise: enough chains of multiply-adds to hide their latency.
template <class = void>
double multiply_add_burst(void*, int) {
  using P = kernel::packet<float>;
  constexpr int chains = 12, rounds = 10000, most_parts = 50;
  P sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = kernel::simd::pset1<P>(1 + 0.001f * static_cast<float>(i));
  const P factor = kernel::simd::pset1<P>(0.999f), term = kernel::simd::pset1<P>(0.001f);
  const std::int64_t start = now_ns();
  std::int64_t ns = 0;
  int parts = 0;
  for (; parts < most_parts && ns < 4000000; ns = now_ns() - start, ++parts)
    for (int r = 0; r < rounds; ++r)
      kernel::unroll<chains>(
          [&](auto i) XLA_INLINE_LAMBDA { sums[i] = kernel::simd::pmadd(sums[i], factor, term); });
  float all = 0;
  for (const P& s : sums) {
    alignas(64) float lanes[kernel::lanes<float>];
    kernel::simd::pstore(lanes, s);
    all += lanes[0];
  }
  [[maybe_unused]] volatile const float seen = all;  // otherwise the compiler would remove the sums
  return 2e9 * kernel::lanes<float> * chains * rounds * parts / static_cast<double>(ns);
}

/// The best of several bursts on all threads, added up. The burst gets the thread's number.
template <class = void>
[[gnu::cold, gnu::noinline]] double on_threads(int threads, double (*burst)(void*, int),
                                               void* context) {
  std::vector<double> best(static_cast<std::size_t>(threads), 0);
  std::atomic<int> missing{threads};
  auto work = [&](int t) {
    missing.fetch_sub(1);
    while (missing.load() > 0) sys::yield();
    double& mine = best[static_cast<std::size_t>(t)];
    for (int i = 0; i < 4; ++i) mine = std::max(mine, burst(context, t));
  };
  std::vector<sys::thread> team;
  for (int t = 1; t < threads; ++t) team.emplace_back(work, t);
  work(0);
  for (sys::thread& t : team) t.join();
  double sum = 0;
  for (double b : best) sum += b;
  return sum;
}

/// Two blocks, a part of them for every thread.
struct copy_blocks {
  std::size_t part;
  std::unique_ptr<char[]> from, to;
};
template <class = void>
double copy_burst(void* context, int t) {
  const auto& blocks = *static_cast<copy_blocks*>(context);
  const std::size_t at = blocks.part * static_cast<std::size_t>(t);
  const std::int64_t start = now_ns();
  std::memcpy(blocks.to.get() + at, blocks.from.get() + at, blocks.part);
  return 2e9 * static_cast<double>(blocks.part) / static_cast<double>(now_ns() - start);
}

/// The measured peaks, per number of threads.
template <class>
struct basic_known_peaks {
  sys::mutex lock;
  std::vector<MachinePeaks> all;
};

}  // namespace detail

template <class>
[[gnu::cold]] MachinePeaks machine_peaks(int threads) {
  auto& known = detail::made_once(detail::the_process.peaks);
  const std::lock_guard hold(known.lock);
  for (const MachinePeaks& p : known.all)
    if (p.threads == threads) return p;
  MachinePeaks p{threads, 0, 0};
  constexpr int tries = 3;  // the system may start two threads on one core
  for (int i = 0; i < tries; ++i)
    p.flops =
        std::max(p.flops, detail::on_threads<>(threads, &detail::multiply_add_burst<>, nullptr));
  const auto n = static_cast<std::size_t>(threads);
  detail::copy_blocks blocks{(std::size_t{64} << 20) / n / 4096 * 4096 + 4096, nullptr, nullptr};
  blocks.from = std::make_unique<char[]>(n * blocks.part);
  blocks.to = std::make_unique<char[]>(n * blocks.part);
  for (int i = 0; i < tries; ++i)
    p.bytes = std::max(p.bytes, detail::on_threads<>(threads, &detail::copy_burst<>, &blocks));
  known.all.push_back(p);
  return p;
}

}  // namespace xla
