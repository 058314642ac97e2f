// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the tensor of an op and starts it: records it in traced mode and in eager mode that fuses,
// else runs it. machine.hpp calls it, and to_device.hpp for tensors of other devices.

#include "xla/base/dependent.hpp"
#include "xla/run/execute/eager.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/trace/fused_graphs.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/segment_recorder.hpp"

namespace xla::detail {

/// The tensor of an op, before it is recorded or executed.
template <class In = void>
ref<impl> new_op(const node& n, impl* const* inputs) {
  ref<impl> t = make_impl(n, inputs);
  dependent<In, segment_recorder>::note(*t);
  return t;
}

/// Whether another backend runs the ops of eager mode.
template <class In = void>
bool backend_runs_ops() {
  const backend* const by = chosen_backend<In>();
  return by && by->runs_single_ops();
}
/// Whether it runs this op as a graph of its own: not one that only shares its input's elements,
/// and none between replicas, which come and go one by one.
template <class In = void>
bool has_own_graph(const impl& t) {
  if (!backend_runs_ops<In>() || this_thread.sets_out) return false;
  return t.op->kind != op_kind::alias && !t.op->alone_is_input && !t.op->moves;
}

/// Records or executes an op of this thread's device.
template <class In = void>
void record_or_execute(impl& t, const ref<impl>* others, int other_count) {
  if constexpr (has_traced_mode) {
    bool at_once = !records_ops(), records = !at_once || has_own_graph<In>(t);
    if (fuses_eagerly() && begin_fused_op<In>(t, records, at_once)) return;
    if (records) {
      for (int i = 0; i < t.arity; ++i) make_recordable(*t.in[i]);
      add_pending(&t);
      if (t.op->exchanges) t.retain();  // other replicas wait for it: see traced_graph
      for (int k = 0; k < other_count; ++k) add_pending(others[k].get());
      if (at_once) dependent<In, tracer>::flush(own_recording<In>(), "eager mode", true);
      return;
    }
  }
  if (has_traced_mode && this_thread.sets_out && !t.op->exchanges) return;
  for (int i = 0; i < t.arity; ++i) {
    make_ready(*t.in[i]);
    wait_for(*t.in[i]->data);
  }
  if (t.op->before) t.op->before();
  for (int k = 0; k < other_count; ++k) {
    impl& other = *others[k];
    const shape dims = other.dims_shape();
    other.data = ref<buffer>(buffer::make(bytes_of(other), {t.op->name, &dims}));
  }
  execute_now(t, {}, others, other_count);
  drop_inputs(t);
  for (int k = 0; k < other_count; ++k) drop_inputs(*others[k]);
}

/// Records it or executes it on its device, in the current mode; with the other results of an
/// op that has several.
template <class In = void>
void start_op(impl& t, const ref<impl>* others = nullptr, int other_count = 0) {
  if (t.device != this_thread.number)
    return the_process.crossing.load()->start(t, others, other_count);
  record_or_execute<In>(t, others, other_count);
  note_call(t);
}

}  // namespace xla::detail
