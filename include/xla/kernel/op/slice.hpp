// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of slice, slice_scatter and concat: copies between strided tensors.

#include "xla/kernel/fused/loops.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/slice.hpp"

namespace xla::detail {

/// Copies elements between two tensors of any strides; a stride of 0 repeats an element.
template <class T>
struct strided_copy {
  std::int64_t from_stride[max_rank], to_stride[max_rank];

  /// Both have the sizes of their shapes; from is broadcast to all.
  strided_copy(const shape& from, const shape& to, const shape& all) {
    kernel::broadcast_strides(from, all, from_stride);
    kernel::broadcast_strides(to, to, to_stride);
  }
  void run(const T* from, T* to, const shape& all) const {
    kernel::loop_nest l;
    l.operands = 2;
    l.bytes[0] = l.bytes[1] = sizeof(T);
    l.elements = count(all);
    for (int i = 0; i < all.rank; ++i) {
      if (all[i] == 1) continue;
      const int last = l.axes - 1;
      const bool merge = last >= 0 && l.strides[0][last] == from_stride[i] * all[i] &&
                         l.strides[1][last] == to_stride[i] * all[i];
      if (merge) l.sizes[last] *= all[i];
      else l.sizes[l.axes++] = all[i];
      l.strides[0][l.axes - 1] = from_stride[i];
      l.strides[1][l.axes - 1] = to_stride[i];
    }
    void* pointers[] = {const_cast<T*>(from), to};
    kernel::run_map(l, {&tile}, pointers);
  }

 private:
  static void tile(const tile_call& call) {
    const T* in = static_cast<const T*>(call.pointers[0]);
    T* out = static_cast<T*>(call.pointers[1]);
    const std::int64_t from = call.steps[0], to = call.steps[1];
    if (to == 1 && from == 1) std::copy_n(in, call.n, out);
    else if (to == 1 && from == 0) std::fill_n(out, call.n, *in);
    else
      for (std::int64_t i = 0; i < call.n; ++i) out[i * to] = in[i * from];
  }
};

template <class Out, class T>
struct kernel_of<op::slice, Out, T> {
  static void run(const kernel_call& call) {
    const shape &whole = call.in_shapes[0], &part = *call.out_shape;
    const auto [axis, step, start] = call.attributes<op::slice>();
    strided_copy<T> copy(part, part, part);
    kernel::broadcast_strides(whole, whole, copy.from_stride);
    const T* from = static_cast<const T*>(call.in[0]) + start * copy.from_stride[axis];
    if (part[axis] > 1) copy.from_stride[axis] *= step;
    copy.run(from, static_cast<T*>(call.out), part);
  }
};

template <class Out, class T>
struct kernel_of<op::slice_scatter, Out, T> {
  static void run(const kernel_call& call) {
    const shape &whole = *call.out_shape, &given = call.in_shapes[1];
    T* out = static_cast<T*>(call.out);
    if (out != call.in[0])
      strided_copy<T>(call.in_shapes[0], whole, whole)
          .run(static_cast<const T*>(call.in[0]), out, whole);
    const auto [axis, step, start] = call.attributes<op::slice_scatter>();
    shape part = whole;
    part[axis] = given[axis];
    strided_copy<T> copy(given, whole, part);
    out += start * copy.to_stride[axis];
    if (part[axis] > 1) copy.to_stride[axis] *= step;
    copy.run(static_cast<const T*>(call.in[1]), out, part);
  }
};

template <class Out, class T>
struct kernel_of<op::concat, Out, T> {
  static void run(const kernel_call& call) {
    const shape& all = *call.out_shape;
    const auto [axis, parts] = call.attributes<op::concat>();
    T* out = static_cast<T*>(call.out);
    for (int k = 0; k < parts; ++k) {
      const shape& part = call.in_shapes[k];
      const strided_copy<T> copy(part, all, part);
      copy.run(static_cast<const T*>(call.in[k]), out, part);
      out += part[axis] * copy.to_stride[axis];
    }
  }
};

}  // namespace xla::detail
