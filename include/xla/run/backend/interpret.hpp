// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the backend "interpreter": each op by its own kernel, nothing fused, every value in
// memory of its own. It is for checking other backends, not for speed.

#include <cstring>
#include <memory>

#include "xla/base/instance.hpp"
#if XLA_KERNELS_HERE
#include "xla/kernel/op/attention.hpp"
#include "xla/kernel/op/convolution.hpp"
#include "xla/kernel/op/embedding.hpp"
#include "xla/kernel/op/gather.hpp"
#include "xla/kernel/op/matmul.hpp"
#include "xla/kernel/op/reduce.hpp"
#include "xla/kernel/op/scatter_reduce.hpp"
#include "xla/kernel/op/slice.hpp"
#endif
#include "xla/kernel/op/image_sum.hpp"  // of the steps that
#include "xla/kernel/op/movement.hpp"   // passes make
#include "xla/run/backend/common.hpp"
#include "xla/run/backend/interpreter.hpp"
#include "xla/run/backend/op_by_op.hpp"
#include "xla/run/execute/executor.hpp"
#include "xla/transform/layouts.hpp"

namespace xla::detail {

/// For an op that sums: its description for double elements; nullptr for others. sums_in_double.hpp
/// defines it, by a table of all ops.
template <class In>
const op_info* in_double(const op_info& op);

/// Runs ops one by one and counts them, with sums in double if requested.
template <class In>
class basic_interpretation : public basic_op_by_op<In> {
 public:
  basic_interpretation(const dependent<In, sized_program>& p, const run_arguments& with)
      : basic_op_by_op<In>(p, with) {
    for (int v = 0; v < p.source.count.values; ++v)
      if (const op_info& op = *p.source.values[v].op; op.kind == op_kind::alias) note(op);
  }

  void run(const step& s, bool sums_in_double) {
    const node& n = this->p_.source.values[s.value];
    note(*n.op);
    const op_info* wide = nullptr;
    if (sums_in_double && n.type == dtype::float32) wide = in_double<In>(*n.op);
    if (wide) run_wide(s, *wide);
    else basic_op_by_op<In>::run(s);
  }
  void run_loop(const step& s, const loop_steps& loop) {
    note(*this->p_.source.values[s.value].op);
    basic_op_by_op<In>::run(s, loop);
  }
  void read(int v, buffer& to) {
    std::memcpy(to.memory, this->elements(v), static_cast<std::size_t>(this->p_.bytes(v)));
  }

 private:
  static void note(const op_info& op) { get_counter(join({"xla::", op.name})).add(); }

  // Converts the operands to double, and rounds the result once. The kernel itself does not round
  // operands.
  void run_wide(const step& s, const op_info& op) {
    const auto& p = this->p_;
    const node& n = p.source.values[s.value];
    list<shape> shapes;
    for (int k = 0; k < s.inputs; ++k) shapes.push_back(p.shapes[this->input(s, k)]);
    const bool rounds =
        precision_of(*n.op, n.attr, shapes.data(), p.shapes[s.value]) == precision::bfloat16;
    list<const void*> in;
    list<ref<buffer>> wide;
    for (int k = 0; k < s.inputs; ++k) {
      const int v = this->input(s, k);
      in.push_back(this->elements(v));
      const dtype type = p.source.values[v].type;
      if (type != dtype::float32 && type != dtype::bfloat16) continue;
      const std::int64_t n = count(p.shapes[v]);
      auto* const to = static_cast<double*>(wide.emplace_back(this->make(n * 8))->memory);
      const auto widen = [&](const auto* from) {
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = rounds ? float{bfloat16{from[i]}} : static_cast<float>(from[i]);
      };
      if (type == dtype::float32) widen(static_cast<const float*>(in[k]));
      else widen(static_cast<const bfloat16*>(in[k]));
      in[k] = to;
    }
    this->make_outputs(s);
    const ref<buffer> out = this->make(2 * p.bytes(s.value));
    this->run_op(s, op, in, out->memory);
    const auto* const from = static_cast<const double*>(out->memory);
    auto* const to = static_cast<float*>(this->values_[s.value]->memory);
    for (std::int64_t i = 0; i < count(p.shapes[s.value]); ++i) to[i] = static_cast<float>(from[i]);
  }
};

/// Runs a program op by op. Values do not share memory, and outputs are written after all steps.
template <class In>
class basic_interpreted final : public basic_executable<In> {
 public:
  basic_interpreted(const backend& by, dependent<In, sized_program>&& p, bool sums_in_double)
      : basic_executable<In>(&by), p_(std::move(p)), sums_in_double_(sums_in_double) {
    for (int i = 0; i < p_.source.count.steps; ++i) {
      const step& s = p_.source.steps[i];
      const op_info& op = *p_.source.values[s.value].op;
      loops_.push_back(op.loops_steps ? make_steps(op, p_, s, nullptr, &by, all_loops_) : nullptr);
    }
  }

  const dependent<In, sized_program>& about() const override { return p_; }
  void run(const run_arguments& with) override {
    basic_interpretation<In> values(p_, with);
    for (int i = 0; i < p_.source.count.steps; ++i)
      if (loops_[i]) values.run_loop(p_.source.steps[i], *loops_[i]);
      else values.run(p_.source.steps[i], sums_in_double_);
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
    if (all_loops_) m.arena += all_loops_->arena_bytes();
    return m;
  }

 private:
  dependent<In, sized_program> p_;
  bool sums_in_double_;
  std::unique_ptr<loop_steps> all_loops_;
  list<const loop_steps*> loops_;  // per step; nullptr for others
};

/// There are two: with sums in the element type, and in double.
class interpreter final : public common_backend {
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
  backend_list<void>::add(plain_interpreter);
  return backend_list<void>::add(double_interpreter);
}

}  // namespace xla::detail

#ifndef XLA_EXTERN_RUNTIME
#include "xla/run/backend/sums_in_double.hpp"
#endif
