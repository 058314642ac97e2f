// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of a block of scores. Each precision is a type with these members:
//   number, tile      what scores are, and what multiplies
//   room(back), take(memory)
//                     elements of a thread's memory, and where they are; `back` with what gradients
//                     need
//   weights(x)        lanes of weights, or of the scores' gradients, as they are kept
//   read(block)       the block's queries from here on
//   scores(to, j, keys)
//                     of keys from j on, not scaled yet: (keys, lanes)
//   add_values(to, weights, j, keys, begins)
//                     to(out width, lanes) = values · weights, or added to it
// and for gradients
//   gradient(x)       lanes of the result's gradient, as they are multiplied
//   read_back(block, gradient)
//                     the block's queries and rows of the result's gradient
//   weights_back(to, j, keys)
//                     gradients of weights: (keys, lanes)
//   transpose(weights, scores, keys)
//                     weights and the scores' gradients, from here on
//   add_to_values(to, first, rows, begins), add_to_keys(…)
//                     some of the keys' rows = weights · gradient, scores' gradients · queries
//   add_to_queries(to, j, keys, begins)
//                     to(width, lanes) = keys · scores' gradients

#include <algorithm>

#include "xla/kernel/attention/block.hpp"
#include "xla/kernel/gemm/micro_kernel.hpp"
#include "xla/kernel/gemm/rounded.hpp"

namespace xla::kernel::detail {

/// The number of keys whose scores are computed at a time, at most.
constexpr index_t max_keys_at_once = 128;

/// c(rows, columns) = a(rows, depth) · b(depth, columns), or added to it: b is contiguous, in rows
/// of whole vectors `step` apart.
template <class Tile, class MicroPanel>
void multiply_panels(const strided_rows<typename Tile::sum>& c, const MicroPanel& a, index_t rows,
                     const typename Tile::element* b, index_t step, index_t depth, index_t columns,
                     bool begins) {
  // As wide as a tile, or nearly equal.
  const index_t vectors = std::max<index_t>((columns + Tile::width - 1) / Tile::width, 1);
  const index_t panels = (vectors + Tile::vectors - 1) / Tile::vectors;
  const index_t wide = (vectors + panels - 1) / panels * Tile::width;
  using call = micro_call<typename Tile::element, MicroPanel, strided_rows<typename Tile::sum>>;
  for (index_t i = 0; i < columns; i += wide)
    Tile::multiply(
        call{
            .depth = depth, .a = a, .b = b + i, .b_step = step, .c = c.from(0, i), .first = begins},
        rows, std::min(wide, columns - i));
}

/// The number of queries in a block: at most a tile's number of vectors.
template <class Tile>
index_t queries_at_once(index_t queries) {
  const index_t vectors = std::max<index_t>((queries + Tile::width - 1) / Tile::width, 1);
  const index_t blocks = (vectors + Tile::vectors - 1) / Tile::vectors;
  return (vectors + blocks - 1) / blocks * Tile::width;
}

/// Products of operands in place. With `Rounds` keys and values are rounded to bfloat16 by the
/// caller, other operands when they are packed.
template <class T, bool Rounds = false>
class tile_products {
 public:
  using number = T;
  using tile = detail::tile<T>;

  explicit tile_products(const attention_call<T>& c)
      : lanes(queries_at_once<tile>(c.queries)),
        of_(&c),
        wide_(round_up(c.width, width)),
        out_wide_(round_up(c.out_width, width)) {}

  const index_t lanes;

  index_t room(bool back) const {
    return (of_->width + (back ? of_->out_width + wide_ + out_wide_ : 0)) * lanes;
  }
  void take(T* memory) {
    queries_ = memory;
    gradient_ = queries_ + of_->width * lanes;
    query_rows_ = gradient_ + of_->out_width * lanes;
    gradient_rows_ = query_rows_ + wide_ * lanes;
  }

  static vec<T> weights(vec<T> x) {
    if constexpr (Rounds) return {round_operand(x.v)};
    else return x;
  }
  static vec<T> gradient(vec<T> x) { return weights(x); }
  void read(const score_block<T>& b) {
    block_ = &b;
    pack(queries_, of_->q.at(b.batch, b.head, b.first), of_->q.row, of_->width);
  }
  void scores(T* to, index_t j, index_t keys) const {
    multiply(to, key(j), of_->k.row, 1, keys, queries_, of_->width, true);
  }
  void add_values(T* to, const T* weights, index_t j, index_t keys, bool begins) const {
    multiply(to, value(j), 1, of_->v.row, of_->out_width, weights, keys, begins);
  }

  void read_back(const score_block<T>& b, const head_rows<const T>& gradient) {
    read(b);
    const T *const queries = of_->q.at(b.batch, b.head, b.first), *const rows = gradient.at(
                                                                      b.batch, b.head, b.first);
    pack(gradient_, rows, gradient.row, of_->out_width);
    by_query_ = whole_vectors(queries, of_->q.row, of_->width, query_rows_, wide_);
    by_gradient_ = whole_vectors(rows, gradient.row, of_->out_width, gradient_rows_, out_wide_);
  }
  void weights_back(T* to, index_t j, index_t keys) const {
    multiply(to, value(j), of_->v.row, 1, keys, gradient_, of_->out_width, true);
  }
  void transpose(const T* weights, const T* scores, index_t) {
    weights_ = weights;
    back_ = scores;
  }
  void add_to_values(const strided_rows<T>& to, index_t first, index_t rows, bool begins) const {
    add(to, weights_ + first * lanes, rows, by_gradient_, of_->out_width, begins);
  }
  void add_to_keys(const strided_rows<T>& to, index_t first, index_t rows, bool begins) const {
    add(to, back_ + first * lanes, rows, by_query_, of_->width, begins);
  }
  void add_to_queries(T* to, index_t j, index_t keys, bool begins) const {
    multiply(to, key(j), 1, of_->k.row, of_->width, back_, keys, begins);
  }

 private:
  static constexpr index_t width = kernel::lanes<T>;
  struct rows_at {
    const T* data;
    index_t step;
  };

  const T* key(index_t j) const { return of_->k.at(block_->batch, block_->kv_head(), j); }
  const T* value(index_t j) const { return of_->v.at(block_->batch, block_->kv_head(), j); }

  // to(rows, lanes) = a(rows, depth) · b(depth, lanes), or added to it.
  void multiply(T* to, const T* a, index_t row, index_t step, index_t rows, const T* b,
                index_t depth, bool begins) const {
    multiply_panels<tile>(strided_rows<T>{to, lanes}, micro_panel<T>{a, row, step}, rows, b, lanes,
                          depth, lanes, begins);
  }
  // to(keys, columns) += a(keys, queries) · rows(queries, columns)
  void add(const strided_rows<T>& to, const T* a, index_t keys, const rows_at& rows,
           index_t columns, bool begins) const {
    multiply_panels<tile>(to, micro_panel<T>{a, lanes, 1}, keys, rows.data, rows.step,
                          block_->count, columns, begins);
  }
  // These rows, transposed: (depth, lanes), zeros where there is no query.
  void pack(T* to, const T* rows, index_t row, index_t depth) const {
    for (index_t i = 0; i < lanes; i += width)
      pack_columns<T>(to + i, lanes, rows + i * row, row, depth,
                      std::clamp<index_t>(block_->count - i, 0, width));
    if constexpr (Rounds) round_operand(to, depth * lanes, to);
  }
  // Rows of whole vectors: in place, or copied.
  rows_at whole_vectors(const T* from, index_t row, index_t columns, T* copy, index_t step) const {
    if (!Rounds && columns % width == 0) return {from, row};
    for (index_t i = 0; i < block_->count; ++i)
      std::fill(std::copy_n(from + i * row, columns, copy + i * step), copy + (i + 1) * step, T{0});
    if constexpr (Rounds) round_operand(copy, block_->count * step, copy);
    return {copy, step};
  }

  const attention_call<T>* of_;
  const score_block<T>* block_ = nullptr;
  index_t wide_, out_wide_;
  T *queries_ = nullptr, *gradient_ = nullptr;          // transposed
  T *query_rows_ = nullptr, *gradient_rows_ = nullptr;  // copies
  rows_at by_query_{}, by_gradient_{};
  const T *weights_ = nullptr, *back_ = nullptr;  // (keys, lanes)
};

}  // namespace xla::kernel::detail
