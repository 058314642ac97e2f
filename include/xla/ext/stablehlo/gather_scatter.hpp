// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes at indexed positions by StableHLO's gather and scatter. The lower_*.hpp build on
// it; it lowers no op itself.

#include <cstdint>
#include <string>
#include <string_view>

#include "xla/ext/stablehlo/writer.hpp"

namespace xla::detail::hlo {

// Reading and writing at indexed positions. Every index is in range where it is read; XLA would
// clamp others to the nearest position.

/// Zeros of a tensor type.
inline value zeros(writer& w, const tensor_type& t) { return w.constant(0, t.of, t.dims); }

/// Integers known to the program, as a constant with one axis.
template <class N>
value table(writer& w, const list<N>& numbers, element of) {
  tensor_type t{of, {1, {numbers.size()}}};
  if (numbers.empty()) return zeros(w, t);
  std::string text = "value = dense<[";
  for (int i = 0; i < numbers.size(); ++i) {
    op::constant::attributes x{static_cast<double>(numbers[i]), 0};
    if (!is_float(of)) x.whole = static_cast<std::int64_t>(numbers[i]);
    if (i > 0) text += ", ";
    text += element_text(x, of);
  }
  text += "]> : ";
  add_type(text, t);
  return w.op("constant", {}, t, text);
}

/// "name = [0, 1], " in the attribute of a gather or scatter; empty for no axes.
inline std::string axes_in(std::string_view name, const shape& axes) {
  if (axes.rank == 0) return {};
  std::string out(name);
  out += " = [";
  out += commas(axes);
  return out += "], ";
}
inline shape one_axis(extent axis) { return {1, {axis}}; }
/// The axes first … last - 1 without `but`.
inline shape axes_but(int first, int last, int but) {
  shape s;
  for (int i = first; i < last; ++i)
    if (i != but) s.push(i);
  return s;
}
inline shape filled(int rank, extent with) {
  shape s;
  for (int i = 0; i < rank; ++i) s.push(with);
  return s;
}
inline shape with_size(shape s, int axis, extent size) {
  s[axis] = size;
  return s;
}

/// The leading elements of x, as many along each axis as `dims` has, except along `but`.
inline value first_elements(writer& w, const value& x, const shape& dims, int but) {
  const shape limit = with_size(dims, but, x.type.dims[but]);
  return limit == x.type.dims ? x : w.slice(x, filled(limit.rank, 0), limit, filled(limit.rank, 1));
}

/// Dimension numbers for gather and scatter of whole slices of x along one axis; the index has any
/// shape.
struct slices_along {
  int axis;
  int rank;  ///< of the index

  shape other_axes(int all) const {
    shape s;
    for (int i = 0; i < all; ++i)
      if (i < axis || i >= axis + rank) s.push(i);
    return s;
  }
  std::string gathered(int all) const {
    return "dimension_numbers = #stablehlo.gather<" + axes_in("offset_dims", other_axes(all)) +
           axes_in("collapsed_slice_dims", one_axis(axis)) +
           axes_in("start_index_map", one_axis(axis)) +
           "index_vector_dim = " + std::to_string(rank) + '>';
  }
  std::string scattered(int all) const {
    return "scatter_dimension_numbers = #stablehlo.scatter<" +
           axes_in("update_window_dims", other_axes(all)) +
           axes_in("inserted_window_dims", one_axis(axis)) +
           axes_in("scatter_dims_to_operand_dims", one_axis(axis)) +
           "index_vector_dim = " + std::to_string(rank) + '>';
  }
};
/// Dimension numbers for an index that has the axes of x: the other axes are batch axes of both.
struct elements_along {
  int axis;
  int rank;

  shape others() const { return axes_but(0, rank, axis); }
  std::string gathered(int) const {
    return "dimension_numbers = #stablehlo.gather<" +
           axes_in("collapsed_slice_dims", one_axis(axis)) +
           axes_in("operand_batching_dims", others()) +
           axes_in("start_indices_batching_dims", others()) +
           axes_in("start_index_map", one_axis(axis)) +
           "index_vector_dim = " + std::to_string(rank) + '>';
  }
  std::string scattered(int) const {
    return "scatter_dimension_numbers = #stablehlo.scatter<" +
           axes_in("inserted_window_dims", one_axis(axis)) +
           axes_in("input_batching_dims", others()) +
           axes_in("scatter_indices_batching_dims", others()) +
           axes_in("scatter_dims_to_operand_dims", one_axis(axis)) +
           "index_vector_dim = " + std::to_string(rank) + '>';
  }
};

template <class How>
value gathered(writer& w, const value& x, const value& index, const How& how, const shape& dims,
               const shape& sizes) {
  const tensor_type out{x.type.of, dims};
  if (count(dims) == 0 || count(x.type.dims) == 0) return zeros(w, out);
  return w.op(
      "gather", {x, index}, out,
      how.gathered(dims.rank) + ", indices_are_sorted = false, " + numbers("slice_sizes", sizes));
}

/// Slices of x along an axis; that axis is replaced by the axes of the index.
inline value take(writer& w, const value& x, int axis, const value& index) {
  const shape &from = x.type.dims, &at = index.type.dims;
  shape dims;
  for (int i = 0; i < axis; ++i) dims.push(from[i]);
  for (int i = 0; i < at.rank; ++i) dims.push(at[i]);
  for (int i = axis + 1; i < from.rank; ++i) dims.push(from[i]);
  return gathered(w, x, index, slices_along{axis, at.rank}, dims, with_size(from, axis, 1));
}
/// For each position of an index that has x's axes, the element of x that it names.
inline value take_along(writer& w, const value& x, int axis, const value& index) {
  const shape& dims = index.type.dims;
  return gathered(w, first_elements(w, x, dims, axis), index, elements_along{axis, dims.rank}, dims,
                  filled(dims.rank, 1));
}

/// How scatter combines an element with the existing one.
enum class putting : std::uint8_t { replaces, adds, multiplies, largest, smallest };

template <class How>
value scattered(writer& w, const value& x, const value& index, const value& source, const How& how,
                putting put) {
  if (count(source.type.dims) == 0 || count(x.type.dims) == 0) return x;
  const std::string combine = w.combining(x.type.of, [&](const value& a, const value& b) {
    switch (put) {
      case putting::replaces: return b;
      case putting::adds: return w.map("add", a, b);
      case putting::multiplies: return w.map("multiply", a, b);
      case putting::largest: return w.map("maximum", a, b);
      case putting::smallest: break;
    }
    return w.map("minimum", a, b);
  });
  return w.op(
      "scatter", {x, index, source}, x.type,
      how.scattered(source.type.dims.rank) + ", indices_are_sorted = false, unique_indices = false",
      combine);
}

/// Scatters slices of a source into x. A slice whose index is past the end is dropped.
inline value put(writer& w, const value& x, int axis, const value& index, const value& source,
                 putting how) {
  return scattered(w, x, index, source, slices_along{axis, index.type.dims.rank}, how);
}
/// Scatters single elements; the index has the axes of x.
inline value put_along(writer& w, const value& x, int axis, const value& index, const value& source,
                       putting how) {
  const shape& dims = index.type.dims;
  const value from = first_elements(w, source, with_size(dims, axis, source.type.dims[axis]), axis);
  const value part = w.slice(from, filled(dims.rank, 0), dims, filled(dims.rank, 1));
  const value to = first_elements(w, x, dims, axis);
  const value made = scattered(w, to, index, part, elements_along{axis, dims.rank}, how);
  if (to.type == x.type) return made;
  list<value> in = list_of({x, made});
  for (int i = 0; i < dims.rank; ++i) in.push_back(w.constant(0, element::i64));
  return w.op("dynamic_update_slice", in, x.type);
}

/// Moves an index past the end where a later entry names the same position, so that put() and
/// put_along() drop it. A replacing scatter guarantees no order; this keeps the last value.
template <class Take, class Put>
value last_of_equals(writer& w, const value& index, const tensor_type& indices, int axis,
                     extent size, Take&& take, Put&& put) {
  const value order = w.iota(element::i64, index.type.dims, axis);
  const value none = w.constant(-1, element::i64, indices.dims);
  const value last = put(none, index, order);
  const value past_end = w.constant(size, element::i64, index.type.dims);
  return w.select(w.compare("EQ", take(last, index), order), index, past_end);
}

}  // namespace xla::detail::hlo
