// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gathers and scatters in StableHLO. Indices are in range, as pjrt/checks.hpp checks them before
// the program runs. table.hpp lists the lowerings.

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/embedding.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/median.hpp"
#include "xla/op/scatter_reduce.hpp"

namespace xla::detail::hlo {

/// Selects by index along an axis; if the result is larger than the index, zeros surround it.
struct gather_lowering {
  static value write(writer& w, const lowering_call& f) {
    const value picked = take_along(w, f.in(0), f.attributes<op::indexed>().axis, f.in(1));
    const shape out = f.out().dims;
    if (picked.type.dims == out) return picked;
    shape more = out;
    for (int i = 0; i < out.rank; ++i) more[i] -= picked.type.dims[i];
    const shape none = filled(out.rank, 0);
    return w.pad(picked, w.constant(0, picked.type.of), none, more, none);
  }
};
template <>
struct lowering<op::gather> : gather_lowering {};
template <>
struct lowering<op::gather_into> : gather_lowering {};
template <>
struct lowering<op::median> : gather_lowering {};

template <>
struct lowering<op::scatter_add> {
  static value write(writer& w, const lowering_call& f) {
    const int axis = f.attributes<op::scatter_add>().axis;
    const value &x = f.in(0), &index = f.in(1), &source = f.in(2);
    const shape &dims = x.type.dims, one = with_size(dims, axis, 1);
    if (!(index.type.dims == one && source.type.dims == one))
      return put_along(w, x, axis, index, source, putting::adds);
    // On CPUs XLA's scatter is a loop over indices; comparing with the index of each line avoids
    // it.
    const value hit = w.compare("EQ", w.iota(element::i64, dims, axis), w.to(index, dims));
    return w.select(hit, w.map("add", x, w.to(source, dims)), x);
  }
};

template <class Op, putting How>
struct scatter_combining_lowering {
  static value write(writer& w, const lowering_call& f) {
    return put_along(w, f.in(0), f.attributes<Op>().axis, f.in(1), f.in(2), How);
  }
};
template <>
struct lowering<op::scatter_prod>
    : scatter_combining_lowering<op::scatter_prod, putting::multiplies> {};
template <>
struct lowering<op::scatter_amax> : scatter_combining_lowering<op::scatter_amax, putting::largest> {
};
template <>
struct lowering<op::scatter_amin>
    : scatter_combining_lowering<op::scatter_amin, putting::smallest> {};

template <>
struct lowering<op::scatter> {
  static value write(writer& w, const lowering_call& f) {
    const int axis = f.attributes<op::scatter>().axis;
    const value &x = f.in(0), &index = f.in(1);
    const extent size = x.type.dims[axis];
    if (count(index.type.dims) == 0 || count(x.type.dims) == 0) return x;
    const value once = last_along(w, index, axis, size);
    return put_along(w, x, axis, once, f.in(2), putting::replaces);
  }

 private:
  static value last_along(writer& w, const value& index, int axis, extent size) {
    return last_of_equals(
        w, index, {element::i64, with_size(index.type.dims, axis, size)}, axis, size,
        [&](const value& from, const value& at) { return take_along(w, from, axis, at); },
        [&](const value& to, const value& at, const value& order) {
          return put_along(w, to, axis, at, order, putting::largest);
        });
  }
};

template <>
struct lowering<op::index_select> {
  static value write(writer& w, const lowering_call& f) {
    return take(w, f.in(0), f.attributes<op::index_select>().axis, f.in(1));
  }
};

template <>
struct lowering<op::index_add> {
  static value write(writer& w, const lowering_call& f) {
    return put(w, f.in(0), f.attributes<op::index_add>().axis, f.in(1), f.in(2), putting::adds);
  }
};

template <>
struct lowering<op::index_copy> {
  static value write(writer& w, const lowering_call& f) {
    const int axis = f.attributes<op::index_copy>().axis;
    const value &x = f.in(0), &index = f.in(1);
    const extent size = x.type.dims[axis];
    if (count(index.type.dims) == 0 || count(x.type.dims) == 0) return x;
    const value once = last_of_equals(
        w, index, {element::i64, one_axis(size)}, 0, size,
        [&](const value& from, const value& at) { return take(w, from, 0, at); },
        [&](const value& to, const value& at, const value& order) {
          return put(w, to, 0, at, order, putting::largest);
        });
    return put(w, x, axis, once, f.in(2), putting::replaces);
  }
};

template <>
struct lowering<op::embedding> {
  static value write(writer& w, const lowering_call& f) { return take(w, f.in(0), 0, f.in(1)); }
};

template <>
struct lowering<op::embedding_backward> {
  static value write(writer& w, const lowering_call& f) {
    const tensor_type out = f.out();
    const std::int64_t padding = f.attributes<op::embedding_backward>().padding_idx;
    value index = f.in(1);
    if (padding >= 0) {  // its rows are dropped
      const shape& dims = index.type.dims;
      const value is = w.compare("EQ", index, w.constant(padding, element::i64, dims));
      index = w.select(is, w.constant(out.dims[0], element::i64, dims), index);
    }
    return put(w, zeros(w, out), 0, index, f.in(0), putting::adds);
  }
};

}  // namespace xla::detail::hlo
