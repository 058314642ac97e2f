// SPDX-License-Identifier: Apache-2.0
#pragma once

// Step functions as text for XLA's compiler and every tool that reads StableHLO.

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "xla/base/system/mutex.hpp"
#include "xla/compile.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/run/call/argument_checks.hpp"
#include "xla/run/call/print_stage.hpp"
#include "xla/run/call/signature_cache.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla {
namespace detail {

/// The program of one call as text: the captured graph after all passes that a backend uses, at the
/// sizes of the arguments.
template <class In = void>
std::string stablehlo_text(const graph_view& captured, Passes wanted, const double* facts,
                           const call_arguments& arguments) {
  dependent<In, basic_graph_copy<In>> g(captured);
  dependent<In, pass_state> s(g, g.roots(), true);
  dependent<In, lowered_graph> lowered;
  wanted = wanted & tags::without<"recompute", "bfloat16_storage", "layouts", "rows", "fuse">;
  run_recorded_passes<In>(s, wanted);
  lowered.lower(s, wanted);
  const program& p = lowered.view();

  prepare_for_plans<In>();
  dependent<In, signature_cache> as_called(p, nullptr, nullptr);
  dependent<In, bound_call> call;
  bind_slots<In>(p, call, arguments);
  check_facts<In>(facts, call, arguments);
  if (call.differentiable && as_called.collects_gradients()) check_inputs<In>(p, call, arguments);
  if (as_called.misses_gradients()) note_absent<In>(p, call, arguments);
  if (as_called.changes_arguments()) check_repeats<In>(p, call, arguments);
  check_fixed_sizes<In>(p, call, arguments);
  check_sizes<In>(p, call, arguments);
  check_absent<In>(p, call, arguments);
  return write_stablehlo(size_program<In>(p, shapes_of<In>(call), call.absent)).text;
}

/// The ops that this thread has recorded on its device and not yet run.
template <class In = void>
std::string pending_stablehlo() {
  if (!this_thread.recording) return {};
  dependent<In, recording>& from = *this_thread.recording;
  const std::lock_guard planning(from.planning);
  if (from.size() == 0) return {};
  dependent<In, traced_graph> graph;
  graph.collect(from);
  dependent<In, traced_program> lowered;
  lowered.build(graph, tags::without<"recompute", "bfloat16_storage", "layouts", "rows", "fuse">);
  list<shape> sizes = graph.leaf_shapes();
  if (graph.calls()) graph.calls()->add_slots(sizes);
  return write_stablehlo(size_program<In>(lowered.view(), std::move(sizes), {})).text;
}

template <class F, class... A>
std::string stablehlo_of(A&&... a) {
  if constexpr (constexpr auto& why = call_refusal<F, argument_of<A&&>...>; !why.empty()) {
    refuse<why>();
    return {};
  } else {
    using captured = static_program<F, argument_of<A&&>...>;
    if constexpr (captured::why.empty()) {
      void* const addresses[] = {const_cast<bare<A>*>(std::addressof(a))..., nullptr};
      return stablehlo_text<dependent<F, void>>(
          printed_program<F, argument_of<A&&>...>::graph.view(), passes_of<F>,
          captured::result.facts.data(), {addresses, &arguments_of<bare<A>...>::visit});
    } else {
      refuse<captured::why>();
      return {};
    }
  }
}
template <class F, class... A>
std::string stablehlo_of(const Compiled<F>&, A&&... a) {
  return stablehlo_of<F>(std::forward<A>(a)...);
}
template <class M, class Call, class... A>
std::string stablehlo_of(const CompiledModule<M, Call>& f, A&&... a) {
  return stablehlo_of<Call>(f.module(), std::forward<A>(a)...);
}

}  // namespace detail

/// The computation of a call of a compiled function (or of something that xla::compile() takes) as
/// StableHLO: a module with one function, main, in MLIR's generic form. The arguments of main are
/// the tensors that the call reads. For each tensor among the arguments, in order, they are its
/// value and then its gradient. Numbers (Scalar) are tensors without axes. Then come seed and
/// offset, the bits of two ui64, for each draw of random numbers. The results are the tensors that
/// the call writes, with `tf.aliasing_output` if a new value may take the old one's memory, and
/// then what the function returns. Runs nothing.
///
/// The numbers are those of a call up to rounding; random numbers have the same bits. XLA's own CPU
/// backend lets maximum lose NaN unless xla_cpu_enable_fast_min_max is false. Ops that StableHLO
/// cannot express, and arguments that a call refuses, are a runtime_error.
template <class F, class... A>
std::string stablehlo(F&& f, A&&... a) {
  using Function = std::remove_cvref_t<F>;
  if constexpr (requires { detail::stablehlo_of(f, std::forward<A>(a)...); }) {
    return detail::stablehlo_of(f, std::forward<A>(a)...);
  } else if constexpr (detail::compilable<Function, std::is_lvalue_reference_v<F>>()) {
    if constexpr (detail::described<Function>)
      return detail::stablehlo_of<detail::call_module>(f, std::forward<A>(a)...);
    else return detail::stablehlo_of<Function>(std::forward<A>(a)...);
  } else return {};
}

/// The ops that this thread has recorded on its device outside of compiled functions, and that
/// sync() would run, in the same form; empty if there are none. Runs nothing.
template <class In = void>
std::string stablehlo() {
  return detail::pending_stablehlo<In>();
}

}  // namespace xla
