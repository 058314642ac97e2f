// SPDX-License-Identifier: Apache-2.0
#pragma once

// scan(): a loop that carries tensors from step to step and stacks a result of each step, like
// jax.lax.scan. All other loops except while_loop() and cond() are built on it.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/captured.hpp"
#include "xla/loop/eager_slices.hpp"
#include "xla/loop/stepwise.hpp"
#include "xla/loop/traced.hpp"
#include "xla/loop/unrolled.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/create.hpp"
#include "xla/op/slice.hpp"

namespace xla {

/// Options of xla::scan.
struct ScanOptions {
  bool reverse = false;  ///< from the last element of xs to the first; y stays in the order of xs
  Size length = -1;      ///< the number of steps, if there are no xs
  /// The values that backward() keeps of the steps, in and outside of a compiled function. 0: all
  /// that it reads. k: only the carry before every k-th step; it runs k steps again at a time, so
  /// that memory grows with length / k + k. The bits are the same, except in gradients of outside
  /// matrices that steps multiply by, because each step adds its own product to those. Random
  /// numbers that the body draws are kept. Eager mode, and gradients of gradients, keep everything
  /// unless xla::checkpoint is around the body.
  Size checkpoint_every = 0;
  /// In a compiled function, the number of copies of the body in each iteration of the loop, as in
  /// jax.lax.scan. Gradients may be summed in another order then.
  int unroll = 1;
};

namespace detail {

/// The result of a step of scan() or fori_loop(): the carry and y. It has a constructor, because
/// g++ 12 loses constants among elements of an initializer list.
template <class Carry, class Y>
struct step_results {
  Carry first;
  Y second;
  constexpr step_results(const auto& made, const Y& y) : first(made), second(y) {}
};

inline constexpr text holds_others{
    "a carry holds something that is not a tensor; keep numbers outside, or as tensors"};
inline constexpr text is_without_tensor{"write a carry without tensors as std::tuple<>"};
inline constexpr text is_of_another_type{
    "the body must return a carry of the type that it is given: the same tensors, of the same "
    "ranks and element types"};
inline constexpr text makes_no_pair{
    "the body must return a pair: the next carry and y; std::tuple<>() for no carry or no y"};

/// Refuses a body whose carry has another type than `init`. F is the library function that the
/// error names.
template <loop_function F, class Carry, class Next>
constexpr auto require_same_carry() {
  if constexpr (!of_tensors<Carry>()) refuse_call<F, holds_others>();
  else if constexpr (tensors_in<Carry>() == 0 && !std::is_same_v<Carry, std::tuple<>>)
    refuse_call<F, is_without_tensor>();
  else if constexpr (!std::is_convertible_v<Next, Carry>) refuse_call<F, is_of_another_type>();
  return std::bool_constant<std::is_convertible_v<Next, Carry>>();
}
template <class T>
inline constexpr bool is_pair = false;
template <class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template <class A, class B>
inline constexpr bool is_pair<std::tuple<A, B>> = true;

/// While it exists, each tensor of x is known as a slice of xs: see op::matmul's of_steps.
template <class X>
class scanned_slices {
 public:
  constexpr scanned_slices(const X& x, bool on) : x_(x), on_(on) { set(true); }
  scanned_slices(const scanned_slices&) = delete;
  constexpr ~scanned_slices() { set(false); }

 private:
  constexpr void set(bool scanned) const {
    if (on_) each_tensor(x_, [=](const auto& t) { t.set_scanned(scanned); });
  }
  const X& x_;
  bool on_;
};

/// The body of a loop, with its results converted to the types of carry and y.
template <loop_function F, class Carry, class Body>
struct typed_body {
  const Body& body;
  constexpr auto operator()(const Carry& carry, const auto& x) const {
    const scanned_slices known(x, F == loop_function::scan);
    auto made = body(carry, x);
    using Made = typename result_of<std::remove_cvref_t<decltype(made)>>::type;
    if constexpr (!is_pair<Made>) {
      refuse_call<F, makes_no_pair>();
    } else {
      require_same_carry<F, Carry, std::tuple_element_t<0, Made>>();
      require_tree<F, std::tuple_element_t<1, Made>>();
      auto y = map_tree(std::get<1>(made), [](const auto& t) { return t; });
      return step_results<Carry, decltype(y)>(std::get<0>(made), y);
    }
  }
};

/// The number of steps that xs imply; -1: there are no xs. Refuses xs of different lengths.
template <class X>
constexpr Size length_of(const X& xs, const Size& given, call_site site) {
  Size trip = given;
  bool any = given.table() || given.extent() >= 0;
  map_tree(xs, [&](const auto& t) {
    const Size n(t.dims()[0], t.table());
    size_table* const table = n.table() ? n.table() : trip.table();
    const size_scope scope{table, site};
    extent a = trip.extent();
    if (any && !scope.equal(a, n.extent()))
      scope.fail(text("xs and options.length have different lengths: ")
                 << trip.extent() << " and " << n.extent());
    if (!any) trip = n;
    any = true;
    return t;
  });
  if (!any)
    size_scope{nullptr, site}.fail("there are no xs: give the number of steps in options.length");
  return trip;
}

/// Refuses negative counts in the options. In a capture, `table` has the graph's symbolic sizes.
template <class Options>
constexpr void check_options(const Options& o, size_table* table, call_site site) {
  const size_scope scope{table, site};
  const Size every = o.checkpoint_every;
  if (every.known() && every.extent() < 0)
    scope.fail(text("checkpoint_every is ") << every.extent() << "; it is 0, or a number of steps");
  if (o.unroll < 1) scope.fail(text("unroll is ") << o.unroll << "; it is 1, or a number of steps");
}

/// Stacks, for each tensor of y, the values of all steps.
constexpr auto steps_of_tree(const auto& y, graph& to, loop_recorder& loop) {
  return map_tree(y, [&](const auto& t) {
    using T = std::remove_cvref_t<decltype(t)>;
    return named<typename T::value_type, T::rank + 1>(&to, loop.steps(t.lift(&to)));
  });
}

template <class Carry, class Body, class X>
constexpr auto scan_captured(graph& g, const Body& body, const Carry& init, const X& xs, Size trip,
                             const ScanOptions& options, loop_call of, bool again) {
  const auto slices = [&](graph& to, loop_recorder& loop) {
    return map_tree(xs, [&](const auto& t) {
      using T = std::remove_cvref_t<decltype(t)>;
      return named<typename T::value_type, T::rank - 1>(&to, loop.slice(t.lift(&to)));
    });
  };
  const auto stacks = [](const auto& y, graph& to, loop_recorder& loop) {
    return steps_of_tree(y, to, loop);
  };
  loop_capture<Carry> loop(g, of, trip.extent(), options.reverse, {},
                           options.checkpoint_every.extent());
  if (again) loop.recorded_before();
  return loop.run(body, init, slices, stacks);
}

template <class Carry, class Body, class X>
constexpr auto scan_unrolled(graph& g, const Body& body, const Carry& init, const X& xs, Size trip,
                             const ScanOptions& options, loop_call of, bool again) {
  const turns_of_steps in(trip, options.unroll);
  ScanOptions turn = options;
  turn.checkpoint_every = turns_between(options.checkpoint_every, options.unroll);
  const turn_body<Carry, Body> several{body, options.unroll, options.reverse, of.site()};
  const auto run_turns = [&](const Carry& from) {
    const auto rows = in_turns(rows_of(xs, 0, in.steps), in.turns, options.unroll);
    return scan_captured(g, several, from, rows, in.turns, turn, of, again);
  };
  const auto run_rest = [&](const Carry& from) {
    const auto rows = rows_of(xs, in.steps, trip);
    return scan_captured(g, body, from, rows, trip - in.steps, options, of, again);
  };
  using Made = decltype(run_rest(init));
  if (in.all) {
    const auto made = run_turns(init);
    return Made(made.first, rows_of_turns(made.second, in.steps, g, nullptr));
  }
  const auto joined = [&](const auto& turns, const Made& rest, const Carry& last) {
    int nodes[tensors_in<decltype(rest.second)>() + 1] = {};
    each_tensor(rest.second, [&, k = 0](const auto& t) mutable { nodes[k++] = t.lift(&g); });
    return Made(last, rows_of_turns(turns.second, in.steps, g, nodes));
  };
  if (options.reverse) {
    const Made rest = run_rest(init);
    const auto turns = run_turns(rest.first);
    return joined(turns, rest, turns.first);
  }
  const auto turns = run_turns(init);
  const Made rest = run_rest(turns.first);
  return joined(turns, rest, rest.first);
}

template <class Carry, class Body, class X>
auto scan_stepwise(const Body& body, const Carry& init, const X& xs, std::int64_t trip,
                   const ScanOptions& options, call_site site) {
  using In = dependent<Carry, void>;
  step_tape<In> tape(options.checkpoint_every.extent() == 0);
  const auto tensors = map_tree(xs, [](const auto& t) { return t; });  // of parameters their values
  list<ref<eager_slices>> rows;
  each_tensor(tensors,
              [&](const auto& t) { rows.push_back(open_eager_slices<In>(t, options.reverse)); });
  const auto slices = [&](std::int64_t i) {
    int k = 0;
    return map_tree(tensors, [&](const auto& t) {
      using T = std::remove_cvref_t<decltype(t)>;
      Tensor<typename T::value_type, T::rank - 1> x;
      if (rows[k]) rows[k]->slice(i, x);
      else x = select(tape.without_gradient(t), 0, i);
      return tape.slice(x, t, k++, i);
    });
  };
  using Y = decltype(body(init, slices(0)).second);
  using Ys = decltype(no_steps(body, init, slices(0), site));
  if (trip <= 0) return std::pair<Carry, Ys>(init, no_steps(body, init, zeros_for_step(xs), site));
  Carry first = init;
  tape.begin(first, tensors, trip);
  const auto all = run_steps<Y, Carry>(body, first, slices, trip, options.reverse, site, tape);
  return std::pair<Carry, Ys>(
      all.first, stack_trees<Y>(static_cast<std::size_t>(trip),
                                [&](std::size_t i) -> const auto& { return all.second.get()[i]; }));
}

/// Whether a loop is recorded as one at run time: if ops are recorded, and in any mode if it has no
/// steps, because only the recorded body then shows which outside tensors gradients (of zero)
/// reach.
inline bool records_loop(std::int64_t trip) {
  return records_ops() || (trip <= 0 && grad_enabled());
}

/// As one loop if the body can be recorded, else step by step.
template <class Carry, class Body, class X>
auto scan_at_run_time(const Body& body, const Carry& init, const X& xs, std::int64_t trip,
                      const ScanOptions& options, call_site site) {
  const auto tensors = map_tree(xs, [](const auto& t) { return t; });
  const auto slices = [&](traced_loop& loop) {
    int k = 0;
    return map_tree(tensors, [&](const auto& t) {
      using T = std::remove_cvref_t<decltype(t)>;
      Tensor<typename T::value_type, T::rank - 1> x;
      loop.slice(k++, x);
      return x;
    });
  };
  if constexpr (has_traced_mode)
    if (records_loop(trip))
      if (const auto loop = record_body(body, init, tensors, trip, options.reverse,
                                        options.checkpoint_every, site, slices))
        return results_of<Carry, decltype(body(init, slices(*loop)).second)>(*loop);
  return scan_stepwise(body, init, xs, trip, options, site);
}

/// scan() under the name of the function F.
template <loop_function F, class Body, class Init, class X>
constexpr auto scan_as(const Body& body, const Init& init, const X& xs, const ScanOptions& options,
                       caller loc) {
  using Carry = typename carried_as<Init>::type;
  const loop_call of{F, loc};
  const call_site site = of.site();
  const typed_body<F, Carry, Body> steps{body};
  require_tree<F, X>();
  const Carry first = init;
  const Size trip = length_of(xs, options.length, site);
  if (!__builtin_is_constant_evaluated()) {
    check_options(options, nullptr, site);
    return scan_at_run_time(steps, first, xs, trip, options, site);
  }
  graph* g = graph_of(first, xs);
  if (!g && trip.table()) g = trip.table()->owner;
  const bool again = !g;
  if (again) {  // constants only: the tensors around the body determine the graph
    const auto x = zeros_for_step(xs);
    const auto made = steps(first, x);
    g = graph_of(made.first, made.second);
  }
  if (!g)
    throw std::logic_error("xla::" + std::string(site.function) +
                           ": all arguments are constant; start from zeros_like(x)");
  check_options(options, &g->sizes, site);
  if (options.unroll > 1) return scan_unrolled(*g, steps, first, xs, trip, options, of, again);
  return scan_captured(*g, steps, first, xs, trip, options, of, again);
}

}  // namespace detail

/// body(carry, x) -> {carry, y} for each x of xs along their first axis in turn; the first step
/// gets init as carry. Returns the last carry, and all y along a new first axis. Carries, x and y
/// are tensors, or tuples and arrays of them, std::tuple<>() for none; carries may also be structs
/// with XLA_MODULE. In a compiled function it is a loop, whose number of steps may be known at run
/// time only; another number is no new signature (CompileOptions::max_signatures). The body may
/// read everything around it, and write parameters, buffers and gradients: a whole training step. A
/// backward() in the body ends at its carry and x. A backward() after the loop adds the gradients
/// of outside tensors from the last step to the first, in every mode. The gradient of a matrix that
/// steps multiply by is one product of all steps. Gradients of gradients may be summed in another
/// order in each. A carry that changes its shape, or xs of several lengths, are a shape_error.
template <class Body, class Init, class X>
constexpr auto scan(const Body& body, const Init& init, const X& xs, ScanOptions options = {},
                    caller loc = here()) {
  return detail::scan_as<detail::loop_function::scan>(body, init, xs, options, loc);
}

}  // namespace xla
