// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes lines of StableHLO in MLIR's generic form. The lowerings call it; it knows types and no
// ops of the library.

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/ext/stablehlo/types.hpp"

namespace xla::detail::hlo {

/// Writes the lines of a function in MLIR's generic form, which is the same for all ops. A line is
/// named after the node that it is written for: %v12 for node 12, then %v12.1, %v12.2 …
class writer {
 public:
  using values = std::initializer_list<value>;

  /// Whether XLA's CPU backend reads the text; some ops are then written differently for speed.
  bool for_processor = false;

  /// The following lines belong to this node.
  void begin(int node) {
    node_ = node;
    number_ = 0;
  }
  /// A position to return to, to continue a node's lines after those of other nodes.
  struct insertion_point {
    int node, number;
  };
  insertion_point here() const { return {node_, number_}; }
  void back_to(const insertion_point& p) {
    node_ = p.node;
    number_ = p.number;
  }
  /// The lines so far.
  const std::string& text() const { return text_; }

  /// One line: an op by its name in StableHLO, or with its dialect in front, as in "chlo.erf".
  /// Attributes and regions are given as text, several with ", " between them.
  value op(std::string_view name, values in, const tensor_type& out,
           const std::string& attributes = {}, const std::string& regions = {}) {
    return line(name, in.begin(), static_cast<int>(in.size()), &out, 1, attributes, regions);
  }
  value op(std::string_view name, const list<value>& in, const tensor_type& out,
           const std::string& attributes = {}, const std::string& regions = {}) {
    return line(name, in.data(), in.size(), &out, 1, attributes, regions);
  }
  /// One with several results.
  list<value> ops(std::string_view name, const list<value>& in, const list<tensor_type>& out,
                  const std::string& attributes = {}, const std::string& regions = {}) {
    value v = line(name, in.data(), in.size(), out.data(), out.size(), attributes, regions);
    list<value> all;
    for (int i = 0; i < out.size(); ++i) {
      if (out.size() > 1) v.result = i;
      v.type = out[i];
      all.push_back(v);
    }
    return all;
  }
  /// The text of a region for op(). body gets values of these types and returns the region's
  /// result. It may use all values defined so far.
  template <class F>
  std::string region(const list<tensor_type>& types, F&& body) {
    std::string outside;
    outside.swap(text_);
    list<value> arguments;
    depth_ += 2;
    text_ += "{\n";
    indent(-1);
    text_ += "^bb0(";
    for (int i = 0; i < types.size(); ++i) {
      arguments.push_back(next(types[i]));
      if (i > 0) text_ += ", ";
      add_name(arguments[i]);
      text_ += ": ";
      add_type(text_, types[i]);
    }
    text_ += "):\n";
    const list<value> results = body(arguments);
    indent(0);
    text_ += "\"stablehlo.return\"(";
    add_names(results.data(), results.size());
    text_ += ") : (";
    add_types(results.data(), results.size());
    text_ += ") -> ()\n";
    depth_ -= 2;
    indent(0);
    text_ += '}';
    text_.swap(outside);
    return outside;
  }

  /// The same number in every element.
  template <class N>
    requires(std::integral<N> || std::floating_point<N>)
  value constant(N x, element of, const shape& dims = {}) {
    op::constant::attributes number{static_cast<double>(x), 0};
    if (std::integral<N> || !is_float(of)) number.whole = static_cast<std::int64_t>(x);
    return constant(number, of, dims);
  }
  value constant(const op::constant::attributes& x, element of, const shape& dims = {}) {
    // A splat constant needs an element, so an empty one is broadcast from a scalar.
    if (count(dims) == 0) return to(constant(x, of), dims);
    const tensor_type out{of, dims};
    std::string text = "value = dense<";
    text += element_text(x, of);
    text += "> : ";
    add_type(text, out);
    return op("constant", {}, out, text);
  }

  /// Element by element, of values of one type.
  value map(std::string_view name, const value& a) { return op(name, {a}, a.type); }
  value map(std::string_view name, const value& a, const value& b) {
    return op(name, {a, b}, a.type);
  }
  /// Element by element: how is EQ, NE, LT, LE, GT or GE.
  value compare(std::string_view how, const value& a, const value& b) {
    return op("compare", {a, b}, {element::i1, a.type.dims}, choice("comparison_direction", how));
  }
  value select(const value& c, const value& a, const value& b) {
    return op("select", {c, a, b}, a.type);
  }
  /// Converts like XLA: NaN to 0, numbers out of range to the nearest; from i1 to 0 and 1.
  value convert(const value& a, element to) {
    return a.type.of == to ? a : op("convert", {a}, {to, a.type.dims});
  }

  /// Axis i of v is axis axes[i] of the result; sizes that are 1 grow.
  value broadcast(const value& v, const shape& dims, const shape& axes) {
    return op("broadcast_in_dim", {v}, {v.type.of, dims}, numbers("broadcast_dimensions", axes));
  }
  /// NumPy's broadcasting, which adds missing leading axes.
  value to(const value& v, const shape& dims) {
    if (v.type.dims == dims) return v;
    shape axes;
    for (int i = dims.rank - v.type.dims.rank; i < dims.rank; ++i) axes.push(i);
    return broadcast(v, dims, axes);
  }
  value reshape(const value& v, const shape& dims) {
    return v.type.dims == dims ? v : op("reshape", {v}, {v.type.of, dims});
  }
  /// Axis i of the result is axis order[i] of v.
  value transpose(const value& v, const shape& order) {
    tensor_type out{v.type.of, order};
    for (int i = 0; i < order.rank; ++i) out.dims[i] = v.type.dims[static_cast<int>(order[i])];
    return op("transpose", {v}, out, numbers("permutation", order));
  }
  /// The elements from start to limit - 1, step apart, which is above 0.
  value slice(const value& v, const shape& start, const shape& limit, const shape& step) {
    tensor_type out = v.type;
    for (int i = 0; i < start.rank; ++i)
      out.dims[i] = (limit[i] - start[i] + step[i] - 1) / step[i];
    return op("slice", {v}, out,
              numbers("start_indices", start) + ", " + numbers("limit_indices", limit) + ", " +
                  numbers("strides", step));
  }
  /// Pads with low and high elements, crops if these are negative, and puts inner ones between any
  /// two; all have the value of the scalar `with`.
  value pad(const value& v, const value& with, const shape& low, const shape& high,
            const shape& inner) {
    tensor_type out = v.type;
    for (int i = 0; i < low.rank; ++i) {
      const extent n = v.type.dims[i];
      out.dims[i] = low[i] + n + (n > 0 ? (n - 1) * inner[i] : 0) + high[i];
    }
    return op("pad", {v, with}, out,
              numbers("edge_padding_low", low) + ", " + numbers("edge_padding_high", high) + ", " +
                  numbers("interior_padding", inner));
  }
  value concat(const list<value>& all, int axis) {
    tensor_type out = all[0].type;
    for (int i = 1; i < all.size(); ++i) out.dims[axis] += all[i].type.dims[axis];
    return op("concatenate", all, out, number("dimension", axis));
  }
  /// 0, 1, 2 … along an axis.
  value iota(element of, const shape& dims, int axis) {
    return op("iota", {}, {of, dims}, number("iota_dimension", axis));
  }
  value reverse(const value& v, int axis) {
    shape axes;
    axes.push(axis);
    return op("reverse", {v}, v.type, numbers("dimensions", axes));
  }
  /// Reduces over axes, which keep size 1. combine(a, b) returns one value. `start` must be its
  /// identity; it is also the result for no elements.
  template <class F>
  value reduce(const value& v, const value& start, axis_set axes, F&& combine) {
    tensor_type out{v.type.of, {}};
    shape reduced = v.type.dims, over;
    for (int i = 0; i < reduced.rank; ++i)
      if (axes.has(i)) reduced[i] = 1, over.push(i);
      else out.dims.push(reduced[i]);
    const value total =
        op("reduce", {v, start}, out, numbers("dimensions", over), combining(v.type.of, combine));
    return reshape(total, reduced);
  }
  /// The region that combines two numbers by `combine`.
  template <class F>
  std::string combining(element of, F&& combine) {
    const tensor_type number{of, {}};
    return region(list_of({number, number}),
                  [&](const list<value>& a) { return list_of({combine(a[0], a[1])}); });
  }

  static void add_name(std::string& to, const value& v) {
    to += v.node < 0 ? "%arg" : "%v";
    add_number(to, v.node < 0 ? v.number : v.node);
    if (v.node >= 0 && v.number > 0) {
      to += '.';
      add_number(to, v.number);
    }
    if (v.result < 0) return;
    to += '#';
    add_number(to, v.result);
  }

 private:
  value next(const tensor_type& type) { return {node_, number_++, -1, type}; }
  void indent(int more) { text_.append(static_cast<std::size_t>(2 * (depth_ + more)), ' '); }
  void add_name(const value& v) { add_name(text_, v); }
  void add_names(const value* v, int n) {
    for (int i = 0; i < n; ++i) {
      if (i > 0) text_ += ", ";
      add_name(v[i]);
    }
  }
  void add_types(const value* v, int n) {
    for (int i = 0; i < n; ++i) {
      if (i > 0) text_ += ", ";
      add_type(text_, v[i].type);
    }
  }
  value line(std::string_view name, const value* in, int inputs, const tensor_type* out,
             int results, const std::string& attributes, const std::string& regions) {
    const value made = next(out[0]);
    indent(0);
    add_name(made);
    if (results > 1) {
      text_ += ':';
      add_number(text_, results);
    }
    text_ += name.find('.') == name.npos ? " = \"stablehlo." : " = \"";
    text_ += name;
    text_ += "\"(";
    add_names(in, inputs);
    text_ += ')';
    if (!regions.empty()) ((text_ += " (") += regions) += ')';
    if (!attributes.empty()) ((text_ += " {") += attributes) += '}';
    text_ += " : (";
    add_types(in, inputs);
    text_ += results > 1 ? ") -> (" : ") -> ";
    for (int i = 0; i < results; ++i) {
      if (i > 0) text_ += ", ";
      add_type(text_, out[i]);
    }
    text_ += results > 1 ? ")\n" : "\n";
    return made;
  }

  std::string text_;
  int node_ = 0, number_ = 0, depth_ = 2;
};

}  // namespace xla::detail::hlo
