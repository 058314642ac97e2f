// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of gather, scatter and median: element by element, or by slices if an index has one
// axis.

#include <algorithm>
#include <utility>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/median.hpp"

namespace xla::detail {

/// Calls f(position in x, position in the other) for every element of an index, in order. The index
/// has the shape of the first elements of both; its elements are positions in x along the axis.
template <class F>
void for_each_index(const kernel_call& call, const shape& other, F f) {
  const int axis = call.attributes<op::indexed>().axis;
  const shape &x = call.in_shapes[0], &s = call.in_shapes[1];
  const std::int64_t* index = static_cast<const std::int64_t*>(call.in[1]);
  const int last = s.rank - 1;
  const std::int64_t n = count(s), row = s[last];
  std::int64_t x_step[max_rank] = {}, step[max_rank] = {}, at[max_rank] = {};
  std::int64_t x_steps = 1, steps = 1;
  for (int i = last; i >= 0; --i) {
    x_step[i] = std::exchange(x_steps, x_steps * x[i]);
    step[i] = std::exchange(steps, steps * other[i]);
  }
  const std::int64_t along = std::exchange(x_step[axis], 0), inner_step = x_step[last];
  std::int64_t in_x = 0, in_other = 0;
  for (std::int64_t k = 0; k < n; k += row) {
    for (std::int64_t c = 0; c < row; ++c)
      f(in_x + c * inner_step + index[k + c] * along, in_other + c);
    for (int i = last - 1; i >= 0; --i) {
      in_x += x_step[i];
      in_other += step[i];
      if (++at[i] < s[i]) break;
      in_x -= s[i] * x_step[i];
      in_other -= s[i] * step[i];
      at[i] = 0;
    }
  }
}

/// Calls f(row in x, row in the other, elements) for every slice that an index of one axis names.
template <class F>
void for_each_slice(const kernel_call& call, F f) {
  const kernel::lines_along x(call.in_shapes[0], call.attributes<op::slicing>().axis);
  const std::int64_t* i = static_cast<const std::int64_t*>(call.in[1]);
  const std::int64_t n = count(call.in_shapes[1]);
  for (std::int64_t o = 0; o < x.outer; ++o)
    for (std::int64_t k = 0; k < n; ++k)
      f((o * x.n + i[k]) * x.inner, (o * n + k) * x.inner, x.inner);
}

template <class T>
T* copy_input(const kernel_call& call) {
  T* out = static_cast<T*>(call.out);
  if (out != call.in[0])
    std::copy_n(static_cast<const T*>(call.in[0]), count(*call.out_shape), out);
  return out;
}

template <class Out, class T>
struct kernel_of<op::gather, Out, T> {
  static void run(const kernel_call& call) {
    const T* x = static_cast<const T*>(call.in[0]);
    T* out = static_cast<T*>(call.out);
    for_each_index(call, *call.out_shape,
                   [=](std::int64_t from, std::int64_t to) { out[to] = x[from]; });
  }
};

template <class Out, class T>
struct kernel_of<op::gather_into, Out, T> {
  static void run(const kernel_call& call) {
    std::fill_n(static_cast<T*>(call.out), count(*call.out_shape), T{});
    kernel_of<op::gather, Out, T>::run(call);
  }
};

template <class Out, class T>
struct kernel_of<op::median, Out, T> : kernel_of<op::gather, Out, T> {};

template <class Out, class T>
struct kernel_of<op::scatter, Out, T> {
  static void run(const kernel_call& call) {
    const T* source = static_cast<const T*>(call.in[2]);
    T* out = copy_input<T>(call);
    for_each_index(call, call.in_shapes[2],
                   [=](std::int64_t to, std::int64_t from) { out[to] = source[from]; });
  }
};

template <class Out, class T>
struct kernel_of<op::scatter_add, Out, T> {
  static void run(const kernel_call& call) {
    const T* source = static_cast<const T*>(call.in[2]);
    T* out = copy_input<T>(call);
    for_each_index(call, call.in_shapes[2], [=](std::int64_t to, std::int64_t from) {
      out[to] = kernel::add_wrapping(out[to], source[from]);
    });
  }
};

template <class Out, class T>
struct kernel_of<op::index_select, Out, T> {
  static void run(const kernel_call& call) {
    const T* x = static_cast<const T*>(call.in[0]);
    T* out = static_cast<T*>(call.out);
    for_each_slice(call, [=](std::int64_t from, std::int64_t to, std::int64_t n) {
      std::copy_n(x + from, n, out + to);
    });
  }
};

template <class Out, class T>
struct kernel_of<op::index_copy, Out, T> {
  static void run(const kernel_call& call) {
    const T* source = static_cast<const T*>(call.in[2]);
    T* out = copy_input<T>(call);
    for_each_slice(call, [=](std::int64_t to, std::int64_t from, std::int64_t n) {
      std::copy_n(source + from, n, out + to);
    });
  }
};

template <class Out, class T>
struct kernel_of<op::index_add, Out, T> {
  static void run(const kernel_call& call) {
    const T* source = static_cast<const T*>(call.in[2]);
    T* out = copy_input<T>(call);
    for_each_slice(call, [=](std::int64_t to, std::int64_t from, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        out[to + i] = kernel::add_wrapping(out[to + i], source[from + i]);
    });
  }
};

}  // namespace xla::detail
