// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of recorded functions, for traced_graph.hpp, which takes in their bodies without
// knowing how they were made (function.hpp).

#include <cstdint>

#include "xla/base/list.hpp"
#include "xla/graph/graph.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/tensor/impl.hpp"

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
  /// symbols. The index of each output says which node it is, after as many as there are leaves.
  virtual void add_nodes(graph& g, const basic_traced_graph<void>& from) const = 0;
  /// Appends the shapes of the slots whose sizes are the numbers of steps, after those of leaves.
  virtual void add_slots(list<shape>& slots) const = 0;
  /// Plans the graph. False: by the program of a known one, which differs in numbers of steps
  /// alone; true: by a new one.
  virtual bool plan(basic_tracer<void>& known, const basic_traced_graph<void>& g,
                    basic_traced_entry<void>& to) const = 0;
};

/// A function whose body has been recorded; a tensor of op::call holds it.
class recorded_function : public call_record {
 public:
  /// Per draw of its body, in the order of its nodes: where its numbers begin in the first step.
  list<std::uint64_t> draws;

  /// Adds where the numbers begin of each draw of a call.
  virtual void put_numbers(const impl& call, list<rng_state>& to) const = 0;
  /// Signs a graph that calls functions, this one among them, which owns what is returned.
  virtual traced_calls* look_at(basic_traced_graph<void>& g) const = 0;

  ref<impl> again(int) override { return {}; }
  impl* take_input() noexcept override { return nullptr; }
};

}  // namespace xla::detail
