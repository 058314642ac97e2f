// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pooling and its gradients in StableHLO. table.hpp lists the lowerings; windows.hpp gives the
// elements of a window.

#include "xla/ext/stablehlo/extremum.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/ext/stablehlo/windows.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/max_pool.hpp"

namespace xla::detail::hlo {

template <>
struct lowering<op::max_pool> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const pool_windows windows(f.in(0).type.dims, out.dims, f.attributes<op::max_pool>());
    const value low = w.constant(lowest(out.of), out.of);
    const value x = windows.laid_out(w, f.in(0), low);
    return w.op("reduce_window", {x, low}, out, windows.attributes(),
                w.combining(out.of, [&](const value& a, const value& b) {
                  return w.map("maximum", a, b);
                }));
  }
};

template <>
struct lowering<op::avg_pool> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const auto a = f.attributes<op::avg_pool>();
    const pool_windows windows(f.in(0).type.dims, out.dims, a);
    const value none = w.constant(0, out.of);
    const value x = windows.laid_out(w, f.in(0), none);
    const value sums = w.op(
        "reduce_window", {x, none}, out, windows.attributes(),
        w.combining(out.of, [&](const value& p, const value& q) { return w.map("add", p, q); }));
    return a.sums ? sums : w.map("divide", sums, windows.sizes(w, out));
  }
};

/// Spreads each window's number, divided as in avg_pool, over the elements of the window: repeated
/// if windows are tiles, else added up.
template <>
struct lowering<op::avg_pool_backward> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    value parts = f.in(0);
    if (count(out.dims) == 0 || count(parts.type.dims) == 0) return zeros(w, out);
    const auto a = f.attributes<op::avg_pool_backward>();
    const pool_windows windows(out.dims, parts.type.dims, a);
    if (!a.sums) parts = w.map("divide", parts, windows.sizes(w, parts.type));
    const bool tiles = windows.tiles(0) && windows.tiles(1);
    return windows.put_back(w, tiles ? repeated(w, parts, windows) : spread(w, parts, windows));
  }

 private:
  // Spreads each number over its window; crops, or pads with zeros, if windows and image end at
  // different elements.
  static value repeated(writer& w, const value& parts, const pool_windows& windows) {
    const shape s = parts.type.dims;
    const extent high = windows.kernel(0), wide = windows.kernel(1);
    const value all =
        w.broadcast(parts, {6, {s[0], s[1], s[2], high, s[3], wide}}, {4, {0, 1, 2, 4}});
    const value images = w.reshape(all, {4, {s[0], s[1], s[2] * high, s[3] * wide}});
    const extent more[] = {windows.image(0) - s[2] * high, windows.image(1) - s[3] * wide};
    if (more[0] == 0 && more[1] == 0) return images;
    const shape none = filled(4, 0);
    return w.pad(images, w.constant(0, parts.type.of), none, {4, {0, 0, more[0], more[1]}}, none);
  }
  // The windows' numbers, dilated by the stride, summed under the kernel.
  static value spread(writer& w, const value& parts, const pool_windows& windows) {
    shape low = filled(4, 0), high = low, inner = low, window = filled(4, 1), dilation = window;
    tensor_type out = parts.type;
    for (int i = 0; i < 2; ++i) {
      window[2 + i] = windows.kernel(i);
      dilation[2 + i] = windows.dilation(i);
      inner[2 + i] = windows.stride(i) - 1;
      low[2 + i] = windows.reach(i) - 1 - windows.padding(i);
      high[2 + i] = windows.image(i) + windows.padding(i) - 1 -
                    (parts.type.dims[2 + i] - 1) * windows.stride(i);
      out.dims[2 + i] = windows.image(i);
    }
    const value none = w.constant(0, out.of);
    const shape one = filled(4, 1);
    return w.op(
        "reduce_window", {w.pad(parts, none, low, high, inner), none}, out,
        numbers("window_dimensions", window) + ", " + numbers("window_strides", one) + ", " +
            numbers("window_dilations", dilation),
        w.combining(out.of, [&](const value& p, const value& q) { return w.map("add", p, q); }));
  }
};

/// The position of the largest element of each window, of equal ones the first, of NaNs the last:
/// its number in the image, row by row. Past the end if the window has no element.
inline value largest_indices(writer& w, const value& x, const shape& pools,
                             const op::pooling::attributes& a) {
  const element of = x.type.of;
  const tensor_type indices{element::i64, pools};
  const pool_windows windows(x.type.dims, pools, a);
  const value low = w.constant(lowest(of), of), past_end = w.constant(no_index, element::i64);
  const extent high = x.type.dims[2], wide = x.type.dims[3];
  const value number = w.reshape(w.iota(element::i64, {1, {high * wide}}, 0), {2, {high, wide}});
  const list<value> in =
      list_of({windows.laid_out(w, x, low),
               windows.laid_out(w, w.to(number, x.type.dims), past_end), low, past_end});
  return w.ops("reduce_window", in, list_of({tensor_type{of, pools}, indices}),
               windows.attributes(), choosing(w, of, "GT", true))[1];
}

/// Images as (batch, channels, pixels).
inline value flat(writer& w, const value& x) {
  const shape s = x.type.dims;
  return w.reshape(x, {3, {s[0], s[1], s[2] * s[3]}});
}

template <>
struct lowering<op::max_pool_index> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0 || count(f.in(0).type.dims) == 0) return zeros(w, out);
    const value at = largest_indices(w, f.in(0), out.dims, f.attributes<op::max_pool_index>());
    return within(w, at);
  }
  static value within(writer& w, const value& at) {
    const value past_end = w.constant(no_index, element::i64, at.type.dims);
    return w.select(w.compare("EQ", at, past_end), zeros(w, at.type), at);
  }
};

template <>
struct lowering<op::max_pool_scatter> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    const value& parts = f.in(0);
    if (count(out.dims) == 0 || count(parts.type.dims) == 0) return zeros(w, out);
    const value at =
        largest_indices(w, f.in(1), parts.type.dims, f.attributes<op::max_pool_scatter>());
    const value none = flat(w, zeros(w, out));
    return w.reshape(put_along(w, none, 2, flat(w, at), flat(w, parts), putting::adds), out.dims);
  }
};

template <>
struct lowering<op::max_pool_gather> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    if (count(out.dims) == 0 || count(f.in(0).type.dims) == 0) return zeros(w, out);
    const value at = largest_indices(w, f.in(1), out.dims, f.attributes<op::max_pool_gather>());
    const value inside = flat(w, lowering<op::max_pool_index>::within(w, at));
    const value picked = w.reshape(take_along(w, flat(w, f.in(0)), 2, inside), out.dims);
    const value past_end = w.constant(no_index, element::i64, out.dims);
    return w.select(w.compare("EQ", at, past_end), zeros(w, out), picked);
  }
};

}  // namespace xla::detail::hlo
