// SPDX-License-Identifier: Apache-2.0
#pragma once

// Index sets: triu_indices(), cartesian_prod(), combinations(), unravel_index(); and block_diag().

#include <array>
#include <cstdint>

#include "xla/op/concat.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/floor_divide.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/scan.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/where.hpp"

namespace xla {
namespace detail {

/// The indices, in order, of the `count` true elements of a mask: nonzero() with a count that the
/// compiler knows.
template <class I>
constexpr Tensor<I, 1> true_indices(const Tensor<bool, 1>& mask, Size count) {
  const auto before = cumsum(cast<std::int64_t>(mask), 0) - 1;
  const auto number = with_table(arange<I>(mask.size(0)), mask.table());
  const auto none = with_table(zeros<I>({count}), mask.table());
  return index_add(none, 0, where(mask, before, 0), where(mask, number, 0));
}

/// (2, count): rows and columns of a matrix's indices for which column - row is on one side of a
/// diagonal, or on it. In the graph of a table.
template <class I = std::int64_t>
constexpr Tensor<I, 2> triangle_indices(std::int64_t rows, std::int64_t columns,
                                        std::int64_t diagonal, bool upper,
                                        size_table* table = nullptr) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t at = i + diagonal + !upper;
    const std::int64_t before = at < 0 ? 0 : at > columns ? columns : at;
    count += upper ? columns - before : before;
  }
  const auto number = with_table(arange<I>(rows * columns), table);
  const auto row = floor_divide(number, columns);
  const auto offset = number - row * columns - row;
  const auto kept = true_indices<I>(upper ? offset >= diagonal : offset <= diagonal, count);
  const auto of = floor_divide(kept, columns);
  return stack(std::array{of, kept - of * columns}, 0);
}

}  // namespace detail

/// The indices (2, count) of a matrix on and above a diagonal: rows, then columns. The main
/// diagonal is 0, those above it are positive. In compiled bodies it must be an argument.
template <element I = std::int64_t>
constexpr Tensor<I, 2> triu_indices(std::int64_t rows, std::int64_t columns,
                                    std::int64_t diagonal = 0) {
  return detail::triangle_indices<I>(rows, columns, diagonal, true);
}
/// The indices on and below a diagonal.
template <element I = std::int64_t>
constexpr Tensor<I, 2> tril_indices(std::int64_t rows, std::int64_t columns,
                                    std::int64_t diagonal = 0) {
  return detail::triangle_indices<I>(rows, columns, diagonal, false);
}

/// The indices along each axis, in a tensor of these sizes, of elements given by their numbers in
/// row-major order.
template <int R, std::size_t N>
constexpr std::array<Tensor<std::int64_t, R>, N> unravel_index(const Tensor<std::int64_t, R>& index,
                                                               const Size (&sizes)[N]) {
  std::array<Tensor<std::int64_t, R>, N> each;
  Tensor<std::int64_t, R> rest = index;
  for (std::size_t i = N; i-- > 1;) {
    const auto before = floor_divide(rest, sizes[i]);
    each[i] = rest - before * sizes[i];
    rest = before;
  }
  each[0] = rest;
  return each;
}

/// All combinations of an element of each vector, one a row: (product of the sizes, vectors).
template <class T, class... More>
  requires(std::convertible_to<More, Tensor<T, 1>> && ...)
constexpr Tensor<T, 2> cartesian_prod(const Tensor<T, 1>& first, const More&... more) {
  const auto grid = meshgrid(first, more...);
  std::array<Tensor<T, 1>, 1 + sizeof...(More)> columns;
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = reshape(grid[i], {-1});
  return stack(columns, 1);
}

/// All choices of r elements of a vector in its order, one per row: (count, r); with_replacement
/// also those that repeat an element. The compiler knows the vector's size n; n^r intermediate
/// numbers are made.
template <class T>
constexpr Tensor<T, 2> combinations(const Tensor<T, 1>& x, std::int64_t r = 2,
                                    bool with_replacement = false, caller loc = here()) {
  const std::int64_t n = x.size(0), wide = with_replacement ? n + r - 1 : n;
  if (r < 1 || wide < r) {
    detail::size_scope{x.table(), {"combinations", loc}}.fail(detail::text("no choice of ")
                                                              << r << " of " << n << " elements");
    return reshape(x, {-1, 1});
  }
  std::int64_t all = 1, count = 1;
  for (std::int64_t i = 1; i <= r; ++i) all *= n, count = count * (wide - r + i) / i;
  // Numbers with r digits of base n; those with rising digits count.
  auto rest = detail::with_table(arange(all), x.table());
  auto digit = rest - floor_divide(rest, n) * n;
  auto kept = digit >= 0;
  for (std::int64_t i = 1; i < r; ++i) {
    rest = floor_divide(rest, n);
    const auto before = rest - floor_divide(rest, n) * n;
    if (with_replacement) kept = kept && before <= digit;
    else kept = kept && before < digit;
    digit = before;
  }
  auto indices = detail::true_indices<std::int64_t>(kept, count);
  Tensor<T, 2> y;
  for (std::int64_t i = 0; i < r; ++i) {
    const auto next = floor_divide(indices, n);
    const auto column = unsqueeze(index_select(x, 0, indices - next * n, loc), 1);
    if (i == 0) y = column;
    else y = cat(std::array{column, y}, 1, loc);
    indices = next;
  }
  return y;
}

/// Matrices along the diagonal of one that is 0 elsewhere.
template <class T>
constexpr Tensor<T, 2> block_diag(const Tensor<T, 2>& x) {
  return x;
}
template <class T, std::convertible_to<Tensor<T, 2>>... More>
constexpr Tensor<T, 2> block_diag(const Tensor<T, 2>& a, const Tensor<T, 2>& b,
                                  const More&... more) {
  const auto right = zeros<T>({a.size(0), b.size(1)}), below = zeros<T>({b.size(0), a.size(1)});
  const auto upper = cat(std::array{a, right}, 1), lower = cat(std::array{below, b}, 1);
  return block_diag(cat(std::array{upper, lower}, 0), more...);
}

}  // namespace xla
