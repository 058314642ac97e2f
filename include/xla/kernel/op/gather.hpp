// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "xla/kernel/lane.hpp"
#include "xla/kernel/loops.hpp"
#include "xla/op/index_select.hpp"

namespace xla::detail {

/// Calls f(place in x, place in the index) for every element of an index beside x, in its order.
template <class F>
void for_each_index(const kernel_call& call, F f) {
  const int axis = static_cast<int>(call.attr);
  const kernel::lines_along x(call.in_shapes[0], axis), index(call.in_shapes[1], axis);
  const std::int64_t* i = static_cast<const std::int64_t*>(call.in[1]);
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < index.outer; ++o)
    for (std::int64_t k = 0; k < index.n; ++k)
      for (std::int64_t c = 0; c < index.inner; ++c, ++at) f((o * x.n + i[at]) * x.inner + c, at);
}

/// Calls f(row in x, row in the other, elements) for every slice that an index of one axis names.
template <class F>
void for_each_slice(const kernel_call& call, F f) {
  const kernel::lines_along x(call.in_shapes[0], static_cast<int>(call.attr));
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
    for_each_index(call, [=](std::int64_t from, std::int64_t to) { out[to] = x[from]; });
  }
};

template <class Out, class T>
struct kernel_of<op::scatter, Out, T> {
  static void run(const kernel_call& call) {
    const T* source = static_cast<const T*>(call.in[2]);
    T* out = copy_input<T>(call);
    for_each_index(call, [=](std::int64_t to, std::int64_t from) { out[to] = source[from]; });
  }
};

template <class Out, class T>
struct kernel_of<op::scatter_add, Out, T> {
  static void run(const kernel_call& call) {
    const T* source = static_cast<const T*>(call.in[2]);
    T* out = copy_input<T>(call);
    for_each_index(call, [=](std::int64_t to, std::int64_t from) {
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
