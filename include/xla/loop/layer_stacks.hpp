// SPDX-License-Identifier: Apache-2.0
#pragma once

// The leaves that differ from block to block of scan_layers(), stacked along a new first axis in
// the graph, and a block whose parameters are slices of the stacks. scan_layers.hpp records the
// loop. Plans do not make these stacks: transform/loop_tables.hpp.

#include <cstddef>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/loop/layer_blocks.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"
#include "xla/tensor/scalar.hpp"

namespace xla::detail {

/// One leaf of one block.
struct block_leaf {
  const handle* tensor = nullptr;
  const Scalar* number = nullptr;
};

/// The same leaf of n blocks, each `step` after the one before, along the first axis. In a graph,
/// same_blocks has compared their sizes.
template <class T, int R>
constexpr Tensor<T, R> join_leaves(const block_leaf* leaf, int n, int step, const shape& one) {
  const owned_array<const handle*> in(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) in.get()[i] = leaf[i * step].tensor;
  return concat_equal<T, R>(in.get(), n, one);
}

/// The same along a new first axis.
template <class T, int R>
constexpr auto stack_leaves(const block_leaf* leaf, int n, int step) {
  constexpr int rank = R > 0 ? R : R == 0 ? 1 : R, made = R < 0 ? R : R + 1;
  const shape one = leaf->tensor->dims();
  shape row, all;
  all.push(n);
  for (int i = 0; i < one.rank; ++i) all.push(one[i]);
  if constexpr (R > 0)
    if (__builtin_is_constant_evaluated() && n > few_inputs && leaf->tensor->owner() &&
        is_known(one[0]))
      return Tensor<T, made>(
          with_shape<op::reshape, made>(join_leaves<T, R>(leaf, n, step, one), all));
  const owned_array<Tensor<T, rank>> parts(static_cast<std::size_t>(n));
  row.push(1);
  for (int i = 0; i < one.rank; ++i) row.push(one[i]);
  for (int i = 0; i < n; ++i) {
    const auto& t = static_cast<const Tensor<T, R>&>(*leaf[i * step].tensor);
    handle& part = parts.get()[i];  // clang has no operator= of Tensor<double, 1> here
    if constexpr (R > 0) part = t;
    else part = with_shape<op::reshape, rank>(t, row);
  }
  const Tensor<T, rank> joined = concat_all(parts.get(), n, 0, unknown_caller);
  return Tensor<T, made>(with_shape<op::reshape, made>(joined, all));
}

/// The same hyper-parameter of n blocks; g: the graph that is captured, or none. Returns nothing if
/// all are one known number.
template <class In = void>
constexpr void stack_numbers(graph* g, const block_leaf* leaf, int n, int step, handle& to) {
  using number_type = dependent<In, double>;
  bool same = leaf->number->known();
  for (int i = 1; i < n; ++i) {
    const Scalar& s = *leaf[i * step].number;
    same = same && s.known() && s.value() == leaf->number->value();
  }
  if (same) return;
  const owned_array<Tensor<number_type, 0>> numbers(static_cast<std::size_t>(n));
  const owned_array<block_leaf> all(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    handle& number = numbers.get()[i];
    const Tensor<number_type, 0> value = leaf[i * step].number->as<number_type>();
    if (__builtin_is_constant_evaluated()) number.name_node(g, value.lift(g));
    else number = value;
    all.get()[i].tensor = &number;
  }
  const Tensor<number_type, 1> stack = stack_leaves<number_type, 0>(all.get(), n, 1);
  to = stack;
}

/// A copy of a block with other parameters: those of one step of the loop.
template <class E>
class block_copy {
 public:
  static constexpr int leaves = count_stacked<E>();

  constexpr explicit block_copy(const E& first) : block_(first), numbers_(leaves + 1) {}
  block_copy(const block_copy&) = delete;

  constexpr const E& get() const { return block_; }

  /// slices: for each leaf the step's slice, if it has one. Gradients pass through parameters to
  /// it.
  constexpr void begin(const handle* slices) {
    visit_tree(block_,
               [&, k = 0](auto& leaf, const tree_path&) mutable {
                 if constexpr (is_stacked<std::remove_cvref_t<decltype(leaf)>>) {
                   if (const handle& slice = slices[k]; slice.defined()) take(leaf, slice, k);
                   ++k;
                 }
               },
               {});
  }
  /// At run time: releases them.
  void end() {
    visit_tree(block_, [&](auto& leaf, const tree_path&) { release(leaf); }, {});
    for (int k = 0; k < leaves; ++k) static_cast<handle&>(numbers_.get()[k]) = handle();
  }
  /// In a graph: calls refuse(path) for parameters that the block has written, and write(k, node)
  /// for other written leaves, where k is the leaf's number.
  template <class Write, class Refuse>
  constexpr void each_written(const handle* slices, const Write& write,
                              const Refuse& refuse) const {
    visit_tree(block_,
               [&, k = 0](const auto& leaf, const tree_path& path) mutable {
                 using L = std::remove_cvref_t<decltype(leaf)>;
                 if constexpr (is_state<L>) {
                   const bool is = slices[k].defined() && is_written(leaf, slices[k]);
                   if (is && L::trainable) refuse(path);
                   else if (is) write(k, leaf.node_index());
                 }
                 if constexpr (is_stacked<L>) ++k;
               },
               {});
  }

 private:
  template <class L>
  constexpr void take(L& leaf, const handle& slice, int k) {
    if constexpr (std::is_same_v<L, Scalar>) {
      static_cast<handle&>(numbers_.get()[k]) = slice;
      leaf = Scalar::held_by(numbers_.get()[k]);
    } else if constexpr (!is_state<L>) {
      static_cast<handle&>(leaf) = slice;
    } else if (__builtin_is_constant_evaluated()) {
      slot& s = leaf.owner()->slots[leaf.slot_index()];
      s.functional = L::trainable;
      s.current = slice.node_index();
    } else {
      leaf.get_cell()->functional = true;
      leaf.get_cell()->current = ref<impl>::share(slice.value());
    }
  }
  template <class L>
  static void release(L& leaf) {
    if constexpr (is_state<L>) {
      if (leaf.get_cell()) leaf.get_cell()->current.reset();
    } else if constexpr (is_tensor<L>) {
      static_cast<handle&>(leaf) = handle();
    }
  }
  static constexpr bool is_written(const handle& leaf, const handle& slice) {
    return leaf.node_index() != slice.node_index();
  }

  E block_;
  owned_array<Tensor<double, 0>> numbers_;
};

/// The addresses of an argument of scan_layers() of which each of N blocks has its own.
template <class E, std::size_t N>
class own_arguments {
 public:
  static constexpr int leaves = count_stacked<E>();
  using copy = block_copy<E>;

  template <class Row>
  constexpr explicit own_arguments(const Row& row) {
    blocks_in<Row>::find(row, of_);
  }
  constexpr const E& at(std::size_t i) const { return *of_[i]; }
  constexpr const E& first() const { return *of_[0]; }

  constexpr void check(const same_blocks& same) const {
    for (std::size_t i = 1; i < N; ++i) same.check(*of_[0], *of_[i], i);
  }
  /// For each leaf, the stack of all blocks' values; none if all are the same number, or the leaf
  /// is absent.
  constexpr void stack(graph* g, handle* to) const {
    const owned_array<block_leaf> all(N * leaves + 1);
    for (std::size_t i = 0; i < N; ++i) {
      block_leaf* next = all.get() + i * leaves;
      visit_tree(*of_[i], [&](auto& leaf, const tree_path&) { put(leaf, next); }, {});
    }
    visit_tree(*of_[0],
               [&, k = 0](auto& leaf, const tree_path&) mutable {
                 using L = std::remove_cvref_t<decltype(leaf)>;
                 if constexpr (std::is_same_v<L, Scalar>) {
                   stack_numbers(g, all.get() + k, static_cast<int>(N), leaves, to[k]);
                 } else if constexpr (is_stacked<L>) {
                   using T = typename L::value_type;
                   const auto* const from = all.get() + k;
                   if (has_value(leaf))
                     to[k] = stack_leaves<T, L::rank>(from, static_cast<int>(N), leaves);
                 }
                 if constexpr (is_stacked<L>) ++k;
               },
               {});
  }
  /// Writes the steps' results into the buffers of all blocks; steps: per leaf its node, or a
  /// negative number.
  constexpr void write(graph& g, const int* steps) const {
    bool any = false;
    for (int k = 0; k < leaves; ++k) any |= steps[k] >= 0;
    for (std::size_t i = 0; any && i < N; ++i)
      visit_tree(*of_[i],
                 [&, k = 0](const auto& leaf, const tree_path&) mutable {
                   using L = std::remove_cvref_t<decltype(leaf)>;
                   if constexpr (is_state<L>)
                     if (steps[k] >= 0) write_row(g, leaf, steps[k], i);
                   if constexpr (is_stacked<L>) ++k;
                 },
                 {});
  }

 private:
  template <class L>
  static constexpr void put(L& leaf, block_leaf*& next) {
    if constexpr (std::is_same_v<std::remove_cvref_t<L>, Scalar>) (next++)->number = &leaf;
    else if constexpr (is_stacked<std::remove_cvref_t<L>>) (next++)->tensor = &leaf;
  }
  template <class L>
  static constexpr void write_row(graph& g, const L& leaf, int steps, std::size_t i) {
    using T = typename L::value_type;
    constexpr int rank = L::rank < 0 ? L::rank : L::rank + 1;
    const auto all = named<T, rank>(&g, steps);
    const auto row = static_cast<std::int64_t>(i);
    const Tensor<T, rank> one = slice(all, 0, row, row + 1);
    leaf.copy_(with_shape<op::reshape, L::rank>(one, leaf.dims()));
  }

  const E* of_[N > 0 ? N : 1] = {};
};

/// An argument that is the same for all blocks.
template <class X>
class shared_argument {
 public:
  static constexpr int leaves = 0;
  class copy {
   public:
    constexpr explicit copy(const X& all) : all_(all) {}
    constexpr const X& get() const { return all_; }
    constexpr void begin(const handle*) {}
    void end() {}
    constexpr void each_written(const handle*, const auto&, const auto&) const {}

   private:
    const X& all_;
  };

  constexpr explicit shared_argument(const X& all) : all_(&all) {}
  constexpr const X& at(std::size_t) const { return *all_; }
  constexpr const X& first() const { return *all_; }
  constexpr void check(const same_blocks&) const {}
  constexpr void stack(graph*, handle*) const {}
  constexpr void write(graph&, const int*) const {}

 private:
  const X* all_;
};

}  // namespace xla::detail
