// SPDX-License-Identifier: Apache-2.0
#pragma once

// fori_loop(): a loop over a range of integers, like jax.lax.fori_loop. It is scan() without slices
// and per-step results; if the number of steps depends on values, use while_loop.hpp.

#include "xla/loop/scan.hpp"

namespace xla {

/// Options of xla::fori_loop.
struct ForiLoopOptions {
  Size checkpoint_every = 0;  ///< as ScanOptions::checkpoint_every
  int unroll = 1;             ///< as ScanOptions::unroll
};

namespace detail {

/// The body of fori_loop() as a body of scan().
template <class Body>
struct numbered_body {
  const Body& body;
  constexpr auto operator()(const auto& carry, const Tensor<std::int64_t, 0>& i) const {
    auto next = body(i, carry);
    return std::pair(std::move(next), std::tuple<>());
  }
};

template <class Carry, class Body>
constexpr Carry fori_captured(graph& g, const Body& body, const Carry& init, Size from, Size trip,
                              const ForiLoopOptions& options, loop_call of, bool again) {
  const auto number = [&](graph& to, loop_recorder& loop) {
    const auto i = named<std::int64_t, 0>(&to, loop.step());
    return from.known() && from.extent() == 0 ? i : i + from;
  };
  const auto nothing = [](const auto&, graph&, loop_recorder&) { return 0; };
  loop_capture<Carry> loop(g, of, trip.extent(), false, {}, options.checkpoint_every.extent());
  if (again) loop.recorded_before();
  return loop.run(body, init, number, nothing).first;
}

/// Several steps, beginning with number i.
template <class Carry, class Body>
struct numbered_turn {
  const Body& body;
  int each;
  constexpr auto operator()(const Carry& first, const auto& i) const {
    Carry carry = first;
    for (int k = 0; k < each; ++k) carry = body(carry, k == 0 ? i : i + k).first;
    return step_results<Carry, std::tuple<>>(carry, std::tuple<>());
  }
};

template <class Carry, class Body>
constexpr Carry fori_unrolled(graph& g, const Body& body, const Carry& init, Size from, Size trip,
                              const ForiLoopOptions& options, loop_call of) {
  const turns_of_steps in(trip, options.unroll);
  const numbered_turn<Carry, Body> several{body, options.unroll};
  const auto number = [&](graph& to, loop_recorder& loop) {
    const auto i = named<std::int64_t, 0>(&to, loop.step()) * options.unroll;
    return from.known() && from.extent() == 0 ? i : i + from;
  };
  const auto nothing = [](const auto&, graph&, loop_recorder&) { return 0; };
  const Size every = turns_between(options.checkpoint_every, options.unroll);
  const Carry last = loop_capture<Carry>(g, of, in.turns.extent(), false, {}, every.extent())
                         .run(several, init, number, nothing)
                         .first;
  if (in.all) return last;
  return fori_captured(g, body, last, from + in.steps, trip - in.steps, options, of, false);
}

template <class Carry, class Body, class Tape>
constexpr Carry fori_stepwise(const Body& body, const Carry& init, Size from, Size trip,
                              call_site site, Tape tape) {
  const auto number = [&](std::int64_t i) { return tensor<std::int64_t>(i + from); };
  const auto all = run_steps<std::tuple<>, Carry>(body, init, number, trip, false, site, tape);
  return all.first;  // a named object, as g++ 12 would lose constants
}
/// Constants only: the first step shows what surrounds the body. If there is nothing, or nothing is
/// carried, the loop is unrolled.
template <class Carry, class Body>
constexpr Carry fori_of_constants(const Body& body, const Carry& init, Size from, Size trip,
                                  const ForiLoopOptions& options, loop_call of) {
  if (tensors_in<Carry>() == 0 || trip <= 0)
    return fori_stepwise<Carry>(body, init, from, trip, of.site(), no_tape());
  const auto i = tensor<std::int64_t>(from);
  const auto made = body(init, i);
  if (graph* const g = graph_of(made.first))
    return fori_captured<Carry>(*g, body, init, from, trip, options, of, true);
  return fori_stepwise<Carry>(body, made.first, from + 1, trip - 1, of.site(), no_tape());
}
template <class Carry, class Body>
Carry fori_at_run_time(const Body& body, Carry init, Size from, Size trip,
                       const ForiLoopOptions& options, call_site site) {
  const auto number = [&](traced_loop& loop) {
    Tensor<std::int64_t, 0> i;
    loop.number(i);
    return from == 0 ? i : i + from;
  };
  if constexpr (has_traced_mode)
    if (records_loop(trip))
      if (const auto loop = record_body(body, init, std::tuple<>(), trip, false,
                                        options.checkpoint_every, site, number))
        return results_of<Carry, std::tuple<>>(*loop).first;
  step_tape<dependent<Carry, void>> tape(options.checkpoint_every.extent() == 0);
  if (trip > 0) tape.begin(init, std::tuple<>(), trip);
  return fori_stepwise<Carry>(body, init, from, trip, site, std::move(tape));
}

}  // namespace detail

/// body(i, carry) -> carry for each i from the first number up to, but not including, the second.
/// The first step gets init as carry. Returns the last carry, or init if there are no steps. i is a
/// scalar tensor of std::int64_t; carries are like those of scan(), and a compiled function has a
/// loop in the same way.
template <class Body, class Init>
constexpr auto fori_loop(Size from, Size to, const Body& body, const Init& init,
                         ForiLoopOptions options = {}, caller loc = here()) {
  using Carry = typename detail::carried_as<Init>::type;
  constexpr auto function = detail::loop_function::fori_loop;
  const detail::loop_call of{function, loc};
  const detail::call_site site = of.site();
  const detail::numbered_body<Body> numbered{body};
  const detail::typed_body<function, Carry, detail::numbered_body<Body>> steps{numbered};
  const Carry first = init;
  const Size trip = to - from;
  if (__builtin_is_constant_evaluated()) {
    detail::graph* g = detail::graph_of(first);
    if (!g && trip.table()) g = trip.table()->owner;
    if (g) detail::check_options(options, &g->sizes, site);
    if (g && options.unroll > 1)
      return detail::fori_unrolled<Carry>(*g, steps, first, from, trip, options, of);
    if (g) return detail::fori_captured<Carry>(*g, steps, first, from, trip, options, of, false);
    return detail::fori_of_constants<Carry>(steps, first, from, trip, options, of);
  }
  detail::check_options(options, nullptr, site);
  return detail::fori_at_run_time<Carry>(steps, first, from, trip, options, site);
}

}  // namespace xla
