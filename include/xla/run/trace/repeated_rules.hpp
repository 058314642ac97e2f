// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the rule of an optimizer, or of clipping, once for the same parameter of all blocks after
// scan_layers(). transform/repeats.hpp expands it.

#include <cstddef>
#include <type_traits>

#include "xla/base/owned_array.hpp"
#include "xla/module.hpp"
#include "xla/op/arithmetic.hpp"

namespace xla {

/// The parameters of a model's equal blocks, after an xla::scan_layers() over them: a captured step
/// records the rule of an optimizer, or of clipping, once for all of them. Such parameters are
/// recognised by their gradients, which are rows of the loop's results.
class repeated_rules {
 public:
  constexpr repeated_rules() = default;
  repeated_rules(const repeated_rules&) = delete;

  /// results: the largest number of a rule's results; group_of(i): the group of a parameter, as
  /// parameters of different groups have different rules.
  template <class Module, class Group>
  [[gnu::cold]] constexpr void find(const Module& module, int results, const Group& group_of) {
    constexpr int count = count_parameters<Module>();
    auto* const all = all_.renew(static_cast<std::size_t>(count) + 1);
    int i = 0;
    for_each_parameter(module, [&](auto& p) {
      graph_ = p.owner();
      if (graph_ && graph_->loop_count != 0) {
        all[i].slot = p.slot_index();
        all[i].group = group_of(i);
      }
      ++i;
    });
    if (!graph_ || graph_->loop_count == 0 || graph_->loop != 0) {
      graph_ = nullptr;
      return;
    }
    results_ = results;
    made_.renew(static_cast<std::size_t>(count * results));
    graph_->rules_of_loops->find_repeats(*graph_, all, count);
  }

  /// Whether the rule of a parameter, by its number, is shared; whether it is the first of those
  /// that share it.
  constexpr bool holds(int i) const { return graph_ && all_.get()[i].first >= 0; }
  constexpr bool begins(int i) const { return all_.get()[i].first == i; }

  /// The value in the rule that stands for slot_of(k), for all parameters k that share it.
  template <class F>
  [[gnu::cold]] constexpr int input(int i, const F& slot_of, bool gradient = false) const {
    const auto* const all = all_.get();
    const detail::owned_array<int> slots(static_cast<std::size_t>(all[i].rows));
    for (int k = i, n = 0; n < all[i].rows; k = all[k].next) slots.get()[n++] = slot_of(k);
    return graph_->rules_of_loops->repeat_input(*graph_, all[i].rows, all[i].stride, slots.get(),
                                                gradient);
  }
  constexpr int slot_of(int i) const { return all_.get()[i].slot; }
  /// Sets the k-th result of the rule, on behalf of the first parameter.
  constexpr int& made(int i, int k) const {
    return made_.get()[all_.get()[i].first * results_ + k];
  }
  /// Writes this parameter's row of each result k to slot_of(k).
  template <class F>
  [[gnu::cold]] constexpr void write(int i, const F& slot_of) const {
    const auto& at = all_.get()[i];
    const int* const made = made_.get() + at.first * results_;
    for (int k = 0; k < results_; ++k)
      graph_->rules_of_loops->write_row(*graph_, slot_of(k), made[k], at.row);
  }

  /// The value in the rule that stands for the gradients of all of them.
  template <class P>
  [[gnu::cold]] constexpr auto gradient(int i, const P&) const {
    auto& first = all_.get()[i];
    if (first.gradient < 0) {
      const int rows = input(
          i, [&](int k) { return slot_of(k); }, true);
      first.gradient =
          graph_->add(graph_->detached(rows, {.slot = first.slot, .gradient = true}, false));
    }
    Tensor<typename P::value_type, P::rank> all;
    all.name_node(graph_, first.gradient);
    return all;
  }
  /// f(gradient) for a parameter.
  template <class P, class F>
  [[gnu::cold]] constexpr auto apply(int i, const P& p, const F& f) const {
    if (begins(i)) made(i, 0) = f(this->gradient(i, p)).node_index();
    std::remove_cvref_t<decltype(f(this->gradient(i, p)))> result;
    result.name_node(graph_,
                     graph_->rules_of_loops->repeat_result(*graph_, made(i, 0), all_.get()[i].row));
    return result;
  }
  /// Adds f(gradient), a number, to a total for all parameters of blocks that follow one another;
  /// false if parameter i is not one of these.
  template <class P, class F, class Number>
  [[gnu::cold]] constexpr bool add_up(int i, const P& p, const F& f, Number& total) const {
    using T = typename Number::value_type;
    const int first = all_.get()[i].block;
    if (first < 0) return false;
    if (begins(i)) made(i, 0) = f(this->gradient(i, p)).node_index();
    const int count = all_.get()[first].in_row;
    if (i != first + count - 1) return true;
    const int number = total.defined() ? total.lift(graph_) : -1;
    Number sum;
    sum.name_node(
        graph_, graph_->rules_of_loops->repeat_sum(*graph_, detail::info_of<op::add, T, T>, number,
                                                   &made(first, 0), count));
    total = sum;
    return true;
  }
  /// Replaces a parameter's gradient by f(gradient).
  template <class P, class F>
  [[gnu::cold]] constexpr void replace_gradient(int i, const P& p, const F& f) const {
    if (begins(i))
      made(i, 0) = graph_->add(
          graph_->detached(f(this->gradient(i, p)).node_index(),
                           {.slot = slot_of(i), .gradient = true, .replaces = true}, false));
    const auto& at = all_.get()[i];
    detail::slot& s = graph_->slots[at.slot];
    s.grad = -1;
    s.repeated_grad = made_.get()[at.first * results_];
    s.row = at.row;
  }

 private:
  detail::graph* graph_ = nullptr;
  int results_ = 0;
  detail::owned_array<detail::repeated_parameter> all_;
  detail::owned_array<int> made_;  // of each first parameter
};

/// Makes a copy of a parameter, or of its optimizer state, stand for a node.
template <class S>
constexpr void stand_for(const S& copy, int node) {
  detail::slot& s = copy.owner()->slots[copy.slot_index()];
  s.functional = true;
  s.current = node;
}

}  // namespace xla
