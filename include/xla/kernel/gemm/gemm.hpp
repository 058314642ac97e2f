// SPDX-License-Identifier: Apache-2.0
#pragma once

// The driver of matrix products: it cuts a product into parts for the threads, packs a whole where
// that pays, and hands each part to partition.hpp. It is not the entry point: ops call gemm() of
// product.hpp. From call to micro-kernel:
//   gemm            product.hpp       integers, k = 0
//   multiply_…      long_k.hpp        cuts a long k into pieces; takes one column as one row
//   multiply        gemm.hpp          chooses how many threads share it, and how; packs a whole
//   multiply_part   partition.hpp     one thread's part: packs panels of b, or reads b in place
//   multiply_block  block.hpp         micro-panels of a, packed or in place, times these panels
//   tile::multiply  micro_kernel.hpp  a tile of c in registers
// Where a and b have the type of the sum there are shortcuts: small m (small_m.hpp), c computed
// transposed (transposed_result.hpp), b transposed in registers (transposing_pack.hpp).
//
// The driver is a template over a tile (micro_kernel.hpp) and the operands (left_operand.hpp,
// right_operand.hpp). Other element types, layouts and instruction sets are other operand and tile
// types, such as those of bfloat16.hpp; the driver stays the same.

#include <algorithm>
#include <type_traits>

#include "xla/kernel/gemm/partition.hpp"
#include "xla/kernel/gemm/transposed_result.hpp"

namespace xla::kernel::detail {

/// The largest number of chunks per thread: several, so that other threads take over those of a
/// delayed thread.
constexpr index_t max_rounds = 4;

/// At most `wanted` chunks, equally many for every thread.
inline index_t whole_rounds(index_t wanted, index_t threads) {
  if (wanted < threads) return std::max<index_t>(wanted, 1);
  return std::min(wanted / threads, max_rounds) * threads;
}

constexpr index_t worth_sharing = 1 << 19, chunk_work = 1 << 18;

/// Packs all of a, by all threads together, if a is not read in place, is small, and is used often
/// enough. multiply_part packs a large a with many columns only a part at a time.
template <class P>
const typename P::element* pack_micro_panels(const P& p) {
  constexpr index_t unit = P::tile::rows, group = 4 * unit, many = 4096;
  const index_t most = p.n < many ? 1 << 19 : 1 << 21;
  if (p.in_place() || p.n < P::tile::columns || p.m * p.k > most) return nullptr;
  const index_t depth = p.padded(p.k);
  auto* const to = left_scratch().template get<typename P::element>(round_up(p.m, unit) * depth);
  const index_t groups = (p.m + group - 1) / group, blocks = (p.k + 127) / 128;
  const auto pack = [&](index_t i) {
    const index_t row = i / blocks * group, k = i % blocks * 128;
    p.a.pack(to + row * depth + k * unit, depth * unit, row, k, std::min(group, p.m - row),
             std::min<index_t>(128, p.k - k));
  };
  if (p.m * p.k >= 1 << 13) parallel_for(groups * blocks, pack);
  else
    for (index_t i = 0; i < groups * blocks; ++i) pack(i);
  return to;
}

/// Whether c is small enough to stay in the caches of the threads that compute it, and can be
/// divided by rows without packing b more than once. Maps that follow the product divide it by
/// rows, too.
template <class P>
bool near_by_rows(const P& p) {
  constexpr index_t most = 1 << 17;
  const index_t threads = num_threads();
  if constexpr (P::reads_right)
    return p.m * p.n <= most && p.m >= 2 * threads * P::tile::rows &&
           p.b.in_place((p.m / P::tile::rows + threads - 1) / threads, p.depth, p.n);
  return false;
}

/// The shortcuts for matrices of the sum's type. False if there is none.
template <class T>
bool multiply_shortly(const strided_product<T>& p) {
  if (p.m <= small_m<T>::rows) return multiply_small_m(p), true;
  if (!better_transposed(p)) return false;
  const index_t work = p.m * p.n * p.k, threads = num_threads();
  const index_t wanted = std::min(work / chunk_work, p.n / (8 * tile<T>::rows));
  const bool alone = work < worth_sharing || threads == 1;
  return multiply_transposed(p, alone ? 1 : whole_rounds(wanted, threads)), true;
}

/// Whether every thread packs all of a for itself. For a small a that is faster than reading it
/// from the cache of another thread.
template <class P>
bool packs_separately(const P& p) {
  constexpr index_t most = 1 << 15;
  if constexpr (requires { p.b.packed; })
    if (p.b.packed) return false;
  if constexpr (P::packs_left) return !p.in_place() && p.m * p.k < most;
  else return false;
}

/// Chooses how many threads share the work, and how. The choice does not change a bit of c.
template <class P>
void multiply(P&& p) {
  using tile = typename P::tile;
  constexpr index_t wide = tile::columns, width = tile::width, unit = tile::rows;
  constexpr index_t max_packed = 1 << 21;
  p.cut();
  const index_t work = p.m * p.n * p.k, threads = num_threads();
  const bool alone = work < worth_sharing || threads == 1;
  const bool separately = !alone && !p.has_maps() && packs_separately(p);
  if constexpr (P::packs_left)
    if (!separately) p.micro_panels = pack_micro_panels(p);
  const index_t chunks = alone ? 1 : std::clamp<index_t>(work / chunk_work, 1, 16 * threads);
  if constexpr (requires { p.b.packed; })
    if (p.b.packed) return multiply_panels(p, p.b.packed, chunks);
  // Whether rows of a, or of c, have left the cache by the time the next columns or steps along k
  // need them.
  const bool far = std::remove_cvref_t<P>::packs_left && p.m * p.depth > 1 << 19 &&
                   (p.depths > 1 || resident_parts(p, {0, p.n}) > 1);
  if (alone && !far) return multiply_part(p, {0, p.m}, {0, p.n});
  const index_t vectors = (p.n + width - 1) / width;
  // Not where maps follow: they take rows, which are then in the cache of one thread. Reading one
  // image on two threads of a Zen 3 (2026-11-30), the time before over the time since: SqueezeNet
  // 1.28, ResNeXt-50 1.22, MobileNet-v2 1.10, MNASNet 1.03, ResNet-18 1.03, ResNet-50 0.99.
  if (!alone && !p.has_maps() && p.m * p.k <= max_packed &&
      (separately || p.micro_panels != nullptr || p.in_place())) {
    // Each chunk packs its own columns, and the threads do not wait for each other.
    const index_t micro_panels = (p.m + unit - 1) / unit;
    index_t across =
        near_by_rows(p)
            ? 1
            : whole_rounds(std::min(vectors / 4, separately ? threads : chunks), threads);
    index_t down = whole_rounds(
        std::min({chunks / across, std::max(micro_panels / 16, std::min(micro_panels / 8, threads)),
                  max_rounds * threads / across}),
        std::max<index_t>(threads / across, 1));
    // With small m, each thread takes columns, or those with few columns share packed ones. On
    // 2026-11-29, on a Zen 4, 49 x 320 x 1280 and 128 x 16 x 8192 took as long on two threads as on
    // one without.
    if (across * down < threads) {
      across = std::clamp<index_t>(vectors / 2, 1, threads);
      down = 1;
    }
    if (across * down >= std::min(threads, micro_panels))
      return parallel_for(across * down, [&](index_t i) {
        multiply_part(p, part(p.m, unit, down, i / across), part(p.n, width, across, i % across));
      });
  }
  const index_t columns = std::min(p.n, std::max(max_packed / p.depth / wide, index_t{1}) * wide);
  const index_t blocks = std::max<index_t>(max_packed / (round_up(columns, wide) * p.depth), 1);
  for (index_t j = 0; j < p.n; j += columns)
    for (index_t block = 0; block < p.depths; block += blocks)
      multiply_shared(p, {j, std::min(p.n, j + columns)},
                      {block, std::min(p.depths, block + blocks)}, chunks);
}

}  // namespace xla::kernel::detail
