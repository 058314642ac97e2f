// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "measure.hpp"

namespace bench {

/// Multiply-adds on registers alone, in as many chains as hide their latency; GFLOP/s.
inline double fma_burst(int repeats) {
  using packet = Eigen::internal::packet_traits<float>::type;
  constexpr int lanes = Eigen::internal::packet_traits<float>::size, chains = 12, steps = 1000;
  packet sums[chains];
  for (packet& s : sums) s = Eigen::internal::pset1<packet>(1.f);
  const packet factor = Eigen::internal::pset1<packet>(0.999f);
  const packet term = Eigen::internal::pset1<packet>(0.001f);
  const double start = now();
  for (int r = 0; r < repeats; ++r)
    for (int k = 0; k < steps; ++k)
#pragma GCC unroll 12
      for (int i = 0; i < chains; ++i) sums[i] = Eigen::internal::pmadd(sums[i], factor, term);
  const double seconds = now() - start;
  for (const packet& s : sums) touch(&s);
  return 2e-9 * lanes * chains * steps * repeats / seconds;
}

/// The sum of what measure(thread) returns on all of `threads` at once.
template <class F>
double on_threads(int threads, F&& measure) {
  std::vector<double> rates(static_cast<std::size_t>(threads), 0);
  std::atomic<int> waiting{threads};
  std::vector<std::thread> team;
  for (std::size_t i = 0; i < rates.size(); ++i)
    team.emplace_back([&, i] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) {}
      rates[i] = measure(i);
    });
  for (auto& t : team) t.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

/// GFLOP/s of multiply-adds with the vectors that this program was compiled for, on all of
/// `threads` at once: the highest of ten bursts of about two milliseconds.
inline double fma_peak(int threads) {
  return on_threads(threads, [](std::size_t) {
    double best = 0;
    for (int i = 0; i < 10; ++i) best = std::max(best, fma_burst(500));
    return best;
  });
}

/// GB/s at which `threads` read what `data` holds, each its own part, the faster of two times.
inline double read_bandwidth(const std::vector<float>& data, int threads) {
  using packet = Eigen::internal::packet_traits<float>::type;
  constexpr std::size_t lanes = Eigen::internal::packet_traits<float>::size, chains = 8;
  const std::size_t part = data.size() / static_cast<std::size_t>(threads) / (lanes * chains);
  return on_threads(threads, [&](std::size_t thread) {
    double best = 0;
    for (int turn = 0; turn < 2; ++turn) {
      const float* p = data.data() + thread * part * lanes * chains;
      packet sums[chains];
      for (packet& s : sums) s = Eigen::internal::pset1<packet>(0.f);
      const double start = now();
      for (std::size_t i = 0; i < part; ++i, p += lanes * chains)
#pragma GCC unroll 8
        for (std::size_t k = 0; k < chains; ++k)
          sums[k] = Eigen::internal::padd(sums[k], Eigen::internal::ploadu<packet>(p + k * lanes));
      const double seconds = now() - start;
      for (const packet& s : sums) touch(&s);
      best = std::max(best,
                      1e-9 * static_cast<double>(part * lanes * chains * sizeof(float)) / seconds);
    }
    return best;
  });
}

}  // namespace bench
