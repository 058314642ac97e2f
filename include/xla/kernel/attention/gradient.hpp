// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gradients of attention, by blocks of keys. They compute the weights again from the scores and
// the two numbers of each query that the forward pass stores. kernel/op/attention.hpp calls
// attend_back().

#include <algorithm>

#include "xla/kernel/attention/attention.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::kernel {

namespace detail {

/// Keys in a block, so that they, their values and their gradients stay in the L2 cache.
inline constexpr index_t keys_together = 512;

/// The gradients of some keys and values, and their contribution to the gradients of queries. The
/// weights are computed again from the scores, their maxima and the logarithms of sums.
template <class Products>
class attention_back {
  using T = typename Products::number;
  using V = vec<T>;
  static constexpr index_t width = lanes<T>;

 public:
  static constexpr index_t keys_at_once = max_keys_at_once / 2;

  attention_back(const attention_gradient_call<T>& c, const Products& products)
      : c_(c), products_(products), lanes_(products.lanes) {}

  /// Elements of scratch memory.
  index_t room() const {
    return (c_.of.width + 2 * keys_at_once + 3) * lanes_ + products_.room(true);
  }
  /// Keys begin … end - 1 of a key head, whose contribution to the queries' gradients goes to q.
  void run(index_t batch, index_t kv_head, index_t begin, index_t end, const head_rows<T>& q,
           T* memory) {
    divide(memory);
    const auto& of = c_.of;
    const index_t first = kv_head * of.group(), last = first + of.group();
    for (index_t h = first; h < last; ++h)
      clear(q, batch, h, 0, begin < end ? first_of(begin) : of.queries, of.width);
    for (index_t j = begin; j < end; j += keys_together) {
      const index_t together = std::min(end, j + keys_together);
      begun_ = j;
      const auto at = [&](index_t h, index_t i) -> score_block<T> {
        return {of, batch, h, i, std::min(lanes_, of.queries - i), lanes_};
      };
      for (index_t h = first; h < last; ++h)
        for (index_t i = first_of(j); i < of.queries; i += lanes_) {
          const bool ends = i + lanes_ >= of.queries;
          const auto next = ends ? at(std::min(h + 1, last - 1), first_of(j)) : at(h, i + lanes_);
          block(at(h, i), j, together, q, j == begin, next);
        }
      clear(c_.k, batch, kv_head, begun_, together, of.width);
      clear(c_.v, batch, kv_head, begun_, together, of.out_width);
    }
  }

 private:
  // The index of the first block of queries that may attend to a key.
  index_t first_of(index_t key) const {
    return c_.of.causal ? std::min(key / lanes_ * lanes_, c_.of.queries) : 0;
  }
  void divide(T* memory) {
    const auto take = [&](index_t rows) {
      T* const from = memory;
      memory += rows * lanes_;
      return from;
    };
    made_ = take(c_.of.width);
    weights_ = take(keys_at_once);
    back_ = take(keys_at_once);
    top_ = take(1);
    log_ = take(1);
    shared_ = take(1);
    products_.take(memory);
  }
  static void clear(const head_rows<T>& x, index_t batch, index_t head, index_t begin, index_t end,
                    index_t width) {
    for (index_t r = begin; x.data && r < end; ++r) std::fill_n(x.at(batch, head, r), width, T{0});
  }

  void block(const score_block<T>& b, index_t begin, index_t end, const head_rows<T>& q,
             bool begins, const score_block<T>& next) {
    const auto& of = c_.of;
    end = std::min(end, b.seen());
    if (begin >= end) {
      if (begins) clear(q, b.batch, b.head, b.first, b.first + b.count, of.width);
      return;
    }
    products_.read_back(b, c_.gradient);
    read(b);
    next.fetch(of.q, of.width);
    next.fetch(c_.gradient, of.out_width);
    next.fetch(c_.out, of.out_width);
    for (index_t j = begin; j < end; j += keys_at_once) {
      const index_t keys = std::min(keys_at_once, end - j);
      products_.scores(weights_, j, keys);
      b.apply_mask(weights_, j, keys);
      products_.weights_back(back_, j, keys);
      for (index_t i = 0; i < lanes_; i += width) weigh(b, i, keys);
      products_.transpose(weights_, back_, keys);
      add(c_.v, b, j, keys, [&](const auto&... x) { products_.add_to_values(x...); });
      add(c_.k, b, j, keys, [&](const auto&... x) { products_.add_to_keys(x...); });
      begun_ = std::max(begun_, j + keys);
      if (q.data) products_.add_to_queries(made_, j, keys, j == begin);
    }
    if (q.data)
      unpack_rows(q.at(b.batch, b.head, b.first), q.row, made_, lanes_, of.width, b.count, begins);
  }

  // Reads the values that depend on the query alone.
  void read(const score_block<T>& b) {
    const auto& of = c_.of;
    const T* const top = c_.logs + 2 * (b.batch * of.heads + b.head) * of.queries + b.first;
    for (index_t i = 0; i < b.count; ++i) {
      top_[i] = top[i];
      log_[i] = top[of.queries + i] * exponents<T>;
      shared_[i] = dot(c_.out.at(b.batch, b.head, b.first + i),
                       c_.gradient.at(b.batch, b.head, b.first + i));
    }
    std::fill(top_ + b.count, top_ + lanes_, T{0});
    std::fill(log_ + b.count, log_ + lanes_, T{0});
    std::fill(shared_ + b.count, shared_ + lanes_, T{0});
  }
  // A row of the result and one of its gradient, as the products use them.
  T dot(const T* a, const T* b) const {
    const index_t n = c_.of.out_width, whole = n / width * width;
    V sum = V::splat(T{0});
    for (index_t d = 0; d < whole; d += width)
      sum = fma(load_lanes(a + d), Products::gradient(load_lanes(b + d)), sum);
    if (whole < n)
      sum = fma(V{load_part<T>(a + whole, n - whole)},
                Products::gradient(V{load_part<T>(b + whole, n - whole)}), sum);
    alignas(64) T all[width];
    store_lanes(all, sum.across([](V x, V y) { return x + y; }));
    return all[0];
  }

  // Replaces scores by weights, and the weights' gradients by those of the unscaled scores.
  void weigh(const score_block<T>& b, index_t i, index_t keys) {
    const V top = load_lanes(top_ + i), log = load_lanes(log_ + i);
    const V shared = load_lanes(shared_ + i);
    const V by = V::splat(b.to_exponents()), scale = V::splat(c_.of.scale()), zero = V::splat(T{0});
    T *score = weights_ + i, *back = back_ + i;
#pragma GCC unroll 4
    for (index_t j = 0; j < keys; ++j, score += lanes_, back += lanes_) {
      const V w = power(((load_lanes(score) - top) * by - log).min(zero));
      store_lanes(score, Products::weights(w));
      store_lanes(back, Products::weights(w * scale * (load_lanes(back) - shared)));
    }
  }
  // Calls add(rows of the gradient from key `first` on, how many, begins) for all keys. `begins`
  // says to store instead of adding, for keys that no earlier query has reached.
  template <class F>
  void add(const head_rows<T>& to, const score_block<T>& b, index_t j, index_t keys, F add) const {
    if (!to.data) return;
    const index_t others = std::clamp<index_t>(begun_ - j, 0, keys);
    for (const bool begins : {false, true}) {
      const index_t from = begins ? others : 0, count = begins ? keys - others : others;
      add(strided_rows<T>{to.at(b.batch, b.kv_head(), j + from), to.row}, from, count, begins);
    }
  }

  const attention_gradient_call<T>& c_;
  Products products_;
  index_t lanes_;
  index_t begun_ = 0;                       // gradients of keys up to this one have been stored
  T* made_ = nullptr;                       // transposed
  T *weights_ = nullptr, *back_ = nullptr;  // (keys, lanes)
  T *top_ = nullptr, *log_ = nullptr, *shared_ = nullptr;  // of each query
};

/// The number of parts into which the keys of a head are divided for threads: enough for large
/// machines, few enough for the memory, as each part has its own gradients of the queries.
template <class T>
index_t key_parts(const attention_call<T>& c) {
  constexpr index_t tasks = 16, most = 8, together = keys_together;
  const index_t heads = std::max<index_t>(c.batch * c.kv_heads, 1);
  return std::clamp<index_t>(tasks / heads, 1,
                             std::clamp<index_t>((c.keys + together - 1) / together, 1, most));
}

/// The gradients by blocks, with these products.
template <class Products, class T>
void attend_back_by(const Products& products, const attention_gradient_call<T>& c) {
  constexpr index_t together = keys_together;
  const auto& of = c.of;
  const index_t parts = key_parts(of);
  const index_t all = of.batch * of.heads * of.queries * of.width;
  ::xla::detail::working_memory memory;
  T* partial = nullptr;
  if (parts > 1 && c.q.data)
    partial = static_cast<T*>(memory.take(static_cast<std::size_t>(parts * all) * sizeof(T)));
  const auto part_output = [&](index_t part) -> head_rows<T> {
    if (!partial) return c.q;
    const index_t head = of.queries * of.width;
    return {partial + part * all, of.heads * head, head, of.width};
  };
  const index_t blocks = (of.keys + together - 1) / together;
  parallel_for(of.batch * of.kv_heads * parts, [&](index_t n) {
    const index_t part = n % parts, kv = n / parts % of.kv_heads, b = n / parts / of.kv_heads;
    attention_back<Products> back(c, products);
    back.run(b, kv, blocks * part / parts * together,
             std::min(of.keys, blocks * (part + 1) / parts * together), part_output(part),
             left_scratch().get<T>(back.room()));
  });
  if (!partial) return;
  parallel_for(of.batch * of.heads, [&](index_t n) {
    for (index_t i = 0; i < of.queries; ++i) {
      T* const to = c.q.at(n / of.heads, n % of.heads, i);
      const T* from = partial + (n * of.queries + i) * of.width;
      for (index_t d = 0; d < of.width; ++d) {
        T sum = from[d];
        for (index_t p = 1; p < parts; ++p) sum += from[p * all + d];
        to[d] = sum;
      }
    }
  });
}

}  // namespace detail

template <class T>
void attend_back(const attention_gradient_call<T>& c) {
  detail::attend_back_by(detail::tile_products<T>(c.of), c);
}

}  // namespace xla::kernel
