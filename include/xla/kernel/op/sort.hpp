// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of argsort, median and searchsorted. Elements carry their positions, so that every
// order is stable.

#include <algorithm>
#include <bit>
#include <memory>

#include "xla/kernel/fused/loops.hpp"
#include "xla/op/median.hpp"
#include "xla/op/search.hpp"
#include "xla/op/sort.hpp"

namespace xla::detail {

/// An element of a line with its index. No two are equal, so that unstable algorithms give the
/// stable order. NaN is the largest.
template <class T>
struct indexed_value {
  T value;
  std::int64_t at;

  static bool smaller(T a, T b) { return a < b || (b != b && a == a); }
  template <bool Descending = false>
  static bool before(const indexed_value& a, const indexed_value& b) {
    if (smaller(a.value, b.value)) return !Descending;
    if (smaller(b.value, a.value)) return Descending;
    return a.at < b.at;
  }
  /// n elements, step apart, in scratch memory of the thread.
  static indexed_value* read(const T* x, std::int64_t n, std::int64_t step) {
    const auto bytes = n * static_cast<std::int64_t>(sizeof(indexed_value));
    indexed_value* e = static_cast<indexed_value*>(kernel::thread_scratch(bytes));
    for (std::int64_t k = 0; k < n; ++k) std::construct_at(e + k, indexed_value{x[k * step], k});
    return e;
  }
};

/// Calls line(x, from.n, out, to.n, step) for every line along an axis.
template <class T, class Out, class F>
void for_each_line(const kernel_call& call, int axis, F line) {
  const kernel::lines_along from(call.in_shapes[0], axis), to(*call.out_shape, axis);
  auto one = [&](std::int64_t i) {
    line(static_cast<const T*>(call.in[0]) + from.start(i), from.n,
         static_cast<Out*>(call.out) + to.start(i), to.n, from.inner);
  };
  if (from.count() * from.n < kernel::parallel_work)
    for (std::int64_t i = 0; i < from.count(); ++i) one(i);
  else kernel::parallel_for(from.count(), one);
}

template <class Out, class T>
struct kernel_of<op::argsort, Out, T> {
  static void run(const kernel_call& call) {
    const auto [axis, descending, limit] = call.attributes<op::argsort>();
    if (descending) for_each_line<T, Out>(call, axis, line<true>);
    else for_each_line<T, Out>(call, axis, line<false>);
  }

 private:
  template <bool Descending>
  static void line(const T* x, std::int64_t n, Out* index, std::int64_t limit, std::int64_t step) {
    auto* e = indexed_value<T>::read(x, n, step);
    constexpr auto before = indexed_value<T>::template before<Descending>;
    if (limit < n) std::nth_element(e, e + limit, e + n, before);
    std::sort(e, e + limit, before);
    for (std::int64_t k = 0; k < limit; ++k) index[k * step] = e[k].at;
  }
};

template <class Out, class T>
struct kernel_of<op::median_index, Out, T> {
  static void run(const kernel_call& call) {
    for_each_line<T, Out>(call, call.attributes<op::median_index>().axis, line);
  }

 private:
  static void line(const T* x, std::int64_t n, Out* index, std::int64_t, std::int64_t step) {
    auto* e = indexed_value<T>::read(x, n, step);
    for (std::int64_t k = 0; k < n; ++k)
      if (e[k].value != e[k].value) return void(*index = k);
    auto* middle = e + (n - 1) / 2;
    std::nth_element(e, middle, e + n, indexed_value<T>::template before<>);
    *index = middle->at;
  }
};

template <class Out, class T>
struct kernel_of<op::searchsorted, Out, T> {
  static void run(const kernel_call& call) {
    const shape &sequence = call.in_shapes[0], &values = call.in_shapes[1];
    const std::int64_t all = count(values), n = sequence[sequence.rank - 1];
    const std::int64_t row = sequence.rank == 1 ? all : values[values.rank - 1];
    const T *from = static_cast<const T*>(call.in[0]), *x = static_cast<const T*>(call.in[1]);
    Out* out = static_cast<Out*>(call.out);
    const bool right = call.attributes<op::searchsorted>().right;
    constexpr auto less = indexed_value<T>::smaller;
    constexpr std::int64_t block = 1024;
    auto some = [&](std::int64_t b) {
      for (std::int64_t i = b * block; i < std::min(all, (b + 1) * block); ++i) {
        const T *first = from + i / row * n, *last = first + n;
        out[i] = (right ? std::upper_bound(first, last, x[i], less)
                        : std::lower_bound(first, last, x[i], less)) -
                 first;
      }
    };
    const std::int64_t blocks = (all + block - 1) / block;
    if (all * std::bit_width(static_cast<std::uint64_t>(n)) < kernel::parallel_work)
      for (std::int64_t b = 0; b < blocks; ++b) some(b);
    else kernel::parallel_for(blocks, some);
  }
};

}  // namespace xla::detail
