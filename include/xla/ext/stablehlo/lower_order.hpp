// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorting, argmax and searches in StableHLO, stable and with NaN as the largest, like the kernels.
// table.hpp lists the lowerings.

#include <bit>

#include "xla/ext/stablehlo/extremum.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/median.hpp"
#include "xla/op/search.hpp"
#include "xla/op/sort.hpp"

namespace xla::detail::hlo {

/// The index of the best element along an axis, reduced together with it.
inline value best_index(writer& w, const lowering_call& f, int axis, std::string_view better) {
  const value& x = f.in(0);
  const element of = x.type.of;
  tensor_type found{of, {}};
  for (int i = 0; i < x.type.dims.rank; ++i)
    if (i != axis) found.dims.push(x.type.dims[i]);
  const list<value> in =
      list_of({x, w.iota(element::i64, x.type.dims, axis),
               w.constant(outermost(of, better == "GT"), of), w.constant(no_index, element::i64)});
  const auto all = w.ops("reduce", in, list_of({found, {element::i64, found.dims}}),
                         numbers("dimensions", one_axis(axis)), choosing(w, of, better, false));
  return w.reshape(all[1], f.out().dims);
}
template <>
struct lowering<op::argmax> {
  static value write(writer& w, const lowering_call& f) {
    return best_index(w, f, f.attributes<op::argmax>().axis, "GT");
  }
};
template <>
struct lowering<op::argmin> {
  static value write(writer& w, const lowering_call& f) {
    return best_index(w, f, f.attributes<op::argmin>().axis, "LT");
  }
};

/// The indices of all elements in sorted order along an axis: stable, and NaN is the largest.
/// Elements that a total order of bits would distinguish are made equal first: zeros, and all NaNs.
inline value sorted_indices(writer& w, value x, int axis, bool descending) {
  const element of = x.type.of;
  const shape& dims = x.type.dims;
  std::string how = choice("comparison_direction", descending ? "GT" : "LT");
  if (is_float(of)) {
    const value zero = zeros(w, x.type);
    const value nan = w.constant(std::numeric_limits<double>::quiet_NaN(), of, dims);
    x = w.select(w.compare("EQ", x, zero), zero, x);
    x = w.select(w.compare("NE", x, x), nan, x);
    how += ", compare_type = #stablehlo<comparison_type TOTALORDER>";
  }
  const tensor_type number{of, {}}, index{element::i64, {}};
  const std::string before =
      w.region(list_of({number, number, index, index}), [&](const list<value>& a) {
        return list_of({w.op("compare", {a[0], a[1]}, {element::i1, {}}, how)});
      });
  const auto sorted = w.ops("sort", list_of({x, w.iota(element::i64, dims, axis)}),
                            list_of({x.type, {element::i64, dims}}),
                            hlo::number("dimension", axis) + ", is_stable = true", before);
  return sorted[1];
}
/// Some elements along an axis.
inline value part_of(writer& w, const value& x, int axis, extent first, extent count) {
  const int rank = x.type.dims.rank;
  return w.slice(x, with_size(filled(rank, 0), axis, first),
                 with_size(x.type.dims, axis, first + count), filled(rank, 1));
}

template <>
struct lowering<op::argsort> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::argsort>();
    const tensor_type out = f.out();
    if (xla::detail::count(out.dims) == 0) return zeros(w, out);
    const value all = sorted_indices(w, f.in(0), a.axis, a.descending);
    return all.type == out ? all : part_of(w, all, a.axis, 0, out.dims[a.axis]);
  }
};

template <>
struct lowering<op::median_index> {
  static value write(writer& w, const lowering_call& f) {
    const int axis = f.attributes<op::median_index>().axis;
    const tensor_type out = f.out();
    const value& x = f.in(0);
    if (xla::detail::count(out.dims) == 0) return zeros(w, out);
    const extent n = x.type.dims[axis];
    const value middle = part_of(w, sorted_indices(w, x, axis, false), axis, (n - 1) / 2, 1);
    if (!is_float(x.type.of)) return middle;
    const value nan = w.compare("NE", x, x), past_end = w.constant(no_index, element::i64);
    const value indices =
        w.select(nan, w.iota(element::i64, x.type.dims, axis), w.to(past_end, x.type.dims));
    const value first =
        w.reduce(indices, past_end, axis_set::one(axis),
                 [&](const value& a, const value& b) { return w.map("minimum", a, b); });
    return w.select(w.compare("EQ", first, w.to(past_end, out.dims)), middle, first);
  }
};

/// A binary search for all values at once.
template <>
struct lowering<op::searchsorted> {
  static value write(writer& w, const lowering_call& f) {
    const bool right = f.attributes<op::searchsorted>().right;
    const value &sequence = f.in(0), &x = f.in(1);
    const int last = sequence.type.dims.rank - 1;
    const extent n = sequence.type.dims[last];
    value below = zeros(w, f.out());
    if (xla::detail::count(f.out().dims) == 0 || n == 0) return below;
    const auto number = [&](extent k) { return w.constant(k, element::i64, x.type.dims); };
    for (extent step = static_cast<extent>(std::bit_floor(static_cast<std::uint64_t>(n))); step > 0;
         step /= 2) {
      const value next = w.map("add", below, number(step));
      const value at = w.map("minimum", w.map("subtract", next, number(1)), number(n - 1));
      const value there = last == 0 ? take(w, sequence, 0, at) : take_along(w, sequence, last, at);
      const value before = right ? w.map("not", smaller(w, x, there)) : smaller(w, there, x);
      const value inside = w.compare("LE", next, number(n));
      below = w.select(w.map("and", inside, before), next, below);
    }
    return below;
  }

 private:
  // NaN is the largest.
  static value smaller(writer& w, const value& a, const value& b) {
    const value less = w.compare("LT", a, b);
    if (!is_float(a.type.of)) return less;
    return w.map("or", less, w.map("and", w.compare("NE", b, b), w.compare("EQ", a, a)));
  }
};

}  // namespace xla::detail::hlo
