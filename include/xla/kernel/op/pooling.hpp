// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of max_pool and avg_pool. convolution/windows.hpp gives the elements of a window;
// pooling_gradient.hpp has the gradients.

#include <cstdint>

#include "xla/base/compiler.hpp"
#include "xla/kernel/convolution/windows.hpp"
#include "xla/kernel/op/transposed_planes.hpp"
#include "xla/kernel/reduce/block_sum.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/max_pool.hpp"

namespace xla::detail {

/// The largest of some elements; NaN if one is.
template <class T>
struct largest_of {
  using V = kernel::vec<T>;
  static constexpr bool in_blocks = false;
  V best = V::splat(op::max::identity<T>);

  XLA_INLINE void add(V x) { best = best.max_nan(x); }
  XLA_INLINE V total() const { return best; }
};

/// Their sum, in blocks if there are many.
template <class T, bool Many>
struct sum_of {
  using V = kernel::vec<T>;
  static constexpr bool in_blocks = Many;
  V sum = V::splat(T(0));
  kernel::block_sum<V> blocks{sum, sum};

  XLA_INLINE void add(V x) { sum = sum + x; }
  XLA_INLINE void close() {
    blocks.add(sum);
    sum = V::splat(T(0));
  }
  XLA_INLINE V total() const {
    if constexpr (!Many) return sum;
    kernel::block_sum<V> all = blocks;
    all.add(sum);
    return all.total();
  }
};

/// Combines each window's elements: of several windows, or of several channels of one, at a time.
template <class Fold, class T>
class window_fold {
  using V = kernel::vec<T>;
  static constexpr int w = kernel::lanes<T>;

 public:
  window_fold(const kernel_call& call, const op::pooling::attributes& a)
      : grid_(call.in_shapes[0], *call.out_shape, a),
        divides_(!a.sums),
        x_(static_cast<const T*>(call.in[0])),
        out_(static_cast<T*>(call.out)) {}

  const kernel::window_grid& grid() const { return grid_; }
  /// Whether transposing planes, as far as they stay in cache, is faster than windows in a row,
  /// which are not vectors in memory.
  bool transposes() const {
    constexpr std::int64_t cache = 1 << 20;
    return transposed_planes<T>::pays(grid_) && (grid_.shift != 1 || grid_.columns.windows < w) &&
           grid_.pixels() * w * std::int64_t{sizeof(T)} <= cache;
  }

  template <bool Mean>
  void run() const {
    const std::int64_t in_row = grid_.columns.windows * grid_.inner;
    if (in_row == 0) return;
    kernel::for_ranges(grid_.planes * grid_.rows.windows, in_row * grid_.largest(),
                       [&](std::int64_t first, std::int64_t last) {
                         for (std::int64_t i = first; i < last; ++i) row<Mean>(i);
                       });
  }

 private:
  template <bool Mean>
  void row(std::int64_t i) const {
    const std::int64_t plane = i / grid_.rows.windows;
    const kernel::window r = grid_.rows.at(i % grid_.rows.windows);
    const T* const x = x_ + plane * grid_.pixels() * grid_.inner;
    T* to = out_ + i * grid_.columns.windows * grid_.inner;
    for (std::int64_t j = 0; j < grid_.columns.windows;) {
      const kernel::window& c = grid_.column(j);
      const std::int64_t at_once = grid_.inner == 1 ? c.run : 1;
      const kernel::window_elements under(grid_, r, c);
      const std::int64_t n = at_once * grid_.inner;
      const T size = static_cast<T>(Mean && divides_ ? r.size * c.size : 1);
      if (grid_.inner == 1 && grid_.shift != 1) strided<Mean>(x, under, n, to, size);
      else near<Mean>(x, under, n, to, size);
      j += at_once;
      to += n;
    }
  }
  // Neighbouring results: channels, or windows one element apart.
  template <bool Mean>
  static void near(const T* x, const kernel::window_elements& under, std::int64_t n, T* to,
                   T size) {
    const auto read = [](const T* p, auto lanes)
                          XLA_INLINE_LAMBDA { return V{kernel::load_numbers(p, lanes)}; };
    in_packets<T>(n, [&](std::int64_t k, auto packets, auto lanes) XLA_INLINE_LAMBDA {
      fold<Mean, packets()>(x + k, w, under, to + k, size, lanes, read);
    });
  }
  // Windows in a row that are further apart.
  template <bool Mean>
  void strided(const T* x, const kernel::window_elements& under, std::int64_t n, T* to,
               T size) const {
    const std::int64_t step = grid_.shift;
    std::int64_t k = 0;
    if constexpr (w > 1)
      for (; k + w <= n; k += w)
        fold<Mean, 1>(x + k * step, 0, under, to + k, size, kernel::all_lanes{},
                      [=](const T* p, auto) XLA_INLINE_LAMBDA {
                        return V{kernel::simd::pgather<T, kernel::packet<T>>(p, step)};
                      });
    for (; k < n; ++k) near<Mean>(x + k * step, under, 1, to + k, size);
  }
  template <bool Mean, int Packets, class N, class Read>
  static XLA_INLINE void fold(const T* x, std::int64_t next, const kernel::window_elements& under,
                              T* to, T size, N lanes, Read read) {
    Fold all[Packets];
    std::int64_t open = 0;
    under.each([&](std::int64_t at) XLA_INLINE_LAMBDA {
      kernel::unroll<Packets>(
          [&](auto i) XLA_INLINE_LAMBDA { all[i].add(read(x + at + i * next, lanes)); });
      if constexpr (Fold::in_blocks) {
        if (++open < kernel::block_terms) return;
        for (Fold& one : all) one.close();
        open = 0;
      }
    });
    kernel::unroll<Packets>([&](auto i) XLA_INLINE_LAMBDA {
      V y = all[i].total();
      if constexpr (Mean) y = y / V::splat(size);
      kernel::store_numbers(to + i * w, kernel::packet<T>(y.v), lanes);
    });
  }

  kernel::window_grid grid_;
  bool divides_;
  const T* x_;
  T* out_;
};

template <class Out, class T>
struct kernel_of<op::max_pool, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::max_pool>();
    const window_fold<largest_of<T>, T> fold(call, a);
    if (fold.transposes()) return transposed_planes<T>(call, a, 1).run(&run);
    fold.template run<false>();
  }
};

template <class Out, class T>
struct kernel_of<op::avg_pool, Out, T> {
  static void run(const kernel_call& call) {
    constexpr std::int64_t many = 64;
    const auto a = call.attributes<op::avg_pool>();
    const window_fold<sum_of<T, false>, T> plain(call, a);
    if (plain.transposes()) return transposed_planes<T>(call, a, 1).run(&run);
    if (plain.grid().largest() <= many) return plain.template run<true>();
    window_fold<sum_of<T, true>, T>(call, a).template run<true>();
  }
};

}  // namespace xla::detail
