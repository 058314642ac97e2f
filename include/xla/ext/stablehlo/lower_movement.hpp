// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ops that make constants, convert elements or move them, in StableHLO. table.hpp lists the
// lowerings.

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/check_between.hpp"
#include "xla/op/check_index.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/create.hpp"
#include "xla/op/multinomial.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"

namespace xla::detail::hlo {

template <>
struct lowering<op::constant> {
  static value write(writer& w, const lowering_call& f) {
    return w.constant(unpack<op::constant::attributes>(f.node().attr), f.out().of, f.out().dims);
  }
};
template <>
struct lowering<op::size> {
  static value write(writer& w, const lowering_call& f) {
    const std::int64_t n = value_at<void>(f.program.symbols, f.attributes<op::size>().of);
    return w.constant(n, f.out().of);
  }
};
template <>
struct lowering<op::arange> {
  static value write(writer& w, const lowering_call& f) {
    const shape all{1, {count(f.out().dims)}};
    const value from = w.constant(f.attributes<op::arange>().start, element::i64, all);
    const value line = w.map("add", w.iota(element::i64, all, 0), from);
    return w.reshape(w.convert(line, f.out().of), f.out().dims);
  }
};

/// Conversion to bool tests for 0; NaN is not 0.
template <>
struct lowering<op::cast> {
  static value write(writer& w, const lowering_call& f) {
    const value& x = f.in(0);
    if (f.out().of != element::i1) return w.convert(x, f.out().of);
    return w.compare("NE", x, w.constant(0, x.type.of, x.type.dims));
  }
};

// The check has run before the program, so nothing remains to be done.
template <>
struct lowering<op::check_index> {
  static value write(writer&, const lowering_call& f) { return f.in(0); }
};
template <>
struct lowering<op::check_between> {
  static value write(writer&, const lowering_call& f) { return f.in(0); }
};
template <>
struct lowering<op::check_probabilities> {
  static value write(writer&, const lowering_call& f) { return f.in(0); }
};

template <>
struct lowering<op::permute> {
  static value write(writer& w, const lowering_call& f) {
    const axis_order order = f.attributes<op::permute>().order;
    shape axes;
    for (int i = 0; i < order.rank(); ++i) axes.push(order[i]);
    return w.transpose(f.in(0), axes);
  }
};
template <>
struct lowering<op::expand> {
  static value write(writer& w, const lowering_call& f) { return w.to(f.in(0), f.out().dims); }
};
template <>
struct lowering<op::concat> {
  static value write(writer& w, const lowering_call& f) {
    list<value> all;
    for (int k = 0; k < f.inputs(); ++k) all.push_back(f.in(k));
    return w.concat(all, f.attributes<op::concat>().axis);
  }
};

template <>
struct lowering<op::slice> {
  static value write(writer& w, const lowering_call& f) {
    const auto [axis, step, start] = f.attributes<op::slice>();
    const std::int64_t n = f.out().dims[axis], first = extent{start};
    if (n == 0) return w.constant(0, f.out().of, f.out().dims);
    shape from = filled(f.out().dims.rank, 0), to = f.in(0).type.dims, by = filled(to.rank, 1);
    const std::int64_t last = first + (n - 1) * step;
    from[axis] = std::min(first, last);
    to[axis] = std::max(first, last) + 1;
    by[axis] = n == 1 ? 1 : std::abs(step);
    const value part = w.slice(f.in(0), from, to, by);
    return step < 0 && n > 1 ? w.reverse(part, axis) : part;
  }
};

/// A contiguous part is written over the old elements. A strided part is spread, and a mask that is
/// spread in the same way selects it.
template <>
struct lowering<op::slice_scatter> {
  static value write(writer& w, const lowering_call& f) {
    const auto [axis, step, start] = f.attributes<op::slice_scatter>();
    const value all = w.to(f.in(0), f.out().dims);
    shape dims = f.out().dims;
    const std::int64_t n = dims[axis] =
        f.in(1).type.dims[f.in(1).type.dims.rank - dims.rank + axis];
    if (n == 0) return all;
    const value part = w.to(f.in(1), dims);
    if (n == 1 || step == 1) return over(w, all, part, axis, extent{start});
    const spread where{axis, extent{start}, step, n, f.out().dims[axis]};
    const value boolean = where.of(w, w.constant(1, element::i1, {1, {n}}), 0);
    return w.select(w.broadcast(boolean, f.out().dims, {1, {axis}}), where.of(w, part, axis), all);
  }

 private:
  static value over(writer& w, const value& all, const value& part, int axis, std::int64_t start) {
    list<value> operands = list_of({all, part});
    for (int i = 0; i < all.type.dims.rank; ++i)
      operands.push_back(w.constant(i == axis ? start : 0, element::i64));
    return w.op("dynamic_update_slice", operands, all.type);
  }
  struct spread {
    int axis;
    std::int64_t start, step, n, size;
    /// Puts elements at their indices along one axis, zeros elsewhere.
    value of(writer& w, value part, int along) const {
      if (step < 0) part = w.reverse(part, along);
      const std::int64_t last = start + (n - 1) * step;
      shape low = filled(part.type.dims.rank, 0), high = low, inner = low;
      low[along] = std::min(start, last);
      high[along] = size - 1 - std::max(start, last);
      inner[along] = std::abs(step) - 1;
      return w.pad(part, w.constant(0, part.type.of), low, high, inner);
    }
  };
};

}  // namespace xla::detail::hlo
