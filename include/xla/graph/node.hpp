// SPDX-License-Identifier: Apache-2.0
#pragma once

// A node of a graph, and op_info, the record of functions and facts that each op registers. The
// header knows no particular op: graph.hpp holds nodes, passes read them, op/ fills in the records.

#include <bit>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>

#include "xla/graph/attributes.hpp"
#include "xla/shape/dtype.hpp"
#include "xla/shape/layout.hpp"

namespace xla::detail {

struct gradient_scope;
class handle;
struct fuser;
struct graph;
class gradient_user;
class graph_backward;
class loop_backward;
struct graph_roots;
struct impl;
class lowering;
class node_lists;
struct loop_maker;
struct op_record;
struct pass_state;
struct plan_steps;
template <class In>
struct basic_plan;
template <class In>
class basic_memory_planner;
struct kernel_call;
struct kernel_choice;
struct shape_rule;
struct tile_call;

inline constexpr int max_results = 8;  ///< of one op
inline constexpr int few_inputs = 3;   ///< that a node holds itself

/// How an op takes part in fusion.
enum class op_kind : std::uint8_t {
  leaf,      ///< a value that comes from outside the graph
  constant,  ///< one number, known when the graph was made
  map,       ///< element by element, with broadcasting
  reduce,    ///< over axes, which stay with size 1
  alias,     ///< the same elements under another shape
  output,    ///< another result of the op that it reads, whose step makes it
  library,   ///< a step of its own
};

/// In which orders the axes of what an op reads and makes may lie in memory.
enum class axes_rule : std::uint8_t {
  numbered,   ///< as they are numbered alone: row by row
  any,        ///< in any, one for all that has the result's rank; attributes name axes
  broadcast,  ///< the same, and all inputs are broadcast to the result
  turned,     ///< in any: the same elements, and other numbers for the axes
  images,     ///< row by row, or channels innermost, which the attribute channels_last says then
};

/// The identity of an op in fused regions and hashes: its name's FNV-1a hash.
constexpr std::uint32_t op_id(std::string_view name) {
  std::uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

template <class Op>
inline constexpr std::uint32_t id_of = op_id(Op::name);

/// From the id back to the definition; two ops of one id do not compile.
template <std::uint32_t Id>
struct op_by_id;

/// What some ops do in a plan that has a step of theirs.
struct plan_hooks {
  /// Where its kernel notifies an epilogue of tiles of the result: finds the maps that can run
  /// then.
  void (*epilogues)(plan_steps&) = nullptr;
  /// Of an op that exchanges: tells a plan how to say whose exchanges they are.
  void (*identify)(plan_steps&) = nullptr;
  /// Where plans may start its exchange early, with others, and wait late: sees to that.
  void (*buckets)(plan_steps&) = nullptr;
  /// Of a loop: makes what runs the steps of all loops.
  void (*loops)(plan_steps&) = nullptr;
  /// Where a result may be written over an input: whether step i may write this value over that
  /// one, if nothing else reads it later.
  bool (*overwrites)(const basic_plan<void>& p, int i, int value, int old) = nullptr;
  /// And puts such an input, if it can, where step i writes a value that leaves the plan.
  void (*put_input)(basic_memory_planner<void>& by, int i, int value) = nullptr;
};

/// What the library knows of an op at given element types: made from its definition in op/, by
/// info_of<Op, Out, In>, and referred to by every node of that op.
struct op_info {
  std::string_view name;
  std::uint32_t id = 0;  ///< see is()
  op_kind kind = op_kind::library;
  bool commutative = false;
  bool costly = false;   ///< worth keeping rather than computing twice (exp, log …)
  bool impure = false;   ///< not merged, folded or removed (random numbers)
  bool check = false;    ///< may throw on its input's values
  bool exchanges = false;       ///< with other replicas: each runs it once, in the same order
  bool alone_is_input = false;  ///< in a world of one its result is its first input
  bool updates = false;  ///< its result may lie where its first input lay
  bool picks = false;    ///< of its first input it reads as many elements as it makes
  bool product = false;  ///< of matrices: it has loops
  bool moves = false;    ///< its result is on a device of its own: see op::to_device
  bool loops_steps = false;  ///< it is a loop_info
  bool differentiable = false;
  /// Of a library op that does the same for each index of its leading axes: how many last axes it
  /// takes at a time; 0: it takes them all.
  std::int8_t takes_axes = 0;
  std::int8_t results = 1;
  std::int8_t prepares = -1;  ///< an input whose elements its kernel first gives another form
  axes_rule lies = axes_rule::numbered;  ///< of a reduction and of an alias it follows from these
  dtype result = dtype::float32;  ///< the element type of what it makes, of the first result
  shape (*shape_of)(const shape_rule&) = nullptr;
  void (*gradient)(gradient_scope&) = nullptr;
  void (*run)(const kernel_call&) = nullptr;
  void (*tile)(const tile_call&) = nullptr;
  /// Of an op whose kernel has several algorithms: names the one for a call's sizes.
  void (*choose)(const kernel_call& of, kernel_choice& out) = nullptr;
  /// Of a product: the sizes that it loops over, a multiply-add at each place; from the shapes of
  /// inputs and result, and the attributes.
  shape (*loops)(const shape* in, const shape& out, const packed_attributes& attr) = nullptr;
  std::span<const attribute_field> fields = {};  ///< of its attributes
  /// Says which layouts of inputs and result it prefers, from its attributes alone, and notes in
  /// the attributes that they have them. And the pass that inserts the copies.
  void (*preferred_layout)(op_record& n, layout* inputs, layout& result) = nullptr;
  void (*layouts)(pass_state&) = nullptr;
  void (*in_order)(impl&) = nullptr;  ///< executes it eagerly, as it wishes
  void (*before)() = nullptr;         ///< of one that exchanges: runs what this thread has recorded
  const plan_hooks* plan = nullptr;   ///< what it does in plans
  /// Where it has less, the same without functions, and with the kernel alone: a compiled program
  /// points to these, so that it brings no gradient rule and no kernel that it does not run.
  bool has_less = false;
  const op_info* facts = nullptr;
  const op_info* runs = nullptr;
};

/// Of a loop: with what makes that which runs its steps; see run/plan/loop_steps.hpp.
struct loop_info : op_info {
  const loop_maker* maker = nullptr;
  bool draws = false;  ///< its steps draw random numbers
};

/// An op and all that fixes what it computes of its inputs, with the type and dims of its result:
/// what a node of a graph, a tensor at run time and a constant that floats have in common. They are
/// made of one another by copying it whole.
struct op_record {
  const op_info* op = nullptr;
  dtype type = dtype::float32;
  std::int8_t rank = 0;
  int arity = 0;
  extent dims[max_rank] = {};
  packed_attributes attr;   ///< of the op: fixed when the graph is made
  std::source_location at;  ///< of a check: the line that called it

  /// By name, as the op declares them.
  template <class Op>
  constexpr typename Op::attributes attributes() const {
    return unpack<typename Op::attributes>(attr);
  }
  template <class Op>
  constexpr void set(const typename Op::attributes& a) {
    attr = pack(a);
  }
  constexpr shape dims_shape() const {
    shape s;
    s.rank = rank;
    if (__builtin_is_constant_evaluated())
      for (int i = 0; i < rank; ++i) s.dims[i] = dims[i];
    else __builtin_memcpy(s.dims, dims, sizeof dims);  // all of them: no loop, no call
    return s;
  }
  constexpr void set_shape(const shape& s) {
    rank = static_cast<std::int8_t>(s.rank);
    for (int i = 0; i < s.rank; ++i) dims[i] = s.dims[i];
  }
};

/// An op of a graph: its inputs are earlier nodes, which input_lists::of() gives.
struct node : op_record {
  bool needs_grad = false;
  bool input_grad = false;  ///< needs one if an argument tensor that went into it does
  bool gradient = false;    ///< made by backward()
  /// Where they are few; else the first is the place of all in the graph's input_lists.
  int in[few_inputs] = {-1, -1, -1};
  int segment = 0;          ///< the checkpoint() that does not keep it; 0: it is kept
  int loop = 0;             ///< the innermost loop from step to step of which it differs; 0: none
  int after[2] = {-1, -1};  ///< nodes that it waits for and does not read
};

/// The inputs of nodes that have more than they hold: a range for each, in one array.
struct input_lists {
  int* all = nullptr;
  int count = 0, capacity = 0;

  /// A node's inputs, as many as its arity says, until others are added. Not in line: passes ask
  /// in many places.
  [[gnu::noinline]] constexpr const int* of(const node& n) const {
    return n.arity > few_inputs ? all + n.in[0] : n.in;
  }
  [[gnu::noinline]] constexpr int* of(node& n) {
    return n.arity > few_inputs ? all + n.in[0] : n.in;
  }

  /// Gives a node room for so many inputs.
  constexpr void open(node& n, int arity) {
    n.arity = arity;
    if (arity <= few_inputs) return;
    n.in[0] = count;
    count += arity;
    if (count > capacity) grow();
  }
  /// Gives a node that was copied from a graph with these lists inputs of its own.
  [[gnu::cold, gnu::noinline]] constexpr void own(node& n, const input_lists& from) {
    if (n.arity <= few_inputs) return;
    const int first = n.in[0];
    open(n, n.arity);
    for (int k = 0; k < n.arity; ++k) all[n.in[0] + k] = from.all[first + k];
  }
  constexpr void own(node& n) { own(n, *this); }
  /// Adds what others have, which places count from the first.
  constexpr void append(const int* others, int n) {
    count += n;
    if (count > capacity) grow();
    for (int i = 0; i < n; ++i) all[count - n + i] = others[i];
  }

 private:
  [[gnu::cold, gnu::noinline]] constexpr void grow() {
    const int had = capacity;
    capacity = 2 * count;
    int* const more = new int[static_cast<std::size_t>(capacity)]();
    for (int i = 0; i < had; ++i) more[i] = all[i];
    delete[] all;
    all = more;
  }
};

/// What a product's operands are rounded to: the field of its attributes that says so.
constexpr precision precision_of(const op_info& op, const packed_attributes& attr) {
  int at = 0;
  for (const attribute_field& f : op.fields) {
    const int first = field_begin(at, f.bits);
    if (f.kind == field_kind::products)
      return static_cast<precision>(field_bits(attr, first, f.bits));
    at = first + f.bits;
    for (int i = 1; i < f.count; ++i) at = field_begin(at, f.bits) + f.bits;
  }
  return precision::float32;
}

/// Whether that is the op, whatever its element types and parts: asked by the id, as an op has many
/// descriptions, and as with -fsanitize=undefined g++ does not take comparisons of their addresses
/// for constants.
template <class Op>
constexpr bool is(const op_info& op) {
  return op.id == id_of<Op>;
}
/// Of a node or tensor.
template <class Op, class Node>
constexpr bool is(const Node& n) {
  return n.op->id == id_of<Op>;
}

/// Of nodes and shapes in any mixture.
template <class A, class B>
constexpr bool same_dims(const A& a, const B& b) {
  const int rank = a.rank;
  if (rank != b.rank) return false;
  for (int i = 0; i < rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

/// The same op with the same attributes and result: of equal inputs it makes equal elements.
constexpr bool same_record(const op_record& a, const op_record& b) {
  return a.op->id == b.op->id && a.attr == b.attr && a.type == b.type && a.arity == b.arity &&
         same_dims(a, b);
}

}  // namespace xla::detail

/// Makes an op known by its id.
#define XLA_DETAIL_OP_ID(type)                             \
  template <>                                              \
  struct xla::detail::op_by_id<xla::detail::id_of<type>> { \
    using op = type;                                       \
  }
