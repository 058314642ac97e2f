// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "xla/kernel/loops.hpp"
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
    kernel::run_map(kernel::make_loops(*call.out_shape, shapes, bytes, 2), &tile, pointers);
  }
};

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
    for (int i = 0; i < to.rank; ++i) stride[i] = step[op::permute::source(call.attr, i)];
    const T* in = static_cast<const T*>(call.in[0]);
    T* out = static_cast<T*>(call.out);
    if (to.rank < 2) return void(std::copy_n(in, n, out));
    planes(in, out, to, stride);
  }

 private:
  // The last two axes in blocks, so that both sides stay in cache.
  static void planes(const T* in, T* out, const shape& to, const std::int64_t* stride) {
    const int r = to.rank;
    const std::int64_t rows = to[r - 2], columns = to[r - 1];
    const std::int64_t total = count(to) / (rows * columns);
    for (std::int64_t p = 0; p < total; ++p) {
      std::int64_t offset = 0, rest = p;
      for (int i = r - 3; i >= 0; --i) {
        offset += rest % to[i] * stride[i];
        rest /= to[i];
      }
      constexpr std::int64_t block = 32;
      for (std::int64_t i = 0; i < rows; i += block)
        for (std::int64_t j = 0; j < columns; j += block)
          for (std::int64_t a = i; a < std::min(i + block, rows); ++a)
            for (std::int64_t b = j; b < std::min(j + block, columns); ++b)
              out[(p * rows + a) * columns + b] =
                  in[offset + a * stride[r - 2] + b * stride[r - 1]];
    }
  }
};

template <class Out, class T>
struct kernel_of<op::arange, Out, T> {
  static void run(const kernel_call& call) {
    T* out = static_cast<T*>(call.out);
    for (std::int64_t i = 0; i < count(*call.out_shape); ++i)
      out[i] = static_cast<T>(call.attr + i);
  }
};

}  // namespace xla::detail
