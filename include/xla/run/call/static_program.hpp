// SPDX-License-Identifier: Apache-2.0
#pragma once

// Captures a function in the compiler and keeps only what run time needs, as constant data.
// compile.hpp instantiates it for each combination of argument types; nothing here runs at run
// time.

#include <array>

#include "xla/kernel/fused/map.hpp"
#include "xla/kernel/fused/row.hpp"
#include "xla/op/attention.hpp"
#include "xla/transform/capture.hpp"

namespace xla::detail {

/// The region of a distinct kernel, as a template argument.
template <const auto& Kept, int Index>
struct key_at {
  static constexpr distinct_key where = Kept.storage.keys[Index];
  static constexpr auto value = [] {
    kernel::region_key<where.count> k{};
    for (int i = 0; i < where.count; ++i) k.words[i] = Kept.storage.words[where.first + i];
    return k;
  }();
};

/// The chains of a captured program: none without loops. Those of loops are in static_chains.hpp.
template <const auto& Kept>
struct chains_of {
  static constexpr int count = 0;
  static constexpr const step_chain* list = nullptr;
};

template <std::uint32_t Id>
inline constexpr const char* op_name = op_by_id<Id>::op::name;
template <>
inline constexpr const char* op_name<0> = "";

template <kernel::region_key Key>
const char* name_in_region(int word) {
  static constexpr auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{op_name < Key[static_cast<int>(I)].input ? 0
                                                               : Key[static_cast<int>(I)].id > ...};
  }(std::make_index_sequence<static_cast<std::size_t>(Key.size)>{});
  return names[word];
}

template <kernel::region_key Key, bool Row>
constexpr region_kernel make_region_kernel() {
  if constexpr (Row)
    return {nullptr, &kernel::row_kernel<Key>::run, &kernel::row_kernel<Key>::scratch_bytes,
            &name_in_region<Key>};
  else return {&kernel::map_kernel<Key>::run, nullptr, nullptr, &name_in_region<Key>};
}

/// The result of a capture, in arrays of exactly the sizes needed.
template <program_sizes Size, program_sizes Ops, int Facts, int Forward, int Listed>
struct stored_program {
  refusal refused;
  int needed = 0;  ///< the capacity with which the capture succeeds
  program_storage<Size> storage;
  backend_storage<Ops> ops;
  std::array<double, static_cast<std::size_t>(Facts) + 1> facts{};
  std::array<std::int8_t, static_cast<std::size_t>(Facts) + 1> flags{};
  bool sets_flags = false;
  /// See kernel/gemm/rounded_call.hpp.
  bool rounds_matmul = false, rounds_convolution = false, rounds_attention = false;
  Passes passes;
  std::array<node, static_cast<std::size_t>(Forward)> forward{};
  std::array<int, static_cast<std::size_t>(Listed)> forward_lists{};

  constexpr program view() const {
    program p = storage.view();
    p.passes = passes;
    return p;
  }
};

/// A program needs the kernels of ops that run as steps of their own, and only the descriptions of
/// others.
template <class Arrays>
constexpr void shrink_to(Arrays& p, const program_sizes& n) {
  for (int i = 0; i < n.steps; ++i)
    if (const step& s = p.steps[i]; s.kind == step_kind::library)
      if (const op_info*& op = p.values[index_of_value(p, n.rows, s.value)].op; op->has_less)
        op = op->runs;
  for (int i = 0; i < n.values; ++i)
    if (const op_info*& op = p.values[i].op; op->has_less) op = op->facts;
}

inline constexpr text not_constexpr =
    "xla::compile: a compiled body, like a pass of it, is constexpr: it cannot print, use a global "
    "variable, throw, or "
    "call what is not constexpr (what follows names it); do that outside, and pass tensors and "
    "models as arguments. If there is an error above, fix that first";

template <int Capacity, class F, class... A>
struct capture_once {
  // The sentence is part of the name, because clang prints it for a function that is not constant;
  // g++ prints it from `capturable`.
  template <int Size, sentence<Size> Why>
  static constexpr captured<Capacity> refused = capture<Capacity, F, A...>();

  static constexpr int size = sentence_size(not_constexpr.view());
  static constexpr const captured<Capacity>& value =
      refused<size, sentence_of<size>(not_constexpr.view())>;
};

/// Copies the needed parts of a capture. It is a function, so that no object file contains the
/// capture's own large arrays.
template <int Capacity, class F, class... A>
constexpr auto store_program() {
  constexpr const captured<Capacity>& from = capture_once<Capacity, F, A...>::value;
  constexpr auto fits = [](const auto& c) { return c.needed <= Capacity && !c.refused.failed(); };
  constexpr bool whole = fits(from);
  constexpr program_sizes n = whole ? from.count : program_sizes{};
  constexpr int facts = whole ? from.fact_count : 0;
  constexpr program_sizes ops = whole ? from.ops_count : program_sizes{};
  constexpr int forward = whole ? from.forward_count : 0;
  constexpr int listed = whole ? from.forward_listed : 0;
  stored_program<n, ops, facts, forward, listed> out;
  out.refused = from.refused;
  out.passes = passes_of<F>;
  out.needed = from.needed;
  const auto copy = [](auto&& to, const auto& of, int count) {
    for (int i = 0; i < count; ++i) to[i] = of[i];
  };
  auto& s = out.storage;
  for_each_array(copy, s, from.arrays, n);
  copy(s.rows, from.arrays.rows, n.rows);
  copy(out.facts.data(), from.facts, facts);
  copy(out.flags.data(), from.flags, facts);
  for (int i = 0; i < facts; ++i) out.sets_flags |= from.flags[i] != 0;
  // Includes those of a backward() outside, for which functions with their own gradient may need
  // any product.
  const auto note_kernels = [&out](const node& v) {
    const op_kind kind = v.op->kind;
    if (kind != op_kind::library && kind != op_kind::alias) return;
    if (precision_of(*v.op, v.attr) != precision::bfloat16) return;
    const bool any = is<op::custom_gradient>(*v.op), matmul = is<op::matmul>(*v.op),
               attends = is<op::attention>(*v.op) || is<op::attention_gradient>(*v.op);
    out.rounds_matmul |= any || matmul || attends;  // used by the gradients of masks
    out.rounds_convolution |= any || !(matmul || attends);
    out.rounds_attention |= any || attends;
  };
  for (int i = 0; i < n.values; ++i) note_kernels(s.values[i]);
  for (int i = 0; i < forward; ++i) note_kernels(from.arrays.values[Capacity - forward + i]);
  shrink_to(s, n);
  if constexpr (keeps_backend_graphs) {
    for_each_array(copy, out.ops, from.ops, ops);
    copy(out.ops.rows, from.ops.rows, ops.rows);
    shrink_to(out.ops, ops);
  }
  copy(out.forward, from.arrays.values + (Capacity - forward), forward);
  copy(out.forward_lists, from.arrays.inputs + (few_inputs * Capacity - listed), listed);
  return out;
}

// g++ caches the result of a constant function call, so calling it again is free; clang would
// evaluate it twice.
#ifdef __clang__
template <int Capacity, class F, class... A>
concept capturable = true;
#else
template <int Capacity, class F, class... A>
concept capturable =
    requires { typename std::bool_constant<(void(capture<Capacity, F, A...>()), true)>; };
#endif

/// The path in its argument of the parameter or tensor that has a slot, counted from 1.
template <class... A>
constexpr text path_of_slot(int slot) {
  text path;
  const auto visit = [&]<class X>(std::type_identity<X>) {
    if constexpr (is_part<X>) --slot;
    visit_types<X>([&]<class L>(std::type_identity<L>, const tree_path& way) {
      if constexpr (is_state<L> || is_tensor<L> || std::is_same_v<L, Scalar>)
        if (--slot == 0) path = way.written();
    });
  };
  (visit(std::type_identity<bare<A>>{}), ...);
  return path;
}
/// A refusal with the module of the parameter that the op reads: "blocks.0-23.up" for those of 24
/// blocks.
template <class... A>
constexpr text refused_in_module(const refusal& of) {
  const text one = path_of_slot<A...>(of.slot), other = path_of_slot<A...>(of.last_slot);
  const std::string_view first = one.view(), last = other.view();
  text why = of.why;
  const std::size_t end = first.rfind('.');
  if (end == first.npos) return why;
  std::size_t begin = 0;  // of the block's number
  for (std::size_t i = 0; i < first.size() && i < last.size() && first[i] == last[i]; ++i)
    if (first[i] == '.') begin = i + 1;
  why << ", in module ";
  if (of.slot == of.last_slot || begin > end) return why << first.substr(0, end);
  const std::size_t number_end = first.find('.', begin);
  return why << first.substr(0, number_end) << '-'
             << last.substr(begin, last.find('.', begin) - begin)
             << first.substr(number_end, end - number_end);
}

/// A step function at given argument types, evaluated by the C++ compiler: its program as static
/// data, and one kernel for each distinct region.
template <class F, class... A>
struct static_program {
  template <int Capacity>
  static constexpr auto attempt = store_program<Capacity, F, A...>();

  static constexpr int first = first_capacity<A...>();
  static_assert(
      capturable<first, F, A...>,
      "xla::compile: a compiled body, like a pass of it, is constexpr: it cannot print, use "
      "a global "
      "variable, throw, or call what is not constexpr (what follows names it); do that "
      "outside, and pass tensors and models as arguments. If there is an error above, "
      "fix that first");
  /// The capacity for the next attempt. Passes add nodes only when the body has had room.
  template <int Tried>
  static constexpr int enough = attempt<Tried>.needed > Tried ? attempt<Tried>.needed : Tried;
  static constexpr int capacity = enough<enough<first>>;
  static constexpr text why = [] {
    constexpr const refusal& refused = attempt<capacity>.refused;
    if constexpr (refused.slot == 0) return refused.why;
    else return refused_in_module<A...>(refused);
  }();
  static constexpr const auto& result = attempt<capacity>;
  static constexpr program_sizes size = result.storage.size;

  template <std::size_t... I>
  static constexpr auto make_kernels(std::index_sequence<I...>) {
    return std::array<region_kernel, sizeof...(I) + 1>{
        make_region_kernel<key_at<result, static_cast<int>(I)>::value,
                           result.storage.keys[I].row>()...};
  }
  static constexpr auto kernels =
      make_kernels(std::make_index_sequence<static_cast<std::size_t>(size.keys)>{});

  static constexpr program source = [] {
    program p = result.view();
    p.chains = chains_of<result>::list;
    return p;
  }();

  static constexpr program ops = [] {
    if constexpr (keeps_backend_graphs) return result.ops.view();
    else return program{};
  }();
};

}  // namespace xla::detail
