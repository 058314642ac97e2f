// SPDX-License-Identifier: Apache-2.0
#pragma once

// Combines the elements of several replicas. It sends nothing: worlds of threads and of MPI call
// it.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "xla/base/compiler.hpp"
#include "xla/base/instance.hpp"
#include "xla/kernel/fused/region.hpp"
#include "xla/op/collectives.hpp"
#include "xla/shape/dtype.hpp"

namespace xla::kernel {

/// Combines in[0][i], in[1][i] … in[n - 1][i] into out[i] for count elements, as tree(0, n):
/// tree(lo, hi) combines tree(lo, lo + k) with tree(lo + k, hi), and k is the largest power of two
/// below hi - lo. A mean is the sum times 1 / n. So the bits depend on n and nothing else. Elements
/// are float, double or std::int64_t (which has no mean); out overlaps none of in.
template <class = void>
void sum_replicas(reduce_type how, dtype type, const void* const* in, int n, std::int64_t count,
                  void* out);

#if XLA_RUNTIME_HERE
namespace detail {

/// Elements of a tree's inner values, which stay in the L1 cache.
inline constexpr std::int64_t replica_block = 512;

template <class T, class F>
[[gnu::noinline]] void combine_two(const T* a, const T* b, T* out, std::int64_t n, F f) {
  const auto some = [&](std::int64_t i, auto lanes) XLA_INLINE_LAMBDA {
    const vec<T> x{load_numbers(a + i, lanes)}, y{load_numbers(b + i, lanes)};
    store_numbers(out + i, f(x, y).v, lanes);
  };
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) some(i, all_lanes{});
  if (i < n) some(i, n - i);
}

/// The tree over in[0] … in[n - 1], from element `at` on; count is at most a block.
template <class T, class F>
void combine_tree(const void* const* in, int n, std::int64_t at, std::int64_t count, T* out, F f) {
  const auto leaf = [&](int i) { return static_cast<const T*>(in[i]) + at; };
  if (n == 1) {
    std::memcpy(out, leaf(0), static_cast<std::size_t>(count) * sizeof(T));
  } else if (n == 2) {
    combine_two(leaf(0), leaf(1), out, count, f);
  } else {
    const int k = static_cast<int>(std::bit_floor(static_cast<unsigned>(n - 1)));
    combine_tree(in, k, at, count, out, f);
    if (n - k == 1) return combine_two<T>(out, leaf(k), out, count, f);
    T right[replica_block];
    combine_tree(in + k, n - k, at, count, right, f);
    combine_two<T>(out, right, out, count, f);
  }
}

template <class T, class F>
void combine_all(const void* const* in, int n, std::int64_t count, void* to, T scale, F f) {
  for (std::int64_t at = 0; at < count; at += replica_block) {
    T* const out = static_cast<T*>(to) + at;
    const std::int64_t some = std::min(count - at, replica_block);
    combine_tree(in, n, at, some, out, f);
    if (scale != T(1))
      for (std::int64_t i = 0; i < some; ++i) out[i] *= scale;
  }
}

template <class T>
void combine_as(reduce_type how, const void* const* in, int n, std::int64_t count, void* out) {
  const T scale = how == reduce_type::mean ? T(1) / static_cast<T>(n) : T(1);
  using v = vec<T>;
  switch (how) {
    case reduce_type::max:
      return combine_all(in, n, count, out, scale, [](v a, v b) { return a.max_nan(b); });
    case reduce_type::min:
      return combine_all(in, n, count, out, scale, [](v a, v b) { return a.min_nan(b); });
    case reduce_type::product:
      return combine_all(in, n, count, out, scale, [](v a, v b) { return a * b; });
    default: return combine_all(in, n, count, out, scale, [](v a, v b) { return a + b; });
  }
}

}  // namespace detail

template <class>
void sum_replicas(reduce_type how, dtype type, const void* const* in, int n, std::int64_t count,
                  void* out) {
  switch (type) {
    case dtype::float32: return detail::combine_as<float>(how, in, n, count, out);
    case dtype::float64: return detail::combine_as<double>(how, in, n, count, out);
    default: return detail::combine_as<std::int64_t>(how, in, n, count, out);
  }
}
#endif

}  // namespace xla::kernel
