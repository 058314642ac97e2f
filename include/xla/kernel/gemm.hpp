// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <xla/kernel/gemm_few.hpp>
#include <xla/kernel/gemm_turn.hpp>
#include <xla/kernel/loops.hpp>
#include <xla/kernel/product.hpp>

namespace xla::kernel {
namespace detail {

struct range {
  index_t begin, end;
  index_t size() const { return end - begin; }
};

/// The i-th of `parts` ranges over [0, n) whose borders are multiples of `unit`.
template <class = void>
inline range part(index_t n, index_t unit, index_t parts, index_t i) {
  const index_t units = (n + unit - 1) / unit;
  return {units * i / parts * unit, std::min(n, units * (i + 1) / parts * unit)};
}

/// One product c = a·b and how it is cut. k is cut by its own length only, so that the order of
/// every sum is fixed: blocks of at most 2 KiB of a row, of nearly equal length.
template <class T>
struct product {
  index_t m, n, k;
  matrix_view<T> a, b;
  T* c;
  index_t ldc;
  const T* slivers = nullptr;  // a once it is packed whole
  index_t depth = 1, depths = 1;

  bool strided() const { return a.col_stride != 1 && k > 1; }

  void cut() {
    constexpr index_t most = 2048 / sizeof(T);
    depths = (k + most - 1) / most;
    depth = round_up((k + depths - 1) / depths, 16);
    depths = (k + depth - 1) / depth;
  }

  range block(index_t i) const { return {i * depth, std::min(k, (i + 1) * depth)}; }
};

/// Panels of b for one block of k, `wide` columns each, starting at column `begin`: packed back to
/// back, or where b lies, in rows `step` apart.
template <class T>
struct panels {
  const T* data;
  index_t begin, wide;
  index_t step = 0;
};

/// How wide the panels of some columns are: as wide as a tile, or nearly equal.
template <class T>
index_t panel_width(index_t columns) {
  constexpr index_t width = tile<T>::width;
  const index_t vectors = std::max<index_t>((columns + width - 1) / width, 1);
  const index_t count = (vectors + tile<T>::vectors - 1) / tile<T>::vectors;
  return (vectors + count - 1) / count * width;
}

/// Runs of a matrix that come next, fetched into the cache a share at a time while others are used:
/// short ones, of which the processor foresees nothing.
template <class T>
class upcoming {
 public:
  upcoming() = default;
  /// So many runs, `stride` apart, in `shares` shares.
  upcoming(const T* first, index_t stride, index_t runs, index_t length, index_t shares)
      : run_(first), stride_(stride), length_(length) {
    // Runs that begin within a line may end in one more.
    const auto address = reinterpret_cast<std::uintptr_t>(first);
    if (address % 64 != 0 || stride % line != 0) length_ += line - 1;
    left_ = runs * ((length_ + line - 1) / line);
    share_ = (left_ + shares - 1) / shares;
  }
  /// One share of what is left.
  void fetch() {
    if (left_ == 0) return;
    for (index_t n = std::min(share_, left_); n > 0; --n, --left_) {
      __builtin_prefetch(run_ + at_, 0, 3);
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

/// Where the micro-kernels read a sliver of a.
template <class T>
struct sliver {
  const T* data;
  index_t row, step;
};

/// c(rows, columns) (+)= a(rows, ks)·b(ks, columns) for one sliver; at each panel a share of `next`
/// is fetched.
template <class T>
__attribute__((always_inline)) inline void multiply_sliver(const product<T>& p, sliver<T> a,
                                                           range rows, range columns, range ks,
                                                           panels<T> b, upcoming<T>& next) {
  for (index_t j = columns.begin; j < columns.end; j += b.wide) {
    const index_t width = std::min(b.wide, columns.end - j);
    next.fetch();
    multiply_tile<T>({.depth = ks.size(),
                      .a = a.data,
                      .a_row = a.row,
                      .a_step = a.step,
                      .b = b.data + (j - b.begin) * (b.step != 0 ? 1 : ks.size()),
                      .b_step = b.step != 0 ? b.step : round_up(width, tile<T>::width),
                      .c = p.c + rows.begin * p.ldc + j,
                      .c_row = p.ldc,
                      .tail = 0,
                      .first = ks.begin == 0},
                     rows.size(), width);
  }
}

/// The same for all rows of a strided a, packed some slivers at a time, so that whole cache lines
/// are read.
template <class T>
void multiply_strided(const product<T>& p, range rows, range columns, range ks, panels<T> b) {
  constexpr index_t unit = tile<T>::rows, slivers = unit % 4 == 0 ? 4 : 8, group = slivers * unit;
  const index_t shares = slivers * ((columns.size() + b.wide - 1) / b.wide);
  T* const packed = left_scratch().get<T>(group * p.depth);
  const auto group_at = [&](index_t i) { return range{i, std::min(rows.end, i + group)}; };
  for (range some = group_at(rows.begin); some.size() > 0; some = group_at(some.end)) {
    const auto left = from(p.a, some.begin, ks.begin);
    pack_left_group(packed, unit * ks.size(), left, some.size(), ks.size());
    upcoming<T> next;
    if (left.row_stride == 1)
      next = {left.data + group, left.col_stride, ks.size(), group_at(some.end).size(), shares};
    for (index_t i = some.begin; i < some.end; i += unit)
      multiply_sliver(p, {packed + (i - some.begin) * ks.size(), 1, unit},
                      {i, std::min(some.end, i + unit)}, columns, ks, b, next);
  }
}

/// c(rows, columns) (+)= a(rows, ks)·b(ks, columns). `columns` begins at a border of the panels.
template <class T>
void multiply_block(const product<T>& p, range rows, range columns, range ks, panels<T> b) {
  constexpr index_t unit = tile<T>::rows;
  if (columns.size() == 0) return;
  const bool packed = p.slivers != nullptr;
  if (p.strided() && !packed) return multiply_strided(p, rows, columns, ks, b);
  const index_t shares = packed || ks.size() > 256 ? 0 : (columns.size() + b.wide - 1) / b.wide;
  for (index_t i = rows.begin; i < rows.end; i += unit) {
    const range some{i, std::min(rows.end, i + unit)};
    const auto left = from(p.a, i, ks.begin);
    upcoming<T> next;
    if (shares != 0 && some.end < rows.end)
      next = {left.data + unit * left.row_stride, left.row_stride,
              std::min(rows.end - some.end, unit), ks.size(), shares};
    const sliver<T> a = packed ? sliver<T>{p.slivers + i * p.k + ks.begin * unit, 1, unit}
                               : sliver<T>{left.data, left.row_stride, 1};
    multiply_sliver(p, a, some, columns, ks, b, next);
  }
}

/// How many columns of b one thread keeps packed at a time: a block of k then fits the L2 cache.
template <class T>
constexpr index_t resident_columns = (tile<T>::vectors == 3 ? 7 : 10) * tile<T>::columns;

/// The fewest equal ranges of columns that stay resident.
template <class T>
index_t resident_parts(range columns) {
  return (columns.size() + resident_columns<T> - 1) / resident_columns<T>;
}

/// The i-th of `parts` ranges of whole panels.
template <class T>
range panel_part(range columns, index_t parts, index_t i) {
  const range within = part(columns.size(), tile<T>::columns, parts, i);
  return {columns.begin + within.begin, columns.begin + within.end};
}

/// Packs b for one block of k and a range of columns.
template <class T>
void pack_block(const product<T>& p, T* to, range columns, range ks, index_t wide) {
  for (index_t j = columns.begin; j < columns.end; j += wide)
    pack_panel(to + (j - columns.begin) * ks.size(), from(p.b, ks.begin, j), ks.size(),
               std::min(wide, columns.end - j));
}

/// Packs b for one block of k and a range of columns where its columns are contiguous along k, and
/// multiplies the first sliver of the rows meanwhile. Returns how many rows that is.
template <class T>
index_t turn_block(const product<T>& p, T* to, range rows, range columns, range ks, index_t wide) {
  constexpr index_t unit = tile<T>::rows, width = tile<T>::width;
  const index_t height = std::min(rows.size(), unit), padded = round_up(height, width);
  const auto left = from(p.a, rows.begin, ks.begin);
  sliver<T> a{left.data, left.row_stride, left.col_stride};
  if (p.slivers != nullptr) {
    a = {p.slivers + rows.begin * p.k + ks.begin * unit, 1, unit};
  } else if (height < unit) {
    T* const copy = left_scratch().get<T>(padded * p.depth);
    pack_panel<T>(copy, {left.data, left.col_stride, left.row_stride}, ks.size(), height);
    a = {copy, 1, padded};
  }
  for (index_t j = columns.begin; j < columns.end; j += wide) {
    const index_t end = std::min(j + wide, columns.end);
    for (index_t q = j; q < end; q += width)
      turn_kernel<T>({.depth = ks.size(),
                      .a = a.data,
                      .a_row = a.row,
                      .a_step = a.step,
                      .b = from(p.b, ks.begin, q).data,
                      .b_column = p.b.col_stride,
                      .columns = std::min(width, end - q),
                      .packed = rows.size() > height
                                    ? to + (j - columns.begin) * ks.size() + (q - j)
                                    : nullptr,
                      .packed_step = round_up(end - j, width),
                      .c = p.c + rows.begin * p.ldc + q,
                      .c_row = p.ldc,
                      .rows = height,
                      .first = ks.begin == 0});
  }
  return height;
}

/// Some rows of some columns, by one thread that packs for itself.
template <class T>
void multiply_part(const product<T>& p, range rows, range columns) {
  constexpr index_t width = tile<T>::width;
  // A few slivers of rows do not repay the packing of what is already in rows; nor do some more
  // where b is small and lies together.
  constexpr index_t small = 1 << 15;
  const bool together =
      p.b.row_stride < 2 * p.n && p.n * p.depth * static_cast<index_t>(sizeof(T)) <= small;
  const bool in_place = p.b.col_stride == 1 && p.b.row_stride != 0 &&
                        rows.size() <= (together ? 32 : 8) * tile<T>::rows;
  // A sliver that is not whole is padded, which does not pay for a row or two.
  const index_t height = std::min<index_t>(rows.size(), tile<T>::rows);
  const bool turned = is_vector<T> && p.b.row_stride == 1 && p.b.col_stride != 1 &&
                      (height == tile<T>::rows || (p.slivers == nullptr && height > 4 &&
                                                   round_up(height, width) >= tile<T>::rows));
  const index_t parts = resident_parts<T>(columns);
  T* packed = right_scratch().get<T>((resident_columns<T> + tile<T>::columns) * p.depth);
  for (index_t i = 0; i < parts; ++i) {
    range some = panel_part<T>(columns, parts, i);
    const range whole{some.begin, some.begin + (in_place ? some.size() / width * width : 0)};
    some.begin = whole.end;
    const index_t wide = panel_width<T>(some.size()), wide_whole = panel_width<T>(whole.size());
    for (index_t block = 0; block < p.depths; ++block) {
      const range ks = p.block(block);
      const T* b = from(p.b, ks.begin, whole.begin).data;
      multiply_block(p, rows, whole, ks, {b, whole.begin, wide_whole, p.b.row_stride});
      range rest = rows;
      if constexpr (is_vector<T>)
        if (turned) rest.begin += turn_block(p, packed, rows, some, ks, wide);
      if (!turned) pack_block(p, packed, some, ks, wide);
      multiply_block(p, rest, some, ks, {packed, some.begin, wide});
    }
  }
}

/// Packs the columns and blocks once, by all threads, then shares them among tiles of c.
template <class T>
void multiply_shared(const product<T>& p, range columns, range blocks, index_t chunks) {
  constexpr index_t wide = tile<T>::columns;
  const index_t stride = round_up(columns.size(), tile<T>::width) * p.depth;
  T* packed = right_scratch().get<T>(stride * blocks.size());
  const index_t count = (columns.size() + wide - 1) / wide;
  parallel_for(count * blocks.size(), [&](index_t i) {
    const index_t block = i / count, j = columns.begin + i % count * wide;
    const range ks = p.block(blocks.begin + block);
    T* to = packed + block * stride + (j - columns.begin) * ks.size();
    pack_panel(to, from(p.b, ks.begin, j), ks.size(), std::min(wide, columns.end - j));
  });
  const index_t across = resident_parts<T>(columns);
  const index_t slivers = (p.m + tile<T>::rows - 1) / tile<T>::rows;
  const index_t down = std::clamp<index_t>((chunks + across - 1) / across, 1, slivers);
  parallel_for(across * down, [&](index_t i) {
    // All columns of some rows one after another: then a comes from the memory once.
    const range rows = part(p.m, tile<T>::rows, down, i / across);
    const range some = panel_part<T>(columns, across, i % across);
    for (index_t block = 0; block < blocks.size(); ++block)
      multiply_block(p, rows, some, p.block(blocks.begin + block),
                     {packed + block * stride, columns.begin, wide});
  });
}

/// Calls f with the rows from `i` on, as many as a kernel takes; returns how many.
template <class T, class F>
index_t with_rows(const product<T>& p, index_t i, index_t column, F&& f) {
  const few_rows<T> x{p.a.data + i * p.a.row_stride, p.a.row_stride, p.c + i * p.ldc + column,
                      p.ldc, p.k};
  const index_t rest = p.m - i;
  if (rest >= 4) return f(x, std::integral_constant<int, 4>{}), 4;
  if (rest >= 2) return f(x, std::integral_constant<int, 2>{}), 2;
  return f(x, std::integral_constant<int, 1>{}), 1;
}

/// Some columns of a product with few rows; a is contiguous along k.
template <class T>
void multiply_few_columns(const product<T>& p, range columns) {
  constexpr index_t width = tile<T>::width;
  if (p.b.col_stride == 1 && p.b.row_stride != 1) {
    const index_t parts = (columns.size() + strip_columns<T> - 1) / strip_columns<T>;
    for (index_t s = 0; s < parts; ++s) {
      const range some = part(columns.size(), width, parts, s);
      const index_t j = columns.begin + some.begin;
      for (index_t i = 0; i < p.m;)
        i += with_rows(p, i, j, [&](const few_rows<T>& x, auto rows) {
          axpy_strip<T, rows>(x, from(p.b, 0, j), some.size());
        });
    }
    return;
  }
  const bool strided = p.b.row_stride != 1 && p.k > 1;
  T* packed = strided ? right_scratch().get<T>(width * p.k) : nullptr;
  for (index_t j = columns.begin; j < columns.end; j += width) {
    const index_t count = std::min(width, columns.end - j);
    const auto b = from(p.b, 0, j);
    for (index_t q = 0; strided && q < count; ++q)
      for (index_t k = 0; k < p.k; ++k)
        packed[q * p.k + k] = b.data[k * b.row_stride + q * b.col_stride];
    for (index_t i = 0; i < p.m;)
      i += with_rows(p, i, j, [&](const few_rows<T>& x, auto rows) {
        dot_tile<T, rows>(x, strided ? packed : b.data, strided ? p.k : b.col_stride, count);
      });
  }
}

/// A product with few rows: its columns are shared among threads.
template <class T>
void multiply_few(product<T> p) {
  constexpr index_t worth_sharing = 1 << 17, chunk_work = 1 << 16;
  if (p.a.col_stride != 1 && p.k > 1) {
    T* packed = left_scratch().get<T>(p.m * p.k);
    for (index_t i = 0; i < p.m; ++i)
      for (index_t k = 0; k < p.k; ++k)
        packed[i * p.k + k] = p.a.data[i * p.a.row_stride + k * p.a.col_stride];
    p.a = {packed, p.k, 1};
  }
  const index_t threads = num_threads(), work = p.n * p.k;
  if (threads == 1 || work < worth_sharing) return multiply_few_columns(p, {0, p.n});
  const index_t vectors = (p.n + tile<T>::width - 1) / tile<T>::width;
  const index_t parts = std::clamp<index_t>(work / chunk_work, 1, std::min(vectors, 4 * threads));
  parallel_for(parts,
               [&](index_t i) { multiply_few_columns(p, part(p.n, tile<T>::width, parts, i)); });
}

/// Whether c is better made transposed: where the columns of b are contiguous along k, a few rows
/// do not repay their turning. Then b is read where it lies, as a left operand, and a is turned, if
/// its rows fill vectors.
template <class T>
bool better_transposed(const product<T>& p) {
  constexpr index_t most_rows = 64, least_columns = 128;
  return p.b.row_stride == 1 && p.b.col_stride != 1 && p.m <= most_rows && p.n >= least_columns &&
         8 * p.m >= 7 * round_up(p.m, tile<T>::width);
}

/// Some columns of c that way, in the same order of summation.
template <class T>
void multiply_transposed(const product<T>& p, range columns) {
  constexpr index_t unit = tile<T>::rows, width = tile<T>::width, most = 512;
  const index_t step = round_up(p.m, tile<T>::width);
  const index_t parts = (columns.size() + most - 1) / most;
  struct turned_result;
  for (index_t i = 0; i < parts; ++i) {
    const range within = part(columns.size(), unit, parts, i);
    T* const c = static_cast<T*>(
        thread_scratch<turned_result>(within.size() * step * static_cast<index_t>(sizeof(T))));
    const auto b = from(p.b, 0, columns.begin + within.begin);
    product<T> q{within.size(),
                 p.m,
                 p.k,
                 {b.data, b.col_stride, 1},
                 {p.a.data, p.a.col_stride, p.a.row_stride},
                 c,
                 step};
    q.cut();
    multiply_part(q, {0, q.m}, {0, q.n});
    T* const to = p.c + columns.begin + within.begin;
    index_t j = 0;
    for (; j + width <= q.m; j += width)
      pack_columns<T>(to + j, p.ldc, {c + j * step, 1, step}, p.m, width);
    for (; j < q.m; ++j)
      for (index_t r = 0; r < p.m; ++r) to[r * p.ldc + j] = c[j * step + r];
  }
}

/// Packs a, all threads together, if it is strided, small and used often enough.
template <class T>
const T* pack_slivers(const product<T>& p) {
  constexpr index_t unit = tile<T>::rows, group = 4 * unit;
  constexpr index_t most = 1 << 19;
  if (!p.strided() || p.n < tile<T>::columns || p.m * p.k > most) return nullptr;
  T* to = left_scratch().get<T>(round_up(p.m, unit) * p.k);
  const index_t groups = (p.m + group - 1) / group, blocks = (p.k + 127) / 128;
  const auto pack = [&](index_t i) {
    const index_t row = i / blocks * group, k = i % blocks * 128;
    pack_left_group(to + row * p.k + k * unit, p.k * unit, from(p.a, row, k),
                    std::min(group, p.m - row), std::min<index_t>(128, p.k - k));
  };
  if (p.m * p.k >= 1 << 13) parallel_for(groups * blocks, pack);
  else
    for (index_t i = 0; i < groups * blocks; ++i) pack(i);
  return to;
}

/// A thread claims a chunk a few times: then one that is held up is made up for by the others.
constexpr index_t most_turns = 4;

/// At most `wanted` chunks, so that every thread has as many as the others.
inline index_t whole_turns(index_t wanted, index_t threads) {
  if (wanted < threads) return std::max<index_t>(wanted, 1);
  return std::min(wanted / threads, most_turns) * threads;
}

/// Chooses how many threads share the work, and how. The choice does not change a bit of c.
template <class T>
void multiply(product<T> p) {
  if constexpr (is_vector<T>)
    if (p.m <= few<T>::rows) return multiply_few(p);
  constexpr index_t wide = tile<T>::columns, width = tile<T>::width, unit = tile<T>::rows;
  constexpr index_t worth_sharing = 1 << 19, chunk_work = 1 << 18, most_packed = 1 << 21;
  const index_t work = p.m * p.n * p.k, threads = num_threads();
  if constexpr (is_vector<T>)
    if (better_transposed(p)) {
      const index_t wanted = std::min(work / chunk_work, p.n / (8 * unit));
      const index_t parts = work < worth_sharing || threads == 1 ? 1 : whole_turns(wanted, threads);
      return parallel_for(parts,
                          [&](index_t i) { multiply_transposed(p, part(p.n, unit, parts, i)); });
    }
  p.cut();
  p.slivers = pack_slivers(p);
  if (work < worth_sharing || threads == 1) return multiply_part(p, {0, p.m}, {0, p.n});
  const index_t chunks = std::clamp<index_t>(work / chunk_work, 1, 16 * threads);
  const index_t vectors = (p.n + width - 1) / width;
  if (p.m * p.k <= most_packed && (p.slivers != nullptr || !p.strided())) {
    // Each chunk packs its own columns, and the threads do not wait for each other.
    const index_t slivers = (p.m + unit - 1) / unit;
    const index_t across = whole_turns(std::min(vectors / 4, chunks), threads);
    const index_t down = whole_turns(
        std::min({chunks / across, std::max(slivers / 16, std::min(slivers / 8, threads)),
                  most_turns * threads / across}),
        std::max<index_t>(threads / across, 1));
    return parallel_for(across * down, [&](index_t i) {
      multiply_part(p, part(p.m, unit, down, i / across), part(p.n, width, across, i % across));
    });
  }
  const index_t columns = std::min(p.n, std::max(most_packed / p.depth / wide, index_t{1}) * wide);
  const index_t blocks = std::max<index_t>(most_packed / (round_up(columns, wide) * p.depth), 1);
  for (index_t j = 0; j < p.n; j += columns)
    for (index_t block = 0; block < p.depths; block += blocks)
      multiply_shared(p, {j, std::min(p.n, j + columns)},
                      {block, std::min(p.depths, block + blocks)}, chunks);
}

}  // namespace detail
}  // namespace xla::kernel
