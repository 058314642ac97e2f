// SPDX-License-Identifier: Apache-2.0
#pragma once

// Forms of a, the left operand of a product. Each has one of the first two, or both and then says
// by in_place(k) which is better:
//   read(rows, ks)    a micro-panel of these rows where they are;
//   pack(to, next, row, k, rows, depth)
//                     packs micro-panels of these rows, max_packed<Tile> at most, `next` elements
//                     apart, in the order of the tile;
//   ahead(rows, ks, shares)
//                     what of these rows is fetched while those before are used;
//   grain()           k is cut at multiples of it; a multiple of the tile's step.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "xla/base/compiler.hpp"
#include "xla/kernel/gemm/micro_kernel.hpp"
#include "xla/kernel/memory/matrix_view.hpp"

namespace xla::kernel::detail {

struct range {
  index_t begin, end;
  index_t size() const { return end - begin; }
};

/// The largest number of micro-panels of a that are packed at a time.
constexpr index_t packed_micro_panels = 8;
template <class Tile>
constexpr index_t max_packed = packed_micro_panels * Tile::rows;

/// The next runs of a matrix, prefetched a share at a time while others are used: for short runs,
/// which the hardware prefetcher does not anticipate.
template <class T>
class upcoming {
 public:
  upcoming() = default;
  /// Runs that are `stride` apart, in `shares` shares.
  upcoming(const T* first, index_t stride, index_t runs, index_t length, index_t shares)
      : run_(first), stride_(stride), length_(length) {
    // Runs that begin within a cache line may touch one more line.
    const auto address = reinterpret_cast<std::uintptr_t>(first);
    if (address % 64 != 0 || stride % line != 0) length_ += line - 1;
    left_ = runs * ((length_ + line - 1) / line);
    share_ = (left_ + shares - 1) / shares;
  }
  /// Prefetches the next share.
  void fetch() {
    if (left_ == 0) return;
    for (index_t n = std::min(share_, left_); n > 0; --n, --left_) {
      XLA_PREFETCH(run_ + at_, 0, 3);
      if ((at_ += line) < length_) continue;
      at_ = 0;
      run_ += stride_;
    }
  }

 private:
  static constexpr index_t line = 64 / sizeof(T);
  const T* run_ = nullptr;
  index_t stride_ = 0, length_ = 0, left_ = 0, share_ = 0, at_ = 0;
};

/// A matrix by strides. Elements of another type than the tile's are converted while they are
/// packed.
template <class Tile, class View>
struct strided_left {
  using element = typename Tile::element;
  using source = typename View::element;
  static constexpr bool same = std::is_same_v<source, element>;
  View view;
  bool far = true;  ///< out of cache, and not anticipated by the hardware prefetcher

  bool in_place(index_t depth) const { return view.col_stride == 1 || depth <= 1; }

  micro_panel<element> read(range rows, range ks) const
    requires same
  {
    return {view.from(rows.begin, ks.begin).data, view.row_stride, view.col_stride};
  }

  static constexpr index_t grain() { return 16; }

  /// No prefetch for long rows, which the hardware anticipates.
  [[gnu::noinline]] upcoming<source> ahead(range rows, range ks, index_t shares) const {
    const auto first = view.from(rows.begin, ks.begin).data;
    if (rows.size() <= 0 || !far) return {};
    if (view.col_stride == 1 && ks.size() <= 256)
      return {first, view.row_stride, rows.size(), ks.size(), shares};
    if (view.col_stride != 1 && view.row_stride == 1)
      return {first, view.col_stride, ks.size(), rows.size(), shares};
    return {};
  }

  /// Contiguous columns are read in whole cache lines.
  [[gnu::noinline]] void pack(element* to, index_t next, index_t row, index_t k, index_t rows,
                              index_t depth) const {
    constexpr index_t unit = Tile::rows;
    const auto a = view.from(row, k);
    index_t whole = 0;
    if constexpr (same) {
      if (a.row_stride == 1) whole = rows / unit * unit;
      for (index_t q = 0; q < depth && whole != 0; ++q) {
        const element* const line = a.data + q * a.col_stride;
        for (index_t i = 0; i < whole; i += unit)
          std::memcpy(to + i / unit * next + q * unit, line + i, unit * sizeof(element));
      }
    }
    for (index_t i = whole; i < rows; i += unit) {
      element* const part = to + i / unit * next;
      const index_t count = std::min(unit, rows - i);
      for (index_t q = 0; q < depth; ++q)
        for (index_t j = 0; j < count; ++j)
          part[q * unit + j] =
              static_cast<element>(a.data[(i + j) * a.row_stride + q * a.col_stride]);
    }
  }
};

/// Rows by pointers, in pieces of `length` elements: piece t of row i begins at rows[t * next + i].
/// A convolution reads such rows; a piece is the data under one tap at one pixel.
template <class T>
struct pointer_left {
  const T* const* rows;
  index_t next, length;

  pointer_micro_panel<T> read(range some, range ks) const {
    return {rows + ks.begin / length * next + some.begin, next, length, ks.begin % length};
  }
  index_t grain() const { return length <= 512 ? length : 16; }
  upcoming<T> ahead(range, range, index_t) const { return {}; }
};

}  // namespace xla::kernel::detail
