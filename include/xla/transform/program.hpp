// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/graph/graph.hpp"

namespace xla::detail {

enum class step_kind : std::uint8_t { library, map, row };

/// One thing to execute: an op's own kernel, or a fused region. Ranges are into the program's
/// lists.
struct step {
  step_kind kind = step_kind::library;
  bool check = false;
  int value = -1;                     ///< library: the value it makes
  int first_input = 0, inputs = 0;    ///< values read
  int first_output = 0, outputs = 0;  ///< values written
  int first_word = 0, words = 0;      ///< regions: the key
  int kernel = -1;                    ///< regions: the number of the distinct key
  int space = -1;                     ///< regions: a value or row whose shape is walked
  int ops = 1;
};

/// A value that outlives the call: written to a slot, or to its gradient.
struct write {
  int slot = -1;
  bool gradient = false;
  int value = -1;
  int owner = -1;  ///< the parameter without whose gradient nothing is written; -1: always
};

/// What a program wants of a parameter's gradient that may be absent in a call.
enum class gradient_use : std::uint8_t {
  none,       ///< nothing, or it is always there
  read,       ///< what is there at entry
  collected,  ///< backward() adds to it, unless the parameter is frozen
};

/// How a slot takes part in a program: values at entry, -1 where not read.
struct program_slot {
  slot_kind kind = slot_kind::tensor;
  int leaf = -1;
  int grad_leaf = -1;
  bool clears_gradient = false;
  bool mixed = false;  ///< the gradient is wanted for more than the parameter's update
  gradient_use use = gradient_use::none;
  std::int8_t requires_grad = -1;  ///< what it is told to be in the end; -1: nothing
};

/// The kernels of a program's distinct regions: words [first, first + count).
struct distinct_key {
  int first = 0;
  int count = 0;
  bool row = false;
};

/// What a graph is lowered to: values, and the steps that make them in order. A view of arrays that
/// belong to a program_storage (in constant evaluation, or at run time for traced graphs).
struct program {
  const node* values = nullptr;
  const step* steps = nullptr;
  const int* inputs = nullptr;
  const int* outputs = nullptr;
  const std::uint64_t* words = nullptr;
  const op_info* const* word_ops = nullptr;  ///< of a traced graph: per word, nullptr for inputs
  const distinct_key* keys = nullptr;
  const write* writes = nullptr;
  const int* results = nullptr;
  const program_slot* slots = nullptr;
  const symbol* symbols = nullptr;
  const equality* equalities = nullptr;
  const shape* spaces = nullptr;
  struct sizes {
    int values = 0, steps = 0, inputs = 0, outputs = 0, words = 0, keys = 0, writes = 0,
        results = 0, slots = 0, symbols = 0, equalities = 0, spaces = 0;
    friend constexpr bool operator==(const sizes&, const sizes&) = default;
  } count;
};

constexpr int at_least_one(int n) { return n > 0 ? n : 1; }

/// The arrays of a program whose sizes are exactly Size.
template <program::sizes Size>
struct program_storage {
  static constexpr program::sizes size = Size;
  node values[at_least_one(Size.values)];
  step steps[at_least_one(Size.steps)];
  int inputs[at_least_one(Size.inputs)] = {};
  int outputs[at_least_one(Size.outputs)] = {};
  std::uint64_t words[at_least_one(Size.words)] = {};
  distinct_key keys[at_least_one(Size.keys)];
  write writes[at_least_one(Size.writes)];
  int results[at_least_one(Size.results)] = {};
  program_slot slots[at_least_one(Size.slots)];
  symbol symbols[at_least_one(Size.symbols)];
  equality equalities[at_least_one(Size.equalities)];
  shape spaces[at_least_one(Size.spaces)];

  constexpr program view() const {
    return {values, steps,   inputs, outputs, words,      nullptr, keys,
            writes, results, slots,  symbols, equalities, spaces,  Size};
  }
};

}  // namespace xla::detail
