// SPDX-License-Identifier: Apache-2.0
#pragma once

// A node of a graph, and op_info, the record of functions and facts that each op registers. The
// header knows no particular op: graph.hpp holds nodes, passes read them, op/ fills in the records.

#include <bit>
#include <cstdint>
#include <cstring>
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
struct write;
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
inline constexpr int few_inputs = 3;   ///< that a node stores itself

/// How an op takes part in fusion.
enum class op_kind : std::uint8_t {
  leaf,      ///< a value that comes from outside the graph
  constant,  ///< one number, known when the graph was made
  map,       ///< element by element, with broadcasting
  reduce,    ///< over axes, which keep size 1 in the result
  alias,     ///< the same elements under another shape
  output,    ///< a further result of the op that it reads, which computes both
  library,   ///< everything else: an op with a kernel that runs as a step of its own
};

/// Which orders of axes in memory (layouts) an op accepts for its inputs and its result.
enum class axes_rule : std::uint8_t {
  numbered,   ///< row-major only
  any,        ///< any order, the same for all operands of the result's rank; attributes name axes
  broadcast,  ///< as `any`, and all inputs are broadcast to the result
  /// Any order; the result has the same elements with its axes renumbered, as of permute().
  permuted,
  images,  ///< row-major, or channels innermost where the attribute channels_last says so
};

/// The identity of an op in fused regions and hashes: its name's FNV-1a hash.
constexpr std::uint32_t op_id(std::string_view name) {
  std::uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

template <class Op>
inline constexpr std::uint32_t id_of = op_id(Op::name);

/// The op's definition from its id. Two ops with the same id do not compile.
template <std::uint32_t Id>
struct op_by_id;

/// Functions by which an op takes part in making a plan. Most ops have none.
struct plan_hooks {
  /// For an op whose kernel notifies an epilogue of finished tiles: finds the maps that can run on
  /// a tile.
  void (*epilogues)(plan_steps&) = nullptr;
  /// For an op that exchanges: gives the plan a fingerprint of the program, which replicas compare.
  void (*identify)(plan_steps&) = nullptr;
  /// For exchanges that plans may start early and wait for late: combines them in buckets.
  void (*buckets)(plan_steps&) = nullptr;
  /// For a loop: makes the objects that run the steps of all loops.
  void (*loops)(plan_steps&) = nullptr;
  /// For a loop: finds steps that can run between its own (run/backend/join_updates.hpp).
  void (*join)(plan_steps&) = nullptr;
  /// Whether step i may write its result `value` over its input `old`, if nothing reads that later.
  bool (*overwrites)(const basic_plan<void>& p, int i, int value, int old) = nullptr;
  /// For such an input of a step i whose result leaves the plan: stores the input in the result's
  /// memory, if possible.
  void (*put_input)(basic_memory_planner<void>& by, int i, int value) = nullptr;
};

/// What the library knows of an op at given element types: made from its definition in op/, by
/// info_of<Op, Out, In>, and referred to by every node of that op.
struct op_info {
  std::string_view name;
  std::uint32_t id = 0;  ///< see is()
  op_kind kind = op_kind::library;
  bool commutative = false;
  bool costly = false;     ///< passes save its result instead of computing it again (exp, log …)
  bool impure = false;     ///< not merged, folded or removed (random numbers)
  bool check = false;      ///< may throw on its input's values
  bool exchanges = false;  ///< exchanges with other replicas: each runs it once, in the same order
  bool alone_is_input = false;  ///< in a world of one it returns its first input
  /// Its result may take its first input's memory: it replaces some elements.
  bool updates = false;
  /// It reads no more elements of its first input than its result has (gather).
  bool picks = false;
  bool product = false;      ///< of matrices: `loops` gives its sizes
  bool moves = false;        ///< its result is on a device that it names: see op::to_device
  bool loops_steps = false;  ///< it is a loop: this object is a loop_info
  bool differentiable = false;
  /// For a library op that treats each index of its leading axes alike, such as a batched product:
  /// how many trailing axes one index covers. 0: all of them.
  std::int8_t takes_axes = 0;
  std::int8_t results = 1;
  std::int8_t prepares = -1;  ///< the input that its kernel packs first; -1: none
  /// The layouts that it accepts; reductions and aliases derive theirs.
  axes_rule accepts = axes_rule::numbered;
  dtype result = dtype::float32;  ///< the element type of its first result
  shape (*shape_of)(const shape_rule&) = nullptr;
  void (*gradient)(gradient_scope&) = nullptr;
  void (*run)(const kernel_call&) = nullptr;
  void (*tile)(const tile_call&) = nullptr;
  /// For an op whose kernel has several algorithms: the name of the one for a call's sizes.
  void (*choose)(const kernel_call& of, kernel_choice& out) = nullptr;
  /// For a product: the sizes that it loops over, with one multiply-add per index; computed from
  /// the shapes of inputs and result, and the attributes.
  shape (*loops)(const shape* in, const shape& out, const packed_attributes& attr) = nullptr;
  std::span<const attribute_field> fields = {};  ///< of its attributes
  /// Chooses the layouts of inputs and result from the attributes, and records the choice in them.
  /// `layouts` is the pass that then inserts copies.
  void (*preferred_layout)(op_record& n, layout* inputs, layout& result) = nullptr;
  void (*layouts)(pass_state&) = nullptr;
  /// Executes it in eager mode, if its kernel alone does not suffice.
  void (*with_layouts)(impl&) = nullptr;
  void (*before)() =
      nullptr;  ///< for an op that exchanges: runs the ops that this thread has recorded
  const plan_hooks* plan = nullptr;  ///< its part in making plans
  /// The same op without gradient rule and hooks (`facts`), and with the kernel alone (`runs`). A
  /// compiled program points to these, so that it contains no code that it does not run.
  bool has_less = false;
  const op_info* facts = nullptr;
  const op_info* runs = nullptr;
};

/// For a loop: adds the factory of the objects that run its steps; see run/plan/loop_steps.hpp.
struct loop_info : op_info {
  const loop_maker* maker = nullptr;
  bool draws = false;  ///< its steps draw random numbers
};

/// An op with its attributes, and the type and dims of its result: everything that determines its
/// values for given inputs. Nodes of graphs, tensors at run time and constants outside of graphs
/// all contain one, and are made of each other by copying it.
struct op_record {
  const op_info* op = nullptr;
  dtype type = dtype::float32;
  std::int8_t rank = 0;
  int arity = 0;
  extent dims[max_rank] = {};
  packed_attributes attr;   ///< of the op: fixed when the graph is made
  std::source_location at;  ///< of a check: the line of the call

  /// By name, as the op declares them.
  template <class Op>
  constexpr typename Op::attributes attributes() const {
    return unpack<typename Op::attributes>(attr);
  }
  template <class Op>
  constexpr void set(const typename Op::attributes& a) {
    attr = pack(a);
  }
  [[gnu::noinline]] constexpr shape dims_shape() const {
    shape s;
    s.rank = rank;
    if (__builtin_is_constant_evaluated())
      for (int i = 0; i < rank; ++i) s.dims[i] = dims[i];
    else std::memcpy(s.dims, dims, sizeof dims);  // true for all but loops and calls
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
  bool input_grad = false;  ///< needs a gradient if an argument tensor among its sources does
  bool gradient = false;    ///< made by backward()
  bool scanned = false;     ///< in the body of scan(): a slice of xs
  /// If few; else the first is their index in the graph's input_lists.
  int in[few_inputs] = {-1, -1, -1};
  int segment = 0;  ///< the checkpoint() that drops it; 0: it is kept
  /// The innermost loop in which its value differs from step to step; 0: none.
  int loop = 0;
  int after[2] = {-1, -1};  ///< nodes that it waits for without reading them
};

/// The inputs of nodes that have more than a node stores: a range for each, in one array.
struct input_lists {
  int* all = nullptr;
  int count = 0, capacity = 0;

  /// A node's inputs, as many as its arity says, until others are added. Not inline, because passes
  /// call it in many places.
  [[gnu::noinline]] constexpr const int* of(const node& n) const {
    return n.arity > few_inputs ? all + n.in[0] : n.in;
  }
  [[gnu::noinline]] constexpr int* of(node& n) {
    return n.arity > few_inputs ? all + n.in[0] : n.in;
  }

  /// Gives a node room for this many inputs.
  constexpr void open(node& n, int arity) {
    n.arity = arity;
    if (arity <= few_inputs) return;
    n.in[0] = count;
    count += arity;
    if (count > capacity) grow();
  }
  /// Gives a node that was copied from another graph a list of inputs in this one.
  [[gnu::cold, gnu::noinline]] constexpr void own(node& n, const input_lists& from) {
    if (n.arity <= few_inputs) return;
    const int first = n.in[0];
    open(n, n.arity);
    for (int k = 0; k < n.arity; ++k) all[n.in[0] + k] = from.all[first + k];
  }
  constexpr void own(node& n) { own(n, *this); }
  /// Appends the inputs of other nodes, numbered from the first one's.
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

/// The rounding of a product's operands, a field of its attributes.
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

/// Whether it is that op, with any element types and parameters. Compares ids, because an op has
/// many descriptions, and g++ with -fsanitize=undefined does not take comparisons of their
/// addresses for constants.
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

/// Whether two ops have the same attributes and result type: with equal inputs they compute equal
/// elements.
constexpr bool same_record(const op_record& a, const op_record& b) {
  return a.op->id == b.op->id && a.attr == b.attr && a.type == b.type && a.arity == b.arity &&
         same_dims(a, b);
}

}  // namespace xla::detail

/// Registers an op by its id.
#define XLA_DETAIL_OP_ID(type)                             \
  template <>                                              \
  struct xla::detail::op_by_id<xla::detail::id_of<type>> { \
    using op = type;                                       \
  }
