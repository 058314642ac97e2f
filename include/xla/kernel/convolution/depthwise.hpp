// SPDX-License-Identifier: Apache-2.0
#pragma once

// The algorithm `small groups`: depthwise convolutions, and groups of a few channels, as many in as
// out. It adds up vectors of channels directly, without a product of matrices. Rows of the result
// are computed by strips of seven columns, which divide most widths, where the kernel is 3 or 5
// wide and the stride 1 or 2; else pixel by pixel. algorithms.hpp chooses it.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "xla/kernel/convolution/row_pairs.hpp"
#include "xla/kernel/convolution/sizes.hpp"
#include "xla/kernel/fused/epilogue.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"
#include "xla/kernel/reduce/block_sum.hpp"

namespace xla::kernel {
namespace detail {

/// Whether a vector register has room for whole groups of channels.
template <class T>
constexpr bool in_small_groups(const conv_sizes& c) {
  const index_t group = c.in / c.groups;
  return c.out == c.in && (group == 1 || group == 2 || group == 4 || group == 8) &&
         group <= lanes<T>;
}

/// Calls f(a group's channels).
template <class T, class F>
void with_group(const conv_sizes& c, F f) {
  const index_t group = c.in / c.groups;
  if (group == 1) return f(std::integral_constant<int, 1>{});
  if constexpr (lanes<T> >= 2)
    if (group == 2) return f(std::integral_constant<int, 2>{});
  if constexpr (lanes<T> >= 4)
    if (group == 4) return f(std::integral_constant<int, 4>{});
  if constexpr (lanes<T> >= 8)
    if (group == 8) return f(std::integral_constant<int, 8>{});
}

/// Calls f(kernel width, stride) if there is a kernel for strips of columns, and returns whether
/// there is. There is none for double, which networks rarely use, to save code.
template <class T, int Group, class F>
bool with_strips(const conv_sizes& c, F f) {
  if constexpr (std::is_same_v<T, float> && Group != 2) {
    if (c.dilation[1] != 1 || c.in < lanes<T> || c.kernel[0] >= kernel_rows<T>::most) return false;
    const auto stride = [&](auto kernel) {
      if (c.stride[1] == 1) return f(kernel, std::integral_constant<int, 1>{});
      if (c.stride[1] == 2) return f(kernel, std::integral_constant<int, 2>{});
      return false;
    };
    if (c.kernel[1] == 3) return stride(std::integral_constant<int, 3>{});
    if constexpr (Group == 1)
      if (c.kernel[1] == 5) return stride(std::integral_constant<int, 5>{});
  }
  return false;
}

/// Weights as [tap][r][channel]. Those for input gradients are transposed, and mirrored if strips
/// of stride 1 compute these.
template <int Group, class T>
void pack_small_groups(const conv_sizes& c, conv_direction d, const conv_weights<T>& w, T* to) {
  const index_t wide = c.kernel[1];
  const bool transposed = d == conv_direction::input_gradient;
  const bool mirrored =
      transposed && with_strips<T, Group>(c, [](auto, auto stride) { return stride == 1; });
  for (index_t k = 0; k < c.kernel[0]; ++k)
    for (index_t j = 0; j < wide; ++j) {
      const T* const tap = w.data + (k * wide + (mirrored ? wide - 1 - j : j)) * w.tap_stride;
      for (int r = 0; r < Group; ++r)
        for (index_t i = 0; i < c.in; ++i) {
          const index_t own = i % Group, met = met_channel<T, Group>(own, r);
          const index_t o = transposed ? i - own + met : i, of = transposed ? own : met;
          *to++ = tap[o * w.out_stride + of * w.in_stride];
        }
    }
}
/// The same weights: the cached ones, or a copy in this thread's memory.
template <int Group, class T>
const T* packed_small_groups(const conv_sizes& c, conv_direction d, const conv_weights<T>& w) {
  struct use;
  if (w.packed) return w.packed;
  auto* const to = static_cast<T*>(thread_scratch<use>(c.taps() * Group * c.in * element_size<T>));
  pack_small_groups<Group>(c, d, w, to);
  return to;
}

/// The size in bytes of images and result from which prefetching pays. The prefetcher of a Zen 3,
/// whose L2 is half that of later ones, falls behind from three sizes of it on, since each of
/// the nine columns of a strip is a short run. There, on 2026-11-30 and under load, 3x3
/// took with prefetching, relative to without: 144@56 0.4, with stride 2 1.1, 32@112 0.9, 384@14 in
/// batches of 8 0.4. On a Zen 5, batches of 8: 144@56 0.4 to 0.5, 72@56 0.25, 192@28 1.4.
template <class = void>
[[gnu::cold]] index_t prefetched_size() {
  return own_memory<> < 1 << 19 ? std::min(near_memory<>, 4 * own_memory<>) : near_memory<>;
}

/// Whether images and result are so large.
template <class T>
bool are_far(const conv_sizes& c) {
  const index_t pixels = c.height * c.width + c.out_height * c.out_width;
  return c.batch * pixels * c.in * element_size<T> > prefetched_size<>();
}

/// One direction of a convolution: every row of the result is a sum over rows of images.
template <class T>
struct small_groups_pass {
  using element = T;
  const conv_sizes& c;
  bool back;  ///< the input gradient
  const T* images;
  const T* weights;
  T* result;
  const epilogue* after = nullptr;
  bool far = are_far<T>(c);

  index_t size(int axis) const {
    return axis == 0 ? (back ? c.height : c.out_height) : (back ? c.width : c.out_width);
  }
  index_t image_size(int axis) const {
    return axis == 0 ? (back ? c.out_height : c.height) : (back ? c.out_width : c.width);
  }
  /// The image row or column that result position `at` reads with a tap; -1: outside of the image.
  index_t met(int axis, index_t at, index_t tap) const {
    index_t position = tap * c.dilation[axis] - c.padding[axis];
    if (!back) position += at * c.stride[axis];
    else if ((position = at - position) < 0 || position % c.stride[axis] != 0) return -1;
    else position /= c.stride[axis];
    return position < image_size(axis) ? std::max<index_t>(position, -1) : -1;
  }
  /// Calls f(first row of the result, its position in an image, how many rows, their image) for
  /// bands of up to `most` rows that cover all rows, on the pool.
  template <class F>
  void each_band(index_t most, F f) const {
    const index_t height = size(0), line = size(1) * c.in;
    const index_t work = line * c.taps() * (c.in / c.groups);
    // Threads share whole bands.
    const index_t rows = c.batch * height, bands = (rows + most - 1) / most;
    for_ranges(bands, most * work, [&](index_t first, index_t last) {
      const index_t end = std::min(last * most, rows);
      for (index_t row = first * most, count; row < end; row += count) {
        const index_t at = row % height;
        count = std::min({most, end - row, height - at});
        f(result + row * line, at, count, row / height);
        if (after) after->made(row * size(1), (row + count) * size(1), c.in);
      }
    });
  }
  column_strip<T> strip(const kernel_rows<T>& rows, index_t first, index_t next) const {
    return {rows, first, image_size(1), c.in, next};
  }
  /// The distance in image rows between the windows of successive result rows.
  int rows_on() const { return back ? 1 : static_cast<int>(c.stride[0]); }
  /// Calls f(row of images, tap) for the rows under a result row's window.
  template <class F>
  void each_met(index_t at, index_t image, F f) const {
    for (index_t k = 0; k < c.kernel[0]; ++k)
      if (const index_t y = met(0, at, k); y >= 0)
        f(images + (image * image_size(0) + y) * image_size(1) * c.in, k);
  }
};

template <int Group, class T>
void by_pixels(const small_groups_pass<T>& p) {
  const conv_sizes& c = p.c;
  struct use;
  p.each_band(1, [&](T* y, index_t at, index_t, index_t image) {
    auto* const met = static_cast<met_pixel<T>*>(
        thread_scratch<use>(c.taps() * static_cast<index_t>(sizeof(met_pixel<T>))));
    for (index_t x = 0; x < p.size(1); ++x) {
      index_t count = 0;
      p.each_met(at, image, [&](const T* row, index_t k) {
        for (index_t j = 0; j < c.kernel[1]; ++j)
          if (const index_t column = p.met(1, x, j); column >= 0)
            met[count++] = {row + column * c.in, p.weights + (k * c.kernel[1] + j) * Group * c.in};
      });
      sum_pixels<Group>(met, count, c.in, y + x * c.in);
    }
  });
}

/// The rows of images, with the weights, that contribute to a row of the result.
template <int Group, class T>
kernel_rows<T> rows_of(const small_groups_pass<T>& p, index_t at, index_t image) {
  kernel_rows<T> rows;
  p.each_met(at, image, [&](const T* row, index_t k) {
    // The pointer is used for writing only where it is to sums of weights' gradients.
    rows.add(row, const_cast<T*>(p.weights) + k * p.c.kernel[1] * Group * p.c.in);
  });
  if (p.far) rows.fetch_next(p.rows_on(), !p.back, p.image_size(1) * p.c.in);
  return rows;
}

/// Whether two neighbouring rows of a result share all but one row of images.
template <int Stride, int Group>
constexpr bool shares_rows(const conv_sizes& c) {
  return Stride == 1 && Group == 1 && c.stride[0] == 1 && c.dilation[0] == 1;
}

/// The rows of images that contribute to the result's rows `at` and at + 1.
template <class T>
shared_rows<T> shared_rows_of(const small_groups_pass<T>& p, index_t at, index_t image,
                              index_t step, T* weights) {
  const index_t taps = p.c.kernel[0], line = p.image_size(1) * p.c.in;
  const index_t top = p.back ? at + 1 + p.c.padding[0] : at - p.c.padding[0];
  shared_rows<T> shared{{}, -1, taps, step};
  for (index_t e = 0; e <= taps; ++e) {
    const index_t y = p.back ? top - e : top + e;
    if (y < 0 || y >= p.image_size(0)) continue;
    if (shared.first < 0) shared.first = e;
    shared.rows.add(p.images + (image * p.image_size(0) + y) * line, weights + e * step);
  }
  if (p.far) shared.rows.fetch_next(2, !p.back, line);
  return shared;
}

template <int Kernel, int Stride, int Group, class Pass>
void by_strips(const Pass& p, index_t padding) {
  using T = typename Pass::element;
  const index_t columns = p.size(1), line = columns * p.c.in;
  const bool wide = padding < Kernel && (columns - 1) * Stride - padding < p.image_size(1);
  const bool pairs = shares_rows<Stride, Group>(p.c);
  p.each_band(2, [&](T* y, index_t at, index_t count, index_t image) {
    each_strip(columns, wide, [&](auto n, index_t x) {
      index_t i = 0;
      if constexpr (Stride == 1 && Group == 1 && n > 1)
        for (; pairs && i + 2 <= count; i += 2) {
          const auto shared =
              shared_rows_of<T>(p, at + i, image, Kernel * p.c.in, const_cast<T*>(p.weights));
          T* const upper = y + i * line + x * p.c.in;
          sum_two_rows<Kernel, n>(p.strip(shared.rows, x - padding, p.far ? 2 * line : 0), shared,
                                  p.back ? upper + line : upper, p.back ? upper : upper + line);
        }
      for (; i < count; ++i) {
        const auto rows = rows_of<Group, T>(p, at + i, image);
        sum_columns<Kernel, Stride, Group, n>(p.strip(rows, x * Stride - padding, p.far ? line : 0),
                                              y + i * line + x * p.c.in);
      }
    });
  });
}

/// An input gradient of stride 2.
template <int Kernel, int Group, class T>
void by_pairs(const small_groups_pass<T>& p) {
  constexpr index_t half = Kernel / 2, parity = half % 2;
  const index_t width = p.c.width, before = (p.c.padding[1] + half) % 2;
  const index_t shift = (p.c.padding[1] - before - parity) / 2 + phases_of_two<Kernel>::lowest;
  p.each_band(2, [&](T* dx, index_t at, index_t count, index_t image) {
    each_strip((width + before + 1) / 2, true, [&](auto n, index_t u) {
      const index_t x = 2 * u - before;
      for (index_t i = 0; i < count; ++i) {
        const auto rows = rows_of<Group>(p, at + i, image);
        const column_strip<T> s{rows, u + shift, p.image_size(1), p.c.in,
                                p.far ? width * p.c.in : 0};
        sum_pairs<Kernel, Group, n>(s, dx + (i * width + x) * p.c.in, -x, width - x);
      }
    });
  });
}

/// Repeats every element. A depthwise convolution with several results per channel runs as one with
/// as many channels as results, each input channel repeated.
template <class T>
T* repeat_channels(const T* from, index_t count, index_t multiplier) {
  struct use;
  auto* const to = static_cast<T*>(thread_scratch<use>(count * multiplier * element_size<T>));
  for_ranges(count, multiplier, [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i) std::fill_n(to + i * multiplier, multiplier, from[i]);
  });
  return to;
}
inline conv_sizes with_repeated(conv_sizes c) {
  c.in = c.groups = c.out;
  return c;
}
inline index_t input_count(const conv_sizes& c) { return c.batch * c.height * c.width * c.in; }

/// Sums of the gradients of weights, [tap][r][channel], over the rows of dy.
template <int Group, class T>
class small_group_weights {
 public:
  small_group_weights(const conv_sizes& c, const T* x, const T* dy)
      : c_(c),
        images_{c, false, x, nullptr, nullptr},
        dy_(dy),
        group_stride_((c.in + lanes<T> - 1) / lanes<T> * lanes<T>),
        count_(c.taps() * Group * group_stride_) {}

  /// The gradient as (out, in / groups, height, width).
  void write(T* dw) const {
    struct use;
    // The number of parts depends on sizes alone, so that the bits of the sum do not depend on the
    // number of threads.
    const index_t rows = c_.batch * c_.out_height, parts = std::clamp<index_t>(rows, 1, 32);
    const index_t work = rows * c_.out_width * c_.in * c_.taps() * Group;
    const bool parallel = work >= parallel_work && num_threads() > 1;
    auto* const sums =
        static_cast<T*>(thread_scratch<use>((parallel ? parts : 2) * count_ * element_size<T>));
    const auto one = [&](index_t part, T* to) {
      std::fill_n(to, count_, T{0});
      const index_t end = rows * (part + 1) / parts;
      for (index_t row = rows * part / parts; row < end;) row += add_rows(row, end, to);
    };
    if (parallel) parallel_for(parts, [&](index_t part) { one(part, sums + part * count_); });
    else one(0, sums);
    for (index_t part = 1; part < parts; ++part) {
      T* const more = sums + (parallel ? part : 1) * count_;
      if (!parallel) one(part, more);
      column_sums<T>{sums, nullptr}.add({more, nullptr}, count_, false);
    }
    unpack(sums, dw);
  }

 private:
  /// Adds one row of dy or two, and returns how many.
  index_t add_rows(index_t row, index_t end, T* sums) const {
    const T* const dy = dy_ + row * c_.out_width * c_.in;
    const index_t at = row % c_.out_height, image = row / c_.out_height;
    index_t added = 0;
    with_strips<T, Group>(c_, [&](auto kernel, auto stride) {
      const index_t columns = c_.out_width, padding = c_.padding[1];
      if (columns < columns_of_strip || padding >= kernel ||
          (columns - 1) * stride - padding >= c_.width)
        return false;
      const bool two = row + 1 < end && at + 1 < c_.out_height;
      if (two && shares_rows<stride, Group>(c_)) {
        if constexpr (stride == 1 && Group == 1) add_two<kernel>(dy, at, image, sums);
        added = 2;
      } else {
        add_one<kernel, stride>(dy, at, image, sums);
        added = 1;
      }
      return true;
    });
    if (added > 0) return added;
    add_row_by_pixels(dy, at, image, sums);
    return 1;
  }
  /// Calls f(first column, how many of the strip's columns were done before) for all strips of a
  /// row.
  template <class F>
  void each_whole_strip(F f) const {
    constexpr index_t n = columns_of_strip;
    for (index_t x = 0; x < c_.out_width; x += n) {
      const index_t first = std::min(x, c_.out_width - n);
      f(first, x - first);
    }
  }
  index_t next_dy(index_t rows) const { return images_.far ? rows * c_.out_width * c_.in : 0; }
  template <int Kernel, int Stride>
  void add_one(const T* dy, index_t at, index_t image, T* sums) const {
    kernel_rows<T> rows;
    images_.each_met(at, image, [&](const T* line, index_t k) {
      rows.add(line, sums + k * Kernel * Group * group_stride_);
    });
    if (images_.far) rows.fetch_next(images_.rows_on(), true, c_.width * c_.in);
    each_whole_strip([&](index_t first, index_t skip) {
      const column_strip<T> s{rows, first * Stride - c_.padding[1], c_.width, c_.in, next_dy(1)};
      add_products<Kernel, Stride, Group, columns_of_strip>(s, dy + first * c_.in, skip,
                                                            group_stride_);
    });
  }
  template <int Kernel>
  void add_two(const T* dy, index_t at, index_t image, T* sums) const {
    const auto shared = shared_rows_of(images_, at, image, Kernel * group_stride_, sums);
    each_whole_strip([&](index_t first, index_t skip) {
      const column_strip<T> s{shared.rows, first - c_.padding[1], c_.width, c_.in, next_dy(2)};
      const T* const from = dy + first * c_.in;
      add_two_rows<Kernel, columns_of_strip>(s, shared, from, from + c_.out_width * c_.in, skip,
                                             group_stride_);
    });
  }
  void add_row_by_pixels(const T* dy, index_t at, index_t image, T* sums) const {
    const index_t stride = c_.stride[1], wide = c_.kernel[1];
    images_.each_met(at, image, [&](const T* row, index_t k) {
      for (index_t j = 0; j < wide; ++j) {
        const index_t shift = j * c_.dilation[1] - c_.padding[1];
        const index_t begin = shift < 0 ? (stride - 1 - shift) / stride : 0;
        const index_t end =
            shift >= c_.width ? 0 : std::min(c_.out_width, (c_.width - 1 - shift) / stride + 1);
        add_pixels<Group>(dy + begin * c_.in, row + (begin * stride + shift) * c_.in, end - begin,
                          stride * c_.in, c_.in, sums + (k * wide + j) * Group * group_stride_,
                          group_stride_);
      }
    });
  }
  void unpack(const T* sums, T* dw) const {
    const index_t taps = c_.taps();
    const index_t whole = c_.in < lanes<T> ? c_.in : c_.in / lanes<T> * lanes<T>;
    for (index_t o = 0; o < c_.in; ++o)
      for (index_t i = 0; i < Group; ++i)
        for (index_t t = 0; t < taps; ++t, ++dw)
          *dw = sums[(t * Group + met_channel<T, Group>(o % Group, i)) * group_stride_ +
                     (o < whole ? o : group_stride_ - c_.in + o)];
  }

  const conv_sizes& c_;
  small_groups_pass<T> images_;
  const T* dy_;
  index_t group_stride_, count_;
};

}  // namespace detail

/// Whether the functions below support a convolution: depthwise with any multiplier, or groups of
/// 2, 4 or 8 channels that fit vectors, as many in as out.
template <class T>
constexpr bool has_small_groups(const conv_sizes& c) {
  return (c.in == c.groups && c.groups > 1) || detail::in_small_groups<T>(c);
}

/// See conv_pack().
template <class T>
std::int64_t small_groups_packed_size(const conv_sizes& c) {
  return c.taps() * (c.in / c.groups) * c.out;
}
template <class T>
void small_groups_pack(const conv_sizes& c, conv_direction d, const conv_weights<T>& w, T* to) {
  if (c.in != c.out) return small_groups_pack(detail::with_repeated(c), d, w, to);
  detail::with_group<T>(c, [&](auto group) { detail::pack_small_groups<group>(c, d, w, to); });
}

template <class T>
void small_groups_forward(const conv_sizes& c, const T* x, const conv_weights<T>& w, T* y,
                          const epilogue* after) {
  if (c.in != c.out) {
    const T* const repeated = detail::repeat_channels(x, detail::input_count(c), c.out / c.in);
    return small_groups_forward(detail::with_repeated(c), repeated, w, y, after);
  }
  detail::with_group<T>(c, [&](auto group) {
    detail::small_groups_pass<T> p{c, false, x, nullptr, y, after};
    p.weights = detail::packed_small_groups<group>(c, conv_direction::forward, w);
    const bool done = detail::with_strips<T, group>(c, [&](auto kernel, auto stride) {
      detail::by_strips<kernel, stride, group>(p, c.padding[1]);
      return true;
    });
    if (!done) detail::by_pixels<group>(p);
  });
}

template <class T>
void small_groups_input_gradient(const conv_sizes& c, const T* dy, const conv_weights<T>& w, T* dx,
                                 const epilogue* after) {
  if (c.in != c.out) {
    struct use;
    const std::int64_t count = detail::input_count(c), m = c.out / c.in;
    auto* const repeated = static_cast<T*>(thread_scratch<use>(count * m * element_size<T>));
    small_groups_input_gradient(detail::with_repeated(c), dy, w, repeated, nullptr);
    return for_ranges(count, m, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        T sum = 0;
        for (std::int64_t k = 0; k < m; ++k) sum = sum + repeated[i * m + k];
        dx[i] = sum;
      }
    });
  }
  detail::with_group<T>(c, [&](auto group) {
    detail::small_groups_pass<T> p{c, true, dy, nullptr, dx, after};
    p.weights = detail::packed_small_groups<group>(c, conv_direction::input_gradient, w);
    const bool done = detail::with_strips<T, group>(c, [&](auto kernel, auto stride) {
      if constexpr (stride == 2) detail::by_pairs<kernel, group>(p);
      else detail::by_strips<kernel, 1, group>(p, kernel - 1 - c.padding[1]);
      return true;
    });
    if (!done) detail::by_pixels<group>(p);
  });
}

template <class T>
void small_groups_weight_gradient(const conv_sizes& c, const T* x, const T* dy, T* dw) {
  if (c.in != c.out) {
    const T* const repeated = detail::repeat_channels(x, detail::input_count(c), c.out / c.in);
    return small_groups_weight_gradient(detail::with_repeated(c), repeated, dy, dw);
  }
  detail::with_group<T>(
      c, [&](auto group) { detail::small_group_weights<group, T>(c, x, dy).write(dw); });
}

}  // namespace xla::kernel
