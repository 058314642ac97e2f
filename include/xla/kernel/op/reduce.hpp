// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>

#include "xla/kernel/loops.hpp"
#include "xla/kernel/row.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/reduce.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

/// One reduction over rows, as a region of its own.
template <class Op, class T>
struct single_row {
  static constexpr auto key = [] {
    kernel::region_key<2> k{};
    k.words[0] = kernel::micro_op{.type = dtype_of<T>, .input = true}.word();
    k.words[1] =
        kernel::micro_op{
            .id = op_id(Op::name), .type = dtype_of<T>, .a = 0, .output = true, .reduce = true}
            .word();
    return k;
  }();
  using kernel_type = kernel::row_kernel<key>;

  /// out[i] = the reduction of row i of in (rows, n).
  static void run(T* out, const T* in, std::int64_t rows, std::int64_t n) {
    const shape all{2, {rows, n}};
    const shape shapes[] = {all, {2, {rows, 1}}};
    const std::int64_t bytes[] = {sizeof(T), sizeof(T)};
    void* pointers[] = {const_cast<T*>(in), out};
    kernel::run_rows(kernel::make_loops(all, shapes, bytes, 2, true), &kernel_type::run,
                     &kernel_type::scratch_bytes, pointers, 1);
  }
};

/// A reduction over an axis that is not the last: (outer, n, inner) to (outer, inner), added up in
/// the order of the axis in blocks, some rows in one pass over the sums.
template <class Op, class T>
struct column_reduce {
  static constexpr int w = kernel::lanes<T>;
  static constexpr std::int64_t widest = 4096;  ///< so that the sums stay in the first cache
  static constexpr std::int64_t narrowest = 256;

  static void run(T* out, const T* in, std::int64_t outer, std::int64_t n, std::int64_t inner) {
    const bool parallel = outer * n * inner >= kernel::parallel_work && num_threads() > 1;
    const std::int64_t share = (inner / (2 * num_threads()) + 63) & ~63;
    const std::int64_t width = parallel ? std::clamp(share, narrowest, widest) : widest;
    const std::int64_t strips = (inner + width - 1) / width;
    auto one = [&](std::int64_t i) {
      const std::int64_t o = i / strips, c = i % strips * width;
      strip(out + o * inner + c, in + o * n * inner + c, n, inner, std::min(width, inner - c));
    };
    if (parallel) return kernel::parallel_for(outer * strips, one);
    for (std::int64_t i = 0; i < outer * strips; ++i) one(i);
  }

 private:
  static void strip(T* out, const T* in, std::int64_t n, std::int64_t stride, std::int64_t count) {
    const std::int64_t height = kernel::column_block(n);
    block(out, in, std::min(height, n), stride, count);
    T sums[widest];
    for (std::int64_t r = height; r < n; r += height) {
      block(sums, in + r * stride, std::min(height, n - r), stride, count);
      rows<1>(out, sums, stride, count);
    }
  }
  static void block(T* out, const T* in, std::int64_t n, std::int64_t stride, std::int64_t count) {
    std::fill_n(out, count, Op::template identity<T>);
    std::int64_t r = 0;
    if (count <= in_registers)
      for (; r < n; r += rows_near)
        together(out, in + r * stride, std::min(rows_near, n - r), stride, count);
    for (; r + 8 <= n; r += 8) rows<8>(out, in + r * stride, stride, count);
    for (; r < n; ++r) rows<1>(out, in + r * stride, stride, count);
  }
  /// Sums of so few columns stay in registers, some columns at a time, over as many rows as then
  /// lie in the nearest cache.
  static constexpr std::int64_t in_registers = 128, rows_near = 32;
  static void together(T* out, const T* in, std::int64_t n, std::int64_t stride,
                       std::int64_t count) {
    std::int64_t k = 0;
    for (; k + 8 * w <= count; k += 8 * w)
      columns<8>(out + k, in + k, n, stride, kernel::all_lanes{});
    for (; k + 4 * w <= count; k += 4 * w)
      columns<4>(out + k, in + k, n, stride, kernel::all_lanes{});
    for (; k + 2 * w <= count; k += 2 * w)
      columns<2>(out + k, in + k, n, stride, kernel::all_lanes{});
    for (; k + w <= count; k += w) columns<1>(out + k, in + k, n, stride, kernel::all_lanes{});
    if (k < count) columns<1>(out + k, in + k, n, stride, count - k);
  }
  template <int Packets, class N>
  static void columns(T* out, const T* in, std::int64_t n, std::int64_t stride, N lanes) {
    using V = kernel::vec<T>;
    V sums[Packets];
    kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
      sums[i] = V{kernel::load_numbers(out + i * w, lanes)};
    });
    for (std::int64_t r = 0; r < n; ++r, in += stride)
      kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
        sums[i] = Op::combine(sums[i], V{kernel::load_numbers(in + i * w, lanes)});
      });
    kernel::unroll<Packets>([&](auto i) __attribute__((always_inline)) {
      kernel::store_numbers(out + i * w, kernel::packet<T>(sums[i].v), lanes);
    });
  }
  template <int Rows>
  static void rows(T* out, const T* in, std::int64_t stride, std::int64_t count) {
    std::int64_t k = 0;
    for (; k + w <= count; k += w) add<Rows>(out + k, in + k, stride, kernel::all_lanes{});
    if (k < count) add<Rows>(out + k, in + k, stride, count - k);
  }
  template <int Rows, class N>
  static XLA_INLINE void add(T* out, const T* in, std::int64_t stride, N n) {
    using V = kernel::vec<T>;
    V sum{kernel::load_numbers(out, n)};
    for (int i = 0; i < Rows; ++i)
      sum = Op::combine(sum, V{kernel::load_numbers(in + i * stride, n)});
    kernel::store_numbers(out, kernel::packet<T>(sum.v), n);
  }
};

/// Axes of a reduction, neighbours of a kind merged and axes of size 1 left out.
struct reduce_groups {
  int count = 0;
  std::int64_t size[max_rank] = {};
  bool reduced[max_rank] = {};

  reduce_groups(const shape& s, std::int64_t axes) {
    for (int i = 0; i < s.rank; ++i) {
      const bool r = axes >> i & 1;
      if (s[i] == 1) continue;
      if (count > 0 && reduced[count - 1] == r) size[count - 1] *= s[i];
      else {
        size[count] = s[i];
        reduced[count++] = r;
      }
    }
  }
  std::int64_t product(int from, int to) const {
    std::int64_t n = 1;
    for (int i = from; i < to; ++i) n *= size[i];
    return n;
  }
  int last_reduced() const {
    for (int i = count - 1; i >= 0; --i)
      if (reduced[i]) return i;
    return -1;
  }
  void remove(int at) {
    for (int i = at; i + 1 < count; ++i) {
      size[i] = size[i + 1];
      reduced[i] = reduced[i + 1];
    }
    --count;
  }
};

template <class Op, class Out, class T>
  requires(Op::kind == op_kind::reduce)
struct kernel_of<Op, Out, T> {
  static void run(const kernel_call& call) {
    reduce_groups g(call.in_shapes[0], call.attr);
    const T* in = static_cast<const T*>(call.in[0]);
    T* out = static_cast<T*>(call.out);
    if (is_columns(call)) {
      const std::int64_t n = count(*call.out_shape);
      return column_reduce<Op, T>::run(out, in, 1, n == 0 ? 0 : count(call.in_shapes[0]) / n, n);
    }
    int at = g.last_reduced();
    if (at < 0) return single_row<Op, T>::run(out, in, count(*call.out_shape), 1);
    working_memory parts[2];
    for (int turn = 0; at >= 0; turn ^= 1) {
      const std::int64_t outer = g.product(0, at), n = g.size[at],
                         inner = g.product(at + 1, g.count);
      g.remove(at);
      at = g.last_reduced();
      T* to = out;
      if (at >= 0) {
        const auto bytes = static_cast<std::size_t>(outer * inner) * sizeof(T);
        to = static_cast<T*>(parts[turn].take(bytes));
      }
      if (inner == 1) single_row<Op, T>::run(to, in, outer, n);
      else column_reduce<Op, T>::run(to, in, outer, n, inner);
      in = to;
    }
  }

 private:
  /// Over all axes but the last, also if that has size 1: in fused regions the order is this one.
  static bool is_columns(const kernel_call& call) {
    const int rank = call.in_shapes[0].rank;
    return std::is_same_v<Op, op::sum> && rank > 1 &&
           call.attr == (std::int64_t{1} << (rank - 1)) - 1;
  }
};

template <class Op, class Out, class T>
  requires std::derived_from<Op, op::arg_best>
struct kernel_of<Op, Out, T> {
  static void run(const kernel_call& call) {
    const kernel::lines_along l(call.in_shapes[0], static_cast<int>(call.attr));
    const T* in = static_cast<const T*>(call.in[0]);
    Out* out = static_cast<Out*>(call.out);
    for (std::int64_t i = 0; i < l.count(); ++i) out[i] = first_best(in + l.start(i), l.n, l.inner);
  }

 private:
  static Out first_best(const T* x, std::int64_t n, std::int64_t stride) {
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < n; ++k) {
      const T a = x[best * stride], b = x[k * stride];
      if (Op::better(b, a) || (b != b && a == a)) best = k;
    }
    return static_cast<Out>(best);
  }
};

}  // namespace xla::detail
