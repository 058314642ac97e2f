// SPDX-License-Identifier: Apache-2.0
#pragma once

// The option .unroll of loops in compiled functions: one iteration of the loop is several steps,
// and remaining steps are a second loop. scan() and fori_loop() use it; eager and traced mode do
// not need it.

#include <utility>

#include "xla/loop/captured.hpp"
#include "xla/loop/stepwise.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/slice.hpp"

namespace xla::detail {

/// The number of full iterations, and whether no step remains.
struct turns_of_steps {
  Size turns, steps;
  bool all;
  constexpr turns_of_steps(Size trip, int each)
      : turns(trip / each), steps(turns * each), all(trip.known() && trip == steps) {}
};

/// checkpoint_every in iterations.
constexpr Size turns_between(const Size& every, int each) { return (every + (each - 1)) / each; }

/// The body for several steps.
template <class Carry, class Body>
struct turn_body {
  const Body& body;
  int each;
  bool reverse;
  call_site site;

  constexpr auto operator()(const Carry& carry, const auto& rows) const {
    const auto row = [&](std::int64_t i) {
      return map_tree(rows, [&](const auto& t) { return select(t, 0, i); });
    };
    using Y = decltype(body(carry, row(0)).second);
    no_tape tape;
    const auto all = run_steps<Y, Carry>(body, carry, row, each, reverse, site, tape);
    const auto at = [&](std::size_t i) -> const auto& { return all.second.get()[i]; };
    return std::pair(all.first, stack_trees<Y>(static_cast<std::size_t>(each), at));
  }
};

/// The given rows of each tensor of xs.
template <class X>
constexpr auto rows_of(const X& xs, Size from, Size to) {
  return map_tree(xs, [&](const auto& t) { return narrow(t, 0, from, to - from); });
}
template <class X>
constexpr auto in_turns(const X& xs, Size turns, int each) {
  return map_tree(xs, [&](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    shape s;
    s.push(turns.extent());
    s.push(each);
    for (int i = 1; i < T::rank; ++i) s.push(t.dims()[i]);
    return with_shape<op::reshape, T::rank + 1>(t, s);
  });
}
/// All y joined: those of full iterations, then those of the remaining steps, by their nodes.
template <class Y>
constexpr auto rows_of_turns(const Y& turns, Size steps, graph& g, const int* others) {
  int k = 0;
  return map_tree(turns, [&](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    using Row = Tensor<typename T::value_type, T::rank - 1>;
    shape s;
    s.push(steps.extent());
    for (int i = 2; i < T::rank; ++i) s.push(t.dims()[i]);
    const Row row = with_shape<op::reshape, T::rank - 1>(t, s);
    if (!others) return row;
    const Row rest = named<typename T::value_type, T::rank - 1>(&g, others[k++]);
    return Row(cat({row, rest}));
  });
}

}  // namespace xla::detail
