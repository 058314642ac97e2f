// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interpolation along an axis in StableHLO, by tables of sources. table.hpp lists the lowerings.

#include <algorithm>

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/kernel/op/resample.hpp"

namespace xla::detail::hlo {

/// The sources of each position of a resampled axis, and their weights.
struct resample_lists {
  int sources = 1;
  list<std::int64_t> at[4];
  list<double> weight[4];

  template <class T>
  void fill(const op::resample::attributes& a, extent from, extent to) {
    with_sources<T>(a, from, to, [&](const auto& table) {
      for (extent i = 0; i < to; ++i) add(table[i]);
    });
  }
  template <class T>
  void add(const resample_source<T>& s) {
    at[0].push_back(s.first);
    at[1].push_back(s.second);
    weight[0].push_back(1 - s.weight);
    weight[1].push_back(s.weight);
    if (s.weight != 0) sources = 2;
  }
  template <class T>
  void add(const cubic_source<T>& s) {
    sources = 4;
    for (int k = 0; k < 4; ++k) {
      at[k].push_back(s.at[k]);
      weight[k].push_back(s.weight[k]);
    }
  }
};

inline resample_lists sources_of(const op::resample::attributes& a, element of, extent from,
                                 extent to) {
  resample_lists all;
  if (of == element::f64) all.fill<double>(a, from, to);
  else if (is_float(of)) all.fill<float>(a, from, to);
  else all.fill<std::int64_t>(a, from, to);
  return all;
}

template <>
struct lowering<op::resample> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::resample>();
    const value& x = f.in(0);
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const auto all = sources_of(a, x.type.of, x.type.dims[a.axis], out.dims[a.axis]);
    const auto element_of = [&](int k) {
      return take(w, x, a.axis, table(w, all.at[k], element::i64));
    };
    const auto weights = [&](int k) {
      return w.broadcast(table(w, all.weight[k], out.of), out.dims, one_axis(a.axis));
    };
    const value first = element_of(0);
    if (all.sources == 1) return first;
    value sum = w.map("multiply", weights(0), first);
    for (int k = 1; k < all.sources; ++k)
      sum = w.map("add", sum, w.map("multiply", weights(k), element_of(k)));
    if (all.sources == 4) return sum;
    return w.select(w.compare("EQ", weights(1), zeros(w, out)), first, sum);  // 0 times NaN is NaN
  }
};

template <>
struct lowering<op::resample_backward> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::resample_backward>();
    const value& g = f.in(0);
    const tensor_type out = f.out();
    const extent size = out.dims[a.axis];
    auto all = sources_of(a, out.of, size, g.type.dims[a.axis]);
    value sum = zeros(w, out);
    if (count(out.dims) == 0 || count(g.type.dims) == 0) return sum;
    for (int k = 0; k < all.sources; ++k) {
      if (all.sources == 2 && k == 1)  // sources without weight are dropped
        for (int i = 0; i < all.at[k].size(); ++i)
          if (all.weight[k][i] == 0) all.at[k][i] = size;
      const value weight =
          w.broadcast(table(w, all.weight[k], out.of), g.type.dims, one_axis(a.axis));
      sum = put(w, sum, a.axis, table(w, all.at[k], element::i64), w.map("multiply", weight, g),
                putting::adds);
    }
    return sum;
  }
};

}  // namespace xla::detail::hlo
