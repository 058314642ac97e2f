// SPDX-License-Identifier: Apache-2.0
#pragma once

// Forms of b, the right operand of a product. Each has
//   pack(to, k, column, depth, columns)
//                     packs one panel in the order of the tile, from elements of any type and
//                     order;
// and may have
//   in_place(micro_panels, depth, columns), read(k, column, wide)
//                     whether so few micro-panels of a do not repay packing, and panels where b
//                     is;
//   packed            all of b, as pack_panels() packs it, where that was done before;
//   by_rows(columns), pack_rows(to, columns, ks, wide)
//                     whether rows are contiguous and have whole vectors there, and these columns
//                     as panels, packed row by row: as the memory has them;
//   transposed(), column(k, j)
//                     whether columns are contiguous along k and kernels may transpose them while
//                     they multiply (transposing_pack.hpp), and where one begins.

#include <algorithm>
#include <type_traits>

#include "xla/kernel/gemm/left_operand.hpp"
#include "xla/kernel/gemm/micro_kernel.hpp"
#include "xla/kernel/memory/matrix_view.hpp"
#include "xla/kernel/simd/transpose.hpp"

namespace xla::kernel::detail {

constexpr index_t round_up(index_t n, index_t unit) { return (n + unit - 1) / unit * unit; }

/// Panels of b for one block of k, `wide` columns each, starting at column `begin`: packed back to
/// back, or in place, in rows `step` apart.
template <class T>
struct panels {
  const T* data;
  index_t begin, wide;
  index_t step = 0;
};

/// Packs (depth, columns) of b into one panel: rows of whole vectors, filled up with zeros.
template <class T, class View>
void pack_panel(T* to, const View& b, index_t depth, index_t columns) {
  constexpr int width = lanes<T>;
  const index_t step = round_up(columns, width);
  if constexpr (std::is_same_v<T, typename View::element>) {
    if (b.row_stride == 1 && b.col_stride != 1) {
      for (index_t j = 0; j < columns; j += width)
        pack_columns<T>(to + j, step, b.from(0, j).data, b.col_stride, depth,
                        std::min<index_t>(width, columns - j));
      return;
    }
    if (b.col_stride == 1 && columns == step) {
      for (index_t k = 0; k < depth; ++k)
        for (index_t j = 0; j < step; j += width)
          simd::pstoreu(to + k * step + j, simd::ploadu<packet<T>>(b.data + k * b.row_stride + j));
      return;
    }
  }
  for (index_t k = 0; k < depth; ++k)
    for (index_t j = 0; j < step; ++j)
      to[k * step + j] =
          j < columns ? static_cast<T>(b.data[k * b.row_stride + j * b.col_stride]) : T{0};
}

/// A matrix by strides. Elements of another type than the tile's are converted while they are
/// packed.
template <class Tile, class View>
struct strided_right {
  using element = typename Tile::element;
  static constexpr bool same = std::is_same_v<typename View::element, element>;
  View view;

  /// A few micro-panels do not repay packing of b that is in rows already, unless few sets of a
  /// cache hold all rows: 49 x 2048 x 512 takes half as long packed. Nor do some more micro-panels
  /// if b is small and contiguous.
  bool in_place(index_t micro_panels, index_t depth, index_t columns) const {
    constexpr index_t small = 1 << 15;
    const bool together = view.row_stride < 2 * columns &&
                          columns * depth * static_cast<index_t>(sizeof(element)) <= small;
    const bool few_sets = view.row_stride * static_cast<index_t>(sizeof(element)) % 2048 == 0;
    return view.col_stride == 1 && view.row_stride != 0 &&
           micro_panels <= (together   ? 32
                            : few_sets ? 2
                                       : 8);
  }
  panels<element> read(index_t k, index_t column, index_t wide) const
    requires(same && !View::is_transposed)
  {
    return {view.from(k, column).data, column, wide, view.row_stride};
  }

  bool by_rows(range columns) const {
    return view.col_stride == 1 && columns.size() % lanes<element> == 0;
  }
  void pack_rows(element* to, range columns, range ks, index_t wide) const
    requires same
  {
    constexpr index_t width = lanes<element>, ahead = 8;
    for (index_t k = 0; k < ks.size(); ++k) {
      const element* const from = view.from(ks.begin + k, columns.begin).data;
      for (index_t j = 0; j < columns.size(); j += wide) {
        const index_t end = std::min(wide, columns.size() - j);
        element* const panel = to + j * ks.size() + k * end;
        for (index_t q = 0; q < end; q += width) {
          simd::prefetch(from + ahead * view.row_stride + j + q);
          simd::pstoreu(panel + q, simd::ploadu<packet<element>>(from + j + q));
        }
      }
    }
  }
  bool transposed() const { return view.row_stride == 1 && view.col_stride != 1; }
  const element* column(index_t k, index_t j) const
    requires(same && is_vector<element> && !View::is_plain)
  {
    return view.from(k, j).data;
  }

  void pack(element* to, index_t k, index_t column, index_t depth, index_t columns) const {
    pack_panel(to, view.from(k, column), depth, columns);
  }
};

}  // namespace xla::kernel::detail
