// SPDX-License-Identifier: Apache-2.0
#pragma once

// The lowering of every op of the library, as one table; an op that lacks one does not compile.
// program.hpp looks ops up in it.

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "xla/ext/stablehlo/loops.hpp"
#include "xla/ext/stablehlo/lower_attention.hpp"
#include "xla/ext/stablehlo/lower_collectives.hpp"
#include "xla/ext/stablehlo/lower_convolution.hpp"
#include "xla/ext/stablehlo/lower_gather.hpp"
#include "xla/ext/stablehlo/lower_matmul.hpp"
#include "xla/ext/stablehlo/lower_movement.hpp"
#include "xla/ext/stablehlo/lower_order.hpp"
#include "xla/ext/stablehlo/lower_pooling.hpp"
#include "xla/ext/stablehlo/lower_random.hpp"
#include "xla/ext/stablehlo/lower_resample.hpp"
#include "xla/ext/stablehlo/lower_scan.hpp"
#include "xla/ext/stablehlo/lower_unfold.hpp"
#include "xla/ext/stablehlo/lowering.hpp"
#include "xla/op/table.hpp"

namespace xla::detail::hlo {

// Ops that the program writer handles itself: its arguments, and the results of an op with several;
// and ops that no program contains.
template <>
struct lowering<op::input> {
  static constexpr bool of_program = true;
};
template <>
struct lowering<op::scalar> : lowering<op::input> {};
template <>
struct lowering<op::output> : lowering<op::input> {};
template <>
struct lowering<op::data> : lowering<op::input> {};
template <>
struct lowering<op::compiled_result> : lowering<op::input> {};

/// A program's arguments are on its device already.
template <>
struct lowering<op::to_device> {
  static value write(writer&, const lowering_call& f) { return f.in(0); }
};

/// The lowering of an op as data: a function or a refusal, neither for ops that the program writer
/// handles.
struct lowering_entry {
  list<value> (*write)(writer&, const lowering_call&) = nullptr;
  std::string_view refused = {};
};

template <class Op>
concept has_lowering = requires { sizeof(lowering<Op>); };

template <class Op>
list<value> write_lowering(writer& w, const lowering_call& f) {
  if constexpr (std::same_as<decltype(lowering<Op>::write(w, f)), value>)
    return list_of({lowering<Op>::write(w, f)});
  else return lowering<Op>::write(w, f);
}

/// An entry of the table over all ops: one without a lowering does not compile.
template <class Op>
struct lowering_of {};
template <has_lowering Op>
struct lowering_of<Op> {
  static constexpr lowering_entry value = [] {
    lowering_entry e;
    if constexpr (requires { lowering<Op>::refused; }) e.refused = lowering<Op>::refused;
    else if constexpr (!requires { lowering<Op>::of_program; }) e.write = &write_lowering<Op>;
    return e;
  }();
};

/// The lowering of a custom op, which is not in the list.
struct custom_lowering {
  std::uint32_t id;
  lowering_entry lowering;
  const custom_lowering* next = nullptr;
};
inline std::atomic<const custom_lowering*> custom_lowerings{nullptr};

template <class Op>
bool add_custom_lowering() {
  static custom_lowering f{id_of<Op>, lowering_of<Op>::value};
  f.next = custom_lowerings.load(std::memory_order_acquire);
  while (!custom_lowerings.compare_exchange_weak(f.next, &f, std::memory_order_acq_rel)) continue;
  return true;
}
template <class Op>
inline const bool custom_lowering_added = false;

inline constexpr lowering_entry unknown_lowering{
    nullptr,
    "it is a custom op; write XLA_STABLEHLO_OP(type); of <xla/ext/stablehlo.hpp> "
    "below its definition"};

/// The lowering of any op.
inline const lowering_entry& find_lowering(const op_info& op) {
  if (const lowering_entry* const listed = op_table<lowering_of>.find(op)) return *listed;
  static constexpr lowering_entry by_while_writer;
  if (is_of_loops(op)) return by_while_writer;
  for (const custom_lowering* f = custom_lowerings.load(std::memory_order_acquire); f; f = f->next)
    if (f->id == op.id) return f->lowering;
  return unknown_lowering;
}

}  // namespace xla::detail::hlo

/// Registers a custom elementwise op, below its XLA_ELEMENTWISE_OP, for StableHLO: its kernel is
/// its lowering.
#define XLA_STABLEHLO_OP(type)                                      \
  template <>                                                       \
  inline const bool xla::detail::hlo::custom_lowering_added<type> = \
      xla::detail::hlo::add_custom_lowering<type>()
