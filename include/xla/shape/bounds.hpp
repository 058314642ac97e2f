// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bounds of slices, which may be negative or open, and the range that they select on an axis.
// slice() and sizes of images (op/spatial.hpp) use it; it moves no elements.

#include "xla/shape/shape.hpp"
#include "xla/shape/size.hpp"

namespace xla {

/// Leaves a bound of a slice open: slice(x, 0, xla::none, 3).
struct none_t {};
inline constexpr none_t none{};

namespace detail {

/// One end of a slice: an index, counted from the axis' end if negative, or open.
struct bound {
  Size at;
  bool open = false;
  constexpr bound(none_t) : open(true) {}
  constexpr bound(Size s) : at(s) {}
  constexpr bound(std::integral auto i) : at(i) {}

  constexpr bool from_end() const { return at.known() && at.extent() < 0; }
  constexpr size_table* table() const { return at.table(); }
};

/// The part of one axis that an index or slice selects.
struct axis_part {
  Size start = 0, length = 0;
  std::int64_t step = 1;
  bool whole = true;   ///< all of it, in order
  bool drops = false;  ///< one element, and the axis is removed
};

/// Resolves bounds on an axis of length n. Known bounds are clamped; with symbolic sizes they must
/// be within it.
class axis_range {
 public:
  constexpr axis_range(Size n, const size_scope& scope) : n_(n), scope_(scope) {}

  constexpr axis_part one(Size i, int axis, const shape& dims) const {
    const bool back = i.known() && i.extent() < 0;
    bool inside = true;
    if (i.known() && n_.known()) inside = back ? (n_ + i).extent() >= 0 : i.extent() < n_.extent();
    else if (back) inside = scope_.at_least(n_.extent(), -i.extent());
    else inside = scope_.at_least(n_.extent(), (i + 1).extent()) && not_negative(i);
    if (!inside)
      scope_.fail(text("index ") << i.extent() << " of axis " << axis << " of " << dims
                                 << " does not exist");
    return {inside ? back ? n_ + i : i : Size(0), 1, 1, false, true};
  }

  constexpr axis_part between(bound start, bound end, std::int64_t step) const {
    if (step == 0) scope_.fail("a step of 0 does not advance");
    constexpr std::int64_t most = std::int64_t{1} << 58;  // beyond every axis
    step = step > most ? most : step < -most ? -most : step;
    return step < 0 ? backward(start, end, -step) : forward(start, end, step == 0 ? 1 : step);
  }

 private:
  constexpr axis_part forward(const bound& start, const bound& end, std::int64_t step) const {
    const Size first = start.open ? Size(0) : resolve(start), last = end.open ? n_ : resolve(end);
    const Size span = difference(last, first);
    const bool all = step == 1 && first.known() && first.extent() == 0 && is_all(span);
    return {first, steps(span, step), step, all, false};
  }
  // From the last element down to the first, unless bounds are given.
  constexpr axis_part backward(const bound& start, const bound& end, std::int64_t step) const {
    const Size after = start.open ? n_ : resolve_after(start);  // the first element's number + 1
    const Size stop = end.open ? Size(0) : resolve_after(end);
    const Size length = steps(difference(after, stop), step);
    const bool empty = length.known() && length.extent() == 0;
    return {empty ? Size(0) : after - 1, length, -step, false, false};
  }

  constexpr Size resolve(const bound& b) const {
    const Size at = b.from_end() ? n_ + b.at : b.at;
    if (at.known() && n_.known()) return clamp(at.extent(), n_.extent());
    if (b.from_end()) scope_.at_least(n_.extent(), -b.at.extent());
    else if (not_negative(at)) scope_.at_least(n_.extent(), at.extent());
    return at;
  }
  constexpr Size resolve_after(const bound& b) const {
    const Size at = b.from_end() ? n_ + b.at : b.at;
    if (at.known() && n_.known())
      return at.extent() < n_.extent() ? clamp(at.extent() + 1, n_.extent()) : n_;
    const Size after = at + 1;
    if (b.from_end()) scope_.at_least(n_.extent(), -b.at.extent());
    else if (not_negative(b.at)) scope_.at_least(n_.extent(), after.extent());
    return after;
  }
  static constexpr Size clamp(std::int64_t at, std::int64_t n) {
    return at < 0 ? 0 : at > n ? n : at;
  }
  constexpr Size difference(Size to, Size from) const {
    if (to.known() && from.known() && to.extent() < from.extent()) return 0;
    if (!scope_.at_least(to.extent(), from.extent())) scope_.fail("a slice ends before it begins");
    return to - from;
  }
  static constexpr Size steps(Size span, std::int64_t step) {
    if (span.known()) return span.extent() == 0 ? 0 : (span.extent() - 1) / step + 1;
    return step == 1 ? span : (span + (step - 1)) / step;
  }
  constexpr bool is_all(Size span) const {
    return scope_.find(span.extent()) == scope_.find(n_.extent());
  }
  // Only a difference can turn out to be negative.
  constexpr bool not_negative(Size i) const { return i.known() || scope_.at_least(i.extent(), 0); }

  Size n_;
  size_scope scope_;
};

}  // namespace detail
}  // namespace xla
