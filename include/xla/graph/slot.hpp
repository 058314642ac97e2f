// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a graph other than nodes: slots, and the ranges of its checkpoints and loops.

#include <cstdint>

#include "xla/shape/extent.hpp"
#include "xla/shape/sharding.hpp"

namespace xla::detail {

struct op_info;

enum class slot_kind : std::uint8_t { tensor, cell, scalar, local, inner };
enum class grad_state : std::uint8_t { untouched, absent, present };

/// State outside of the graph that a step reads and may write: an argument tensor, a parameter or
/// buffer with its gradient, a hyper-parameter. Two kinds end with the step and come after all
/// others. A local slot is a copy of a parameter that the body makes. An inner slot holds the
/// gradient of a tensor that the body makes or writes.
struct slot {
  slot_kind kind = slot_kind::tensor;
  grad_state state = grad_state::untouched;
  bool requires_grad = false;  ///< of a tensor: false only if it requires none at entry
  bool collected = false;      ///< backward() has added to the gradient
  bool given = false;          ///< the gradient is present whatever is required at entry
  /// The gradient is read by something other than this parameter's update.
  bool mixed = false;
  bool entangled = false;   ///< of a tensor: its value was changed in place by other tensors',
                            ///< or a backward() in a loop's body would go on to it
  bool reads = false;       ///< the gradient at entry is read
  bool from_entry = false;  ///< inner: its gradient began as that of its origin at entry
  bool functional = false;  ///< gradients pass through what is written; local slots only
  bool dropped = false;     ///< in the body of a loop: its steps leave no gradient in it
  std::int8_t requires_grad_set =
      -1;  ///< the last argument of requires_grad_() in the body; -1: not called
  /// The parameter to which an optimizer's state, such as a moment, belongs.
  int owner = -1;
  int origin = -1;     ///< inner: the slot of the outside tensor that it was split from
  int left_in = -1;    ///< inner: the argument tensor whose slot it is when the body ends
  int leaf = -1;       ///< the node of the value at entry
  int current = -1;    ///< the node of the value now
  int grad_leaf = -1;  ///< the node of the gradient at entry, if the body reads it
  int grad = -1;       ///< the node of the current gradient, if present
  /// A row of a repeat's result, which has no node yet: then `current` or `grad` is -1.
  int repeated = -1, repeated_grad = -1, row = 0;
  sharding sharded_as;  ///< to devices of a plugin
};

/// The nodes begin … end - 1 that one checkpoint() recorded. Segments are numbered from 1.
struct segment_range {
  int begin = 0, end = 0;
  int parent = 0;  ///< the segment around it; 0: none
};

/// A loop: the number of its steps, and the enclosing loop. Loops are numbered from 1.
struct loop_range {
  extent trip = 0;
  int parent = 0;  ///< 0: none
  int begin = 0;   ///< the body is recorded from this node on, up to the loop's own
  bool branch =
      false;  ///< a branch, whose one step may not run: everything that it computes belongs to it
  extent every = 0;  ///< backward saves only the carries before every n steps; 0: saves all
  bool checkpoints =
      false;  ///< the body calls checkpoint(), outside of the loops and branches in it
  int stride =
      0;  ///< of a repeat: the distance between the slots of successive rows; 0: it is a loop
  const op_info* add = nullptr;  ///< of a repeat: the op of a repeat_sum's steps
};

/// Consecutive steps of a loop, whose first number and count are nodes of the graph.
struct block_of_steps {
  int first = -1, count = -1;
};

/// A parameter for which an optimizer's rule may be recorded once, for it and for the same
/// parameter of the model's other blocks (rows): transform/repeats.hpp.
struct repeated_parameter {
  int slot = -1, group = 0;
  int first = -1;  ///< the number of the same parameter in the first row; -1: it stands alone
  int row = 0, rows = 0;
  int next = -1;      ///< the number of the same parameter in the next row
  int stride = 0;     ///< the distance from a slot to that of the next row
  int gradient = -1;  ///< of a first row: the node that stands for the gradients of all rows
  /// If the parameters of each row follow those of the row before: the first of all, which knows
  /// how many there are in a row; else -1.
  int block = -1, in_row = 0;
};

}  // namespace xla::detail
