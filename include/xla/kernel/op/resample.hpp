// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of op::resample: interpolation and padding along one axis, by a table of sources.

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/op/resample.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

/// The sources of one position of a resampled axis: (1 - weight) times one element plus weight
/// times another. With weight 0 it is a copy of the first.
template <class T>
struct resample_source {
  using W = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  std::int64_t first, second;
  W weight;
};

/// The same for cubic interpolation: four elements, each with its weight.
template <class T>
struct cubic_source {
  using W = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  std::int64_t at[4];
  W weight[4];
};

/// Maps positions of the result to coordinates on the input axis.
template <class W>
class resample_positions {
 public:
  resample_positions(const op::resample::attributes& a, std::int64_t from, std::int64_t to)
      : attr_(a), from_(from), to_(to) {}

 protected:
  template <class F>
  static std::int64_t down(F f) {
    return static_cast<std::int64_t>(f);
  }
  // The step from one position to the next, in elements of the axis.
  template <class F>
  F step() const {
    return attr_.scale > 0 ? static_cast<F>(1 / attr_.scale)
                           : static_cast<F>(from_) / static_cast<F>(to_);
  }
  // The coordinate of a position's centre, unless corners are aligned; negative before the first
  // element.
  W middle(std::int64_t i) const {
    const W position = static_cast<W>(i);
    if (!attr_.align_corners) return step<W>() * (position + W(0.5)) - W(0.5);
    return position * (to_ > 1 ? static_cast<W>(from_ - 1) / static_cast<W>(to_ - 1) : W(0));
  }
  static W part(W at, std::int64_t first) {
    return std::clamp(at - static_cast<W>(first), W(0), W(1));
  }

  op::resample::attributes attr_;
  std::int64_t from_, to_;
};

/// The sources of all positions: a table that Positions fills.
template <class Positions>
class resample_table : Positions {
  using source = typename Positions::source;

 public:
  resample_table(const op::resample::attributes& a, std::int64_t from, std::int64_t to)
      : Positions(a, from, to) {
    auto* const all =
        static_cast<source*>(memory_.take(static_cast<std::size_t>(to) * sizeof(source)));
    for (std::int64_t i = 0; i < to; ++i) all[i] = this->at(i);
    all_ = all;
  }
  const source& operator[](std::int64_t i) const { return all_[i]; }

 private:
  working_memory memory_;
  const source* all_ = nullptr;
};

/// The four neighbours of positions, as in PyTorch: a cubic convolution with a = -3/4.
template <class T>
class cubic_positions : resample_positions<typename cubic_source<T>::W> {
 public:
  using source = cubic_source<T>;
  using W = typename source::W;
  using resample_positions<W>::resample_positions;

 protected:
  source at(std::int64_t i) const {
    const W position = this->middle(i);
    const std::int64_t last = this->from_ - 1;
    const std::int64_t first = std::min(this->down(std::floor(position)), last);
    const W t = this->part(position, first), rest = 1 - t;
    source s{{}, {far(t + 1), near(t), near(rest), far(rest + 1)}};
    for (int k = 0; k < 4; ++k) s.at[k] = std::clamp<std::int64_t>(first + k - 1, 0, last);
    return s;
  }

 private:
  static constexpr W a = W(-0.75);
  static W near(W x) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
  static W far(W x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }
};

/// One element, or a mixture of two, rounded as in PyTorch: the nearest ones in float.
template <class T>
class near_positions : resample_positions<typename resample_source<T>::W> {
 public:
  using source = resample_source<T>;
  using W = typename source::W;
  using base = resample_positions<W>;
  using base::base;

 protected:
  using base::attr_, base::from_, base::to_, base::down;

  source at(std::int64_t i) const {
    const std::int64_t position = i - attr_.before, last = from_ - 1;
    switch (static_cast<resampling>(std::int64_t{attr_.way})) {
      case resampling::nearest: return only(nearest(i));
      case resampling::nearest_exact:
        return only(std::min(
            down(std::floor(static_cast<float>((static_cast<double>(i) + 0.5) * step<float>()))),
            last));
      case resampling::linear: return mixture(i);
      case resampling::reflect:
        return only(position < 0 ? -position : position > last ? 2 * last - position : position);
      case resampling::replicate: return only(std::clamp<std::int64_t>(position, 0, last));
      default: return only((position + from_) % from_);
    }
  }

 private:
  template <class F>
  F step() const {
    return base::template step<F>();
  }
  static source only(std::int64_t i) { return {i, i, W(0)}; }
  std::int64_t nearest(std::int64_t i) const {
    // PyTorch has another kernel for small images; these sizes decide which images are small.
    const std::int64_t sides = attr_.sides;
    const bool small = sides > 0 && sides <= 128;
    if (small && to_ == from_) return i;
    if (small && to_ == 2 * from_) return i / 2;
    return std::min(down(std::floor(static_cast<float>(i) * step<float>())), from_ - 1);
  }
  source mixture(std::int64_t i) const {
    if (to_ == from_) return only(i);
    const W at = std::max(this->middle(i), W(0));
    const std::int64_t first = std::min(down(at), from_ - 1),
                       second = std::min(first + 1, from_ - 1);
    return {first, second, this->part(at, first)};
  }
};

/// Calls f with the table of an axis' sources.
template <class T, class F>
void with_sources(const op::resample::attributes& a, std::int64_t from, std::int64_t to, F f) {
  if constexpr (std::is_floating_point_v<T>)
    if (static_cast<resampling>(std::int64_t{a.way}) == resampling::cubic)
      return f(resample_table<cubic_positions<T>>(a, from, to));
  f(resample_table<near_positions<T>>(a, from, to));
}

/// Resamples one axis: every position of the result is a weighted sum of its sources.
template <class Out, class T>
struct kernel_of<op::resample, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::resample>();
    const kernel::lines_along from(call.in_shapes[0], a.axis), to(*call.out_shape, a.axis);
    if (to.count() * to.n == 0) return;
    with_sources<T>(a, from.n, to.n, [&](const auto& table) {
      mix(static_cast<const T*>(call.in[0]), table, from, to, static_cast<T*>(call.out));
    });
  }

 private:
  template <class Table>
  static void mix(const T* x, const Table& table, const kernel::lines_along& from,
                  const kernel::lines_along& to, T* out) {
    if (to.inner == 1)
      return kernel::for_ranges(to.outer, to.n, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t o = first; o < last; ++o)
          for (std::int64_t i = 0; i < to.n; ++i)
            out[o * to.n + i] = mixed(x + o * from.n, table[i], 1, 0);
      });
    kernel::for_ranges(to.outer * to.n, to.inner, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r)
        row(x + r / to.n * from.n * from.inner, table[r % to.n], to.inner, out + r * to.inner);
    });
  }
  static T mixed(const T* x, const resample_source<T>& s, std::int64_t step, std::int64_t k) {
    const T a = x[s.first * step + k];
    if constexpr (std::is_floating_point_v<T>)
      if (s.weight != 0) return (1 - s.weight) * a + s.weight * x[s.second * step + k];
    return a;
  }
  static T mixed(const T* x, const cubic_source<T>& s, std::int64_t step, std::int64_t k) {
    T sum = s.weight[0] * x[s.at[0] * step + k];
    for (int i = 1; i < 4; ++i) sum += s.weight[i] * x[s.at[i] * step + k];
    return sum;
  }
  static void row(const T* x, const cubic_source<T>& s, std::int64_t n, T* to) {
    for (std::int64_t k = 0; k < n; ++k) to[k] = mixed(x, s, n, k);
  }
  static void row(const T* x, const resample_source<T>& s, std::int64_t n, T* to) {
    if (s.weight == 0) return void(std::copy_n(x + s.first * n, n, to));
    for (std::int64_t k = 0; k < n; ++k) to[k] = mixed(x, s, n, k);
  }
};

/// The gradient of a resampled axis: every position adds to its sources, in the order of positions.
template <class Out, class T>
struct kernel_of<op::resample_backward, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::resample_backward>();
    const kernel::lines_along from(call.in_shapes[0], a.axis), to(*call.out_shape, a.axis);
    if (to.count() * to.n == 0) return;
    with_sources<T>(a, to.n, from.n, [&](const auto& table) {
      spread(static_cast<const T*>(call.in[0]), table, from, to, static_cast<T*>(call.out));
    });
  }

 private:
  template <class Table>
  static void spread(const T* dy, const Table& table, const kernel::lines_along& from,
                     const kernel::lines_along& to, T* out) {
    // Threads divide the lines, so that sums of one element have one order.
    constexpr std::int64_t at_once = 1024;
    const std::int64_t strips = (to.inner + at_once - 1) / at_once;
    kernel::for_ranges(to.outer * strips, (from.n + to.n) * std::min(to.inner, at_once),
                       [&](std::int64_t first, std::int64_t last) {
                         for (std::int64_t s = first; s < last; ++s) {
                           const std::int64_t line = s % strips * at_once,
                                              n = std::min(at_once, to.inner - line);
                           T* const to_line = out + s / strips * to.n * to.inner + line;
                           for (std::int64_t i = 0; i < to.n; ++i)
                             std::fill_n(to_line + i * to.inner, n, T{});
                           for (std::int64_t i = 0; i < from.n; ++i)
                             add(dy + (s / strips * from.n + i) * from.inner + line, table[i], n,
                                 to_line, to.inner);
                         }
                       });
  }
  static void add(const T* dy, const cubic_source<T>& s, std::int64_t n, T* out,
                  std::int64_t step) {
    for (int i = 0; i < 4; ++i)
      for (std::int64_t k = 0; k < n; ++k) out[s.at[i] * step + k] += s.weight[i] * dy[k];
  }
  static void add(const T* dy, const resample_source<T>& s, std::int64_t n, T* out,
                  std::int64_t step) {
    T *const a = out + s.first * step, *const b = out + s.second * step;
    if (s.weight == 0) {
      for (std::int64_t k = 0; k < n; ++k) a[k] += dy[k];
      return;
    }
    for (std::int64_t k = 0; k < n; ++k) a[k] += (1 - s.weight) * dy[k];
    for (std::int64_t k = 0; k < n; ++k) b[k] += s.weight * dy[k];
  }
};

}  // namespace xla::detail
