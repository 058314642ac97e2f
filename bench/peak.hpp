// SPDX-License-Identifier: Apache-2.0
#pragma once

// The peak of the multiply-adds, and the speed of reading memory, with which kernels are compared.

#include <algorithm>
#include <cstddef>

#include <xla/run/profile/peaks.hpp>

#include "measure.hpp"

namespace bench {

/// GFLOP/s of multiply-adds in registers, with the vectors that this program was compiled for, on
/// all of `threads` at once, as profiles measure them: the highest of a dozen bursts.
inline double fma_peak(int threads) {
  using namespace xla::detail;
  double best = 0;
  for (int i = 0; i < 3; ++i)
    best = std::max(best, 1e-9 * on_threads<>(threads, &multiply_add_burst<>, nullptr));
  return best;
}

/// GB/s at which `threads` read `count` numbers at `data`, each its own part.
inline double read_bandwidth(const float* data, std::size_t count, int threads) {
  struct reading {
    const float* data;
    std::size_t count, threads;
  } context{data, count, static_cast<std::size_t>(threads)};
  return 1e-9 * xla::detail::on_threads<>(
                    threads,
                    [](void* context, int thread) {
                      using packet = xla::kernel::packet<float>;
                      namespace simd = xla::kernel::simd;
                      constexpr std::size_t lanes = xla::kernel::lanes<float>, chains = 8;
                      const auto& all = *static_cast<const reading*>(context);
                      const std::size_t part = all.count / all.threads / (lanes * chains);
                      const float* p =
                          all.data + static_cast<std::size_t>(thread) * part * lanes * chains;
                      packet sums[chains];
                      for (packet& s : sums) s = simd::pset1<packet>(0.f);
                      const double start = now();
                      for (std::size_t i = 0; i < part; ++i, p += lanes * chains)
#pragma GCC unroll 8
                        for (std::size_t k = 0; k < chains; ++k)
                          sums[k] = simd::padd(sums[k], simd::ploadu<packet>(p + k * lanes));
                      const double seconds = now() - start;
                      for (const packet& s : sums) touch(&s);
                      return static_cast<double>(part * lanes * chains * sizeof(float)) / seconds;
                    },
                    &context);
}

}  // namespace bench
