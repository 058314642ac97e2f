// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/ext/pjrt/device_memory.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/engine/engine.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/execute/executor.hpp"

namespace xla::detail {

/// The checks of a program, which come before it runs, as XLA makes them fit instead: an index is
/// clamped, an element that lies outside is dropped. Of checks of what the program computes, that
/// is computed first, by a program of its own.
class pjrt_checks {
 public:
  pjrt_checks(const engine& by, const sized_program& p) : p_(p) {
    for (int i = 0; i < p.source.count.steps; ++i)
      if (p.source.steps[i].check) add(p.source.steps[i]);
    if (computed_.empty()) return;
    sized_program before = in_arrays_of<>(p);
    before.source.count.writes = before.source.count.steps = 0;  // checks are done here
    before.source.count.results = computed_.size();
    before.source.results = computed_.data();
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
      else run(c, with, made, !may_compute);
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
  ref<buffer> make_output(int v) const {
    const memory_place* const there = before_->place();
    if (!there) return make(v);
    return ref<buffer>(there->make(*there, static_cast<std::size_t>(p_.bytes(v))));
  }
  void compute(const run_arguments& with, list<ref<buffer>>& made) const {
    list<buffer*> outputs;
    for (int v : computed_) outputs.push_back(made.emplace_back(make_output(v)).get());
    before_->run({with.slots, outputs.data(), with.random});
  }
  // When a program runs, what it reads is there; its tickets may be those of what it writes.
  void run(const checked& c, const run_arguments& with, const list<ref<buffer>>& made,
           bool waits) const {
    const node& n = p_.source.values[c.of->value];
    list<const void*> in;
    list<shape> shapes;
    for (int k = 0; k < c.of->inputs; ++k) {
      const int from = c.from[k], v = p_.source.inputs[c.of->first_input + k];
      buffer& b = from < 0 ? *made[~from] : *with.slots[from].value;
      if (waits) wait_for(b);
      in.push_back(ext::pjrt::home_of(b, static_cast<std::size_t>(p_.bytes(v))));
      shapes.push_back(p_.shapes[v]);
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

}  // namespace xla::detail
