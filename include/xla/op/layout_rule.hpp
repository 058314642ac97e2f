// SPDX-License-Identifier: Apache-2.0
#pragma once

// For each kind of op, the orders of axes in memory that it may read and write. The pass
// transform/layouts.hpp and eager mode's with_layouts.hpp follow it; ops add preferences by
// preferred_layout.

#include "xla/base/dependent.hpp"
#include "xla/op/image_sum.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reduce.hpp"
#include "xla/shape/layout.hpp"

namespace xla::detail {

/// A permute that only changes the memory order. It copies elements as they are, so only their size
/// matters.
template <class T>
inline constexpr op_info copy_info = [] {
  op_info copy = info_of<op::permute, T, T, op_parts::kernel>;
  copy.name = "copy";
  return copy;
}();

/// Makes n the copy of a value into another order.
template <class In>
constexpr void copy_into(op_record& n, int rank, layout from, layout to) {
  switch (size_of(n.type)) {
    case 1: n.op = &copy_info<dependent<In, bool>>; break;
    case 2: n.op = &copy_info<dependent<In, bfloat16>>; break;
    case 4: n.op = &copy_info<dependent<In, float>>; break;
    default: n.op = &copy_info<dependent<In, std::int64_t>>; break;
  }
  axis_order positions;
  for (int k = 0; k < rank; ++k) positions.push(from.position(to.axis(k)));
  n.set<op::permute>({positions});
}

/// An input of an op: its sizes, and the order of its axes.
struct laid_out {
  const op_record* value = nullptr;
  layout order;
};

/// The order in which an elementwise op makes its result; natural is that of its inputs.
struct natural_order {
  constexpr layout operator()(const op_record&, layout natural) const { return natural; }
};

/// The positions of some axes.
constexpr axis_set positions_of(axis_set axes, int rank, layout order) {
  axis_set positions;
  for (int i = 0; i < rank; ++i)
    if (axes.has(order.axis(i))) positions.add(i);
  return positions;
}

/// Whether the channels of images, axis 1, are innermost.
constexpr bool channels_innermost(int rank, layout order) {
  bool innermost = rank > 2 && order.axis(0) == 0;
  for (int i = 2; i < rank; ++i) innermost = innermost && order.axis(i - 1) == i;
  return innermost;
}
/// Whether a reduction over positions in memory visits its terms in row-major order.
constexpr bool reduces_in_order(const op_record& n, layout order) {
  if (is<op::sum>(n) && n.type != dtype::float32 && n.type != dtype::float64) return true;
  const axis_set axes = n.attributes<op::reduction>().axes;
  if (is<op::sum>(n) && sums_channels(n.dims_shape(), axes) && channels_innermost(n.rank, order))
    return true;
  for (int i = 0; i < n.rank; ++i)
    for (int k = i + 1; k < n.rank; ++k) {
      const int a = order.axis(i), b = order.axis(k);
      if ((axes.has(a) || axes.has(b)) && a > b) return false;
    }
  return true;
}

/// Whether a sum is over the positions of images whose channels are innermost.
constexpr bool sums_images(const op_record& n, layout order) {
  const axis_set axes = n.attributes<op::reduction>().axes;
  bool positions = is<op::sum>(n) && !axes.has(1) && channels_innermost(n.rank, order);
  for (int i = 2; i < n.rank; ++i) positions = positions && axes.has(i);
  return positions;
}
/// Replaces the sum by the op image_sum.
template <class In>
constexpr void sum_images(op_record& n) {
  using op = dependent<In, image_sum>;
  const bool all = n.attributes<xla::op::reduction>().axes.has(0);
  if (n.type == dtype::float32) n.op = &info_of<op, float, float, op_parts::kernel>;
  else n.op = &info_of<op, double, double, op_parts::kernel>;
  n.attr = pack(image_sum::attributes{all});
}

/// A reshape of a value in another order: the order in which it reads the value, such that the
/// resized axes are neighbours in memory, and the order of its result.
constexpr void reshape_layouts(const shape& from, const shape& to, layout& read, layout& result) {
  const layout there = read;
  read = result = {};
  if (same_layout(from, there, {})) return;
  const int least = from.rank < to.rank ? from.rank : to.rank, more = to.rank - from.rank;
  int left = 0, right = 0;  // axes that stay on either side
  while (left < least && from[left] == to[left]) ++left;
  while (right < least - left && from[from.rank - 1 - right] == to[to.rank - 1 - right]) ++right;
  const int end = from.rank - right;
  int in[max_rank], out[max_rank], n = 0, made = 0;
  const auto change = [&] {
    for (int axis = left; axis < end; ++axis) in[n++] = axis;
    for (int axis = left; axis < end + more; ++axis) out[made++] = axis;
  };
  // New axes of size 1 come before the next axis in memory.
  const int neighbour = left < end ? -1 : right > 0 ? end : left - 1;
  for (int position = 0, changed = 0; position < from.rank; ++position) {
    const int axis = there.axis(position);
    if (axis >= left && axis < end) {
      if (changed++ == 0) change();
      continue;
    }
    if (axis == neighbour && right > 0) change();
    in[n++] = axis;
    out[made++] = axis < left ? axis : axis + more;
    if (axis == neighbour && right == 0) change();
  }
  read = layout::of(in, n);
  result = layout::of(out, made);
}

/// The orders in which an op reads its inputs, which are laid out like it, and makes its result:
/// `layouts` has an entry for each, the result's last. An op with preferences of its own gets an
/// attribute that says they are met; attributes of other ops get the positions of axes instead of
/// their numbers. True: the result is the first input's memory.
class layout_rule {
 public:
  constexpr layout_rule(op_record& n, const laid_out* in, int count, layout* layouts)
      : n_(n), in_(in), count_(count), layouts_(layouts) {}

  template <class Prefer = natural_order>
  constexpr bool choose(const Prefer& prefer = {}) {
    for (int k = 0; k <= count_; ++k) layouts_[k] = {};
    if (n_.op->preferred_layout) n_.op->preferred_layout(n_, layouts_, layouts_[count_]);
    if (n_.op->preferred_layout || n_.op->impure || count_ == 0) return false;
    switch (n_.op->kind) {
      case op_kind::alias: follow_alias(); return true;
      case op_kind::output:
        if (!is<op::output>(n_)) return false;  // of a loop
        follow_output();
        return true;
      case op_kind::reduce: return reduce<Prefer>();
      case op_kind::map:
      case op_kind::library:
        if (n_.op->accepts == axes_rule::numbered) return false;
        if (n_.op->accepts == axes_rule::permuted) return turn();
        if (n_.op->accepts == axes_rule::images) return follow_images();
        follow(prefer(n_, order_of_inputs()));
        break;
      default: return false;
    }
    name_positions();
    return false;
  }

 private:
  template <class In>
  constexpr bool reduce() const {
    const layout order = in_[0].order;
    const bool alike = reduces_in_order(n_, order);
    if (!alike && !sums_images(n_, order)) return false;
    layouts_[0] = layouts_[1] = order;
    if (alike) name_positions();
    else sum_images<In>(n_);
    return false;
  }
  constexpr layout& result() const { return layouts_[count_]; }
  constexpr shape dims_of(int k) const { return in_[k].value->dims_shape(); }

  // The order of the first input that has all axes and is not row-major.
  constexpr layout order_of_inputs() const {
    if (rows_are_short()) return {};
    for (int k = 0; k < count_; ++k)
      if (!in_[k].order.is_row_major() && in_[k].value->rank == n_.rank && is_full(*in_[k].value))
        return in_[k].order;
    return {};
  }
  // Whether rows of channels are so short that an operand without channels, or joined pieces of a
  // row, take longer than images in row-major order and a copy to it. P-Net, which has heads of 2
  // and 4 channels, takes 0.85 of the time (a Zen 3, 2026-11-30).
  constexpr bool rows_are_short() const {
    constexpr int few = 8;
    if (n_.rank != 4 || !is_known(n_.dims[1]) || n_.dims[1] < 2 || n_.dims[1] >= few) return false;
    for (int k = 0; k < count_; ++k) {
      const op_record& x = *in_[k].value;
      if (x.rank == 4 && is_known(x.dims[1]) && x.dims[1] < n_.dims[1] && !(x.dims[3] == 1))
        return true;
    }
    return false;
  }
  constexpr bool is_full(const op_record& x) const {
    return n_.op->accepts == axes_rule::any || n_.op->kind != op_kind::map || same_dims(x, n_);
  }
  constexpr void follow(layout order) const {
    const bool all = n_.op->accepts == axes_rule::broadcast;
    for (int k = 0; k < count_; ++k)
      if (all || in_[k].value->rank == n_.rank) layouts_[k] = order;
    result() = order;
  }
  constexpr void follow_alias() const {
    for (int k = 0; k < count_; ++k) layouts_[k] = in_[k].order;  // but the first they are not read
    result() = layouts_[0];
    if (!same_dims(n_, *in_[0].value))
      reshape_layouts(dims_of(0), n_.dims_shape(), layouts_[0], result());
  }
  constexpr void follow_output() const {
    layouts_[0] = in_[0].order;
    if (n_.rank == in_[0].value->rank) result() = layouts_[0];
  }
  // The axes keep their positions.
  constexpr bool turn() const {
    if (in_[0].order.is_row_major()) return false;
    layouts_[0] = in_[0].order;
    const axis_order order = n_.attributes<op::permute>().order.inverse();
    int axes[max_rank];
    for (int i = 0; i < n_.rank; ++i) axes[i] = order[layouts_[0].axis(i)];
    result() = layout::of(axes, n_.rank);
    return true;
  }

  constexpr bool follow_images() const {
    constexpr layout nhwc{0, 2, 3, 1};
    if (n_.rank != 4 || !(order_of_inputs() == nhwc)) return false;
    follow(nhwc);
    int next = 0;
    for (const attribute_field& f : n_.op->fields)
      for (int i = 0; i < (f.count ? f.count : 1); ++i) {
        const int at = field_begin(next, f.bits);
        next = at + f.bits;
        if (f.name == "channels_last") word(at) |= std::uint64_t{1} << (at & 63);
      }
    return false;
  }

  constexpr std::uint64_t& word(int at) const { return at < 64 ? n_.attr.low : n_.attr.high; }
  constexpr void name_positions() const {
    if (result().is_row_major()) return;
    int next = 0;
    for (const attribute_field& f : n_.op->fields) {
      for (int i = 0; i < (f.count ? f.count : 1); ++i) {
        if (f.kind == field_kind::size) continue;
        const int at = field_begin(next, f.bits);
        next = at + f.bits;
        if (f.kind == field_kind::axis || f.kind == field_kind::axes) name_position(f, at);
      }
    }
  }
  constexpr void name_position(const attribute_field& f, int at) const {
    const std::uint64_t was = field_bits(n_.attr, at, f.bits);
    const std::uint64_t is =
        f.kind == field_kind::axis
            ? static_cast<std::uint64_t>(result().position(static_cast<int>(was)))
            : positions_of(axis_set::of_bits(was), n_.rank, result()).bits();
    word(at) ^= (was ^ is) << (at & 63);
  }

  op_record& n_;
  const laid_out* const in_;
  const int count_;
  layout* const layouts_;
};

}  // namespace xla::detail
