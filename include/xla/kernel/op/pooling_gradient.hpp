// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of pooling's gradients: windows add to the images that they cover, in a fixed order.

#include <algorithm>
#include <limits>

#include "xla/base/compiler.hpp"
#include "xla/kernel/convolution/windows.hpp"
#include "xla/kernel/op/transposed_planes.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/max_pool.hpp"

namespace xla::detail {

/// The images that windows add their gradients to. One thread handles a plane, or some of its
/// channels, in the order of the windows, so that sums have one order.
template <class T>
class window_backward {
 public:
  window_backward(const kernel_call& call, const op::pooling::attributes& a)
      : grid(*call.out_shape, call.in_shapes[0], a), out_(static_cast<T*>(call.out)) {}

  kernel::window_grid grid;

  /// Calls add(index of a window's value in its plane, its elements, the image's plane in memory,
  /// size, number of channels) for each window.
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
  // Called for rows of an image just before windows add to them.
  void clear(std::int64_t image, std::int64_t row, std::int64_t end, std::int64_t channels) const {
    const std::int64_t first = row * grid.columns.image, last = end * grid.columns.image;
    T* const to = out_ + image;
    if (channels == grid.inner && first < last)
      return void(std::fill_n(to + first * channels, (last - first) * channels, T{}));
    for (std::int64_t i = first; i < last; ++i) std::fill_n(to + i * grid.inner, channels, T{});
  }
  T* out_;
};

/// The gradient of avg_pool: each window's number is added to the elements under it.
template <class Out, class T>
struct kernel_of<op::avg_pool_backward, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::avg_pool_backward>();
    const window_backward<T> spread(call, a);
    if (transposed_planes<T>::pays(spread.grid)) transposed_planes<T>(call, a, 1).run(&run);
    else add(spread, static_cast<const T*>(call.in[0]), static_cast<T*>(call.out), a.sums);
  }

 private:
  static void add(const window_backward<T>& spread, const T* numbers, T* out, bool sums) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    spread.run([=](std::int64_t from, const kernel::window_elements& under, std::int64_t image,
                   std::int64_t size, std::int64_t channels) {
      const T by = static_cast<T>(sums ? 1 : size);
      if (channels == 1) {
        const T part = numbers[from] / by;
        return under.each([&](std::int64_t at) { out[image + at] += part; });
      }
      in_packets<T>(channels, [&](std::int64_t k, auto packets, auto lanes) XLA_INLINE_LAMBDA {
        V part[packets()];
        kernel::unroll<packets()>([&](auto i) XLA_INLINE_LAMBDA {
          part[i] = V{kernel::load_numbers(numbers + from + k + i * w, lanes)} / V::splat(by);
        });
        under.each([&](std::int64_t at) XLA_INLINE_LAMBDA {
          kernel::unroll<packets()>([&](auto i) XLA_INLINE_LAMBDA {
            T* const to = out + image + at + k + i * w;
            kernel::store_numbers(to, (V{kernel::load_numbers(to, lanes)} + part[i]).v, lanes);
          });
        });
      });
    });
  }
};

/// The positions of windows' largest elements: of equal ones the first, of NaNs the last.
template <class T>
struct largest_position {
  using V = kernel::vec<T>;
  static constexpr int w = kernel::lanes<T>;

  /// For one channel, which begins at x; -1 if the window has no element.
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
  /// For some packets of channels: the position of the largest element among the window's elements,
  /// as a number.
  template <int Packets, class N>
  static XLA_INLINE void find(const T* x, const kernel::window_elements& under, N lanes, V* where) {
    V best[Packets], number = V::splat(T(0));
    for (int i = 0; i < Packets; ++i) {
      best[i] = V::splat(op::max::identity<T>);
      where[i] = number;
    }
    under.each([&](std::int64_t at) XLA_INLINE_LAMBDA {
      kernel::unroll<Packets>([&](auto i) XLA_INLINE_LAMBDA {
        const V next{kernel::load_numbers(x + at + i * w, lanes)};
        const auto better = next > best[i] || next != next;
        best[i] = better.select(next, best[i]);
        where[i] = better.select(number, where[i]);
      });
      number = number + V::splat(T(1));
    });
  }
  /// Calls f(position, mask of the lanes whose largest element it is, packet) for each element, for
  /// some packets of channels.
  template <int Packets, class N, class F>
  static XLA_INLINE void each(const T* x, const kernel::window_elements& under, N lanes, F f) {
    V where[Packets], number = V::splat(T(0));
    find<Packets>(x, under, lanes, where);
    under.each([&](std::int64_t at) XLA_INLINE_LAMBDA {
      kernel::unroll<Packets>([&](auto i)
                                  XLA_INLINE_LAMBDA { f(at + i * w, where[i] == number, i); });
      number = number + V::splat(T(1));
    });
  }
  /// Whether T represents all positions of a window exactly.
  static bool counts(std::int64_t elements) {
    return elements <= std::int64_t{1} << std::numeric_limits<T>::digits;
  }
};

/// The gradient of max_pool: adds the gradient of each window at its largest element.
template <class Out, class T>
struct kernel_of<op::max_pool_scatter, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::max_pool_scatter>();
    const window_backward<T> spread(call, a);
    const bool counts = largest_position<T>::counts(spread.grid.largest());
    if (counts && transposed_planes<T>::pays(spread.grid))
      return transposed_planes<T>(call, a, 2).run(&run);
    add(spread, static_cast<const T*>(call.in[0]), static_cast<const T*>(call.in[1]),
        static_cast<T*>(call.out), counts && spread.grid.inner > 1);
  }

 private:
  static void add(const window_backward<T>& spread, const T* numbers, const T* x, T* out,
                  bool in_vectors) {
    using V = kernel::vec<T>;
    constexpr int w = kernel::lanes<T>;
    spread.run([=](std::int64_t from, const kernel::window_elements& under, std::int64_t image,
                   std::int64_t, std::int64_t channels) {
      if (!in_vectors) {
        for (std::int64_t k = 0; k < channels; ++k) {
          const std::int64_t at = largest_position<T>::of_one(x + image + k, under);
          if (at >= 0) out[image + k + at] += numbers[from + k];
        }
        return;
      }
      in_packets<T>(channels, [&](std::int64_t k, auto packets, auto lanes) XLA_INLINE_LAMBDA {
        const V none = V::splat(T(0));
        V number[packets()];
        kernel::unroll<packets()>([&](auto i) XLA_INLINE_LAMBDA {
          number[i] = V{kernel::load_numbers(numbers + from + k + i * w, lanes)};
        });
        largest_position<T>::template each<packets()>(
            x + image + k, under, lanes, [&](std::int64_t at, auto here, auto i) XLA_INLINE_LAMBDA {
              T* const to = out + image + at + k;
              const V sum = V{kernel::load_numbers(to, lanes)} + here.select(number[i], none);
              kernel::store_numbers(to, sum.v, lanes);
            });
      });
    });
  }
};

/// Calls f(begin of an image's plane, a window's elements, begin of its numbers) for each window.
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

/// For each window, the element of another image at the position of the largest element: the
/// gradient of max_pool_scatter.
template <class Out, class T>
struct kernel_of<op::max_pool_gather, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::max_pool_gather>();
    const kernel::window_grid g(call.in_shapes[1], *call.out_shape, a);
    const bool counts = largest_position<T>::counts(g.largest());
    if (counts && transposed_planes<T>::pays(g)) return transposed_planes<T>(call, a, 2).run(&run);
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
        const std::int64_t at = largest_position<T>::of_one(x + k, under);
        to[k] = at < 0 ? T{} : values[k + at];
      }
      return;
    }
    in_packets<T>(channels, [&](std::int64_t k, auto packets, auto lanes) XLA_INLINE_LAMBDA {
      V picked[packets()];
      for (V& one : picked) one = V::splat(T(0));
      largest_position<T>::template each<packets()>(
          x + k, under, lanes, [&](std::int64_t at, auto here, auto i) XLA_INLINE_LAMBDA {
            picked[i] = here.select(V{kernel::load_numbers(values + at + k, lanes)}, picked[i]);
          });
      kernel::unroll<packets()>([&](auto i) XLA_INLINE_LAMBDA {
        kernel::store_numbers(to + k + i * w, picked[i].v, lanes);
      });
    });
  }
};

}  // namespace xla::detail
