// SPDX-License-Identifier: Apache-2.0
#pragma once

// pad() by constants, reflection, replication and wrapping; roll().

#include "xla/op/concat.hpp"
#include "xla/op/resample.hpp"

namespace xla {

/// How many elements an axis gets before and after its own; negative numbers crop.
struct Padding {
  Size before = 0, after = 0;
};

namespace detail {

template <class T, int R>
constexpr Tensor<T, R> pad_axis(const Tensor<T, R>& x, int axis, const Padding& by,
                                const Tensor<T, 0>& value, caller loc) {
  const auto cut = [](const Size& s) {
    return s.known() && s.extent() < 0 ? Size(0) - s : Size(0);
  };
  const auto grow = [](const Size& s) { return s.known() && s.extent() < 0 ? Size(0) : s; };
  Tensor<T, R> y = x;
  const Size lost = cut(by.before) + cut(by.after);
  if (lost != 0) y = narrow(y, axis, cut(by.before), y.size(axis) - lost, loc);
  const Size before = grow(by.before), after = grow(by.after);
  if (before.known() && before.extent() == 0 && after.known() && after.extent() == 0) return y;
  size_table* table = before.table() ? before.table() : after.table();
  y = with_table(y, table);
  shape s = y.dims();
  const size_scope scope{y.table(), {"pad", loc}};
  s[axis] = scope.plus(scope.plus(before.extent(), s[axis]), after.extent());
  return scatter_part(value, {axis, 1, before.extent()}, y, s);
}

}  // namespace detail

/// x padded with one value: before and after each of its axes, the first axis first
/// (torch.nn.functional.pad names the last one first): pad(x, {{0, 0}, {1, 1}}, 0). Cropping more
/// than a size, or too many elements, is a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> pad(const Tensor<T, R>& x, const Padding (&by)[N],
                           detail::number_of<T> value = T(), caller loc = here()) {
  static_assert(static_cast<int>(N) == R, "xla::pad: give one {before, after} for every axis of x");
  const Tensor<T, 0> v = value.element(x.table());
  Tensor<T, R> y = x;
  for (int i = 0; i < R; ++i) y = detail::pad_axis(y, i, by[i], v, loc);
  return y;
}

/// The values with which pad surrounds a tensor, by PyTorch's names.
enum class PadMode {
  reflect,    ///< the mirror image, without the first and the last element
  replicate,  ///< the first and the last element, repeated
  circular,   ///< the elements at the other end
};

namespace detail {

template <class T, int R>
constexpr Tensor<T, R> pad_axis(const Tensor<T, R>& x, int axis, const Padding& by, PadMode mode,
                                const call_site& site) {
  const size_scope scope{x.table(), site};
  const bool counted = by.before.known() && by.after.known();
  if (!counted || by.before.extent() < 0 || by.after.extent() < 0) {
    scope.fail("a padding with the tensor's own elements has sizes of 0 or more");
    return x;
  }
  const extent before = by.before.extent(), after = by.after.extent();
  if (before == 0 && after == 0) return x;
  const extent more = before > after ? before : after;
  const extent least = mode == PadMode::reflect ? more + 1 : mode == PadMode::circular ? more : 1;
  const Size n(x.dims()[axis], x.table());
  if (!scope.at_least(n.extent(), least)) {
    scope.fail(text("{") << before << ", " << after << "} for axis " << axis << " of " << x.dims()
                         << " needs " << least << " elements there");
    return x;
  }
  const auto way = mode == PadMode::reflect     ? resampling::reflect
                   : mode == PadMode::replicate ? resampling::replicate
                                                : resampling::circular;
  return resample_axis(x, {.axis = axis, .way = static_cast<int>(way), .before = before},
                       n + (before + after), site);
}

}  // namespace detail

/// x padded with its own elements: pad(x, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}, xla::PadMode::reflect).
/// reflect takes less than a size, circular at most a size; others, and negative ones, are a
/// shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> pad(const Tensor<T, R>& x, const Padding (&by)[N], PadMode mode,
                           caller loc = here()) {
  static_assert(static_cast<int>(N) == R, "xla::pad: give one {before, after} for every axis of x");
  static_assert(!std::is_same_v<T, bool>, "xla::pad: needs numbers, not bool; cast first");
  Tensor<T, R> y = x;
  for (int i = R - 1; i >= 0; --i) y = detail::pad_axis(y, i, by[i], mode, {"pad", loc});
  return y;
}

/// The elements rotated by shift along an axis: those that leave at one end enter at the other. A
/// size known only at run time must be at least shift. An axis that does not exist is a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> roll(const Tensor<T, R>& x, std::int64_t shift, int axis,
                            caller loc = here()) {
  static_assert(R != 0, "xla::roll: a tensor without axes cannot be rolled");
  const int at = detail::checked_axis(x, axis, {"roll", loc});
  const Size n = x.size(at);
  std::int64_t by = shift;
  if (n.known()) by = n.extent() == 0 ? 0 : (shift % n.extent() + n.extent()) % n.extent();
  if (by == 0) return x;
  const Size start = by > 0 ? n - by : Size(-by);
  return cat({slice(x, at, start, none, 1, loc), slice(x, at, 0, start, 1, loc)}, at);
}
/// Rolled along several axes, each by its own shift. An axis that does not exist is a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> roll(const Tensor<T, R>& x, const std::int64_t (&shifts)[N],
                            const int (&axes)[N], caller loc = here()) {
  Tensor<T, R> y = x;
  for (std::size_t i = 0; i < N; ++i) y = roll(y, shifts[i], axes[i], loc);
  return y;
}

}  // namespace xla
