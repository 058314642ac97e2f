// SPDX-License-Identifier: Apache-2.0
#pragma once

// Matrix products in StableHLO, with the precision that autocast asks for. table.hpp lists the
// lowering.

#include <string>

#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/matmul.hpp"

namespace xla::detail::hlo {

/// The precision of float32 products on devices that could use less.
inline std::string precision() {
  return "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";
}

/// An operand as it is multiplied; the type of the result is that of the sums.
inline value multiplied(writer& w, const value& v, detail::precision p) {
  return p == detail::precision::bfloat16 ? w.convert(v, element::bf16) : v;
}

/// Axes are named, so nothing is transposed; one matrix serves all products without being repeated.
template <>
struct lowering<op::matmul> {
  static value write(writer& w, const lowering_call& f) {
    const auto [ta, tb, p, ha, hb, of_steps] = f.attributes<op::matmul>();
    value a = multiplied(w, f.in(0), p), b = multiplied(w, f.in(1), p);
    const bool one_for_all = b.type.dims.rank == 2;
    bool turned = ta;
    if (turned && one_for_all && turning_pays(w, a.type.dims)) {
      a = turn(w, a);
      turned = false;
    }
    if (!one_for_all) {
      a = spread(w, a, f.out().dims);
      b = spread(w, b, f.out().dims);
    }
    shape batch;
    for (int i = 0; !one_for_all && i < a.type.dims.rank - 2; ++i) batch.push(i);
    const shape from_a{1, {a.type.dims.rank - (turned ? 2 : 1)}};
    const shape from_b{1, {b.type.dims.rank - (tb ? 1 : 2)}};
    const std::string axes = "lhs_batching_dimensions = [" + commas(batch) +
                             "], rhs_batching_dimensions = [" + commas(batch) +
                             "], lhs_contracting_dimensions = [" + commas(from_a) +
                             "], rhs_contracting_dimensions = [" + commas(from_b) + "]";
    return w.op("dot_general", {a, b}, f.out(),
                "dot_dimension_numbers = #stablehlo.dot<" + axes + ">, " + precision());
  }

 private:
  /// XLA's CPU backend packs a transposed left operand again and again, element by element. With
  /// many rows, as in a weight's gradient of tokens, it is faster to transpose it once. On a Zen 5
  /// that took 0.67 to 1 of the time from 256 rows on, and up to 1.25 with 64 rows.
  static bool turning_pays(const writer& w, const shape& a) {
    return w.for_processor && a.rank == 2 && a[0] >= 256 && a[1] >= 64;
  }
  // Without a barrier XLA makes it a product of a transposed operand again.
  static value turn(writer& w, const value& a) {
    return w.map("optimization_barrier", w.transpose(a, {2, {1, 0}}));
  }
  // A matrix for each of the products.
  static value spread(writer& w, const value& v, const shape& out) {
    shape dims = out;
    for (int i = 1; i <= 2; ++i) dims[out.rank - i] = v.type.dims[v.type.dims.rank - i];
    return w.to(v, dims);
  }
};

}  // namespace xla::detail::hlo
