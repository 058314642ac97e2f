// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a graph has besides nodes: slots, and the ranges of its checkpoints and loops.

#include <cstdint>

#include "xla/shape/extent.hpp"
#include "xla/shape/sharding.hpp"

namespace xla::detail {

enum class slot_kind : std::uint8_t { tensor, cell, scalar, local, inner };
enum class grad_state : std::uint8_t { untouched, absent, present };

/// State outside the graph that a step reads and may write: an argument tensor, a parameter or
/// buffer with its gradient, a hyper-parameter. Two kinds end with the step and come after all
/// others. A local slot is a copy of a parameter that the body makes. An inner slot has the
/// gradient of a tensor that the body makes or writes.
struct slot {
  slot_kind kind = slot_kind::tensor;
  grad_state state = grad_state::untouched;
  bool requires_grad = false;  ///< of a tensor: unless it does not at entry
  bool collected = false;      ///< backward() has added to the gradient
  bool given = false;          ///< the gradient is there whatever is required at entry
  /// The gradient is read by something other than this parameter's update.
  bool mixed = false;
  bool entangled = false;   ///< of a tensor: its value was changed in place by that of others,
                            ///< or a backward() in a loop's body would go on to it
  bool reads = false;       ///< the gradient at entry is read
  bool from_entry = false;  ///< inner: its gradient began as that of its origin at entry
  bool functional = false;  ///< gradients pass through what is written; local slots only
  bool dropped = false;     ///< in the body of a loop: its steps leave no gradient
  std::int8_t requires_grad_set =
      -1;  ///< what the body last passed to requires_grad_(); -1: nothing
  /// The parameter that an optimizer keeps this state for, such as a moment.
  int owner = -1;
  int origin = -1;     ///< inner: the place outside that it has split off from
  int left_in = -1;    ///< inner: the argument tensor that has become it when the body ends
  int leaf = -1;       ///< the node of the value at entry
  int current = -1;    ///< the node of the value now
  int grad_leaf = -1;  ///< the node of the gradient at entry, when the body reads it
  int grad = -1;       ///< the node of the gradient now, when present
  /// A row of what repeats have made, which has no node yet: `current` or `grad` is -1.
  int repeated = -1, repeated_grad = -1, row = 0;
  sharding sharded_as;  ///< to devices of a plugin
};

/// The nodes begin … end - 1 that one checkpoint() recorded. Segments are numbered from 1.
struct segment_range {
  int begin = 0, end = 0;
  int parent = 0;  ///< the segment around it; 0: none
};

/// One loop: how often its steps run, and the loop around it. Loops are numbered from 1.
struct loop_range {
  extent trip = 0;
  int parent = 0;       ///< 0: none
  int begin = 0;        ///< the body is recorded from this node on, up to the loop's own
  bool branch = false;  ///< its one step runs or not: whatever it makes is made in it
  extent every = 0;     ///< backward keeps carries alone, those before every so many steps; 0: all
  int stride = 0;  ///< of a repeat: from a slot of a row to that of the next one; 0: it is a loop
};

/// Consecutive steps of a loop, whose first number and count are nodes of the graph.
struct block_of_steps {
  int first = -1, count = -1;
};

/// A parameter for which an optimizer's rule may be recorded once, together with the same parameter
/// of the other blocks of a model (rows): transform/repeats.hpp.
struct repeated_parameter {
  int slot = -1, group = 0;
  int first = -1;  ///< the number of that in the first row; -1: it stands alone
  int row = 0, rows = 0;
  int next = -1;      ///< the number of that in the next row
  int stride = 0;     ///< from a slot to that of the next row
  int gradient = -1;  ///< of a first: the node that stands for the gradients of all
};

}  // namespace xla::detail
