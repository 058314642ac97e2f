// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>

#include "xla/kernel/lane.hpp"
#include "xla/kernel/loops.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/sort.hpp"

namespace xla::detail {

template <class Out, class T>
struct kernel_of<op::cumsum, Out, T> {
  static void run(const kernel_call& call) {
    const kernel::lines_along l(*call.out_shape, op::cumsum::axis(call.attr));
    const bool back = op::cumsum::from_last(call.attr);
    if (l.n == 0) return;
    for (std::int64_t o = 0; o < l.outer; ++o) {
      const std::int64_t first = (o * l.n + (back ? l.n - 1 : 0)) * l.inner;
      const T* in = static_cast<const T*>(call.in[0]) + first;
      T* out = static_cast<T*>(call.out) + first;
      const std::int64_t step = back ? -l.inner : l.inner;
      if (l.inner == 1) {
        line(in, out, l.n, step);
        continue;
      }
      std::copy_n(in, l.inner, out);
      for (std::int64_t k = 1; k < l.n; ++k) {
        in += step;
        out += step;
        for (std::int64_t i = 0; i < l.inner; ++i)
          out[i] = kernel::add_wrapping(out[i - step], in[i]);
      }
    }
  }

 private:
  // The sum stays in a register.
  static void line(const T* in, T* out, std::int64_t n, std::int64_t step) {
    T sum = *out = *in;
    for (std::int64_t k = 1; k < n; ++k)
      out[k * step] = sum = kernel::add_wrapping(sum, in[k * step]);
  }
};

template <class Out, class T>
struct kernel_of<op::argsort, Out, T> {
  static void run(const kernel_call& call) {
    const int axis = op::argsort::axis(call.attr);
    const kernel::lines_along from(call.in_shapes[0], axis), to(*call.out_shape, axis);
    auto one = [&](std::int64_t i) {
      const T* x = static_cast<const T*>(call.in[0]) + from.start(i);
      Out* index = static_cast<Out*>(call.out) + to.start(i);
      if (op::argsort::descending(call.attr)) line<true>(x, index, from.n, to.n, from.inner);
      else line<false>(x, index, from.n, to.n, from.inner);
    };
    if (from.count() * from.n < kernel::parallel_work)
      for (std::int64_t i = 0; i < from.count(); ++i) one(i);
    else kernel::parallel_for(from.count(), one);
  }

 private:
  struct entry {
    T value;
    Out index;
  };
  static bool smaller(T a, T b) { return a < b || (b != b && a == a); }
  // No two entries are equal, so that an unstable sort gives the stable order.
  template <bool Descending>
  static bool before(const entry& a, const entry& b) {
    if (smaller(a.value, b.value)) return !Descending;
    if (smaller(b.value, a.value)) return Descending;
    return a.index < b.index;
  }
  template <bool Descending>
  static void line(const T* x, Out* index, std::int64_t n, std::int64_t kept, std::int64_t step) {
    entry* e =
        static_cast<entry*>(kernel::thread_scratch(n * static_cast<std::int64_t>(sizeof(entry))));
    for (std::int64_t k = 0; k < n; ++k)
      std::construct_at(e + k, entry{x[k * step], static_cast<Out>(k)});
    if (kept < n) std::nth_element(e, e + kept, e + n, before<Descending>);
    std::sort(e, e + kept, before<Descending>);
    for (std::int64_t k = 0; k < kept; ++k) index[k * step] = e[k].index;
  }
};

}  // namespace xla::detail
