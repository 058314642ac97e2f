// SPDX-License-Identifier: Apache-2.0
#pragma once

// cond(): runs one of two branches, like jax.lax.cond. where() chooses between elements instead,
// and computes both sides.

#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/captured.hpp"
#include "xla/loop/step_tape.hpp"
#include "xla/loop/traced.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/where.hpp"
#include "xla/run/backend/body_path.hpp"

namespace xla {
namespace detail {

/// The predicate, and the source line of the call.
struct decision {
  Tensor<bool, 0> holds;
  loop_call call;

  template <class X>
    requires std::is_convertible_v<const X&, Tensor<bool, 0>>
  constexpr decision(const X& x, caller loc = here()) : holds(x), call{loop_function::cond, loc} {}
};

/// Records the branches of cond(), each as a loop whose single step runs or not. Everything that a
/// branch computes belongs to it, even values that do not depend on the predicate.
class branch_capture {
 public:
  /// recorded_before: this branch has been recorded once, to find the graph, so it must not write
  /// again.
  constexpr branch_capture(graph& in, const decision& by, bool recorded_before)
      : g(in),
        call_(by.call),
        site_(by.call.site()),
        decides_(by.holds.lift(&g)),
        recorded_before_(recorded_before) {}

  /// Records the branch; its results are nodes after it. It is recorded again until it writes no
  /// slots that the previous recording did not know.
  template <class Made, class Branch>
  constexpr Made run(bool when, const Branch& branch) const {
    slot_carries slots(g, true);
    const body_sizes sizes(g, call_);
    for (;;) {
      const graph_mark before(g);
      loop_recorder loop(g, loops_of_graphs<Made>, 1, false,
                         call_.control({.when = when, .unless = !when, .decides = decides_}));
      slots.begin(loop);
      const int begin = g.count;
      Made made = branch();
      sizes.tell();
      int at[tensors_in<Made>() + 1] = {};
      each_tensor(made, [&, k = 0](const auto& t) mutable { at[k++] = t.lift(&g); });
      if (const char* why = refusal(begin, slots)) size_scope{&g.sizes, site_}.fail(why);
      if (!g.sizes.refused.failed() && slots.more(begin)) {
        before.undo();
        continue;
      }
      sizes.end();
      const auto room = static_cast<std::size_t>(slots.count()) + 1;
      const owned_array<int> next(room), init(room);
      slots.yield_values(next.get(), init.get());
      loop.close(next.get(), init.get());
      each_tensor(made, [&, k = 0](auto& t) mutable {
        using T = std::remove_cvref_t<decltype(t)>;
        const auto all = named<typename T::value_type, T::rank + 1>(&g, loop.steps(at[k]));
        t = with_shape<op::reshape, T::rank>(all, g.nodes[at[k]].dims_shape());
        ++k;
      });
      slots.end(loop, 0);
      return made;
    }
  }
  /// Selects the results of the branch that ran.
  template <class Made>
  constexpr Made either(const Made& a, const Made& b) const {
    int of[tensors_in<Made>() + 1] = {};
    each_tensor(a, [&, k = 0](const auto& t) mutable { of[k++] = t.lift(&g); });
    Made made = b;
    each_tensor(made, [&, k = 0](auto& t) mutable {
      using T = std::remove_cvref_t<decltype(t)>;
      same_shape(g.nodes[of[k]], g.nodes[t.lift(&g)]);
      t = where(named<bool, 0>(&g, decides_), named<typename T::value_type, T::rank>(&g, of[k]), t);
      ++k;
    });
    return made;
  }

 private:
  constexpr const char* refusal(int begin, const slot_carries& slots) const {
    const op_info* const other = draws_or_exchanges(g, begin);
    if (other && other->exchanges)
      return "replicas exchange in a branch, which some of them may not take: exchange outside of "
             "it";
    if (other)
      return "a branch draws random numbers: draw them outside, because later ones would depend "
             "on the branch that is taken";
    if (recorded_before_ && slots.writes())
      return "a branch writes, but all that cond() is given is constant: pass it a tensor of the "
             "function, or let one decide";
    return slots.refusal();
  }
  constexpr void same_shape(const node& a, const node& b) const {
    const size_scope scope{&g.sizes, site_};
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank; ++i) {
      extent size = a.dims[i];
      same = scope.equal(size, b.dims[i]);
    }
    if (!same)
      scope.fail(text("one branch returns a tensor of shape ")
                 << a.dims_shape() << ", the other one of shape " << b.dims_shape()
                 << ": both must return the same shapes");
  }

  graph& g;
  loop_call call_;
  call_site site_;
  int decides_;
  bool recorded_before_;
};

/// A branch with its results converted to known types; one that only writes returns an empty tuple.
template <class Branch, class... X>
constexpr auto results_of_branch(const Branch& branch, const X&... x) {
  if constexpr (std::is_void_v<decltype(branch(x...))>) {
    branch(x...);
    return std::tuple<>();
  } else {
    auto made = branch(x...);
    if constexpr (decltype(require_tree<loop_function::cond, decltype(made)>())::value)
      return map_tree(made, [](const auto& t) { return t; });
    else return std::tuple<>();
  }
}

template <class Made, class Branch>
Made run_branch(const Branch& branch, call_site site) {
  step_tape<dependent<Made, void>> tape(false);
  std::tuple<> nothing;
  const body_scope body;
  tape.begin(nothing, nothing, 1);
  Made made = in_body(site, -1, branch);
  tape.end_step(nothing, made, 0);
  return made;
}

/// The results of a branch in a mode that records, as a loop whose single step runs or not; nothing
/// if the branch cannot be recorded.
template <class Made, class Branch>
std::optional<Made> record_branch(const decision& by, bool when, const Branch& branch) {
  using None = std::tuple<>;
  const auto body = [&](const None& none, int) { return std::pair(none, branch()); };
  const list<const handle*> decides(1, &by.holds);
  const auto loop = record_body_over(body, None(), decides, {.when = when, .unless = !when},
                                     by.call.site(), [](traced_loop&) { return 0; });
  if (!loop) return std::nullopt;
  Made made;
  each_tensor(made, [&, k = 0](auto& t) mutable {
    using T = std::remove_cvref_t<decltype(t)>;
    Tensor<typename T::value_type, T::rank + 1> all;
    loop->result(k++, all);
    t = xla::squeeze<0>(all);
  });
  return made;
}
/// Records both branches and selects the results of the one that runs; nothing if one of them
/// cannot be recorded.
template <class Made, class First, class Second>
std::optional<Made> record_branches(const decision& by, const First& first, const Second& second) {
  dry_run<dependent<Made, void>> trial;
  const auto a = record_branch<Made>(by, true, first);
  if (!a) return std::nullopt;
  auto b = record_branch<Made>(by, false, second);
  if (!b) return std::nullopt;
  list<const handle*> taken;
  each_tensor(*a, [&](const auto& t) { taken.push_back(&t); });
  bool same = true;
  each_tensor(*b, [&, k = 0](const auto& t) mutable { same &= taken[k++]->dims() == t.dims(); });
  if (!same) return std::nullopt;
  each_tensor(*b, [&, k = 0](auto& t) mutable {
    using T = std::remove_cvref_t<decltype(t)>;
    t = where(by.holds, static_cast<const T&>(*taken[k++]), t);
  });
  trial.keep();
  return b;
}

template <class Made, class First, class Second>
Made choose_at_run_time(const decision& by, const First& first, const Second& second) {
  if constexpr (has_traced_mode)
    if (records_ops())
      if (auto made = record_branches<Made>(by, first, second)) return std::move(*made);
  return by.holds.item() ? run_branch<Made>(first, by.call.site())
                         : run_branch<Made>(second, by.call.site());
}

/// g: the graph that contains the call, if it is known.
template <class First, class Second>
constexpr auto choose_branch(const decision& by, graph* g, const First& first,
                             const Second& second) {
  using Made = decltype(first());
  if (!__builtin_is_constant_evaluated()) return choose_at_run_time<Made>(by, first, second);
  const bool recorded_before = !g;
  if (!g) {  // constants only: the tensors that the branches read determine the graph
    const Made made = first();
    g = graph_of(made);
  }
  if (!g)
    throw std::logic_error(
        "xla::cond: all arguments are constant; start from zeros_like(x) "
        "of a tensor x");
  const branch_capture to(*g, by, recorded_before);
  const Made a = to.template run<Made>(true, first);
  const Made b = to.template run<Made>(false, second);
  return to.either(a, b);
}

}  // namespace detail

/// Runs then(x…) if the predicate, one bool, holds, else otherwise(x…). Both return tensors, or
/// tuples and arrays of them, of equal types, or nothing. In a compiled function only the chosen
/// branch runs. Both may read everything around them, and write parameters and buffers: a whole
/// training step may be a branch. They draw no random numbers. Traced mode's graph has both
/// branches, too. But if one reads elements, draws, drops an existing gradient, or returns other
/// shapes than the other one, traced mode behaves like eager mode, which reads the predicate and
/// runs one branch. Compiled, a gradient that a branch drops is zeros after cond(). One that it
/// also computes itself is absent, whichever branch runs: call zero_grad() before cond() if an
/// earlier call has left one. If only the other branch reads a tensor, its gradient is zeros; in
/// eager mode it gets none. Branches whose tensors have different shapes are a shape_error in a
/// compiled function.
template <class Then, class Otherwise, class... X>
constexpr auto cond(const detail::decision& predicate, const Then& then, const Otherwise& otherwise,
                    const X&... x) {
  using namespace detail;
  const auto first = [&] { return results_of_branch(then, x...); };
  const auto second = [&] { return results_of_branch(otherwise, x...); };
  constexpr bool same = std::is_same_v<decltype(first()), decltype(second())>;
  static_assert(same,
                "xla::cond: both branches must return the same: tensors of the same element types "
                "and numbers of axes, in the same tuples and arrays");
  if constexpr (same) {
    graph* around = nullptr;
    if (__builtin_is_constant_evaluated()) around = graph_of(predicate.holds, x...);
    return choose_branch(predicate, around, first, second);
  }
}

}  // namespace xla
