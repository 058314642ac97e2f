// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the rows of a captured program's repeats that it does not store. A compiled function with
// loops does so before its first call; make_loop.hpp declares it.

#include <algorithm>
#include <cstddef>
#include <new>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/backend/loop_signatures.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// Writes a program's arrays with all rows into one block of memory.
template <class In>
class basic_row_maker {
 public:
  [[XLA_PLANS]] explicit basic_row_maker(program& p) : p_(p), all_(p.count) {
    all_.rows = 0;
    for (int i = 0; i < p.count.rows; ++i) {
      const int more = p.rows[i].rows - 1;
      if (p.rows[i].number != stored_row::of_step) {
        all_.values += more;
        ++value_rows_;
        continue;
      }
      const step& s = p.steps[p.rows[i].at];
      all_.steps += more;
      all_.inputs += more * s.inputs;
      all_.outputs += more * s.outputs;
    }
  }
  int bytes() const {
    const std::size_t n = all_.values * sizeof(node) + (all_.steps + all_.bodies) * sizeof(step) +
                          (all_.inputs + all_.outputs) * sizeof(int) + sizeof(node);
    return static_cast<int>(n / sizeof(node) * sizeof(node));
  }
  [[XLA_PLANS]] void run(char* memory) {
    node* const values = new (memory) node[static_cast<std::size_t>(all_.values)];
    step* const steps = reinterpret_cast<step*>(values + all_.values);
    inputs_ = reinterpret_cast<int*>(steps + all_.steps + all_.bodies);
    outputs_ = inputs_ + all_.inputs;
    std::copy_n(p_.inputs, p_.count.inputs, inputs_);
    std::copy_n(p_.outputs, p_.count.outputs, outputs_);
    made_inputs_ = p_.count.inputs;
    made_outputs_ = p_.count.outputs;
    each(p_.values, p_.count.values, p_.rows, value_rows_, values);
    each(p_.steps, p_.count.steps, p_.rows + value_rows_, p_.count.rows - value_rows_, steps);
    std::copy_n(p_.bodies, p_.count.bodies, steps + all_.steps);
    p_.values = values;
    p_.steps = steps;
    p_.bodies = steps + all_.steps;
    p_.inputs = inputs_;
    p_.outputs = outputs_;
    p_.count = all_;
  }

 private:
  template <class T>
  void each(const T* stored, int count, const stored_row* rows, int row_count, T* to) {
    for (int i = 0, k = 0; i < count; ++i) {
      *to++ = stored[i];
      if (k == row_count || rows[k].at != i) continue;
      const int* const strides = p_.inputs + rows[k].strides;
      for (int row = 1; row < rows[k].rows; ++row, ++to) {
        *to = to[-1];
        move_on(*to, strides);
      }
      ++k;
    }
  }
  // From one row to the next.
  void move_on(node& v, const int* strides) {
    for (int k = 0; k < v.arity; ++k) v.in[k] += strides[k];
    add_to_slot(v, strides[v.arity]);
  }
  void move_on(step& s, const int* strides) {
    if (s.kind == step_kind::library) ++s.value;
    for (int k = 0; k < s.inputs; ++k)
      inputs_[made_inputs_ + k] = inputs_[s.first_input + k] + strides[k];
    for (int k = 0; k < s.outputs; ++k)
      outputs_[made_outputs_ + k] = outputs_[s.first_output + k] + 1;
    s.first_input = made_inputs_;
    s.first_output = made_outputs_;
    made_inputs_ += s.inputs;
    made_outputs_ += s.outputs;
  }

  program& p_;
  program_sizes all_;
  int value_rows_ = 0;
  int *inputs_ = nullptr, *outputs_ = nullptr;
  int made_inputs_ = 0, made_outputs_ = 0;
};

template <class In>
[[XLA_PLANS]] void make_rows(program& p, const program*& ops, list<char>& step_axes) {
  program of_ops = ops ? *ops : program{};
  dependent<In, basic_row_maker<void>> rows(p), rows_of_ops(of_ops);
  constexpr int unit = static_cast<int>(sizeof(node));
  const int begin = (p.count.slots + unit - 1) / unit * unit;
  step_axes.assign(begin + rows.bytes() + rows_of_ops.bytes() + static_cast<int>(sizeof(program)),
                   0);
  rows.run(step_axes.data() + begin);
  const list<char> axes = dependent<In, basic_step_axes<void>>(p).find();
  std::copy(axes.begin(), axes.end(), step_axes.begin());
  if (!ops) return;
  char* const next = step_axes.data() + begin + rows.bytes();
  rows_of_ops.run(next);
  ops = new (next + rows_of_ops.bytes()) program(of_ops);
}
XLA_INSTANCE(void make_rows<void>(program&, const program*&, list<char>&));

}  // namespace xla::detail
