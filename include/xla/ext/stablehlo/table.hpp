// SPDX-License-Identifier: Apache-2.0
#pragma once

// The form of every op of the library, as one table; an op that lacks one does not compile.
// program.hpp looks ops up in it.

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "xla/ext/stablehlo/form.hpp"
#include "xla/ext/stablehlo/forms_attention.hpp"
#include "xla/ext/stablehlo/forms_collectives.hpp"
#include "xla/ext/stablehlo/forms_convolution.hpp"
#include "xla/ext/stablehlo/forms_gather.hpp"
#include "xla/ext/stablehlo/forms_matmul.hpp"
#include "xla/ext/stablehlo/forms_movement.hpp"
#include "xla/ext/stablehlo/forms_order.hpp"
#include "xla/ext/stablehlo/forms_pooling.hpp"
#include "xla/ext/stablehlo/forms_random.hpp"
#include "xla/ext/stablehlo/forms_resample.hpp"
#include "xla/ext/stablehlo/forms_scan.hpp"
#include "xla/ext/stablehlo/forms_unfold.hpp"
#include "xla/ext/stablehlo/loops.hpp"
#include "xla/op/table.hpp"

namespace xla::detail::hlo {

// What the program itself writes: its arguments, and results of an op that has several. And what
// no program holds.
template <>
struct form<op::input> {
  static constexpr bool of_program = true;
};
template <>
struct form<op::scalar> : form<op::input> {};
template <>
struct form<op::output> : form<op::input> {};
template <>
struct form<op::data> : form<op::input> {};
template <>
struct form<op::compiled_result> : form<op::input> {};

/// Arguments of a program are on its device, wherever they were.
template <>
struct form<op::to_device> {
  static value write(writer&, const form_call& f) { return f.in(0); }
};

/// The form of an op as data: one of both is there, but for what the program itself writes.
struct form_entry {
  list<value> (*write)(writer&, const form_call&) = nullptr;
  std::string_view refused = {};
};

template <class Op>
concept has_form = requires { sizeof(form<Op>); };

template <class Op>
list<value> write_form(writer& w, const form_call& f) {
  if constexpr (std::same_as<decltype(form<Op>::write(w, f)), value>)
    return list_of({form<Op>::write(w, f)});
  else return form<Op>::write(w, f);
}

/// An entry of the table over all ops: one without a form does not compile.
template <class Op>
struct form_of {};
template <has_form Op>
struct form_of<Op> {
  static constexpr form_entry value = [] {
    form_entry e;
    if constexpr (requires { form<Op>::refused; }) e.refused = form<Op>::refused;
    else if constexpr (!requires { form<Op>::of_program; }) e.write = &write_form<Op>;
    return e;
  }();
};

/// The form of an op of the program's own, which is not on the list.
struct own_form {
  std::uint32_t id;
  form_entry form;
  const own_form* next = nullptr;
};
inline std::atomic<const own_form*> own_forms{nullptr};

template <class Op>
bool add_own_form() {
  static own_form f{id_of<Op>, form_of<Op>::value};
  f.next = own_forms.load(std::memory_order_acquire);
  while (!own_forms.compare_exchange_weak(f.next, &f, std::memory_order_acq_rel)) continue;
  return true;
}
template <class Op>
inline const bool own_form_added = false;

inline constexpr form_entry unknown_form{
    nullptr,
    "it is an op of the program's own; write XLA_STABLEHLO_OP(type); of <xla/ext/stablehlo.hpp> "
    "below its definition"};

/// The form of any op.
inline const form_entry& find_form(const op_info& op) {
  if (const form_entry* const listed = op_table<form_of>.find(op)) return *listed;
  static constexpr form_entry by_while_writer;
  if (is_of_loops(op)) return by_while_writer;
  for (const own_form* f = own_forms.load(std::memory_order_acquire); f; f = f->next)
    if (f->id == op.id) return f->form;
  return unknown_form;
}

}  // namespace xla::detail::hlo

/// Makes an elementwise op of a program, below its XLA_ELEMENTWISE_OP, known to text for XLA: it is
/// its kernel.
#define XLA_STABLEHLO_OP(type)                               \
  template <>                                                \
  inline const bool xla::detail::hlo::own_form_added<type> = \
      xla::detail::hlo::add_own_form<type>()
