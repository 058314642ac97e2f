// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>

#include "xla/kernel/call.hpp"
#include "xla/kernel/op/attention.hpp"
#include "xla/kernel/op/convolution.hpp"
#include "xla/kernel/op/embedding.hpp"
#include "xla/kernel/op/gather.hpp"
#include "xla/kernel/op/image_sum.hpp"
#include "xla/kernel/op/matmul.hpp"
#include "xla/kernel/op/movement.hpp"
#include "xla/kernel/op/reduce.hpp"
#include "xla/kernel/op/slice.hpp"
#include "xla/op/table.hpp"
#include "xla/run/engine/common.hpp"
#include "xla/run/engine/interpreter.hpp"
#include "xla/run/execute/executor.hpp"
#include "xla/run/execute/store_number.hpp"
#include "xla/transform/layouts.hpp"

namespace xla::detail {

/// Of an op that adds up: its description for double; nullptr of every other. What has several
/// results, as attention, is of its own type.
template <class Op>
struct in_double {
  static constexpr const op_info* of() {
    if constexpr (requires { Op::results; }) return nullptr;
    else if constexpr (
        Op::kind == op_kind::reduce || requires { &Op::loops; } || requires { Op::updates; })
      return &info_of<Op, double, double, op_parts::kernel>;
    else return nullptr;
  }
  static constexpr const op_info* value = of();
};

/// One run of a program: the memory of its values.
template <class In>
class basic_interpretation {
 public:
  basic_interpretation(const later<In, sized_program>& p, const run_arguments& with)
      : p_(p), with_(with), values_(p.source.count.values) {
    for (int v = 0; v < values_.size(); ++v) bring(v);
  }

  void run(const step& s, bool sums_in_double) {
    const node& n = p_.source.values[s.value];
    note(*n.op);
    const op_info* const* wide = nullptr;
    if (sums_in_double && n.type == dtype::float32)
      wide = op_table<in_double, later<In, computing_ops>>.find(*n.op);
    list<const void*> in;
    for (int k = 0; k < s.inputs; ++k) in.push_back(elements(input(s, k)));
    for (int k = 0; k < s.outputs; ++k) {
      const int v = p_.source.outputs[s.first_output + k];
      values_[v] = make(p_.bytes(v));
    }
    if (wide && *wide) run_wide(s, **wide, in);
    else run_op(s, *n.op, in, values_[s.value]->memory);
  }
  void read(int v, buffer& to) const {
    std::memcpy(to.memory, elements(v), static_cast<std::size_t>(p_.bytes(v)));
  }

 private:
  const void* elements(int v) const {
    while (p_.source.values[v].op->kind == op_kind::alias) v = p_.source.values[v].in[0];
    return values_[v]->home;
  }
  int input(const step& s, int k) const { return p_.source.inputs[s.first_input + k]; }
  static ref<buffer> make(std::int64_t bytes) {
    return ref<buffer>(buffer::make(static_cast<std::size_t>(bytes)));
  }

  static void note(const op_info& op) { get_counter(join({"xla::", op.name})).add(); }

  // What no step makes.
  void bring(int v) {
    const node& n = p_.source.values[v];
    if (is<op::input>(n)) {
      const auto of = n.attributes<op::input>();
      const slot_value& from = with_.slots[of.slot];
      if (buffer* const b = of.gradient ? from.gradient : from.value)
        values_[v] = ref<buffer>::share(b);
    } else if (is<op::scalar>(n)) {
      const double number = with_.slots[n.attributes<op::scalar>().slot].number;
      set(v, {number, static_cast<std::int64_t>(number)});
    } else if (is<op::size>(n)) {
      const std::int64_t size = value_at(p_.symbols, n.attributes<op::size>().of);
      set(v, {static_cast<double>(size), size});
    } else if (is<op::constant>(n)) {
      set(v, n.attributes<op::constant>());
    } else if (n.op->kind == op_kind::alias) {
      note(*n.op);
    }
  }
  void set(int v, const op::constant::attributes& number) {
    values_[v] = make(sizeof(double));
    store_number(values_[v]->memory, p_.source.values[v].type, number);
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
  // The operands in double, the result rounded once; the kernel does not round operands.
  void run_wide(const step& s, const op_info& op, list<const void*>& in) {
    const node& n = p_.source.values[s.value];
    list<shape> shapes;
    for (int k = 0; k < s.inputs; ++k) shapes.push_back(p_.shapes[input(s, k)]);
    const bool rounds =
        precision_of(*n.op, n.attr, shapes.data(), p_.shapes[s.value]) == precision::bfloat16;
    list<ref<buffer>> wide;
    for (int k = 0; k < s.inputs; ++k) {
      const int v = input(s, k);
      const dtype type = p_.source.values[v].type;
      if (type != dtype::float32 && type != dtype::bfloat16) continue;
      const std::int64_t n = count(p_.shapes[v]);
      auto* const to = static_cast<double*>(wide.emplace_back(make(n * 8))->memory);
      const auto widen = [&](const auto* from) {
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = rounds ? float{bfloat16{from[i]}} : static_cast<float>(from[i]);
      };
      if (type == dtype::float32) widen(static_cast<const float*>(in[k]));
      else widen(static_cast<const bfloat16*>(in[k]));
      in[k] = to;
    }
    const ref<buffer> out = make(2 * p_.bytes(s.value));
    run_op(s, op, in, out->memory);
    const auto* const from = static_cast<const double*>(out->memory);
    auto* const to = static_cast<float*>(values_[s.value]->memory);
    for (std::int64_t i = 0; i < count(p_.shapes[s.value]); ++i)
      to[i] = static_cast<float>(from[i]);
  }

  const later<In, sized_program>& p_;
  const run_arguments& with_;
  list<ref<buffer>> values_;
};

/// Runs a program op by op. No value takes another's place, outputs are written when all else is
/// done.
template <class In>
class basic_interpreted final : public basic_executable<In> {
 public:
  basic_interpreted(const engine& by, later<In, sized_program>&& p, bool sums_in_double)
      : basic_executable<In>(&by), p_(std::move(p)), sums_in_double_(sums_in_double) {}

  const later<In, sized_program>& about() const override { return p_; }
  void run(const run_arguments& with) override {
    basic_interpretation<In> values(p_, with);
    for (int i = 0; i < p_.source.count.steps; ++i) values.run(p_.source.steps[i], sums_in_double_);
    for (int i = 0; i < p_.source.count.writes + p_.source.count.results; ++i)
      values.read(output_of(p_.source, i), *with.outputs[i]);
  }
  bool check(const run_arguments&) override {
    for (int i = 0; i < p_.source.count.steps; ++i)
      if (p_.source.steps[i].check) return false;
    return true;
  }
  MemoryAnalysis memory() const override {
    MemoryAnalysis m = memory_outside<In>(p_);
    for (int i = 0; i < p_.source.count.steps; ++i) m.arena += p_.bytes(p_.source.steps[i].value);
    return m;
  }

 private:
  later<In, sized_program> p_;
  bool sums_in_double_;
};

/// Two of it: with sums as they are, and in double.
class interpreter final : public common_engine {
 public:
  constexpr interpreter(const char* name, bool sums_in_double)
      : name_(name), sums_in_double_(sums_in_double) {}
  std::string_view name() const override { return name_; }
  const op_info* lacks(const program&) const override { return nullptr; }
  std::unique_ptr<executable> make(sized_program&& p) const override {
    return std::make_unique<basic_interpreted<void>>(*this, std::move(p), sums_in_double_);
  }

 private:
  const char* name_;
  bool sums_in_double_;
};

inline constinit interpreter plain_interpreter("interpreter", false);
inline constinit interpreter double_interpreter("interpreter:double", true);

template <class>
bool add_interpreter() {
  engine_list<void>::add(plain_interpreter);
  return engine_list<void>::add(double_interpreter);
}

}  // namespace xla::detail
