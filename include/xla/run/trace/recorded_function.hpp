// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of recorded functions for traced_graph.hpp, which adds their bodies to graphs
// without knowing how they were made (function.hpp).

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

  /// Adds the graph's nodes, with functions in place of calls, and numbers of steps as symbols. The
  /// index of each output is its node, counted after the leaves.
  virtual void add_nodes(graph& g, const basic_traced_graph<void>& from) const = 0;
  /// Appends the shapes of the slots whose sizes are the numbers of steps, after those of leaves.
  virtual void add_slots(list<shape>& slots) const = 0;
  /// Plans the graph. False: by the program of a known graph that differs in numbers of steps
  /// alone; true: by a new one.
  virtual bool plan(basic_tracer<void>& known, const basic_traced_graph<void>& g,
                    basic_traced_entry<void>& to) const = 0;
};

/// A function whose body has been recorded; a tensor of op::call refers to it.
class recorded_function : public call_record {
 public:
  /// Per draw of its body, in the order of its nodes: the position of its numbers in the first
  /// step.
  list<std::uint64_t> draws;

  /// Adds the positions of the random numbers of each draw of a call.
  virtual void put_numbers(const impl& call, list<rng_state>& to) const = 0;
  /// Computes the signature of a graph that calls functions, including this one; the function owns
  /// the result.
  virtual traced_calls* look_at(basic_traced_graph<void>& g) const = 0;

  ref<impl> again(int) override { return {}; }
  impl* take_input() noexcept override { return nullptr; }
};

}  // namespace xla::detail
