// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/ext/pjrt/compile.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/engine/common.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/execute/store_number.hpp"

namespace xla::detail {

/// A program that a plugin has compiled, on the memory of one call after the other. Where the
/// plugin reads the host's memory, nothing is copied: what a call reads is read where it lies, and
/// what it writes is written where the caller wants it, as each result has an argument that lends
/// it its memory.
class pjrt_call {
 public:
  pjrt_call(const ext::pjrt::client& on, const sized_program& p)
      : on_(on), in_place_(on.on_host()), written_(write_stablehlo(p, in_place_)) {
    for (const stablehlo_argument& a : written_.arguments) arguments_.push_back(type_of(a.type));
    for (int i = 0; i < p.source.count.writes + p.source.count.results; ++i) {
      const int v = output_of(p.source, i);
      results_.push_back({ext::pjrt::element_of(p.source.values[v].type), p.shapes[v]});
    }
    if (!results_.empty()) executable_ = on.compile(written_.text);
  }
  const stablehlo_program& written() const { return written_; }

  /// Runs it to its end. What a write replaces is copied to the new memory first, if that is not
  /// its own.
  void run(const run_arguments& with) const {
    if (results_.empty()) return;
    device_buffers arguments(on_), results(on_);
    for (int i = 0; i < arguments_.size(); ++i) arguments.all.push_back(bring(i, with));
    results.all.resize(results_.size());
    executable_->execute(arguments.all.data(), results.all.data());
    for (int i = 0; i < results_.size(); ++i) keep(results.all[i], i, *with.outputs[i]);
  }
  ext::pjrt::program_memory memory() const {
    return executable_ ? executable_->memory() : ext::pjrt::program_memory();
  }

 private:
  using device_buffer = ext::pjrt::abi::buffer;
  using host_memory = ext::pjrt::host_memory;
  using role = stablehlo_argument::role;

  /// Handles, which are let go of with it. What they lend stays where it is.
  struct device_buffers {
    explicit device_buffers(const ext::pjrt::client& c) : on(c) {}
    device_buffers(const device_buffers&) = delete;
    ~device_buffers() {
      for (device_buffer* b : all)
        if (b) on.drop(b);
    }
    const ext::pjrt::client& on;
    list<device_buffer*> all;
  };

  static ext::pjrt::array_type type_of(const hlo::tensor_type& t) {
    const std::string_view name = hlo::name_of(t.of);
    const auto* of = std::begin(ext::pjrt::all_elements);
    while (of->in_text != name) ++of;
    return {of->type, t.dims};
  }
  device_buffer* bring(int i, const run_arguments& with) const {
    const stablehlo_argument& a = written_.arguments[i];
    switch (a.is) {
      case role::value: return bring(i, *with.slots[a.number].value, with);
      case role::gradient: return bring(i, *with.slots[a.number].gradient, with);
      case role::room:
        return on_.put(with.outputs[a.number]->memory, arguments_[i],
                       host_memory::written_in_place);
      default: return bring_number(i, with);
    }
  }
  device_buffer* bring(int i, const buffer& from, const run_arguments& with) const {
    const void* const at = from.home;
    const int output = written_.arguments[i].output;
    if (!in_place_) return on_.put(at, arguments_[i]);
    if (output < 0) return on_.put(at, arguments_[i], host_memory::read_in_place);
    void* const to = with.outputs[output]->memory;
    if (to != at) std::memcpy(to, at, arguments_[i].bytes());
    return on_.put(to, arguments_[i], host_memory::written_in_place);
  }
  device_buffer* bring_number(int i, const run_arguments& with) const {
    const stablehlo_argument& a = written_.arguments[i];
    std::uint64_t words[2] = {};
    if (a.is == role::draw) {
      words[0] = with.random[a.number].seed;
      words[1] = with.random[a.number].offset;
    } else {
      const double x = with.slots[a.number].number;
      for (const dtype t : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::int32,
                            dtype::int64, dtype::uint8, dtype::boolean})
        if (ext::pjrt::element_of(t) == arguments_[i].type)
          store_number(words, t, {x, static_cast<std::int64_t>(x)});
    }
    return on_.put(words, arguments_[i]);
  }
  void keep(device_buffer* from, int i, buffer& to) const {
    if (!in_place_) return on_.read(from, results_[i], to.memory);
    if (const void* const at = on_.address(from); at != to.memory)
      std::memcpy(to.memory, at, results_[i].bytes());
  }

  const ext::pjrt::client& on_;
  bool in_place_;
  stablehlo_program written_;
  list<ext::pjrt::array_type> arguments_, results_;
  std::shared_ptr<const ext::pjrt::executable> executable_;
};

/// The checks of a program, which come before it runs, as XLA makes them fit instead: an index is
/// clamped, an element that lies outside is dropped. Of checks of what the program computes, that
/// is computed first, by a program of its own.
class pjrt_checks {
 public:
  pjrt_checks(const engine& by, const sized_program& p) : p_(p) {
    for (int i = 0; i < p.source.count.steps; ++i)
      if (p.source.steps[i].check) add(p.source.steps[i]);
    if (computed_.empty()) return;
    sized_program before;
    before.source = p.source;
    before.source.count.writes = 0;
    before.source.count.results = computed_.size();
    before.source.results = computed_.data();
    before.slot_shapes = p.slot_shapes;
    before.symbols = p.symbols;
    before.shapes = p.shapes;
    before.random = p.random;
    before.counters = p.counters;
    before.random_counters = p.random_counters;
    before.source.count.steps = 0;  // they are done here
    before.world = p.world;
    before_ = by.make(std::move(before));
  }
  pjrt_checks(const pjrt_checks&) = delete;

  /// Throws what they throw: those of what comes with the arguments, and all if it may compute.
  /// True when none was left out.
  bool run(const run_arguments& with, bool may_compute) const {
    list<ref<buffer>> made;
    if (may_compute && before_) compute(with, made);
    bool all = true;
    for (const checked& c : checks_) {
      if (c.computed && !may_compute) all = false;
      else run(c, with, made);
    }
    return all;
  }

 private:
  struct checked {
    const step* of;
    bool computed = false;
    list<int> from;  ///< per input: a slot, or ~ of the number of what is computed
  };

  void add(const step& s) {
    checked c{&s, false, {}};
    for (int k = 0; k < s.inputs; ++k) {
      int v = p_.source.inputs[s.first_input + k];
      while (p_.source.values[v].op->kind == op_kind::alias) v = p_.source.values[v].in[0];
      const node& n = p_.source.values[v];
      if (is<op::input>(n) && !n.attributes<op::input>().gradient) {
        c.from.push_back(n.attributes<op::input>().slot);
        continue;
      }
      c.computed = true;
      c.from.push_back(~computed_.size());
      computed_.push_back(v);
    }
    checks_.push_back(std::move(c));
  }
  ref<buffer> make(int v) const {
    return ref<buffer>(buffer::make(static_cast<std::size_t>(p_.bytes(v)),
                                    {p_.source.values[v].op->name, &p_.shapes[v]}));
  }
  void compute(const run_arguments& with, list<ref<buffer>>& made) const {
    list<buffer*> outputs;
    for (int v : computed_) outputs.push_back(made.emplace_back(make(v)).get());
    before_->run({with.slots, outputs.data(), with.random});
  }
  void run(const checked& c, const run_arguments& with, const list<ref<buffer>>& made) const {
    const node& n = p_.source.values[c.of->value];
    list<const void*> in;
    list<shape> shapes;
    for (int k = 0; k < c.of->inputs; ++k) {
      const int from = c.from[k];
      in.push_back(from < 0 ? made[~from]->memory : with.slots[from].value->home.load());
      shapes.push_back(p_.shapes[p_.source.inputs[c.of->first_input + k]]);
    }
    list<ref<buffer>> results;
    void* outs[max_results] = {};
    for (int k = 0; k < c.of->outputs; ++k) {
      const int v = p_.source.outputs[c.of->first_output + k];
      const int number = k == 0 ? 0 : p_.source.values[v].attributes<op::output>().number;
      outs[number] = results.emplace_back(make(v))->memory;
    }
    kernel_call call;
    call.out = outs[0];
    call.outs = outs;
    call.in = in.data();
    call.out_shape = &p_.shapes[c.of->value];
    call.in_shapes = shapes.data();
    call.attr = attributes_at(p_, n);
    call.at = n.at;
    if (const int r = p_.random[c.of->value]; r >= 0) {
      call.seed = with.random[r].seed;
      call.offset = with.random[r].offset;
    }
    n.op->run(call);
  }

  const sized_program& p_;
  list<checked> checks_;
  list<int> computed_;  // values
  std::unique_ptr<executable> before_;
};

/// Runs a program by a plugin. A call that fails leaves everything as it was: what can fail but for
/// want of memory are checks, which come first.
class pjrt_program final : public executable {
 public:
  pjrt_program(const engine& by, const ext::pjrt::client& on, sized_program&& p)
      : executable(&by, true), p_(std::move(p)), checks_(by, p_), call_(on, p_) {
    if (on.on_host())
      for (const stablehlo_argument& a : call_.written().arguments)
        if (a.is != stablehlo_argument::role::room && a.output >= 0) p_.in_place[a.output] = true;
  }
  const sized_program& about() const override { return p_; }
  void run(const run_arguments& with) override {
    checks_.run(with, true);
    call_.run(with);
  }
  bool check(const run_arguments& with) override { return checks_.run(with, false); }
  MemoryAnalysis memory() const override {
    MemoryAnalysis m = memory_outside(p_);
    const ext::pjrt::program_memory there = call_.memory();
    m.aliased = there.aliased;
    m.arena = there.temporaries;
    return m;
  }

 private:
  sized_program p_;
  pjrt_checks checks_;
  pjrt_call call_;
};

}  // namespace xla::detail
