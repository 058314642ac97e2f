// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention forward: of a block of queries by blocks of keys, and row by row where a head has few
// queries. It does not compute gradients (gradient.hpp). kernel/op/attention.hpp calls attend().

#include <algorithm>

#include "xla/base/compiler.hpp"
#include "xla/kernel/attention/products.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/product.hpp"
#include "xla/kernel/memory/thread_scratch.hpp"
#include "xla/kernel/threads/parallel.hpp"

namespace xla::kernel {
namespace detail {

/// Attention of one block of queries. It visits the keys block by block, and keeps for each query
/// the largest score so far, the sum of exponentials, and the weighted values (online softmax).
/// Milakov and Gimelshein (2018); Dao et al. (2022).
template <class Products>
class attending {
  using T = typename Products::number;
  using V = vec<T>;
  static constexpr index_t width = lanes<T>;

 public:
  static constexpr index_t keys_at_once = max_keys_at_once;
  /// Scratch memory that it needs, in elements.
  static index_t room(const attention_call<T>& c, const Products& p) {
    return (c.out_width + keys_at_once + 2) * p.lanes + p.room(false);
  }
  attending(const score_block<T>& block, const Products& products, T* memory)
      : b_(block),
        products_(products),
        made_(memory),
        scores_(made_ + block.of.out_width * block.lanes_),
        top_(scores_ + keys_at_once * block.lanes_),
        total_(top_ + block.lanes_) {
    products_.take(total_ + block.lanes_);
  }

  /// logs: receives each query's largest score and logarithm of the sum, or null; next: the
  /// following block, whose queries are prefetched.
  void run(const head_rows<T>& out, T* logs, const score_block<T>* next) {
    const auto& c = b_.of;
    products_.read(b_);
    if (next) next->fetch(c.q, c.width);
    std::fill_n(top_, b_.lanes_, hidden_score<T>);
    std::fill_n(total_, b_.lanes_, T{0});
    const index_t seen = b_.seen();
    if (seen == 0) std::fill_n(made_, c.out_width * b_.lanes_, T{0});
    for (index_t j = 0; j < seen; j += keys_at_once) {
      const index_t keys = std::min(keys_at_once, seen - j);
      products_.scores(scores_, j, keys);
      b_.apply_mask(scores_, j, keys);
      for (index_t i = 0; i < b_.lanes_; i += width) weigh(i, keys, j == 0);
      products_.add_values(made_, scores_, j, keys, j == 0);
    }
    for (index_t i = 0; i < b_.lanes_; i += width) divide(i);
    if (out.data)
      unpack_rows(out.at(b_.batch, b_.head, b_.first), out.row, made_, b_.lanes_, c.out_width,
                  b_.count, true);
    if (!logs) return;
    std::copy_n(top_, b_.count, logs);
    std::copy_n(total_, b_.count, logs + c.queries);
  }

 private:
  // Replaces a vector of queries' scores by their exponentials.
  void weigh(index_t i, index_t keys, bool first) {
    const index_t step = b_.lanes_;
    T* const from = scores_ + i;
    const V zero = V::splat(T{0}), by = V::splat(b_.to_exponents()), before = load_lanes(top_ + i);
    V most[4] = {before, before, before, before};
    each(keys, [&](index_t j, int u)
                   XLA_INLINE_LAMBDA { most[u] = most[u].max(load_lanes(from + j * step)); });
    const V top = most[0].max(most[1]).max(most[2].max(most[3]));
    const V shift = (top == V::splat(hidden_score<T>)).select(zero, top);
    V sum[4] = {zero, zero, zero, zero};
    each(keys, [&](index_t j, int u) XLA_INLINE_LAMBDA {
      const V e = power((load_lanes(from + j * step) - shift) * by);
      store_lanes(from + j * step, Products::weights(e));
      sum[u] = sum[u] + e;
    });
    const V all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    store_lanes(top_ + i, top);
    if (first) return store_lanes(total_ + i, all);
    const V less = power((before - shift) * by);
    store_lanes(total_ + i, fma(load_lanes(total_ + i), less, all));
    if (!any(less != V::splat(T{1}))) return;
    for (T *to = made_ + i, *end = to + b_.of.out_width * step; to != end; to += step)
      store_lanes(to, load_lanes(to) * less);
  }
  // Calls f(j, j % 4) for each j, in groups of four.
  template <class F>
  static XLA_INLINE void each(index_t count, F f) {
    index_t j = 0;
    for (; j + 4 <= count; j += 4)
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) f(j + u, u);
    for (; j < count; ++j) f(j, 0);
  }
  // A query that attends to nothing gets 0.
  void divide(index_t i) {
    const V total = load_lanes(total_ + i), zero = V::splat(T{0}), one = V::splat(T{1});
    const auto none = total == zero;
    const V by = one / none.select(one, total);
    for (index_t d = 0; d < b_.of.out_width; ++d) {
      T* const to = made_ + d * b_.lanes_ + i;
      store_lanes(to, load_lanes(to) * by);
    }
    store_lanes(top_ + i, none.select(zero, load_lanes(top_ + i)));
    store_lanes(total_ + i, none.select(zero, total.log()));
  }

  const score_block<T>& b_;
  Products products_;
  T *made_, *scores_, *top_, *total_;
};

/// Attention of a head with few queries, row by row, because blocks would leave most lanes empty.
/// Multiply is gemm() or gemm_bfloat16().
template <class T, auto Multiply>
class attention_by_rows {
  using V = vec<T>;
  static constexpr index_t width = lanes<T>;

 public:
  attention_by_rows(const attention_call<T>& c, index_t batch, index_t head)
      : c_(c), batch_(batch), head_(head), step_(round_up(c.keys, width)) {}

  void run(const head_rows<T>& out, T* logs) {
    const index_t floats = c_.queries * step_;
    T* const scores = static_cast<T*>(
        thread_scratch<attention_by_rows>(std::max<index_t>(floats, 1) * element_size<T>));
    const index_t kv = head_ / c_.group();
    Multiply(c_.queries, c_.keys, c_.width, {c_.q.at(batch_, head_, 0), c_.q.row, 1},
             {c_.k.at(batch_, kv, 0), 1, c_.k.row}, scores, step_, nullptr);
    for (index_t i = 0; i < c_.queries; ++i)
      weigh(scores + i * step_, i, logs ? logs + i : nullptr);
    if (out.data)
      Multiply(c_.queries, c_.out_width, c_.keys, {scores, step_, 1},
               {c_.v.at(batch_, kv, 0), c_.v.row, 1}, out.at(batch_, head_, 0), out.row, nullptr);
  }

 private:
  // Replaces a row of scores by weights.
  void weigh(T* row, index_t query, T* logs) const {
    const T scale = c_.scale(), hidden = hidden_score<T>;
    const index_t seen = c_.seen_before(query + 1);
    const auto& m = c_.mask;
    const index_t at = batch_ * m.batch + head_ * m.head + query * m.query;
    for (index_t j = 0; m.added && j < c_.keys; ++j)
      row[j] = row[j] * scale + m.added[at + j * m.key];
    for (index_t j = 0; m.shown && j < c_.keys; ++j)
      row[j] = m.shown[at + j * m.key] ? row[j] : hidden;
    std::fill(row + seen, row + step_, hidden);
    V most = V::splat(hidden);
    for (index_t j = 0; j < step_; j += width) most = most.max(load_lanes(row + j));
    most = most.across([](V a, V b) { return a.max(b); });
    const V shift = (most == V::splat(hidden)).select(V::splat(T{0}), most);
    V sum = V::splat(T{0});
    const V later = V::splat(c_.later_scale());
    for (index_t j = 0; j < step_; j += width) {
      const V e = ((load_lanes(row + j) - shift) * later).exp();
      store_lanes(row + j, e);
      sum = sum + e;
    }
    sum = sum.across([](V a, V b) { return a + b; });
    const V zero = V::splat(T{0}), one = V::splat(T{1});
    const auto none = sum == zero;
    const V by = one / none.select(one, sum);
    for (index_t j = 0; j < step_; j += width) store_lanes(row + j, load_lanes(row + j) * by);
    if (!logs) return;
    logs[0] = simd::pfirst(none.select(zero, most).v);
    logs[c_.queries] = simd::pfirst(none.select(zero, sum.log()).v);
  }

  const attention_call<T>& c_;
  index_t batch_, head_, step_;
};

/// Whether a head has too few queries to fill the lanes of a block.
template <class T>
bool attends_by_rows(const attention_call<T>& c) {
  return c.queries <= small_m<T>::rows;
}
template <class T, auto Multiply>
void attend_by_rows(const attention_call<T>& c, const head_rows<T>& out, T* logs) {
  parallel_for(c.batch * c.heads, [&](index_t n) {
    attention_by_rows<T, Multiply>(c, n / c.heads, n % c.heads)
        .run(out, logs ? logs + 2 * n * c.queries : nullptr);
  });
}

/// Attention in blocks, with these products.
template <class Products, class T>
void attend_by(const Products& products, const attention_call<T>& c, const head_rows<T>& out,
               T* logs) {
  const index_t lanes = products.lanes, blocks = (c.queries + lanes - 1) / lanes;
  const index_t all = c.batch * c.heads * blocks;
  const index_t work = lanes * c.keys * (c.width + c.out_width) + 1;
  const index_t some = std::clamp<index_t>((index_t{1} << 18) / work, 1, 64);
  const auto block = [&](index_t n) -> score_block<T> {
    const index_t at = n / blocks,
                  i = (blocks - 1 - n % blocks) * lanes;  // the longest blocks first
    return {c, at / c.heads, at % c.heads, i, std::min(lanes, c.queries - i), lanes};
  };
  parallel_for((all + some - 1) / some, [&](index_t chunk) {
    for (index_t n = chunk * some; n < std::min(all, (chunk + 1) * some); ++n) {
      const score_block<T> now = block(n), next = block(std::min(n + 1, all - 1));
      using one = attending<Products>;
      one(now, products, left_scratch().get<T>(one::room(c, products)))
          .run(out,
               logs ? logs + 2 * (now.batch * c.heads + now.head) * c.queries + now.first : nullptr,
               &next);
    }
  });
}

}  // namespace detail

template <class T>
void attend(const attention_call<T>& c, const head_rows<T>& out, T* logs) {
  if (detail::attends_by_rows(c)) return detail::attend_by_rows<T, &gemm<T>>(c, out, logs);
  detail::attend_by(detail::tile_products<T>(c), c, out, logs);
}

}  // namespace xla::kernel
