// SPDX-License-Identifier: Apache-2.0
#pragma once

// The axes and strides over which a region runs, with broadcasts and merged axes. It runs nothing:
// loops.hpp does. Plans make the nests once for each set of sizes.

#include <algorithm>
#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/shape/shape.hpp"

namespace xla::kernel {

using ::xla::detail::shape;

inline constexpr int max_operands = 64;  ///< inputs and outputs of one region: all its values
inline constexpr int max_axes = ::xla::detail::max_rank;

/// How a region traverses its operands: axes are merged if all operands allow it, the innermost is
/// last. Strides are in elements, 0 where an operand is broadcast.
struct loop_nest {
  int axes = 0;
  int operands = 0;
  std::int64_t elements = 0;
  // Uninitialised, because only the first axes and operands are used, and a plan makes hundreds of
  // nests.
  std::int64_t sizes[max_axes];
  std::int64_t bytes[max_operands];  ///< per element
  std::int64_t strides[max_operands][max_axes];

  loop_nest() {}
  loop_nest(const loop_nest& o) { copy(o); }
  loop_nest& operator=(const loop_nest& o) {
    if (this != &o) copy(o);
    return *this;
  }

  std::int64_t inner() const { return axes > 0 ? sizes[axes - 1] : 1; }

 private:
  void copy(const loop_nest& o) {
    axes = o.axes;
    operands = o.operands;
    elements = o.elements;
    std::copy_n(o.sizes, axes, sizes);
    std::copy_n(o.bytes, operands, bytes);
    for (int k = 0; k < operands; ++k) std::copy_n(o.strides[k], axes, strides[k]);
  }
};

/// The nests of a plan, by number, without the unused parts.
class loop_nests {
 public:
  int add(const loop_nest& l) {
    all_.push_back({l.axes, l.operands, values_.size(), l.elements});
    values_.append(l.sizes, l.sizes + l.axes);
    values_.append(l.bytes, l.bytes + l.operands);
    for (int k = 0; k < l.operands; ++k) values_.append(l.strides[k], l.strides[k] + l.axes);
    return all_.size() - 1;
  }
  [[gnu::noinline]] loop_nest operator[](int i) const {
    const nest& n = all_[i];
    loop_nest l;
    l.axes = n.axes;
    l.operands = n.operands;
    l.elements = n.elements;
    const std::int64_t* from = values_.data() + n.first;
    std::copy_n(from, n.axes, l.sizes);
    std::copy_n(from += n.axes, n.operands, l.bytes);
    from += n.operands;
    for (int k = 0; k < n.operands; ++k, from += n.axes) std::copy_n(from, n.axes, l.strides[k]);
    return l;
  }
  std::int64_t bytes() const { return all_.bytes() + values_.bytes(); }

 private:
  struct nest {
    int axes, operands, first;  // the first array, of sizes; bytes and strides follow
    std::int64_t elements;
  };
  ::xla::detail::list<nest> all_;
  ::xla::detail::list<std::int64_t> values_;
};

/// A row-major tensor along one of its axes: (outer, n, inner).
struct lines_along {
  std::int64_t outer = 1, n = 1, inner = 1;

  lines_along(const shape& s, int axis) : n(s[axis]) {
    for (int i = 0; i < axis; ++i) outer *= s[i];
    for (int i = axis + 1; i < s.rank; ++i) inner *= s[i];
  }
  std::int64_t count() const { return outer * inner; }
  /// The begin of line i of count(); its elements are `inner` apart.
  std::int64_t start(std::int64_t i) const { return i / inner * n * inner + i % inner; }
};

/// The strides for reading a row-major operand of shape s over the axes of `all`, aligned at the
/// last axis: 0 along axes where s has size 1.
template <class = void>
[[gnu::noinline]] inline void broadcast_strides(const shape& s, const shape& all,
                                                std::int64_t* strides) {
  std::int64_t step = 1;
  for (int i = all.rank - 1; i >= 0; --i) {
    const int at = i - (all.rank - s.rank);
    const std::int64_t n = at < 0 ? 1 : s[at];
    strides[i] = n == 1 ? 0 : step;
    step *= n;
  }
}

/// The loops over the shape `all` for operands of the given shapes. With fixed_last the last axis
/// is not merged: it is the row of a reduction.
template <class = void>
loop_nest make_loops(const shape& all, const shape* shapes, const std::int64_t* bytes, int n,
                     bool fixed_last = false) {
  loop_nest l;
  l.operands = n;
  std::int64_t strides[max_operands][max_axes];
  for (int k = 0; k < n; ++k) {
    broadcast_strides(shapes[k], all, strides[k]);
    l.bytes[k] = bytes[k];
  }
  l.elements = ::xla::detail::count(all);
  const int last = all.rank - 1;
  for (int i = 0; i < all.rank; ++i) {
    const bool keep = fixed_last && i == last;
    if (all[i] == 1 && !keep) continue;
    bool merge = l.axes > 0 && !keep;
    for (int k = 0; merge && k < n; ++k) merge = l.strides[k][l.axes - 1] == strides[k][i] * all[i];
    if (merge) l.sizes[l.axes - 1] *= all[i];
    else l.sizes[l.axes++] = all[i];
    for (int k = 0; k < n; ++k) l.strides[k][l.axes - 1] = strides[k][i];
  }
  return l;
}
XLA_INSTANCE(loop_nest make_loops<void>(const shape&, const shape*, const std::int64_t*, int,
                                        bool));

/// Computes the operands' addresses for the row of this number among all combinations of the outer
/// axes, and stores its index along these axes in `at`.
template <class = void>
[[gnu::noinline]] inline void find_row(const loop_nest& l, void* const* base, std::int64_t row,
                                       void** p, std::int64_t* at) {
  const int outer = std::max(l.axes - 1, 0);
  for (int i = outer - 1; i >= 0; --i) {
    at[i] = row % l.sizes[i];
    row /= l.sizes[i];
  }
  for (int k = 0; k < l.operands; ++k) {
    std::int64_t offset = 0;
    for (int i = 0; i < outer; ++i) offset += at[i] * l.strides[k][i];
    p[k] = static_cast<char*>(base[k]) + offset * l.bytes[k];
  }
}

/// The operands of one row after the other.
template <class = void>
class row_pointers {
 public:
  [[gnu::cold, gnu::noinline]] row_pointers(const loop_nest& l, void* const* base,
                                            std::int64_t first)
      : l_(l), base_(base), row_(first) {
    find_row(l, base, first, p_, at_);
    for (int k = 0; l.axes > 1 && k < l.operands; ++k)
      step_[k] = l.strides[k][l.axes - 2] * l.bytes[k];
  }
  void* const* get() const { return p_; }
  /// Moves to the next row; from the last one to the first.
  [[gnu::noinline]] void advance() {
    ++row_;
    const int i = l_.axes - 2;
    if (i < 0 || ++at_[i] == l_.sizes[i]) return find_row(l_, base_, row_, p_, at_);
    for (int k = 0; k < l_.operands; ++k) p_[k] = static_cast<char*>(p_[k]) + step_[k];
  }

 private:
  const loop_nest& l_;
  void* const* base_;
  std::int64_t row_, at_[max_axes], step_[max_operands];
  void* p_[max_operands];
};

/// Calls f(pointers) for the rows with numbers in [first, last).
template <class F>
void for_each_row(const loop_nest& l, void* const* base, std::int64_t first, std::int64_t last,
                  F&& f) {
  row_pointers<> p(l, base, first);
  for (; first < last; ++first, p.advance()) f(p.get());
}

}  // namespace xla::kernel
