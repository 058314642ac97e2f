// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of reductions and of argmax and argmin: the last axis by a row region, other axes
// with vectors along the result. Fused reductions run fused/row.hpp instead.

#include <algorithm>
#include <concepts>

#include "xla/base/compiler.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/fused/row.hpp"
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
            .id = id_of<Op>, .type = dtype_of<T>, .a = 0, .output = true, .reduce = true}
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

/// A reduction over an axis that is not the last: (outer, n, inner) to (outer, inner), in the order
/// of the axis, with several rows per pass over the results. Fractions are summed in blocks.
template <class Op, class T>
struct column_reduce {
  static constexpr int w = kernel::lanes<T>;
  static constexpr std::int64_t widest = 4096;  ///< so that the results stay in the L1 cache
  static constexpr std::int64_t narrowest = 256;

  static void run(T* out, const T* in, std::int64_t outer, std::int64_t n, std::int64_t inner) {
    const bool parallel = outer * n * inner >= kernel::parallel_work && num_threads() > 1;
    const std::int64_t share = (inner / (2 * num_threads()) + 63) & ~63;
    const std::int64_t width = parallel ? std::clamp(share, narrowest, widest) : widest;
    const std::int64_t strips = (inner + width - 1) / width;
    auto one = [&](std::int64_t i) {
      const std::int64_t o = i / strips, c = i % strips * width;
      strip(out + o * inner + c, n, {in + o * n * inner + c, inner, std::min(width, inner - c)});
    };
    if (parallel) return kernel::parallel_for(outer * strips, one);
    for (std::int64_t i = 0; i < outer * strips; ++i) one(i);
  }
  /// (images, channels, pixels) to (channels), in the order of images whose channels are innermost.
  static void run_channels(T* out, const T* in, std::int64_t images, std::int64_t channels,
                           std::int64_t pixels) {
    constexpr std::int64_t width = 32;
    const std::int64_t n = images * pixels;
    kernel::for_ranges(
        (channels + width - 1) / width, n * width, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t c = first * width; c < last * width; c += width) {
            const std::int64_t count = std::min(width, channels - c);
            strip(out + c, n, {in + c * pixels, count, count, pixels, channels * pixels});
          }
        });
  }
  /// Adds n rows of `count` columns to their results, in order; first: to none.
  static void add_rows(T* out, const T* in, std::int64_t n, std::int64_t stride, std::int64_t count,
                       bool first) {
    rows({in, stride, count, out}, n, first);
  }

 private:
  static constexpr bool in_blocks = std::is_floating_point_v<T> && kernel::rounding_op<id_of<Op>>;
  static constexpr std::int64_t height = kernel::block_terms;

  /// Some neighbouring columns of rows that are `stride` apart, and their results.
  struct columns {
    const T* in;
    std::int64_t stride, count;
    T* out;
    T* lost = nullptr;  ///< rounding errors of the sums, if they are made of blocks
    std::int64_t part =
        0;  ///< the number of rows that are summed on their own before they join the others
  };

  /// The rows of some columns in memory. For images in channels-first order, with `pixels` elements
  /// per channel and `image` elements between images, a row is a pixel, and as many rows as needed
  /// are transposed.
  struct source {
    const T* in;
    std::int64_t stride, count, pixels = 0, image = 0;

    [[gnu::noinline]] const T* rows(std::int64_t first, [[maybe_unused]] std::int64_t n) const {
      if constexpr (std::is_same_v<Op, op::sum>)
        if (image > 0) return transposed(in, image, pixels, first, n, count);
      return in + first * stride;
    }
  };
  static void strip(T* out, std::int64_t n, const source& from) {
    const std::int64_t stride = from.stride, count = from.count;
    const kernel::column_order order(n);
    if (!in_blocks) return rows({from.rows(0, n), stride, count, out}, n);
    if (!order.blocks) {
      const std::int64_t step = from.image > 0 ? order.part : std::max<std::int64_t>(n, 1);
      for (std::int64_t r = 0; r < n || r == 0; r += step) {
        const std::int64_t some = std::min(step, n - r);
        rows({from.rows(r, some), stride, count, out, nullptr, order.part}, some, r == 0);
      }
      return;
    }
    T lost[widest], sum[widest], sum_lost[widest];
    rows({from.rows(0, order.part), stride, count, out, lost}, order.part);
    for (std::int64_t r = order.part; r < n; r += order.part) {
      const std::int64_t some = std::min(order.part, n - r);
      rows({from.rows(r, some), stride, count, sum, sum_lost}, some);
      kernel::column_sums<T>{out, lost}.add({sum, sum_lost}, count, false);
    }
    kernel::column_sums<T>{out, lost}.total(out, count);
  }
  /// Some rows of `count` channels of channels-first images that are `image` elements apart.
  static const T* transposed(const T* in, std::int64_t image, std::int64_t pixels,
                             std::int64_t first, std::int64_t rows, std::int64_t count) {
    auto* const to = static_cast<T*>(
        kernel::thread_scratch<column_reduce>(rows * count * kernel::element_size<T>));
    for (std::int64_t done = 0; done < rows;) {
      const std::int64_t pixel = (first + done) % pixels;
      const std::int64_t run = std::min(rows - done, pixels - pixel);
      const T* const from = in + (first + done) / pixels * image + pixel;
      for (std::int64_t c = 0; c < count; ++c)
        for (std::int64_t i = 0; i < run; ++i) to[(done + i) * count + c] = from[c * pixels + i];
      done += run;
    }
    return to;
  }
  [[gnu::noinline]] static void rows(columns c, std::int64_t n, bool first = true) {
    const std::int64_t near = c.count <= narrow ? std::max(n, height) : std::max(c.part, height);
    for (std::int64_t r = 0; r < n || r == 0; r += near, c.in += near * c.stride)
      some_rows(c, std::min(near, n - r), first && r == 0);
  }
  /// So few columns that several rows are close in memory.
  static constexpr std::int64_t narrow = 128;
  /// The number of columns whose results fit registers.
  static void some_rows(const columns& c, std::int64_t n, bool first) {
    std::int64_t k = 0;
    for (; k + 4 * w <= c.count; k += 4 * w) combine<4>(c, k, n, first, kernel::all_lanes{});
    for (; k + 2 * w <= c.count; k += 2 * w) combine<2>(c, k, n, first, kernel::all_lanes{});
    for (; k + w <= c.count; k += w) combine<1>(c, k, n, first, kernel::all_lanes{});
    if constexpr (w > 1)
      if (k < c.count) combine<1>(c, k, n, first, c.count - k);
  }
  template <int Packets, class N>
  static void combine(const columns& c, std::int64_t k, std::int64_t n, bool first, N lanes) {
    using V = kernel::vec<T>;
    const V identity = V::splat(Op::template identity<T>);
    auto load = [&](const T* from) { return V{kernel::load_numbers(from, lanes)}; };
    kernel::block_sum<V> s[Packets];
    for (int i = 0; i < Packets; ++i) {
      s[i].sum = first ? identity : load(c.out + k + i * w);
      if constexpr (in_blocks) s[i].lost = first || !c.lost ? identity : load(c.lost + k + i * w);
    }
    const bool separate = c.lost || c.part > 0;
    const std::int64_t chain = c.lost ? height : separate ? c.part : n;
    for (const T* in = c.in + k; n > 0; n -= chain) {
      V all[Packets];
      for (int i = 0; i < Packets; ++i) all[i] = separate ? identity : s[i].sum;
      for (std::int64_t r = std::min(n, chain); r > 0; --r, in += c.stride)
        kernel::unroll<Packets>(
            [&](auto i) XLA_INLINE_LAMBDA { all[i] = Op::combine(all[i], load(in + i * w)); });
      kernel::unroll<Packets>([&](auto i) XLA_INLINE_LAMBDA {
        if constexpr (in_blocks)
          if (c.lost) return s[i].add(all[i]);
        s[i].sum = separate ? Op::combine(s[i].sum, all[i]) : all[i];
      });
    }
    kernel::unroll<Packets>([&](auto i) XLA_INLINE_LAMBDA {
      const std::int64_t at = k + i * w;
      kernel::store_numbers(c.out + at, kernel::packet<T>(s[i].sum.v), lanes);
      if constexpr (in_blocks)
        if (c.lost) kernel::store_numbers(c.lost + at, s[i].lost.v, lanes);
    });
  }
};

/// The axes of a reduction, with neighbours that are both reduced or both kept merged, and axes of
/// size 1 dropped.
struct reduce_groups {
  int count = 0;
  std::int64_t size[max_rank] = {};
  bool reduced[max_rank] = {};

  reduce_groups(const shape& s, axis_set axes) {
    for (int i = 0; i < s.rank; ++i) {
      const bool r = axes.has(i);
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

/// All reductions: the last axes by the kernel of a row region, others by column_reduce, one group
/// of axes after the other.
template <class Op, class Out, class T>
  requires(Op::kind == op_kind::reduce)
struct kernel_of<Op, Out, T> {
  static void run(const kernel_call& call) {
    reduce_groups g(call.in_shapes[0], call.attributes<Op>().axes);
    const T* in = static_cast<const T*>(call.in[0]);
    T* out = static_cast<T*>(call.out);
    if (is_columns(call)) {
      const std::int64_t n = count(*call.out_shape);
      return column_reduce<Op, T>::run(out, in, 1, n == 0 ? 0 : count(call.in_shapes[0]) / n, n);
    }
    if (is_channels(call)) {
      const shape& s = call.in_shapes[0];
      const std::int64_t n = s[0] * s[1];
      return column_reduce<Op, T>::run_channels(out, in, s[0], s[1], n == 0 ? 0 : count(s) / n);
    }
    int at = g.last_reduced();
    if (at < 0) return single_row<Op, T>::run(out, in, count(*call.out_shape), 1);
    working_memory parts[2];
    for (int other = 0; at >= 0; other ^= 1) {
      const std::int64_t outer = g.product(0, at), n = g.size[at],
                         inner = g.product(at + 1, g.count);
      g.remove(at);
      at = g.last_reduced();
      T* to = out;
      if (at >= 0) {
        const auto bytes = static_cast<std::size_t>(outer * inner) * sizeof(T);
        to = static_cast<T*>(parts[other].take(bytes));
      }
      if (inner == 1) single_row<Op, T>::run(to, in, outer, n);
      else column_reduce<Op, T>::run(to, in, outer, n, inner);
      in = to;
    }
  }

 private:
  /// Over all axes but the last, even if the last has size 1, because fused regions sum in this
  /// order.
  static bool is_columns(const kernel_call& call) {
    const int rank = call.in_shapes[0].rank;
    return std::is_same_v<Op, op::sum> && rank > 1 &&
           call.attributes<Op>().axes == axis_set::range(0, rank - 1);
  }
  static bool is_channels(const kernel_call& call) {
    return std::is_same_v<Op, op::sum> && std::is_floating_point_v<T> &&
           sums_channels(call.in_shapes[0], call.attributes<Op>().axes);
  }
};

template <class Op, class Out, class T>
  requires std::derived_from<Op, op::arg_best>
struct kernel_of<Op, Out, T> {
  static void run(const kernel_call& call) {
    const kernel::lines_along l(call.in_shapes[0], call.attributes<Op>().axis);
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
