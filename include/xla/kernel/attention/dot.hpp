// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of a block of scores by `dot`, whose operands are pairs along the summed axis.
// Keys and values are rounded once for all queries, queries once for all keys of a block.
// rounded.hpp uses it where bfloat16_products() says `dot`.

#include "xla/kernel/attention/products.hpp"
#include "xla/kernel/gemm/dot.hpp"
#if XLA_HAS_DOT

#include <algorithm>

#include "xla/kernel/gemm/dot_small_m.hpp"
#include "xla/kernel/threads/parallel.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel::detail {

/// Scores (rows, lanes), in whole vectors, as pairs of neighbouring lanes. Writes up to 8 pairs
/// more.
XLA_DOT_INLINE void round_scores(const float* from, index_t count, bfloat16_pair* to) {
  for (index_t i = 0; i < count; i += 32)
    bf16::store(to + i / 2, bf16::load_pairs(from + i, count - i));
}
/// The same as pairs of neighbouring rows, (pairs, lanes), with zeros in place of a missing row.
XLA_DOT_INLINE void pair_scores(const float* from, index_t lanes, index_t rows, bfloat16_pair* to) {
  for (index_t r = 0; r < rows; r += 2, from += 2 * lanes, to += lanes)
    for (index_t i = 0; i < lanes; i += 16)
      bf16::store(to + i, bf16::zip_pairs(from + i, from + lanes + i, 16, r + 1 < rows));
}

/// The rounded keys or values of all heads: as rows of pairs, and as pairs of neighbouring rows.
template <class T>
class dot_heads {
 public:
  /// Packs rows along their width, pairs of rows, or both.
  void pack(const attention_call<T>& c, const head_rows<const T>& x, index_t columns, bool rows,
            bool pairs) {
    constexpr index_t some = 512;      // an even number
    keys_ = c.seen_before(c.queries);  // an odd last row has no neighbour
    const index_t heads = c.batch * c.kv_heads, chunks = (keys_ + some - 1) / some;
    row_step_ = rows ? round_up(columns, 32) / 2 : 0;
    pair_step_ = pairs ? round_up(columns, 16) : 0;
    const index_t all = heads * keys_ * row_step_;
    rows_ = static_cast<bfloat16_pair*>(
        memory_.take(static_cast<std::size_t>(all + heads * pairs_of(keys_) * pair_step_) *
                     sizeof(bfloat16_pair)));
    pairs_ = rows_ + all;
    parallel_for(heads * chunks, [&](index_t n) {
      const index_t head = n / chunks, j = n % chunks * some, count = std::min(some, keys_ - j);
      const T* const from = x.at(head / c.kv_heads, head % c.kv_heads, j);
      if (rows)
        pack_pair_rows(matrix_view<T>{from, x.row, 1}, count, columns, row_step_,
                       rows_ + (head * keys_ + j) * row_step_);
      if (pairs)
        pack_near_lines(from, x.row, columns, count,
                        {pairs_ + (head * pairs_of(keys_) + j / 2) * pair_step_, 8, pair_step_,
                         pair_step_ / 8});
    });
  }
  /// Rows from j on, whose elements are paired along the row.
  strided_pairs rows(index_t head, index_t j) const {
    return {rows_ + (head * keys_ + j) * row_step_, row_step_, 1};
  }
  /// Columns of pairs of rows from j on, where j is even.
  strided_pairs columns(index_t head, index_t j) const {
    return {pairs_ + (head * pairs_of(keys_) + j / 2) * pair_step_, 1, pair_step_};
  }

 private:
  ::xla::detail::working_memory memory_;
  bfloat16_pair *rows_ = nullptr, *pairs_ = nullptr;
  index_t keys_ = 0, row_step_ = 0, pair_step_ = 0;
};

/// Products of pairs. See products.hpp.
template <class T>
class dot_products {
 public:
  using number = T;
  using tile = bfloat16_tile;

  dot_products(const attention_call<T>& c, const dot_heads<T>& keys, const dot_heads<T>& values)
      : lanes(queries_at_once<tile>(c.queries)), of_(&c), keys_(&keys), values_(&values) {}

  const index_t lanes;

  index_t room(bool back) const {
    const index_t forward = pairs_of(of_->width) * lanes + max_keys_at_once / 2 * lanes;
    if (!back) return forward;
    return forward + pairs_of(of_->out_width) * lanes +
           lanes / 2 * (round_up(of_->width, 16) + round_up(of_->out_width, 16)) +
           max_keys_at_once * lanes + 32;
  }
  void take(T* memory) {
    const auto next = [&](index_t count) {
      auto* const from = reinterpret_cast<bfloat16_pair*>(memory);
      memory += count;
      return from;
    };
    queries_ = next(pairs_of(of_->width) * lanes);
    transposed_ = next(max_keys_at_once / 2 * lanes);
    gradient_ = next(pairs_of(of_->out_width) * lanes);
    query_rows_ = next(lanes / 2 * round_up(of_->width, 16));
    gradient_rows_ = next(lanes / 2 * round_up(of_->out_width, 16));
    weights_ = next(max_keys_at_once / 2 * lanes + 16);
    back_ = next(max_keys_at_once / 2 * lanes + 16);
  }

  static vec<T> weights(vec<T> x) { return x; }
  static vec<T> gradient(vec<T> x) { return {round_operand(x.v)}; }

  void read(const score_block<T>& b) {
    block_ = &b;
    head_ = b.batch * of_->kv_heads + b.kv_head();
    pack(of_->q, of_->width, queries_);
  }
  void scores(T* to, index_t j, index_t keys) const {
    multiply(to, keys_->rows(head_, j), keys, queries_, pairs_of(of_->width), true);
  }
  void add_values(T* to, const T* weights, index_t j, index_t keys, bool begins) const {
    pair_scores_of(weights, keys);
    multiply(to, values_->columns(head_, j), of_->out_width, transposed_, pairs_of(keys), begins);
  }

  void read_back(const score_block<T>& b, const head_rows<const T>& gradient) {
    read(b);
    pack(gradient, of_->out_width, gradient_);
    pack_rows(of_->q, of_->width, query_rows_);
    pack_rows(gradient, of_->out_width, gradient_rows_);
  }
  void weights_back(T* to, index_t j, index_t keys) const {
    multiply(to, values_->rows(head_, j), keys, gradient_, pairs_of(of_->out_width), true);
  }
  XLA_DOT_CODE void transpose(const T* weights, const T* scores, index_t keys) {
    round_scores(weights, keys * lanes, weights_);
    round_scores(scores, keys * lanes, back_);
    pair_scores(scores, lanes, keys, transposed_);
  }
  void add_to_values(const strided_rows<T>& to, index_t first, index_t rows, bool begins) const {
    add(to, weights_, first, rows, gradient_rows_, of_->out_width, begins);
  }
  void add_to_keys(const strided_rows<T>& to, index_t first, index_t rows, bool begins) const {
    add(to, back_, first, rows, query_rows_, of_->width, begins);
  }
  void add_to_queries(T* to, index_t j, index_t keys, bool begins) const {
    multiply(to, keys_->columns(head_, j), of_->width, transposed_, pairs_of(keys), begins);
  }

 private:
  XLA_DOT_CODE void pair_scores_of(const T* weights, index_t keys) const {
    pair_scores(weights, lanes, keys, transposed_);
  }
  // to(rows, lanes) = a(rows, pairs) · b(pairs, lanes), or added to it.
  void multiply(T* to, const strided_pairs& a, index_t rows, const bfloat16_pair* b, index_t pairs,
                bool begins) const {
    multiply_panels<tile>(strided_rows<T>{to, lanes}, a, rows, b, lanes, pairs, lanes, begins);
  }
  // to(rows, columns) += scores(rows, queries) · b(queries, columns), from one of the keys on.
  void add(const strided_rows<T>& to, const bfloat16_pair* scores, index_t first, index_t rows,
           const bfloat16_pair* b, index_t columns, bool begins) const {
    const strided_pairs a{scores + first * (lanes / 2), lanes / 2, 1};
    multiply_panels<tile>(to, a, rows, b, round_up(columns, 16), pairs_of(block_->count), columns,
                          begins);
  }
  const T* first_row(const head_rows<const T>& x) const {
    return x.at(block_->batch, block_->head, block_->first);
  }
  // The block's queries as columns: (pairs along the width, lanes), with zeros in place of missing
  // queries.
  void pack(const head_rows<const T>& x, index_t columns, bfloat16_pair* to) const {
    pack_pairs(matrix_view<T>{first_row(x), x.row, 1}, block_->count, columns,
               {to, 8, lanes, lanes / 8});
  }
  // The block's queries as rows: (pairs of neighbouring queries, columns).
  void pack_rows(const head_rows<const T>& x, index_t columns, bfloat16_pair* to) const {
    const index_t wide = round_up(columns, 16);
    pack_near_lines(first_row(x), x.row, columns, block_->count, {to, 8, wide, wide / 8});
  }

  const attention_call<T>* of_;
  const dot_heads<T>*keys_, *values_;
  const score_block<T>* block_ = nullptr;
  index_t head_ = 0;                                                // of keys
  bfloat16_pair *queries_ = nullptr, *gradient_ = nullptr;          // (pairs of columns, lanes)
  bfloat16_pair *query_rows_ = nullptr, *gradient_rows_ = nullptr;  // (pairs of queries, columns)
  bfloat16_pair* transposed_ = nullptr;                             // (pairs of keys, lanes)
  bfloat16_pair *weights_ = nullptr, *back_ = nullptr;              // (keys, pairs of queries)
};

}  // namespace xla::kernel::detail

#endif
