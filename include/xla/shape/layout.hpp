// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order in which the axes of a tensor are in memory. The pass in transform/layouts.hpp chooses
// it; it is internal, and no function's result depends on it.

#include <cstdint>
#include <initializer_list>

#include "xla/shape/shape.hpp"

namespace xla::detail {

/// The order in which the axes of a tensor are stored. Row-major unless set: the elements of the
/// last axis are neighbours.
class layout {
 public:
  constexpr layout() = default;
  /// All axes of a tensor, the outermost in memory first: {0, 2, 3, 1} is NHWC where sizes are
  /// NCHW.
  constexpr layout(std::initializer_list<int> outermost_first) {
    int position = 0;
    for (int axis : outermost_first) put(position++, axis);
  }

  static constexpr layout of(const int* outermost_first, int rank) {
    layout all;
    for (int position = 0; position < rank; ++position)
      all.put(position, outermost_first[position]);
    return all;
  }

  /// The axis at a position, of which 0 is the outermost.
  constexpr int axis(int position) const {
    if (position < stored) return (code_ >> (bits * position) & mask) ^ position;
    int last = position;
    for (int i = 0; i < stored; ++i) last ^= code_ >> (bits * i) & mask;
    return last;
  }
  /// The position of an axis.
  constexpr int position(int of) const {
    int at = 0;
    while (axis(at) != of) ++at;
    return at;
  }
  constexpr bool is_row_major() const { return code_ == 0; }
  friend constexpr bool operator==(layout, layout) = default;

 private:
  // Each position stores its axis XOR its own number, so that row-major is 0 at any rank. The last
  // position is not stored: the XOR of all of them is 0.
  static constexpr int bits = 3, mask = 7, stored = max_rank - 1;
  static_assert(max_rank <= mask + 1 && bits * stored <= 16);

  constexpr void put(int position, int axis) {
    if (position < stored)
      code_ = static_cast<std::uint16_t>(code_ | (axis ^ position) << (bits * position));
  }
  std::uint16_t code_ = 0;
};

/// The sizes in the order in which their axes are stored.
constexpr shape in_memory(const shape& s, layout order) {
  shape out = s;
  for (int i = 0; i < s.rank; ++i) out[i] = s[order.axis(i)];
  return out;
}

/// Whether two orders differ only in axes of size 1, so that elements have the same addresses.
constexpr bool same_layout(const shape& s, layout a, layout b) {
  for (int i = 0, k = 0;; ++i, ++k) {
    while (i < s.rank && s[a.axis(i)] == 1) ++i;
    while (k < s.rank && s[b.axis(k)] == 1) ++k;
    if (i == s.rank || k == s.rank) return true;
    if (a.axis(i) != b.axis(k)) return false;
  }
}

/// The strides of a tensor: for each axis, the distance in elements from one index to the next.
constexpr void find_strides(const shape& s, layout order, std::int64_t* strides) {
  std::int64_t step = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    const int axis = order.axis(i);
    strides[axis] = step;
    step *= s[axis];
  }
}

/// In XLA's notation, the innermost axis first: "{1,0}" is row-major.
constexpr text print_layout(layout order, int rank) {
  text out("{");
  for (int i = rank - 1; i >= 0; --i) {
    out << order.axis(i);
    if (i > 0) out << ',';
  }
  out << '}';
  return out;
}

}  // namespace xla::detail
