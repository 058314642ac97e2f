// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "xla/kernel/lane.hpp"
#include "xla/kernel/loops.hpp"
#include "xla/op/resample.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

/// What one place of a resampled axis is made of: (1 - weight) of an element and weight of another.
/// Where the weight is 0 it is the first as it is.
template <class T>
struct resample_source {
  using W = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  std::int64_t first, second;
  W weight;
};

/// The sources of all places, as PyTorch rounds them: nearest ones in float.
template <class T>
class resample_table {
  using source = resample_source<T>;
  using W = typename source::W;

 public:
  resample_table(const op::resample::attributes& a, std::int64_t from, std::int64_t to)
      : attr_(a), from_(from), to_(to) {
    auto* const all =
        static_cast<source*>(memory_.take(static_cast<std::size_t>(to) * sizeof(source)));
    for (std::int64_t i = 0; i < to; ++i) all[i] = at(i);
    all_ = all;
  }
  const source& operator[](std::int64_t i) const { return all_[i]; }

 private:
  source at(std::int64_t i) const {
    const std::int64_t beside = i - attr_.before, last = from_ - 1;
    switch (static_cast<resampling>(std::int64_t{attr_.way})) {
      case resampling::nearest: return only(nearest(i));
      case resampling::nearest_exact:
        return only(std::min(
            down(std::floor(static_cast<float>((static_cast<double>(i) + 0.5) * step<float>()))),
            last));
      case resampling::linear: return mixture(i);
      case resampling::reflect:
        return only(beside < 0 ? -beside : beside > last ? 2 * last - beside : beside);
      case resampling::replicate: return only(std::clamp<std::int64_t>(beside, 0, last));
      default: return only((beside + from_) % from_);
    }
  }
  static source only(std::int64_t i) { return {i, i, W(0)}; }
  template <class F>
  static std::int64_t down(F f) {
    return static_cast<std::int64_t>(f);
  }
  // From one place to the next, in elements of the axis.
  template <class F>
  F step() const {
    return attr_.scale > 0 ? static_cast<F>(1 / attr_.scale)
                           : static_cast<F>(from_) / static_cast<F>(to_);
  }
  std::int64_t nearest(std::int64_t i) const {
    if (to_ == from_) return i;
    if (to_ == 2 * from_) return i / 2;
    return std::min(down(std::floor(static_cast<float>(i) * step<float>())), from_ - 1);
  }
  source mixture(std::int64_t i) const {
    if (to_ == from_) return only(i);
    const W place = static_cast<W>(i);
    const W at =
        attr_.align_corners
            ? place * (to_ > 1 ? static_cast<W>(from_ - 1) / static_cast<W>(to_ - 1) : W(0))
            : std::max(step<W>() * (place + W(0.5)) - W(0.5), W(0));
    const std::int64_t first = std::min(down(at), from_ - 1),
                       second = std::min(first + 1, from_ - 1);
    return {first, second, std::clamp(at - static_cast<W>(first), W(0), W(1))};
  }

  working_memory memory_;
  op::resample::attributes attr_;
  std::int64_t from_, to_;
  const source* all_ = nullptr;
};

template <class Out, class T>
struct kernel_of<op::resample, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::resample>();
    const kernel::lines_along from(call.in_shapes[0], a.axis), to(*call.out_shape, a.axis);
    if (to.count() * to.n == 0) return;
    const resample_table<T> table(a, from.n, to.n);
    const T* const x = static_cast<const T*>(call.in[0]);
    T* const out = static_cast<T*>(call.out);
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

 private:
  static T mixed(const T* x, const resample_source<T>& s, std::int64_t step, std::int64_t k) {
    const T a = x[s.first * step + k];
    if constexpr (std::is_floating_point_v<T>)
      if (s.weight != 0) return (1 - s.weight) * a + s.weight * x[s.second * step + k];
    return a;
  }
  static void row(const T* x, const resample_source<T>& s, std::int64_t n, T* to) {
    if (s.weight == 0) return void(std::copy_n(x + s.first * n, n, to));
    for (std::int64_t k = 0; k < n; ++k) to[k] = mixed(x, s, n, k);
  }
};

template <class Out, class T>
struct kernel_of<op::resample_spread, Out, T> {
  static void run(const kernel_call& call) {
    const auto a = call.attributes<op::resample_spread>();
    const kernel::lines_along from(call.in_shapes[0], a.axis), to(*call.out_shape, a.axis);
    if (to.count() * to.n == 0) return;
    const resample_table<T> table(a, to.n, from.n);
    const T* const dy = static_cast<const T*>(call.in[0]);
    T* const out = static_cast<T*>(call.out);
    // Threads share out lines: those of one element add up in order.
    constexpr std::int64_t beside = 1024;
    const std::int64_t strips = (to.inner + beside - 1) / beside;
    kernel::for_ranges(to.outer * strips, (from.n + to.n) * std::min(to.inner, beside),
                       [&](std::int64_t first, std::int64_t last) {
                         for (std::int64_t s = first; s < last; ++s) {
                           const std::int64_t line = s % strips * beside,
                                              n = std::min(beside, to.inner - line);
                           T* const to_line = out + s / strips * to.n * to.inner + line;
                           for (std::int64_t i = 0; i < to.n; ++i)
                             std::fill_n(to_line + i * to.inner, n, T{});
                           for (std::int64_t i = 0; i < from.n; ++i)
                             add(dy + (s / strips * from.n + i) * from.inner + line, table[i], n,
                                 to_line, to.inner);
                         }
                       });
  }

 private:
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
