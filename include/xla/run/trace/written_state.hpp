// SPDX-License-Identifier: Apache-2.0
#pragma once

// The slots that the body of a traced loop writes, as carries of the loop. loop/slot_carries.hpp
// does the same in compiled functions.

#include <atomic>

#include "xla/base/list.hpp"
#include "xla/run/state/undo_log.hpp"
#include "xla/run/trace/graph_recorder.hpp"
#include "xla/run/trace/machine.hpp"
#include "xla/transform/loop_recorder.hpp"
#include "xla/transform/loop_values.hpp"

namespace xla::detail {

/// The parameters, buffers and gradients that the body of a traced loop or branch writes. Each
/// becomes a carry, whose last value is stored after the loop. They are known only after the body
/// has been recorded, which is then recorded again with them.
template <class In>
class basic_written_state {
 public:
  explicit basic_written_state(bool of_branch) : of_branch_(of_branch) {}

  /// Before the loop: the initial values of the carries.
  void enter(basic_graph_recorder<In>& body) {
    for (carried_state& p : all_)
      p.init = p.begins_at_entry ? body.node_of(p.entry.get()) : zeros(body.g, p);
  }
  /// In the loop, before its body.
  void begin(basic_graph_recorder<In>& body, loop_recorder& loop) {
    for (carried_state& p : all_) {
      p.carry = loop.state(p.init, 0);
      body.write(p.of.get(), p.meta.get(), p.carry);
    }
  }
  /// After the body: whether it must be recorded again, because it wrote unknown slots.
  bool end(basic_graph_recorder<In>& body) {
    for (carried_state& p : all_) {
      impl* const now = (p.of ? p.of->current : p.meta->grad).get();
      p.there = now != nullptr;
      const bool dropped = p.meta && p.entry && !now;
      if (of_branch_ && dropped) body.leave();  // whether it exists afterwards is unknown
      p.next = now ? body.node_of(now) : zeros(body.g, p);
    }
    bool more = false;
    for (carried_state& p : all_)
      if (p.meta && p.entry && !p.begins_at_entry && reads(body.g, p))
        more = p.begins_at_entry = true;
    list<written> log;
    body.each_write([&](cell* of, grad_meta* meta, impl* old) { log.push_back({of, meta, old}); });
    for (int i = log.size() - 1; i >= 0; --i)
      if (!known(log[i]) && add(log, log[i])) more = true;
    if (more && ++rounds_ > 4) body.leave();
    return more;
  }
  bool has_gradients() const {
    bool any = false;
    for (const carried_state& p : all_) any |= static_cast<bool>(p.meta);
    return any;
  }
  void hand_on(list<int>& next, list<int>& init) const {
    for (const carried_state& p : all_) {
      next.push_back(p.next);
      init.push_back(p.init);
    }
  }
  /// Stores the last step's values, from the carry of that number on.
  void results(const loop_recorder& loop, int carry, list<int>& to) const {
    for (const carried_state& p : all_) to.push_back(loop.last_state(carry++, p.next, 0));
  }
  /// If there is no memory for one of them, none is stored.
  void leave(const list<ref<impl>>& made, int first) const {
    whole_step<In>([&] {
      dependent<In, undo_log> log;
      try {
        for (const carried_state& p : all_) leave(p, *made[first++]);
      } catch (...) {
        log.end(false);
        throw;
      }
      log.end(true);
    });
  }

 private:
  struct written {
    cell* of;
    grad_meta* meta;
    impl* old;
  };
  struct carried_state {
    ref<cell> of;
    ref<grad_meta> meta;  ///< or else a gradient
    ref<impl> entry;      ///< the value before the loop; nullptr: no gradient
    dtype type{};
    shape dims;
    bool begins_at_entry = true, there = true;
    int init = no_node, carry = no_node, next = no_node;
  };

  bool known(const written& w) const {
    for (const carried_state& p : all_)
      if (w.of ? p.of.get() == w.of : p.meta.get() == w.meta) return true;
    return false;
  }
  // A value to which only the log refers was made in the body.
  bool add(const list<written>& log, const written& w) {
    if (!w.of) {
      const impl* const like = w.old ? w.old : w.meta->grad.get();
      if (!like) return false;
      all_.push_back({{},
                      ref<grad_meta>::share(w.meta),
                      ref<impl>::share(w.old),
                      like->type,
                      like->dims_shape(),
                      of_branch_ && w.old});  // which stays if the branch is not taken
      return true;
    }
    int noted = 0;
    for (const written& other : log) noted += other.of == w.of;
    if (w.of->refs.load(std::memory_order_acquire) == noted) return false;
    if (w.of->functional || !w.old || w.old->device != this_thread.number)
      basic_graph_recorder<In>::leave();
    all_.push_back({ref<cell>::share(w.of), {}, ref<impl>::share(w.old), {}, {}});
    return true;
  }
  static int zeros(graph& g, const carried_state& p) {
    return minus_zeros<In>(p.type, p.dims, &g.sizes).lift(&g);
  }
  bool reads(const graph& g, const carried_state& p) const {
    if (p.next == p.carry) return true;
    for (int i = p.carry + 1; i < g.count; ++i)
      for (int k = 0; k < g.nodes[i].arity; ++k)
        if (g.inputs(g.nodes[i])[k] == p.carry) return true;
    return false;
  }
  static void leave(const carried_state& p, impl& value) {
    if (p.of) return run_write<In>(*p.of, &value);
    note_write<In>(nullptr, p.meta.get());
    if (records_ops()) own_recording<In>().replaces(*p.meta);
    p.meta->grad = ref<impl>::share(p.there ? &value : nullptr);
  }

  bool of_branch_;
  list<carried_state> all_;
  int rounds_ = 0;
};

}  // namespace xla::detail
