// SPDX-License-Identifier: Apache-2.0
#pragma once

// unfold and fold in StableHLO. table.hpp lists the lowerings.

#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/ext/stablehlo/windows.hpp"
#include "xla/op/unfold.hpp"

namespace xla::detail::hlo {

/// The windows of unfold and fold over images: along each axis the indices of the kernel's
/// elements, one after the other, each for all windows.
struct unfold_indices {
  extent windows[2];
  list<std::int64_t> at[2];

  unfold_indices(const shape& images, const op::unfold::attributes& a) {
    for (int i = 0; i < 2; ++i) {
      const extent n = images[2 + i];
      windows[i] = (n + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1) / a.stride[i] + 1;
      for (extent k = 0; k < a.kernel[i]; ++k)
        for (extent o = 0; o < windows[i]; ++o) {
          const extent index = o * a.stride[i] + k * a.dilation[i] - a.padding[i];
          at[i].push_back(index < 0 || index > n ? n : index);
        }
    }
  }
};

template <>
struct lowering<op::unfold> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::unfold>();
    const shape s = f.in(0).type.dims;
    const tensor_type out = f.out();
    if (count(out.dims) == 0) return zeros(w, out);
    const unfold_indices indices(s, a);
    const value none = w.constant(0, out.of);
    const value rows = take_or(w, f.in(0), 2, indices.at[0], none);
    const value all = take_or(w, rows, 3, indices.at[1], none);
    const value split = w.reshape(
        all, {6, {s[0], s[1], a.kernel[0], indices.windows[0], a.kernel[1], indices.windows[1]}});
    return w.reshape(w.transpose(split, {6, {0, 1, 2, 4, 3, 5}}), out.dims);
  }
};

template <>
struct lowering<op::fold> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::fold>();
    const tensor_type out = f.out();
    const shape& s = out.dims;
    if (count(s) == 0 || count(f.in(0).type.dims) == 0) return zeros(w, out);
    const unfold_indices indices(s, a);
    const value split = w.reshape(
        f.in(0),
        {6, {s[0], s[1], a.kernel[0], a.kernel[1], indices.windows[0], indices.windows[1]}});
    const value all = w.reshape(
        w.transpose(split, {6, {0, 1, 2, 4, 3, 5}}),
        {4, {s[0], s[1], a.kernel[0] * indices.windows[0], a.kernel[1] * indices.windows[1]}});
    return add_at(w, add_at(w, all, 3, indices.at[1], s[3]), 2, indices.at[0], s[2]);
  }
};

}  // namespace xla::detail::hlo
