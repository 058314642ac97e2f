// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "xla/kernel/block_sum.hpp"
#include "xla/kernel/windows.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/max_pool.hpp"

namespace xla::detail {

/// The largest of some elements; NaN where one is.
template <class T>
struct largest_of {
  using V = kernel::vec<T>;
  static constexpr bool in_blocks = false;
  V best = V::splat(op::max::identity<T>);

  XLA_INLINE void add(V x) { best = best.max_nan(x); }
  XLA_INLINE V total() const { return best; }
};

/// Their sum, of many in blocks.
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

/// Calls f(place, lanes) for packets that make up n elements.
template <class T, class F>
XLA_INLINE void for_each_packet(std::int64_t n, F f) {
  constexpr int w = kernel::lanes<T>;
  std::int64_t k = 0;
  for (; k + w <= n; k += w) f(k, kernel::all_lanes{});
  if constexpr (w > 1)
    if (k < n) f(k, n - k);
}

/// Each window's elements brought together: several windows, or channels of one, at a time.
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
      const std::int64_t beside = grid_.inner == 1 ? c.run : 1;
      const kernel::window_elements under(grid_, r, c);
      const std::int64_t n = beside * grid_.inner;
      const T size = static_cast<T>(Mean && divides_ ? r.size * c.size : 1);
      if (grid_.inner == 1 && grid_.shift != 1) apart<Mean>(x, under, n, to, size);
      else near<Mean>(x, under, n, to, size);
      j += beside;
      to += n;
    }
  }
  // Neighbours: channels, or windows one element apart.
  template <bool Mean>
  static void near(const T* x, const kernel::window_elements& under, std::int64_t n, T* to,
                   T size) {
    const auto read = [](const T* p, auto lanes) __attribute__((always_inline)) {
      return V{kernel::load_numbers(p, lanes)};
    };
    std::int64_t k = 0;
    for (; k + 4 * w <= n; k += 4 * w)
      fold<Mean, 4>(x + k, w, under, to + k, size, kernel::all_lanes{}, read);
    for (; k + w <= n; k += w)
      fold<Mean, 1>(x + k, w, under, to + k, size, kernel::all_lanes{}, read);
    if constexpr (w > 1)
      if (k < n) fold<Mean, 1>(x + k, w, under, to + k, size, n - k, read);
  }
  // Windows in a row further apart.
  template <bool Mean>
  void apart(const T* x, const kernel::window_elements& under, std::int64_t n, T* to,
             T size) const {
    const std::int64_t step = grid_.shift;
    std::int64_t k = 0;
    if constexpr (w > 1)
      for (; k + w <= n; k += w)
        fold<Mean, 1>(
            x + k * step, 0, under, to + k, size,
            kernel::all_lanes{}, [=](const T* p, auto) __attribute__((always_inline)) {
              return V{kernel::simd::pgather<T, kernel::packet<T>>(p, step)};
            });
    for (; k < n; ++k) near<Mean>(x + k * step, under, 1, to + k, size);
  }
  template <bool Mean, int Packets, class N, class Read>
  static XLA_INLINE void fold(const T* x, std::int64_t next, const kernel::window_elements& under,
                              T* to, T size, N lanes, Read read) {
    Fold all[Packets];
    std::int64_t open = 0;
    under.each([&](std::int64_t at) __attribute__((always_inline)) {
      kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
        all[i].add(read(x + at + i * next, lanes));
      });
      if constexpr (Fold::in_blocks) {
        if (++open < kernel::block_terms) return;
        for (Fold& one : all) one.close();
        open = 0;
      }
    });
    kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
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
    window_fold<largest_of<T>, T>(call, call.attributes<op::max_pool>()).template run<false>();
  }
};

template <class Out, class T>
struct kernel_of<op::avg_pool, Out, T> {
  static void run(const kernel_call& call) {
    constexpr std::int64_t many = 64;
    const auto a = call.attributes<op::avg_pool>();
    const window_fold<sum_of<T, false>, T> plain(call, a);
    if (plain.grid().largest() <= many) return plain.template run<true>();
    window_fold<sum_of<T, true>, T>(call, a).template run<true>();
  }
};

/// Images that windows add to: those of a plane, or of some of its channels, on one thread, in the
/// order of the windows.
template <class T>
class window_spread {
 public:
  window_spread(const kernel_call& call, const op::pooling::attributes& a)
      : grid(*call.out_shape, call.in_shapes[0], a), out_(static_cast<T*>(call.out)) {}

  kernel::window_grid grid;

  /// Calls add(place of a window's first number among the others, its elements, the image's plane
  /// in memory, size, how many channels) for each.
  template <class F>
  void run(F add) const {
    if (grid.planes * grid.inner == 0) return;
    const bool divide = grid.planes < num_threads() && grid.inner > some_channels;
    const std::int64_t block = divide ? some_channels : grid.inner;
    const std::int64_t blocks = (grid.inner + block - 1) / block;
    kernel::for_ranges(grid.planes * blocks,
                       block * (grid.pixels() + grid.windows() * grid.largest()),
                       [&](std::int64_t first, std::int64_t last) {
                         for (std::int64_t i = first; i < last; ++i) {
                           const std::int64_t channel = i % blocks * block;
                           plane(i / blocks, channel, std::min(block, grid.inner - channel), add);
                         }
                       });
  }

 private:
  static constexpr std::int64_t some_channels = 64;

  template <class F>
  void plane(std::int64_t p, std::int64_t channel, std::int64_t channels, F add) const {
    const std::int64_t image = p * grid.pixels() * grid.inner + channel;
    for (std::int64_t i = 0; i < grid.pixels(); ++i)
      std::fill_n(out_ + image + i * grid.inner, channels, T{});
    std::int64_t at = p * grid.windows() * grid.inner + channel;
    for (std::int64_t i = 0; i < grid.rows.windows; ++i) {
      const kernel::window r = grid.rows.at(i);
      for (std::int64_t j = 0; j < grid.columns.windows; ++j, at += grid.inner) {
        const kernel::window& c = grid.column(j);
        add(at, kernel::window_elements(grid, r, c), image, r.size * c.size, channels);
      }
    }
  }
  T* out_;
};

template <class Out, class T>
struct kernel_of<op::avg_pool_spread, Out, T> {
  static void run(const kernel_call& call) {
    using V = kernel::vec<T>;
    const auto a = call.attributes<op::avg_pool_spread>();
    const T* const numbers = static_cast<const T*>(call.in[0]);
    T* const out = static_cast<T*>(call.out);
    window_spread<T>(call, a).run([=](std::int64_t from, const kernel::window_elements& under,
                                      std::int64_t image, std::int64_t size,
                                      std::int64_t channels) {
      const T by = static_cast<T>(a.sums ? 1 : size);
      if (channels == 1) {
        const T part = numbers[from] / by;
        return under.each([&](std::int64_t at) { out[image + at] += part; });
      }
      for_each_packet<T>(
          channels, [&](std::int64_t k, auto lanes) __attribute__((always_inline)) {
            const V part = V{kernel::load_numbers(numbers + from + k, lanes)} / V::splat(by);
            under.each([&](std::int64_t at) __attribute__((always_inline)) {
              T* const to = out + image + at + k;
              kernel::store_numbers(to, (V{kernel::load_numbers(to, lanes)} + part).v, lanes);
            });
          });
    });
  }
};

/// Where windows have their largest elements: the first of equals, the last NaN.
template <class T>
struct largest_place {
  using V = kernel::vec<T>;

  /// Of one channel, which begins at x; -1 where nothing lies under the window.
  static std::int64_t of_one(const T* x, const kernel::window_elements& under) {
    T best = op::max::identity<T>;
    std::int64_t where = under.rows * under.columns > 0 ? under.first : -1;
    under.each([&](std::int64_t at) {
      if (!(x[at] > best || x[at] != x[at])) return;
      best = x[at];
      where = at;
    });
    return where;
  }
  /// Of a packet of channels, as numbers in the order of the window's elements.
  template <class N>
  static XLA_INLINE V of_packet(const T* x, const kernel::window_elements& under, N lanes) {
    V best = V::splat(op::max::identity<T>), where = V::splat(T(0)), number = where;
    under.each([&](std::int64_t at) __attribute__((always_inline)) {
      const V next{kernel::load_numbers(x + at, lanes)};
      const auto better = next > best || next != next;
      best = better.select(next, best);
      where = better.select(number, where);
      number = number + V::splat(T(1));
    });
    return where;
  }
  /// Calls f(place, truth of it being the largest's) for each element of a packet of channels.
  template <class N, class F>
  static XLA_INLINE void each(const T* x, const kernel::window_elements& under, N lanes, F f) {
    const V where = of_packet(x, under, lanes);
    V number = V::splat(T(0));
    under.each([&](std::int64_t at) __attribute__((always_inline)) {
      f(at, where == number);
      number = number + V::splat(T(1));
    });
  }
  /// Whether T counts that far without rounding.
  static bool counts(std::int64_t elements) {
    return elements <= std::int64_t{1} << std::numeric_limits<T>::digits;
  }
};

template <class Out, class T>
struct kernel_of<op::max_pool_scatter, Out, T> {
  static void run(const kernel_call& call) {
    using V = kernel::vec<T>;
    const T* const numbers = static_cast<const T*>(call.in[0]);
    const T* const x = static_cast<const T*>(call.in[1]);
    T* const out = static_cast<T*>(call.out);
    const window_spread<T> spread(call, call.attributes<op::max_pool_scatter>());
    const bool packets = spread.grid.inner > 1 && largest_place<T>::counts(spread.grid.largest());
    spread.run([=](std::int64_t from, const kernel::window_elements& under, std::int64_t image,
                   std::int64_t, std::int64_t channels) {
      if (!packets) {
        for (std::int64_t k = 0; k < channels; ++k) {
          const std::int64_t at = largest_place<T>::of_one(x + image + k, under);
          if (at >= 0) out[image + k + at] += numbers[from + k];
        }
        return;
      }
      for_each_packet<T>(
          channels, [&](std::int64_t k, auto lanes) __attribute__((always_inline)) {
            const V number{kernel::load_numbers(numbers + from + k, lanes)}, none = V::splat(T(0));
            largest_place<T>::each(
                x + image + k, under,
                lanes, [&](std::int64_t at, auto here) __attribute__((always_inline)) {
                  T* const to = out + image + at + k;
                  const V sum = V{kernel::load_numbers(to, lanes)} + here.select(number, none);
                  kernel::store_numbers(to, sum.v, lanes);
                });
          });
    });
  }
};

template <class Out, class T>
struct kernel_of<op::max_pool_pick, Out, T> {
  static void run(const kernel_call& call) {
    using V = kernel::vec<T>;
    const T* const values = static_cast<const T*>(call.in[0]);
    const T* const x = static_cast<const T*>(call.in[1]);
    T* const out = static_cast<T*>(call.out);
    const kernel::window_grid g(call.in_shapes[1], *call.out_shape,
                                call.attributes<op::max_pool_pick>());
    const std::int64_t in_row = g.columns.windows * g.inner;
    if (in_row == 0) return;
    const bool packets = g.inner > 1 && largest_place<T>::counts(g.largest());
    const auto window = [&](std::int64_t image, const kernel::window_elements& under, T* to) {
      if (!packets) {
        for (std::int64_t k = 0; k < g.inner; ++k) {
          const std::int64_t at = largest_place<T>::of_one(x + image + k, under);
          to[k] = at < 0 ? T{} : values[image + k + at];
        }
        return;
      }
      for_each_packet<T>(
          g.inner, [&](std::int64_t k, auto lanes) __attribute__((always_inline)) {
            V picked = V::splat(T(0));
            largest_place<T>::each(
                x + image + k, under,
                lanes, [&](std::int64_t at, auto here) __attribute__((always_inline)) {
                  picked =
                      here.select(V{kernel::load_numbers(values + image + at + k, lanes)}, picked);
                });
            kernel::store_numbers(to + k, picked.v, lanes);
          });
    };
    kernel::for_ranges(g.planes * g.rows.windows, in_row * g.largest(),
                       [&](std::int64_t first, std::int64_t last) {
                         for (std::int64_t i = first; i < last; ++i) {
                           const kernel::window r = g.rows.at(i % g.rows.windows);
                           const std::int64_t image = i / g.rows.windows * g.pixels() * g.inner;
                           for (std::int64_t j = 0; j < g.columns.windows; ++j)
                             window(image, kernel::window_elements(g, r, g.column(j)),
                                    out + i * in_row + j * g.inner);
                         }
                       });
  }
};

}  // namespace xla::detail
