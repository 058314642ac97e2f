// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines end_of_update() of sync.hpp: the rules by which a graph of eager mode that fuses ends. In
// traced mode a graph ends at sync() and where a value is read (lazy.hpp).

#include <cstdint>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla::detail {

/// From so many ops on a graph ends where the program does again what it did when the graph began,
/// as at the next iteration of a loop, and from so many at any op.
inline constexpr int many_ops = 4096, max_ops = 16384;

/// Kinds of ops: of forward passes, through which gradients will flow, and new values of
/// parameters.
inline constexpr int forward_op = 1, update_op = 2;
inline int kind_of(const impl& t) { return !t.needs_grad ? 0 : t.meta ? update_op : forward_op; }

/// Why a graph ends in front of an op; nullptr: it does not. It ends where a forward pass begins,
/// after the preparation of data or the update of parameters: neither is in the step's graph. It
/// does not end between a value and the op that writes it into a cell, which the graph may roll
/// back.
inline const char* ends_before(const fused_part& so_far, const impl& t, int kind) {
  if (so_far.ops == 0 || is<op::detach>(t)) return nullptr;
  if (kind == forward_op && so_far.kinds != forward_op) return "forward pass";
  const bool again = so_far.ops >= many_ops && so_far.recent == so_far.first;
  return again || so_far.ops >= max_ops ? "many ops" : nullptr;
}

/// Before an op is recorded in eager mode that fuses. True: it is done, as it only shares its
/// input's elements, which are there or under way. An op that checks elements which are there is
/// not recorded: it runs now, and throws where it is called. Where one reads memory that is not
/// ours, the graph runs at once: the owner may write there as soon as the op has been called.
template <class In = void>
[[gnu::cold, gnu::noinline]] bool begin_fused_op(impl& t, bool& records, bool& at_once) {
  dependent<In, recording>& r = own_recording<In>();
  if (r.outer || this_thread.in_pass) return false;  // in a body
  bool there = true;
  for (int i = 0; i < t.arity; ++i) {
    const buffer* const b = t.in[i]->is_pending() ? nullptr : t.in[i]->data.get();
    there &= b != nullptr;
    at_once |= b && b->space && !b->space->make;  // no backend's
  }
  fused_part& so_far = r.fused;
  // Of a cell's old value in an open graph it is recorded, for another reference would keep the
  // graph from writing the new one over it.
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
