// SPDX-License-Identifier: Apache-2.0
#pragma once

// arange() with a step, and linspace().

#include <array>

#include "xla/op/cast.hpp"
#include "xla/op/create.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

/// The number of integers from start on, step apart, before end: at most 2^62, which no tensor has.
constexpr std::int64_t range_count(std::int64_t start, std::int64_t end, std::int64_t step) {
  if (step > 0 ? end <= start : end >= start) return 0;
  // Unsigned, because the distance of two numbers may take all 64 bits.
  const auto from = static_cast<std::uint64_t>(step > 0 ? start : end);
  const auto to = static_cast<std::uint64_t>(step > 0 ? end : start);
  const auto by = static_cast<std::uint64_t>(step), size = step > 0 ? by : 0 - by;
  const std::uint64_t n = (to - from - 1) / size + 1, most = std::uint64_t{1} << 62;
  return static_cast<std::int64_t>(n < most ? n : most);
}
/// The same for floating-point numbers.
constexpr std::int64_t range_count(double start, double end, double step) {
  const double steps = (end - start) / step;
  if (!(steps > 0)) return 0;
  if (steps > 0x1p62) return std::int64_t{1} << 62;
  const std::int64_t n = static_cast<std::int64_t>(steps);
  return n + (static_cast<double>(n) < steps);
}

}  // namespace detail

/// start, start + step … before end (not included). A step of 0 is a shape_error.
template <element T = std::int64_t, class A, class B, class S = int>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && std::is_arithmetic_v<S>)
constexpr Tensor<T, 1> arange(A start, B end, S step = 1, caller loc = here()) {
  static_assert(
      floating_type<T> || (std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<S>),
      "xla::arange: floating-point numbers need an element type: xla::arange<float>(0, 1, 0.1)");
  const bool ends = step != 0 && start == start && end == end && step == step;
  if (!ends)
    detail::size_scope{nullptr, {"arange", loc}}.fail("needs numbers, and a step that is not 0");
  constexpr bool whole = std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<S>;
  using N = std::conditional_t<whole, std::int64_t, double>;
  const std::int64_t n =
      ends ? detail::range_count(static_cast<N>(start), static_cast<N>(end), static_cast<N>(step))
           : 0;
  if constexpr (std::is_integral_v<A>)
    if (step == 1) return detail::arange_from<T>(n, static_cast<std::int64_t>(start), loc);
  using C = detail::computed<T>;
  const Tensor<C, 1> i = detail::arange_from<C>(n, 0, loc);
  return detail::narrowed<T>(i * static_cast<C>(step) + static_cast<C>(start));
}
/// start, start + 1 … before end, either known at run time only.
template <element T = std::int64_t>
constexpr Tensor<T, 1> arange(Size start, Size end, caller loc = here()) {
  const Size n = end - start;
  if (start.known()) return detail::arange_from<T>(n, start.extent(), loc);
  return detail::narrowed<T>(detail::arange_from<detail::computed<T>>(n, 0, loc) + start);
}

/// count numbers from start to end (both included), at equal distances; the last is exactly end.
template <element T = float>
constexpr Tensor<T, 1> linspace(std::type_identity_t<detail::computed<T>> start,
                                std::type_identity_t<detail::computed<T>> end, Size count) {
  static_assert(floating_type<T>, "xla::linspace: needs float, double or bfloat16");
  if constexpr (!std::is_same_v<T, detail::computed<T>>)
    return detail::narrowed<T>(linspace<detail::computed<T>>(start, end, count));
  else {
    const Tensor<T, 1> i = detail::arange_from<T>(count, 0);
    if (count.known()) {
      const T last = static_cast<T>(count.extent() - 1);
      const T step = count.extent() > 1 ? (end - start) / last : T{};
      if (count.extent() < 2) return i + start;
      return where(i == last, end, i * step + start);
    }
    const Tensor<T, 0> last = detail::number<T>(count - 1).tensor();
    const Tensor<bool, 0> one = last == 0;
    const Tensor<T, 0> step = detail::constant<T>(end - start) / where(one, 1, last);
    return where(i == last, where(one, start, detail::constant<T>(end)), i * step + start);
  }
}

/// The coordinates of a grid: result k holds, at every point, the element of the k-th vector. All
/// results have the vectors' sizes, in their order (torch's indexing = 'ij').
template <class T, class... More>
  requires(std::convertible_to<More, Tensor<T, 1>> && ...)
constexpr std::array<Tensor<T, 1 + static_cast<int>(sizeof...(More))>, 1 + sizeof...(More)>
meshgrid(const Tensor<T, 1>& first, const More&... more) {
  constexpr int rank = 1 + static_cast<int>(sizeof...(More));
  static_assert(rank <= detail::max_rank, "xla::meshgrid: a tensor has at most 6 axes");
  const Tensor<T, 1> x[] = {first, more...};
  detail::shape all;
  for (const Tensor<T, 1>& v : x) all.push(v.dims()[0]);
  std::array<Tensor<T, rank>, static_cast<std::size_t>(rank)> grid;
  for (int k = 0; k < rank; ++k) {
    detail::shape s;
    for (int i = 0; i < rank; ++i) s.push(i == k ? all[k] : 1);
    grid[static_cast<std::size_t>(k)] =
        detail::with_shape<op::expand, rank>(detail::with_shape<op::reshape, rank>(x[k], s), all);
  }
  return grid;
}

}  // namespace xla
