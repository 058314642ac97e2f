// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "xla/base/list.hpp"
#include "xla/graph/graph.hpp"
#include "xla/run/state/context.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::op {

/// At run time: a function that has been recorded, of its inputs; its results are outputs of it. A
/// graph has the function's body in its place.
struct call {
  static constexpr auto name = "call";
  static constexpr auto kind = detail::op_kind::library;
};

}  // namespace xla::op

XLA_BUILTIN_OP(xla::op::call);

namespace xla::detail {

template <class>
class basic_traced_graph;
template <class>
struct basic_traced_entry;

/// The recorded functions that a traced graph calls.
class traced_calls {
 public:
  traced_calls() = default;
  traced_calls(const traced_calls&) = delete;
  virtual ~traced_calls() = default;

  /// Adds the graph's nodes, in place of calls those of the functions, and numbers of steps as
  /// symbols. The index of each output says which node it is, behind as many as there are leaves.
  virtual void add_nodes(graph& g, const basic_traced_graph<void>& from) const = 0;
  /// Of what says how many steps there are, behind the shapes of leaves.
  virtual void add_slots(list<shape>& slots) const = 0;
  /// Plans it: the program of a graph that differs in numbers of steps alone, where there is one; or
  /// else a new one, true.
  virtual bool plan(basic_tracer<void>& known, const basic_traced_graph<void>& g,
                    basic_traced_entry<void>& to) const = 0;
};

/// What an op::call is of: a function whose body has been recorded.
class recorded_function : public call_record {
 public:
  /// Those of a graph, which it signs; they are this one's as long as the graph has it.
  virtual traced_calls* look_at(basic_traced_graph<void>& g) const = 0;

  ref<impl> again(int) override { return {}; }
  impl* take_input() noexcept override { return nullptr; }
};

}  // namespace xla::detail
