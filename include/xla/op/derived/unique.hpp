// SPDX-License-Identifier: Apache-2.0
#pragma once

// unique(), unique_consecutive() and isin(). Sizes depend on data, so compiled functions refuse
// them.

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "xla/op/derived/any_all.hpp"
#include "xla/op/nonzero.hpp"
#include "xla/op/search.hpp"
#include "xla/op/sort.hpp"

namespace xla {

/// Tags for unique: return_inverse requests the index of each element among the values,
/// return_counts the number of times that each value occurs.
struct return_inverse_t {};
inline constexpr return_inverse_t return_inverse{};
struct return_counts_t {};
inline constexpr return_counts_t return_counts{};

namespace detail {

/// The unique values of x as tensors: the values, the index of each element, the counts.
template <class T, int R>
using unique_parts = std::tuple<Tensor<T, 1>, Tensor<std::int64_t, R>, Tensor<std::int64_t, 1>>;

template <class T, int R>
unique_parts<T, R> read_unique(const Tensor<T, R>& x, bool sorted) {
  machine_of<T>::count_fallback(sorted ? "unique" : "unique_consecutive");
  using indices = dependent<T, std::vector<std::int64_t>>;
  const shape s = x.dims();
  const T* const data = x.data();
  const auto n = static_cast<std::size_t>(count(s));
  indices order(n), inverse(n), first, counts;
  std::iota(order.begin(), order.end(), 0);
  if (sorted)  // NaN is the largest, and no two are equal
    std::stable_sort(order.begin(), order.end(), [data](std::int64_t a, std::int64_t b) {
      return data[a] < data[b] || (data[a] == data[a] && data[b] != data[b]);
    });
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t at = order[i];
    if (i == 0 || data[order[i - 1]] != data[at]) {
      first.push_back(at);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(first.size()) - 1;
  }
  const auto all = reshape(x, {count(s)});
  return {select_along(all, 0, from_blob(first.data(), {first.size()})),
          with_shape<op::reshape, R>(from_blob(inverse.data(), {n}), s),
          from_blob(counts.data(), {counts.size()})};
}

template <class T, int R>
constexpr unique_parts<T, R> unique_of(const Tensor<T, R>& x, bool sorted, const call_site& site) {
  using index = std::conditional_t<std::is_void_v<T>, T, std::int64_t>;  // dependent, for clang
  if (refuse_data_size(x, site))
    return {full<T>({1}, T{}), zeros_like(cast<index>(x)), full<index>({1}, 0)};
  return read_unique(x, sorted);
}

}  // namespace detail

/// The distinct elements of x, in order: unique(x). With xla::return_inverse also the index of each
/// element of x among them, with xla::return_counts how often each occurs. NaN is the largest, and
/// every NaN is distinct. Reads x, so it runs pending ops; counts as fallback::unique. Refused in a
/// compiled body.
template <class T, int R>
constexpr Tensor<T, 1> unique(const Tensor<T, R>& x, caller loc = here()) {
  return std::get<0>(detail::unique_of(x, true, {"unique", loc}));
}
template <class T, int R>
constexpr auto unique(const Tensor<T, R>& x, return_inverse_t, caller loc = here()) {
  const auto all = detail::unique_of(x, true, {"unique", loc});
  return std::pair(std::get<0>(all), std::get<1>(all));
}
template <class T, int R>
constexpr auto unique(const Tensor<T, R>& x, return_counts_t, caller loc = here()) {
  const auto all = detail::unique_of(x, true, {"unique", loc});
  return std::pair(std::get<0>(all), std::get<2>(all));
}
template <class T, int R>
constexpr auto unique(const Tensor<T, R>& x, return_inverse_t, return_counts_t,
                      caller loc = here()) {
  return detail::unique_of(x, true, {"unique", loc});
}

/// x's elements in row-major order, without those that equal the previous one; in the same forms.
template <class T, int R>
constexpr Tensor<T, 1> unique_consecutive(const Tensor<T, R>& x, caller loc = here()) {
  return std::get<0>(detail::unique_of(x, false, {"unique_consecutive", loc}));
}
template <class T, int R>
constexpr auto unique_consecutive(const Tensor<T, R>& x, return_inverse_t, caller loc = here()) {
  const auto all = detail::unique_of(x, false, {"unique_consecutive", loc});
  return std::pair(std::get<0>(all), std::get<1>(all));
}
template <class T, int R>
constexpr auto unique_consecutive(const Tensor<T, R>& x, return_counts_t, caller loc = here()) {
  const auto all = detail::unique_of(x, false, {"unique_consecutive", loc});
  return std::pair(std::get<0>(all), std::get<2>(all));
}
template <class T, int R>
constexpr auto unique_consecutive(const Tensor<T, R>& x, return_inverse_t, return_counts_t,
                                  caller loc = here()) {
  return detail::unique_of(x, false, {"unique_consecutive", loc});
}

/// Whether each element is among others, or with invert whether it is not. NaN never is.
template <class T, int A, int B>
constexpr Tensor<bool, A> isin(const Tensor<T, A>& elements, const Tensor<T, B>& test_elements,
                               bool invert = false) {
  const auto sequence = sort(flatten(test_elements), 0).first;
  const auto after = searchsorted(sequence, elements, true);
  const auto before = searchsorted(sequence, elements, false);
  if (invert) return after == before || elements != elements;
  return after > before && elements == elements;
}

}  // namespace xla
