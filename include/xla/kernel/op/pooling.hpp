// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "xla/kernel/block_sum.hpp"
#include "xla/kernel/channels.hpp"
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

/// Calls f(place, how many packets, lanes) for packets that make up n elements, four at a time as
/// far as they are there.
template <class T, class F>
XLA_INLINE void in_packets(std::int64_t n, F f) {
  constexpr int w = kernel::lanes<T>;
  std::int64_t k = 0;
  for (; k + 4 * w <= n; k += 4 * w) f(k, std::integral_constant<int, 4>{}, kernel::all_lanes{});
  for (; k + w <= n; k += w) f(k, std::integral_constant<int, 1>{}, kernel::all_lanes{});
  if constexpr (w > 1)
    if (k < n) f(k, std::integral_constant<int, 1>{}, n - k);
}

/// Images that lie plane by plane, as vectors want them: some planes at a time are turned, so that
/// they are channels, which are innermost.
template <class T>
class turned_planes {
 public:
  /// How many, at least, are worth the turns.
  static constexpr std::int64_t least = 4;

  turned_planes(const kernel_call& call, op::pooling::attributes a, int inputs)
      : call_(call), last_(a.channels_last), inputs_(inputs) {
    a.channels_last = true;
    call_.attr = pack_fields(a);
  }
  static bool pays(const kernel::window_grid& g) {
    return kernel::is_vector<T> && g.inner == 1 && g.planes >= least;
  }

  /// Calls f with a call for each of the parts.
  template <class F>
  void run(F f) const {
    constexpr std::int64_t together = kernel::lanes<T>;
    const shape& out = *call_.out_shape;
    const std::int64_t planes = last_ ? out[0] : out[0] * out[1];
    const std::int64_t strips = (planes + together - 1) / together;
    kernel::for_ranges(strips, elements() * together, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        strip(i * together, std::min(together, planes - i * together), f);
    });
  }

 private:
  static constexpr int most = 2;
  std::int64_t of_plane(const shape& s) const { return last_ ? s[1] * s[2] : s[2] * s[3]; }
  shape turned(const shape& s, std::int64_t planes) const {
    return {4, {1, s[last_ ? 1 : 2], s[last_ ? 2 : 3], planes}};
  }
  std::int64_t elements() const {
    std::int64_t n = of_plane(*call_.out_shape);
    for (int k = 0; k < inputs_; ++k) n += of_plane(call_.in_shapes[k]);
    return n;
  }
  template <class F>
  void strip(std::int64_t plane, std::int64_t planes, F f) const {
    working_memory memory;
    T* to = static_cast<T*>(memory.take(static_cast<std::size_t>(elements() * planes) * sizeof(T)));
    const void* in[most];
    shape in_shapes[most];
    for (int k = 0; k < inputs_; ++k) {
      const std::int64_t n = of_plane(call_.in_shapes[k]);
      kernel::transpose_matrices(static_cast<const T*>(call_.in[k]) + plane * n, 1, planes, n, to);
      in[k] = to;
      in_shapes[k] = turned(call_.in_shapes[k], planes);
      to += n * planes;
    }
    const shape out_shape = turned(*call_.out_shape, planes);
    kernel_call part = call_;
    part.in = in;
    part.in_shapes = in_shapes;
    part.out = to;
    part.out_shape = &out_shape;
    f(part);
    const std::int64_t n = of_plane(*call_.out_shape);
    kernel::transpose_matrices(static_cast<const T*>(to), 1, n, planes,
                               static_cast<T*>(call_.out) + plane * n);
  }

  kernel_call call_;
  bool last_;
  int inputs_;
};

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
  /// Whether windows in a row, which are no vectors in memory, are slower than planes turned, as
  /// far as these stay in cache.
  bool turns() const {
    constexpr std::int64_t cache = 1 << 20;
    return turned_planes<T>::pays(grid_) && (grid_.shift != 1 || grid_.columns.windows < w) &&
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
    in_packets<T>(
        n, [&](std::int64_t k, auto packets, auto lanes) __attribute__((always_inline)) {
          fold<Mean, packets()>(x + k, w, under, to + k, size, lanes, read);
        });
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
    const auto a = call.attributes<op::max_pool>();
    const window_fold<largest_of<T>, T> fold(call, a);
    if (fold.turns()) return turned_planes<T>(call, a, 1).run(&run);
    fold.template run<false>();
  }
};

template <class Out, class T>
struct kernel_of<op::avg_pool, Out, T> {
  static void run(const kernel_call& call) {
    constexpr std::int64_t many = 64;
    const auto a = call.attributes<op::avg_pool>();
    const window_fold<sum_of<T, false>, T> plain(call, a);
    if (plain.turns()) return turned_planes<T>(call, a, 1).run(&run);
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
    std::int64_t at = p * grid.windows() * grid.inner + channel, cleared = 0;
    for (std::int64_t i = 0; i < grid.rows.windows; ++i) {
      const kernel::window r = grid.rows.at(i);
      const std::int64_t end = r.count > 0 ? r.first + (r.count - 1) * grid.rows.dilation + 1 : 0;
      clear(image, cleared, end, channels);
      cleared = std::max(cleared, end);
      for (std::int64_t j = 0; j < grid.columns.windows; ++j, at += grid.inner) {
        const kernel::window& c = grid.column(j);
        add(at, kernel::window_elements(grid, r, c), image, r.size * c.size, channels);
      }
    }
    clear(image, cleared, grid.rows.image, channels);
  }
  // Rows of an image, just before windows add to them.
  void clear(std::int64_t image, std::int64_t row, std::int64_t end, std::int64_t channels) const {
    const std::int64_t first = row * grid.columns.image, last = end * grid.columns.image;
    T* const to = out_ + image;
    if (channels == grid.inner && first < last)
      return void(std::fill_n(to + first * channels, (last - first) * channels, T{}));
    for (std::int64_t i = first; i < last; ++i) std::fill_n(to + i * grid.inner, channels, T{});
  }
  T* out_;
};

template <class Out, class T>
struct kernel_of<op::avg_pool_spread, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::avg_pool_spread>();
    const window_spread<T> spread(call, a);
    if (turned_planes<T>::pays(spread.grid)) turned_planes<T>(call, a, 1).run(&run);
    else add(spread, static_cast<const T*>(call.in[0]), static_cast<T*>(call.out), a.sums);
  }

 private:
  static void add(const window_spread<T>& spread, const T* numbers, T* out, bool sums) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    spread.run([=](std::int64_t from, const kernel::window_elements& under, std::int64_t image,
                   std::int64_t size, std::int64_t channels) {
      const T by = static_cast<T>(sums ? 1 : size);
      if (channels == 1) {
        const T part = numbers[from] / by;
        return under.each([&](std::int64_t at) { out[image + at] += part; });
      }
      in_packets<T>(
          channels, [&](std::int64_t k, auto packets, auto lanes) __attribute__((always_inline)) {
            V part[packets()];
            kernel::unroll<packets()>([&](auto i) __attribute__((always_inline)) {
              part[i] = V{kernel::load_numbers(numbers + from + k + i * w, lanes)} / V::splat(by);
            });
            under.each([&](std::int64_t at) __attribute__((always_inline)) {
              kernel::unroll<packets()>([&](auto i) __attribute__((always_inline)) {
                T* const to = out + image + at + k + i * w;
                kernel::store_numbers(to, (V{kernel::load_numbers(to, lanes)} + part[i]).v, lanes);
              });
            });
          });
    });
  }
};

/// Where windows have their largest elements: the first of equals, the last NaN.
template <class T>
struct largest_place {
  using V = kernel::vec<T>;
  static constexpr int w = kernel::lanes<T>;

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
  /// Of some packets of channels, as numbers in the order of the window's elements.
  template <int Packets, class N>
  static XLA_INLINE void find(const T* x, const kernel::window_elements& under, N lanes, V* where) {
    V best[Packets], number = V::splat(T(0));
    for (int i = 0; i < Packets; ++i) {
      best[i] = V::splat(op::max::identity<T>);
      where[i] = number;
    }
    under.each([&](std::int64_t at) __attribute__((always_inline)) {
      kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
        const V next{kernel::load_numbers(x + at + i * w, lanes)};
        const auto better = next > best[i] || next != next;
        best[i] = better.select(next, best[i]);
        where[i] = better.select(number, where[i]);
      });
      number = number + V::splat(T(1));
    });
  }
  /// Calls f(place, truth of it being the largest's, packet) for each element of some packets of
  /// channels.
  template <int Packets, class N, class F>
  static XLA_INLINE void each(const T* x, const kernel::window_elements& under, N lanes, F f) {
    V where[Packets], number = V::splat(T(0));
    find<Packets>(x, under, lanes, where);
    under.each([&](std::int64_t at) __attribute__((always_inline)) {
      kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
        f(at + i * w, where[i] == number, i);
      });
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
    const auto a = call.attributes<op::max_pool_scatter>();
    const window_spread<T> spread(call, a);
    const bool counts = largest_place<T>::counts(spread.grid.largest());
    if (counts && turned_planes<T>::pays(spread.grid))
      return turned_planes<T>(call, a, 2).run(&run);
    add(spread, static_cast<const T*>(call.in[0]), static_cast<const T*>(call.in[1]),
        static_cast<T*>(call.out), counts && spread.grid.inner > 1);
  }

 private:
  static void add(const window_spread<T>& spread, const T* numbers, const T* x, T* out,
                  bool in_vectors) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    spread.run([=](std::int64_t from, const kernel::window_elements& under, std::int64_t image,
                   std::int64_t, std::int64_t channels) {
      if (!in_vectors) {
        for (std::int64_t k = 0; k < channels; ++k) {
          const std::int64_t at = largest_place<T>::of_one(x + image + k, under);
          if (at >= 0) out[image + k + at] += numbers[from + k];
        }
        return;
      }
      in_packets<T>(
          channels, [&](std::int64_t k, auto packets, auto lanes) __attribute__((always_inline)) {
            const V none = V::splat(T(0));
            V number[packets()];
            kernel::unroll<packets()>([&](auto i) __attribute__((always_inline)) {
              number[i] = V{kernel::load_numbers(numbers + from + k + i * w, lanes)};
            });
            largest_place<T>::template each<packets()>(
                x + image + k, under,
                lanes, [&](std::int64_t at, auto here, auto i) __attribute__((always_inline)) {
                  T* const to = out + image + at + k;
                  const V sum = V{kernel::load_numbers(to, lanes)} + here.select(number[i], none);
                  kernel::store_numbers(to, sum.v, lanes);
                });
          });
    });
  }
};

/// Calls f(where an image's plane begins, a window's elements, where its first number is) for each.
template <class F>
void for_each_window(const kernel::window_grid& g, F f) {
  const std::int64_t in_row = g.columns.windows * g.inner;
  if (in_row == 0) return;
  kernel::for_ranges(
      g.planes * g.rows.windows, in_row * g.largest(), [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          const kernel::window r = g.rows.at(i % g.rows.windows);
          const std::int64_t image = i / g.rows.windows * g.pixels() * g.inner;
          for (std::int64_t j = 0; j < g.columns.windows; ++j)
            f(image, kernel::window_elements(g, r, g.column(j)), i * in_row + j * g.inner);
        }
      });
}

template <class Out, class T>
struct kernel_of<op::max_pool_pick, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::max_pool_pick>();
    const kernel::window_grid g(call.in_shapes[1], *call.out_shape, a);
    const bool counts = largest_place<T>::counts(g.largest());
    if (counts && turned_planes<T>::pays(g)) return turned_planes<T>(call, a, 2).run(&run);
    const T* const values = static_cast<const T*>(call.in[0]);
    const T* const x = static_cast<const T*>(call.in[1]);
    T* const out = static_cast<T*>(call.out);
    const bool in_vectors = counts && g.inner > 1;
    for_each_window(g,
                    [&](std::int64_t image, const kernel::window_elements& under, std::int64_t to) {
                      pick(values + image, x + image, under, out + to, g.inner, in_vectors);
                    });
  }

 private:
  static void pick(const T* values, const T* x, const kernel::window_elements& under, T* to,
                   std::int64_t channels, bool in_vectors) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    if (!in_vectors) {
      for (std::int64_t k = 0; k < channels; ++k) {
        const std::int64_t at = largest_place<T>::of_one(x + k, under);
        to[k] = at < 0 ? T{} : values[k + at];
      }
      return;
    }
    in_packets<T>(
        channels, [&](std::int64_t k, auto packets, auto lanes) __attribute__((always_inline)) {
          V picked[packets()];
          for (V& one : picked) one = V::splat(T(0));
          largest_place<T>::template each<packets()>(
              x + k, under,
              lanes, [&](std::int64_t at, auto here, auto i) __attribute__((always_inline)) {
                picked[i] = here.select(V{kernel::load_numbers(values + at + k, lanes)}, picked[i]);
              });
          kernel::unroll<packets()>([&](auto i) __attribute__((always_inline)) {
            kernel::store_numbers(to + k + i * w, picked[i].v, lanes);
          });
        });
  }
};

template <class Out, class T>
struct kernel_of<op::max_pool_place, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::max_pool_place>();
    const kernel::window_grid g(call.in_shapes[0], *call.out_shape, a);
    const T* const x = static_cast<const T*>(call.in[0]);
    Out* const out = static_cast<Out*>(call.out);
    const bool in_vectors = g.inner > 1 && largest_place<T>::counts(g.largest());
    for_each_window(g,
                    [&](std::int64_t image, const kernel::window_elements& under, std::int64_t to) {
                      if (kernel::is_vector<T> && in_vectors && under.rows * under.columns > 0)
                        return places(x + image, under, out + to, g.inner);
                      for (std::int64_t k = 0; k < g.inner; ++k) {
                        const std::int64_t at = largest_place<T>::of_one(x + image + k, under);
                        out[to + k] = at < 0 ? 0 : at / g.inner;
                      }
                    });
  }

 private:
  static void places(const T* x, const kernel::window_elements& under, Out* to,
                     std::int64_t channels) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    if constexpr (w > 1)
      in_packets<T>(
          channels, [&](std::int64_t k, auto packets, auto lanes) __attribute__((always_inline)) {
            V where[packets()];
            largest_place<T>::template find<packets()>(x + k, under, lanes, where);
            T numbers[packets() * w];
            kernel::unroll<packets()>([&](auto i) __attribute__((always_inline)) {
              kernel::store_numbers(numbers + i * w, where[i].v, kernel::all_lanes{});
            });
            const std::int64_t n = std::min<std::int64_t>(packets() * w, channels - k);
            for (std::int64_t i = 0; i < n; ++i) {
              const auto number = static_cast<std::int64_t>(numbers[i]);
              const std::int64_t row = number / under.columns, column = number % under.columns;
              to[k + i] =
                  (under.first + row * under.row_step + column * under.column_step) / channels;
            }
          });
  }
};

}  // namespace xla::detail
