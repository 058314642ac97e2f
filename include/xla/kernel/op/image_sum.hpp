// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of op::image_sum: sums over the pixels of images whose channels are innermost, with
// the bits of a row region.

#include <algorithm>

#include "xla/base/instance.hpp"
#include "xla/kernel/op/reduce.hpp"
#include "xla/op/image_sum.hpp"

namespace xla::detail {

/// The sums of rows of images (pixels, channels), a row for each channel, in the order of
/// row_kernel with a vector of channels in place of each lane.
template <class T>
class image_rows {
  using V = kernel::vec<T>;
  using row = typename single_row<op::sum, T>::kernel_type;
  static constexpr int w = kernel::lanes<T>;
  static constexpr int together = static_cast<int>(row::together), chains = together / w;

 public:
  static constexpr std::int64_t widest = 4 * w;  ///< channels at a time

  /// Sums `width` channels from `in` on, which has `channels` channels.
  static void run(T* out, const T* in, std::int64_t pixels, std::int64_t channels,
                  std::int64_t width) {
    image_rows rows;
    std::int64_t k = 0;
    for (std::int64_t end = row::block; k + together <= pixels; k += together) {
      if (k == end) {
        end += row::block;
        rows.end_block();
      }
      for (int i = 0; i < together; ++i, in += channels) rows.add(i, in, width);
    }
    const bool whole = pixels >= together;
    for (; k < pixels; ++k, in += channels) rows.add(static_cast<int>(k % w), in, width);
    rows.finish(out, width, whole, pixels >= row::block + together);
  }

 private:
  void add(int chain, const T* in, std::int64_t width) {
    T* const to = sum_[chain];
    std::int64_t c = 0;
    for (; c + w <= width; c += w)
      kernel::store_numbers(to + c,
                            (V{kernel::load_numbers(to + c, kernel::all_lanes{})} +
                             V{kernel::load_numbers(in + c, kernel::all_lanes{})})
                                .v,
                            kernel::all_lanes{});
    if constexpr (w > 1)
      if (c < width)
        kernel::store_numbers(to + c,
                              (V{kernel::load_numbers(to + c, kernel::all_lanes{})} +
                               V{kernel::load_numbers(in + c, width - c)})
                                  .v,
                              kernel::all_lanes{});
  }
  T joined(int lane, std::int64_t c) const {
    if constexpr (chains == 1) return sum_[lane][c];
    else
      return (sum_[lane][c] + sum_[w + lane][c]) + (sum_[2 * w + lane][c] + sum_[3 * w + lane][c]);
  }
  void end_block() {
    for (int lane = 0; lane < w; ++lane)
      for (std::int64_t c = 0; c < widest; ++c) {
        kernel::block_sum<T> s{before_[lane][c], lost_[lane][c]};
        s.add(joined(lane, c));
        before_[lane][c] = s.sum;
        lost_[lane][c] = s.lost;
      }
    for (auto& of_chain : sum_) std::fill_n(of_chain, widest, T{});
  }
  void finish(T* out, std::int64_t width, bool whole, bool blocks) {
    if (blocks) end_block();
    for (int lane = 0; lane < w; ++lane)
      for (std::int64_t c = 0; c < widest; ++c)
        sum_[lane][c] = blocks ? total(lane, c) : whole ? joined(lane, c) : sum_[lane][c];
    // Exchanges vectors as row_kernel exchanges lanes within a vector.
    for (int half = w / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane)
        for (std::int64_t c = 0; c < widest; ++c) sum_[lane][c] += sum_[lane + half][c];
    std::copy_n(sum_[0], width, out);
  }
  T total(int lane, std::int64_t c) const {
    const T all = before_[lane][c] + lost_[lane][c];
    return all == all ? all : before_[lane][c];
  }

  alignas(64) T sum_[together][widest] = {}, before_[w][widest] = {}, lost_[w][widest] = {};
};

/// Sums over the pixels of images, for each channel.
template <class Out, class T>
struct kernel_of<image_sum, Out, T> {
  static void run(const kernel_call& call) {
    const shape& s = call.in_shapes[0];
    const std::int64_t channels = s[s.rank - 1], images = s[0];
    if (count(*call.out_shape) == 0) return;
    const std::int64_t pixels = images == 0 ? 0 : count(s) / channels / images;
    const bool all = call.attributes<image_sum>().images;
    // For one image this is the sum over all axes but the channels, which has an order of its own.
    if (images == 1 && s.rank == 4)
      return column_reduce<op::sum, T>::run(static_cast<T*>(call.out),
                                            static_cast<const T*>(call.in[0]), 1, pixels, channels);
    // These, too, are summed row by row.
    if (channels == 1 || pixels == 1 || count(s) == 0)
      return row_by_row(call, channels, pixels, all);
    working_memory memory;
    T* const out = static_cast<T*>(call.out);
    T* to = out;
    if (all && images > 1)
      to = static_cast<T*>(memory.take(static_cast<std::size_t>(images * channels) * sizeof(T)));
    each_image(to, static_cast<const T*>(call.in[0]), images, pixels, channels);
    if (to != out) column_reduce<op::sum, T>::run(out, to, 1, images, channels);
  }

 private:
  static void each_image(T* out, const T* in, std::int64_t images, std::int64_t pixels,
                         std::int64_t channels) {
    const std::int64_t strips = (channels + image_rows<T>::widest - 1) / image_rows<T>::widest;
    kernel::for_ranges(
        images * strips, pixels * image_rows<T>::widest,
        [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t n = i / strips, c = i % strips * image_rows<T>::widest;
            image_rows<T>::run(out + n * channels + c, in + n * pixels * channels + c, pixels,
                               channels, std::min(image_rows<T>::widest, channels - c));
          }
        });
  }
  static void row_by_row(kernel_call call, std::int64_t channels, std::int64_t pixels, bool all) {
    const std::int64_t images = call.in_shapes[0][0];
    const shape in{3, {images, channels, pixels}}, out{3, {all ? 1 : images, channels, 1}};
    axis_set axes = axis_set::one(2);
    if (all) axes.add(0);
    call.in_shapes = &in;
    call.out_shape = &out;
    call.attr = pack(op::reduction::attributes{axes});
    kernel_of<op::sum, Out, T>::run(call);
  }
};

XLA_OP_INSTANCE(struct kernel_entry<image_sum, float, float>);
XLA_OP_INSTANCE(struct kernel_entry<image_sum, double, double>);

}  // namespace xla::detail
