// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program: steps and values in the order of execution, as plain arrays without sizes. Lowering
// makes it, run/plan/ turns it into a plan for given sizes, backends compile it.

#include <iterator>

#include "xla/graph/graph.hpp"

namespace xla {

namespace detail {
struct added_passes;
}

/// The passes that a graph goes through on its way to a program: all of the library's, except those
/// disabled by xla::tags::without, xla::set_passes() or XLA_PASSES in the environment, and those
/// that a program adds (xla/passes.hpp).
struct Passes {
  std::uint32_t left_out = 0;  ///< by their positions in the list, one bit each
  bool verify = false;         ///< the graph after each of them is verified
  const detail::added_passes* added = nullptr;

  /// Disables what either disables, and adds what either adds.
  friend constexpr Passes operator&(Passes a, Passes b) {
    if (__builtin_is_constant_evaluated() && a.added && b.added)
      throw "xla::tags::with: one list names all passes: xla::tags::with<A, B>";
    return {a.left_out | b.left_out, a.verify || b.verify, a.added ? a.added : b.added};
  }
  friend constexpr bool operator==(Passes, Passes) = default;
};

namespace detail {

enum class step_kind : std::uint8_t {
  library,
  map,
  row,
  start,  ///< of an exchange with the other replicas, in plans: see run/plan/buckets.hpp
  wait,   ///< for its end
};

/// One thing to execute: an op's own kernel, or a fused region. Ranges are into the program's
/// lists.
struct step {
  step_kind kind = step_kind::library;
  bool check = false;
  bool exchanges = false;  ///< exchanges with other replicas: it keeps its order among exchanges
  int value = -1;          ///< library: the value that it computes
  int first_input = 0, inputs = 0;    ///< values read
  int first_output = 0, outputs = 0;  ///< values written
  int first_word = 0, words = 0;      ///< regions: the key
  int kernel = -1;                    ///< regions: the number of the distinct key; start and wait:
                                      ///< of the exchange
  int space = -1;                     ///< regions: a value or row whose shape is iterated over
  int ops = 1;
  int first_body = 0, body = 0;  ///< for a loop: its steps, in program::bodies
};

/// By how many bytes a pointer of a loop's steps advances to an even step, and to an odd one.
struct pointer_move {
  int pointer = 0;
  std::int64_t by[2] = {};
};

/// How many of a loop's steps a chain runs in one call, if the body is nothing else. After each
/// step it copies unchanged carries and advances all pointers.
struct chain_turns {
  std::int64_t first = 0, count = 1;  ///< steps
  /// Per pointer: the bytes by which it advances to an even step; then those to an odd one.
  const std::int64_t* by = nullptr;
  int pointers = 0;                ///< a multiple of 8
  const int* copies = nullptr;     ///< the number of bytes of each
  int first_copy = 0, copied = 0;  ///< pointers from, then to, and how many copies there are
};

/// Maps over one element that follow one another in a loop's body, with a kernel that runs them
/// all.
struct step_chain {
  const step* steps = nullptr;  ///< as captured: a call may omit some
  int count = 0;
  void (*run)(void** pointers, const chain_turns& turns) = nullptr;
  const int* values = nullptr;  ///< the target of each pointer
  int pointers = 0;
};

/// A value that outlives the call: written to a slot, or to its gradient.
struct write {
  int slot = -1;
  bool gradient = false;
  int value = -1;
  /// The slot whose gradient is needed for the write to happen; -1: it always happens.
  int owner = -1;
};

/// How a program uses a gradient, of a parameter or a tensor, that may be absent in a call.
enum class gradient_use : std::uint8_t {
  none,  ///< nothing, or it is always there
  read,  ///< its value at entry
  /// Backward() adds to it, unless the parameter is frozen or the tensor requires no gradient.
  collected,
};

/// The use of a slot in a program: its values at entry, or -1 if they are not read. The slots of
/// arguments come first. After them come those of argument tensors that the body writes, which
/// become leaves of their own.
struct program_slot {
  slot_kind kind = slot_kind::tensor;
  int leaf = -1;
  int grad_leaf = -1;
  int left_in = -1;         ///< the argument tensor that becomes this one
  int origin = -1;          ///< of such: the slot of the call from which it was split
  bool from_entry = false;  ///< of such: its gradient began as that slot's at entry
  bool clears_gradient = false;
  /// The call leaves a new value, a new gradient, in the slot.
  bool writes_value = false, writes_gradient = false;
  bool mixed = false;      ///< the gradient is used for more than the parameter's update
  bool entangled = false;  ///< of a tensor: gradients would not reach it, as in slot
  bool not_alone = false;  ///< backward() also adds to gradients that are always there
  gradient_use use = gradient_use::none;
  std::int8_t requires_grad = -1;  ///< the last requires_grad_() of the body; -1: unchanged
  sharding sharded_as;             ///< to devices of a plugin
};

/// The key of a distinct region, for which there is one kernel: words [first, first + count).
struct distinct_key {
  int first = 0;
  int count = 0;
  bool row = false;
};

/// Rows of a repeat (repeats.hpp): a captured program stores the first one's value, or step, alone;
/// run/backend/whole_program.hpp makes the others when the program is first used.
struct stored_row {
  static constexpr int of_step = 1 << 30;
  int at = 0;       ///< its index among those that are stored
  int number = 0;   ///< of a value: its number; or of_step, which come last
  int rows = 0;     ///< how many there are; values are numbered row by row
  int strides = 0;  ///< what each row adds to the inputs of the one before, in program::inputs; of
                    ///< a value then to its slot, or to where a slice starts
};
/// Moves a value of a slot to another one, and a slice to another start.
constexpr void add_to_slot(node& n, int distance) {
  if (distance == 0) return;
  if (n.op->kind == op_kind::library) {
    n.attr.size += distance;
    return;
  }
  auto of = n.attributes<op::of_slot>();
  of.slot = of.slot + distance;
  n.set<op::of_slot>(of);
}

/// The number of elements in each array of a program.
struct program_sizes {
  int values = 0, steps = 0, inputs = 0, outputs = 0, words = 0, keys = 0, writes = 0, results = 0,
      slots = 0, symbols = 0, equalities = 0, spaces = 0, rows = 0;
  int bodies = 0;  ///< counts of all steps, and of those of loops, which come last
  friend constexpr bool operator==(const program_sizes&, const program_sizes&) = default;
};

/// The arrays of a program: pointers, arrays, or vectors, as Array makes them from the element type
/// and the member that holds their number.
template <template <class T, int program_sizes::*Count> class Array>
struct program_arrays {
  Array<node, &program_sizes::values> values{};
  Array<step, &program_sizes::steps> steps{};
  Array<int, &program_sizes::inputs> inputs{};
  Array<int, &program_sizes::outputs> outputs{};
  Array<std::uint64_t, &program_sizes::words> words{};
  Array<distinct_key, &program_sizes::keys> keys{};
  Array<write, &program_sizes::writes> writes{};
  Array<int, &program_sizes::results> results{};
  Array<program_slot, &program_sizes::slots> slots{};
  Array<symbol, &program_sizes::symbols> symbols{};
  Array<equality, &program_sizes::equalities> equalities{};
  Array<shape, &program_sizes::spaces> spaces{};
};

/// Calls f with the values of each, then with the steps of each, and so on; each is a
/// program_arrays or the program_sizes that belong to one.
template <class F, class... Each>
constexpr void for_each_array(F f, Each&... each) {
  f(each.values...);
  f(each.steps...);
  f(each.inputs...);
  f(each.outputs...);
  f(each.words...);
  f(each.keys...);
  f(each.writes...);
  f(each.results...);
  f(each.slots...);
  f(each.symbols...);
  f(each.equalities...);
  f(each.spaces...);
}

/// The index of the value of that number, or of its first row, among those that are stored.
template <class P>
constexpr int index_of_value(const P& p, int rows, int number) {
  int first = 0, end = rows;  // the rows before `first` begin at that number or before it
  while (first < end) {
    const int middle = (first + end) / 2;
    if (p.rows[middle].number <= number) first = middle + 1;
    else end = middle;
  }
  if (first == 0) return number;
  const stored_row& r = p.rows[first - 1];
  return number < r.number + r.rows ? r.at : number - r.number - r.rows + 1 + r.at;
}

template <class T, int program_sizes::*>
using pointer_to = T*;
template <class T, int program_sizes::*>
using pointer_to_const = const T*;

/// The result of lowering a graph: values, and the steps that compute them in order. A view of
/// arrays that belong to a program_storage (in constant evaluation, or at run time for traced
/// graphs).
struct program : program_arrays<pointer_to_const> {
  /// The inputs of a value, as many as its arity says.
  constexpr const int* inputs_of(int value) const {
    const node& n = values[value];
    return n.arity > few_inputs ? inputs + n.in[0] : n.in;
  }
  /// The value at entry that a write replaces; -1 if there is none.
  constexpr int replaced_by(const write& w) const {
    const program_slot& slot = slots[w.slot];
    return w.gradient ? slot.grad_leaf : slot.leaf;
  }

  program_sizes count;
  const stored_row* rows = nullptr;          ///< of a captured program only
  const op_info* const* word_ops = nullptr;  ///< of a traced graph: per word, nullptr for inputs
  const step* bodies = nullptr;              ///< the steps of loops
  const step_chain* chains = nullptr;        ///< of a compiled function, up to one without steps

  /// Separates the steps of loops, which come last, from the others.
  constexpr void divide() {
    count.steps -= count.bodies;
    bodies = steps + count.steps;
  }
  Passes passes{};  ///< whose result it is
};

/// The same while it is filled: arrays with room, and how much of them is used.
struct program_builder : program_arrays<pointer_to> {
  program_sizes count;
  stored_row* rows = nullptr;
  const op_info** word_ops = nullptr;  ///< needed at run time, where regions have no kernel
};

static_assert(
    [] {
      int visited = 0;
      program_sizes sizes;
      for_each_array([&](int) { ++visited; }, sizes);
      return (visited + 2) * sizeof(int) == sizeof sizes &&
             visited * sizeof(void*) == sizeof(program_arrays<pointer_to>);
    }(),
    "an array of a program belongs in program_sizes, program_arrays and for_each_array");

/// Room for the lowered form of any graph with this many nodes, inputs in lists, slots, size
/// symbols and roots.
constexpr program_sizes room_for(int nodes, int listed, int slots, int symbols, int equalities,
                                 int results, int writes) {
  return {.values = nodes,
          .steps = nodes,
          .inputs = few_inputs * nodes + listed,
          .outputs = nodes,
          .words = 4 * nodes,
          .keys = nodes,
          .writes = writes,
          .results = results,
          .slots = slots,
          .symbols = symbols,
          .equalities = equalities,
          .spaces = nodes};
}

/// A program, or a builder, of arrays or vectors.
template <class P, class Arrays>
constexpr P pointers_into(Arrays& arrays, const program_sizes& count) {
  P p;
  for_each_array([](auto*& to, auto& from) { to = std::data(from); }, p, arrays);
  p.count = count;
  if constexpr (requires { arrays.rows; }) p.rows = arrays.rows;
  return p;
}

template <program_sizes Size>
struct exactly {
  template <class T, int program_sizes::*Count>
  using array = T[Size.*Count > 0 ? Size.*Count : 1];
};

/// The arrays of a program as members: Size elements in each, but at least one.
template <program_sizes Size>
struct program_storage : program_arrays<exactly<Size>::template array> {
  static constexpr program_sizes size = Size;
  stored_row rows[Size.rows > 0 ? Size.rows : 1] = {};
  constexpr program view() const {
    auto p = pointers_into<program>(*this, Size);
    p.divide();
    return p;
  }
};

}  // namespace detail
}  // namespace xla
