// SPDX-License-Identifier: Apache-2.0
#pragma once

// searchsorted() and bucketize(). They have no gradient.

#include "xla/op/scalar.hpp"

namespace xla::op {

/// The position of each value in a sorted sequence: the number of elements before it. The sequence
/// has one axis, or the values' axes except the last.
struct searchsorted {
  static constexpr auto name = "searchsorted";
  static constexpr op_kind kind = op_kind::library;
  struct attributes {
    bool right = false;  ///< equal elements count as before it
    XLA_ATTRIBUTES(right)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    const shape &sequence = r.in[0], &values = r.in[1];
    for (int i = 0; i + 1 < sequence.rank; ++i)
      if (detail::extent e = sequence[i]; !r.sizes.equal(e, values[i]))
        r.sizes.fail(detail::text("sequences of shape ")
                     << sequence << " for values of shape " << values
                     << ": all sizes but the last have to be equal");
    return values;
  }
};

}  // namespace xla::op

XLA_OP(xla::op::searchsorted, positions);

namespace xla {

/// The position of each value in a sequence that is sorted along its last axis: that of the first
/// equal element, or with right after the last one. The sequence has one axis, for all values, or
/// the values' sizes except the last. NaN is the largest, as in sort. Other sizes are a
/// shape_error.
template <class T, int S, int R>
constexpr Tensor<std::int64_t, R> searchsorted(const Tensor<T, S>& sorted_sequence,
                                               const Tensor<T, R>& values, bool right = false,
                                               caller loc = here()) {
  static_assert(S == 1 || (S > 0 && S == R),
                "xla::searchsorted: the sequence needs one axis, or as many as the values");
  return detail::apply_at<op::searchsorted, std::int64_t, T, R>(
      loc, detail::with<op::searchsorted>({right}), sorted_sequence, values);
}
/// The position of a number in a sorted sequence.
template <class T>
constexpr Tensor<std::int64_t, 0> searchsorted(const Tensor<T, 1>& sorted_sequence,
                                               detail::number_of<T> value, bool right = false,
                                               caller loc = here()) {
  return searchsorted(sorted_sequence, value.tensor(), right, loc);
}

/// The bucket of each element between sorted boundaries: searchsorted with swapped arguments.
template <class T, int R>
constexpr Tensor<std::int64_t, R> bucketize(const Tensor<T, R>& x, const Tensor<T, 1>& boundaries,
                                            bool right = false, caller loc = here()) {
  return searchsorted(boundaries, x, right, loc);
}

}  // namespace xla
