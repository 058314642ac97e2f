// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions and their two gradients in StableHLO. table.hpp lists the lowerings.

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/ext/stablehlo/lower_matmul.hpp"
#include "xla/op/convolution.hpp"

namespace xla::detail::hlo {

/// A convolution of two values in StableHLO's terms, from which all three ops are made.
struct convolving {
  std::string_view dims;  ///< "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"
  std::int64_t step[2] = {}, before[2] = {}, after[2] = {};
  std::int64_t lhs_dilation[2] = {1, 1}, rhs_dilation[2] = {1, 1};
  std::int64_t groups = 1, batch_groups = 1;
  detail::precision operands{};

  value of(writer& w, const value& left, const value& right, const tensor_type& out) const {
    if (count(left.type.dims) == 0 || count(right.type.dims) == 0 || count(out.dims) == 0)
      return zeros(w, out);
    std::string how = two("window_strides", step) + ", padding = dense<[";
    for (int i = 0; i < 2; ++i)
      how += (i ? ", [" : "[") + std::to_string(before[i]) + ", " + std::to_string(after[i]) + ']';
    how += "]> : tensor<2x2xi64>, " + two("lhs_dilation", lhs_dilation) + ", " +
           two("rhs_dilation", rhs_dilation) + ", dimension_numbers = #stablehlo.conv<";
    how += dims;
    how += ">, " + number("feature_group_count", groups) + ", " +
           number("batch_group_count", batch_groups) + ", " + precision();
    return w.op("convolution", {multiplied(w, left, operands), multiplied(w, right, operands)}, out,
                how);
  }

 private:
  static std::string two(std::string_view name, const std::int64_t (&n)[2]) {
    return numbers(name, {2, {n[0], n[1]}});
  }
};

template <>
struct lowering<op::convolution> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::convolution>();
    convolving c{.dims = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                 .groups = a.groups,
                 .operands = op::convolving::operands(a, f.in(1).type.dims)};
    for (int i = 0; i < 2; ++i) {
      c.step[i] = a.stride[i];
      c.before[i] = a.padding[2 * i];
      c.after[i] = a.padding[2 * i + 1];
      c.rhs_dilation[i] = a.dilation[i];
    }
    return c.of(w, f.in(0), f.in(1), f.out());
  }
};

/// The result's positions, dilated by the stride, convolved with the reversed kernel.
template <>
struct lowering<op::convolution_input> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::convolution_input>();
    const value &y = f.in(0), &weight = f.in(1);
    const tensor_type out = f.out();
    convolving c{.dims = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                 .groups = a.groups,
                 .operands = op::convolving::operands(a, weight.type.dims)};
    for (int i = 0; i < 2; ++i) {
      const std::int64_t reach = a.dilation[i] * (weight.type.dims[2 + i] - 1) + 1;
      c.step[i] = 1;
      c.lhs_dilation[i] = a.stride[i];
      c.rhs_dilation[i] = a.dilation[i];
      c.before[i] = reach - 1 - a.padding[2 * i];
      c.after[i] = out.dims[2 + i] + a.padding[2 * i] - 1 - (y.type.dims[2 + i] - 1) * a.stride[i];
    }
    return c.of(w, y, turned(w, weight, a.groups), out);
  }

 private:
  // (out, in / groups, …) as (in, out / groups, …), mirrored.
  static value turned(writer& w, const value& weight, extent groups) {
    const value mirrored = w.reverse(w.reverse(weight, 2), 3);
    const shape from = weight.type.dims;
    const extent out = from[0] / groups, in = from[1];
    const value split = w.reshape(mirrored, {5, {groups, out, in, from[2], from[3]}});
    return w.reshape(w.transpose(split, {5, {0, 2, 1, 3, 4}}),
                     {4, {groups * in, out, from[2], from[3]}});
  }
};

/// The result, dilated by the stride, is the kernel over the images; the sum runs over the batch.
template <>
struct lowering<op::convolution_weight> {
  static value write(writer& w, const lowering_call& f) {
    const auto a = f.attributes<op::convolution_weight>();
    const value &x = f.in(0), &y = f.in(1);
    const tensor_type out = f.out();
    convolving c{.dims = "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]",
                 .batch_groups = a.groups,
                 .operands = op::convolving::operands(a, out.dims)};
    for (int i = 0; i < 2; ++i) {
      const std::int64_t reach = a.dilation[i] * (out.dims[2 + i] - 1) + 1;
      c.step[i] = a.dilation[i];
      c.rhs_dilation[i] = a.stride[i];
      c.before[i] = a.padding[2 * i];
      c.after[i] =
          reach + (y.type.dims[2 + i] - 1) * a.stride[i] - x.type.dims[2 + i] - a.padding[2 * i];
    }
    return c.of(w, x, y, out);
  }
};

}  // namespace xla::detail::hlo
