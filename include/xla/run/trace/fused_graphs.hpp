// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines end_of_update() of sync.hpp: the rules by which a graph ends in eager mode that fuses. In
// traced mode a graph ends at sync() and when a value is read (lazy.hpp).

#include <cstdint>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla::detail {

/// A graph with this many ops ends as soon as the program repeats the ops with which it began, as
/// at the next iteration of a loop; one with this many ends at any op.
inline constexpr int many_ops = 4096, max_ops = 16384;

/// Kinds of ops: ops of forward passes, through which gradients will flow, and new values of
/// parameters.
inline constexpr int forward_op = 1, update_op = 2;
inline int kind_of(const impl& t) { return !t.needs_grad ? 0 : t.meta ? update_op : forward_op; }

/// The reason why a graph ends before an op; nullptr if it does not. It ends when a forward pass
/// begins after the preparation of data or the update of parameters: neither belongs to the step's
/// graph. It does not end between a value and the op that writes it into a cell, which the graph
/// may roll back.
inline const char* ends_before(const fused_part& so_far, const impl& t, int kind) {
  if (so_far.ops == 0 || is<op::detach>(t)) return nullptr;
  if (kind == forward_op && so_far.kinds != forward_op) return "forward pass";
  const bool again = so_far.ops >= many_ops && so_far.recent == so_far.first;
  return again || so_far.ops >= max_ops ? "many ops" : nullptr;
}

/// Called before an op is recorded in eager mode that fuses. True if nothing is left to do, because
/// the op only shares its input's elements, which exist or are being computed. An op that checks
/// existing elements is not recorded: it runs now, and throws at its call. If an op reads memory of
/// someone else, the graph runs at once, because the owner may write there as soon as the call
/// returns.
template <class In = void>
[[gnu::cold, gnu::noinline]] bool begin_fused_op(impl& t, bool& records, bool& at_once) {
  dependent<In, recording>& r = own_recording<In>();
  if (r.outer || this_thread.in_pass) return false;  // inside a body
  bool there = true;
  for (int i = 0; i < t.arity; ++i) {
    const buffer* const b = t.in[i]->is_pending() ? nullptr : t.in[i]->data.get();
    there &= b != nullptr;
    at_once |= b && b->space && !b->space->make;  // without another backend
  }
  fused_part& so_far = r.fused;
  // detach() of a cell's old value is recorded in an open graph: another reference would keep the
  // graph from overwriting it.
  const bool of_cell = is<op::detach>(t) || (t.arity > 0 && t.in[0]->meta);
  if (there && t.op->kind == op_kind::alias && (so_far.ops == 0 || at_once || !of_cell)) {
    execute_now<In>(t);
    drop_inputs<In>(t);
    return true;
  }
  so_far.recent = so_far.recent << 8 | (t.op->id & 255);
  const int kind = kind_of(t);
  if (const char* const why = ends_before(so_far, t, kind))
    dependent<In, tracer>::flush(r, why, false);
  if (so_far.ops++ == 0) so_far.first = so_far.recent;
  so_far.kinds |= kind;
  records = !(there && t.op->check);
  return false;
}

}  // namespace xla::detail

namespace xla {

template <class In>
void end_of_update() {
  using namespace detail;
  if constexpr (has_traced_mode)
    if (fuses_eagerly() && !this_thread.in_pass) flush_own<In>("optimizer step", false);
}
XLA_INSTANCE(void end_of_update<void>());

}  // namespace xla
