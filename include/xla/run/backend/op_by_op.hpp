// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the steps of a program one op at a time on the host. The interpreter uses it for programs,
// and the PJRT backend for its checks; eager mode runs tensors instead.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/graph/builtin.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/execute/store_number.hpp"
#include "xla/run/plan/loop_steps.hpp"
#include "xla/run/plan/sized.hpp"

namespace xla::detail {

/// The values of one run of a program's steps, or of some of them, computed by the ops' own kernels
/// on the host. Values do not share memory.
template <class In>
class basic_op_by_op {
 public:
  basic_op_by_op(const dependent<In, sized_program>& p, const run_arguments& with)
      : p_(p), with_(with), values_(p.source.count.values) {}

  /// Runs a step. Inputs that no step computes come from the arguments.
  void run(const step& s) {
    list<const void*> in;
    for (int k = 0; k < s.inputs; ++k) in.push_back(elements(input(s, k)));
    make_outputs(s);
    run_op(s, *p_.source.values[s.value].op, in, values_[s.value]->memory);
  }
  /// The same for a loop.
  void run(const step& s, const loop_steps& loop) {
    list<void*> table;
    list<int> operands;
    for (int k = 0; k < s.inputs; ++k) table.push_back(const_cast<void*>(elements(input(s, k))));
    make_outputs(s);
    for (int k = 0; k < s.outputs; ++k)
      table.push_back(values_[p_.source.outputs[s.first_output + k]]->memory);
    for (int k = 0; k < table.size(); ++k) operands.push_back(k);
    loop.run(table.data(), operands.data(), with_.random);
  }
  /// Sets a value that was computed elsewhere and is on the host.
  void give(int v, ref<buffer> made) { values_[v] = std::move(made); }
  const void* elements(int v) {
    while (p_.source.values[v].op->kind == op_kind::alias) v = p_.source.inputs_of(v)[0];
    if (!values_[v]) bring(v);
    return values_[v]->host_copy;
  }

 protected:
  int input(const step& s, int k) const { return p_.source.inputs[s.first_input + k]; }
  static ref<buffer> make(std::int64_t bytes) {
    return ref<buffer>(buffer::make(static_cast<std::size_t>(bytes)));
  }
  void make_outputs(const step& s) {
    for (int k = 0; k < s.outputs; ++k) {
      const int v = p_.source.outputs[s.first_output + k];
      values_[v] = make(p_.bytes(v));
    }
  }
  void run_op(const step& s, const op_info& op, const list<const void*>& in, void* out) const {
    const node& n = p_.source.values[s.value];
    list<shape> shapes;
    for (int k = 0; k < s.inputs; ++k) shapes.push_back(p_.shapes[input(s, k)]);
    kernel_call call;
    call.out = out;
    void* outs[max_results] = {out};
    for (int k = 1; k < s.outputs; ++k) {
      const int v = p_.source.outputs[s.first_output + k];
      outs[p_.source.values[v].template attributes<op::output>().number] = values_[v]->memory;
    }
    call.outs = outs;
    call.in = in.data();
    call.out_shape = &p_.shapes[s.value];
    call.in_shapes = shapes.data();
    call.attr = attributes_at(p_, n);
    call.at = n.at;
    if (const int r = p_.random[s.value]; r >= 0) {
      call.seed = with_.random[r].seed;
      call.offset = with_.random[r].offset;
    }
    op.run(call);
  }

  const dependent<In, sized_program>& p_;
  const run_arguments& with_;
  list<ref<buffer>> values_;

 private:
  void bring(int v) {
    const node& n = p_.source.values[v];
    if (is<op::input>(n)) {
      const auto of = n.attributes<op::input>();
      const slot_value& from = with_.slots[of.slot];
      values_[v] = ref<buffer>::share(of.gradient ? from.gradient : from.value);
    } else if (is<op::scalar>(n)) {
      const double number = with_.slots[n.attributes<op::scalar>().slot].number;
      set(v, {number, static_cast<std::int64_t>(number)});
    } else if (is<op::size>(n)) {
      const std::int64_t size = value_at(p_.symbols, n.attributes<op::size>().of);
      set(v, {static_cast<double>(size), size});
    } else {
      set(v, n.attributes<op::constant>());
    }
  }
  void set(int v, const op::constant::attributes& number) {
    values_[v] = make(sizeof(double));
    store_number(values_[v]->memory, p_.source.values[v].type, number);
  }
};

}  // namespace xla::detail
