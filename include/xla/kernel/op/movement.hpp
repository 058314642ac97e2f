// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of ops that move or make elements: expand, permute, arange.

#include <cstring>

#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/memory/transposed_copy.hpp"
#include "xla/op/create.hpp"
#include "xla/op/permute.hpp"

namespace xla::detail {

template <class Out, class T>
struct kernel_of<op::expand, Out, T> {
  static void tile(const tile_call& call) {
    const T* in = static_cast<const T*>(call.pointers[0]);
    T* out = static_cast<T*>(call.pointers[1]);
    if (call.steps[0] == 0) std::fill_n(out, call.n, *in);
    else std::copy_n(in, call.n, out);
  }
  static void run(const kernel_call& call) {
    const shape shapes[] = {call.in_shapes[0], *call.out_shape};
    const std::int64_t bytes[] = {sizeof(T), sizeof(T)};
    void* pointers[] = {const_cast<void*>(call.in[0]), call.out};
    kernel::run_map(kernel::make_loops(*call.out_shape, shapes, bytes, 2), {&tile}, pointers);
  }
};

/// Copies elements in another order of axes. Merged axes that exchange two blocks are matrices,
/// which are transposed in squares of vectors.
template <class Out, class T>
struct kernel_of<op::permute, Out, T> {
  static void run(const kernel_call& call) {
    const shape &from = call.in_shapes[0], &to = *call.out_shape;
    if (count(to) == 0) return;
    std::int64_t step[max_rank], stride[max_rank];
    std::int64_t n = 1;
    for (int i = from.rank - 1; i >= 0; --i) {
      step[i] = n;
      n *= from[i];
    }
    const axis_order order = call.attributes<op::permute>().order;
    for (int i = 0; i < to.rank; ++i) stride[i] = step[order[i]];
    const T* in = static_cast<const T*>(call.in[0]);
    T* out = static_cast<T*>(call.out);
    if (to.rank < 2) return void(std::copy_n(in, n, out));
    if (transposes(in, out, to, stride)) return;
    planes(in, out, to, stride);
  }

 private:
  /// Neighbouring axes that stay together are merged. Then two of them are exchanged, or two for
  /// each element of a first one, as for images whose channels become innermost or outermost.
  static bool transposes(const T* in, T* out, const shape& to, const std::int64_t* stride) {
    if constexpr (kernel::is_vector<T>) {
      std::int64_t size[max_rank] = {}, step[max_rank] = {};
      int axes = 0;
      for (int i = 0; i < to.rank; ++i) {
        if (to[i] == 1) continue;
        const bool together = axes > 0 && step[axes - 1] == to[i] * stride[i];
        if (!together) size[axes++] = 1;
        size[axes - 1] *= to[i];
        step[axes - 1] = stride[i];
      }
      if (axes != 2 && axes != 3) return false;
      const std::int64_t rows = size[axes - 1], columns = size[axes - 2];
      const bool batch = axes == 3 && step[0] == rows * columns;
      if (step[axes - 2] != 1 || step[axes - 1] != columns || (axes == 3 && !batch)) return false;
      kernel::transpose_matrices(in, batch ? size[0] : 1, rows, columns, out);
      return true;
    }
    return false;
  }
  // The last two axes in blocks: rows are copied whole if their elements stay neighbours, else in
  // squares, so that both sides stay in cache.
  static void planes(const T* in, T* out, const shape& to, const std::int64_t* stride) {
    constexpr std::int64_t block = 32;
    const int r = to.rank;
    const std::int64_t rows = to[r - 2], columns = to[r - 1];
    const std::int64_t blocks = (rows + block - 1) / block;
    const auto copy = [&](std::int64_t p, std::int64_t first, std::int64_t last) {
      std::int64_t offset = 0, rest = p;
      for (int i = r - 3; i >= 0; --i) {
        offset += rest % to[i] * stride[i];
        rest /= to[i];
      }
      const T* from = in + offset;
      T* plane = out + p * rows * columns;
      if (stride[r - 1] == 1) {
        for (std::int64_t a = first; a < last; ++a)
          std::copy_n(from + a * stride[r - 2], columns, plane + a * columns);
        return;
      }
      for (std::int64_t j = 0; j < columns; j += block)
        for (std::int64_t a = first; a < last; ++a)
          for (std::int64_t b = j; b < std::min(j + block, columns); ++b)
            plane[a * columns + b] = from[a * stride[r - 2] + b * stride[r - 1]];
    };
    kernel::for_ranges(count(to) / (rows * columns) * blocks, std::min(block, rows) * columns,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           const std::int64_t first = i % blocks * block;
                           copy(i / blocks, first, std::min(first + block, rows));
                         }
                       });
  }
};

template <class Out, class T>
struct kernel_of<op::arange, Out, T> {
  static void run(const kernel_call& call) {
    const std::int64_t start = call.attributes<op::arange>().start;
    T* out = static_cast<T*>(call.out);
    for (std::int64_t i = 0; i < count(*call.out_shape); ++i) out[i] = static_cast<T>(start + i);
  }
};

}  // namespace xla::detail
