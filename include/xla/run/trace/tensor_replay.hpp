// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recomputes the tensors of checkpointed segments when backward() reads them. transform/replay.hpp
// does the same in captured graphs.

#include <unordered_map>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/run/trace/machine.hpp"

namespace xla::detail {

/// The values that backward reads of checkpointed segments at run time; like graph_replay. In eager
/// mode a copy is executed when a rule's op reads it.
template <class In>
class basic_tensor_replay {
 public:
  /// order: the tensors that backward will visit.
  void start(const impl& loss, const list<impl*>& order) {
    root_ = loss.order + 1;
    for (const impl* t : order)
      each_part(*t, [this](const segment& s) {
        ++parts_[&s].left;
        ++parts_[whole(s)].left_of_all;
      });
  }

  /// The tensor that a gradient rule reads for t: itself, or its copy.
  impl* value(impl* t, const handle& gradient) {
    if (!t->part || (!t->is_pending() && t->data) || t->part->open) return t;
    const segment& s = *t->part;
    copies& mine = parts_[&s].made;
    if (const auto at = mine.find(t); at != mine.end()) return at->second.get();
    gradient_ = gradient.value()->order + 1;
    copies within_parts;
    record(t, s, within_parts, gradient);
    return mine.at(t).get();
  }

  /// Backward has visited t: releases its copy, and a segment's copies if t was its last reader.
  void passed(const impl& t) {
    if (t.part) parts_[t.part.get()].made.erase(&t);
    each_part(t, [this](const segment& s) {
      if (part& p = parts_[&s]; --p.left == 0) p.made = {};
      if (part& w = parts_[whole(s)]; --w.left_of_all == 0)
        for (const ref<impl>& held : std::exchange(w.held, {})) release(*held);
    });
  }
  /// No rule visits t again, so it releases its inputs. Tensors of a checkpoint() do so only when
  /// backward has visited all of it, because until then others may be computed from them, including
  /// some without gradient.
  void consume(impl& t) {
    change(t, [](impl& passed) { passed.consumed = true; });
    if (part* const w = t.part ? &parts_[whole(*t.part)] : nullptr; w && w->left_of_all > 0)
      w->held.push_back(ref<impl>::share(&t));
    else release(t);
  }

 private:
  using copies = dependent<In, std::unordered_map<const impl*, ref<impl>>>;
  /// The call of a checkpoint(), by its segment.
  struct part {
    copies made;
    int left = 0;  // how many rules have yet to read from it
    // For a segment within no other: the same including its inner segments, and the tensors of all
    // of them that backward has visited.
    int left_of_all = 0;
    list<ref<impl>> held;
  };

  static const segment* whole(const segment& part) {
    const segment* s = &part;
    while (s->parent) s = s->parent.get();
    return s;
  }
  /// Calls f(segment) for the segments of t and its inputs: those that t's rule may read.
  template <class F>
  static void each_part(const impl& t, const F& f) {
    if (t.part) f(*t.part);
    for (int k = 0; k < t.arity; ++k)
      if (t.in[k]->part) f(*t.in[k]->part);
  }
  static void release(impl& t) {
    change(t, [](impl& passed) {
      if (!passed.is_pending()) drop_inputs(passed);
    });
  }

  // Copies t for segment s, with the tensors of s that it needs. Copies for segments within s are
  // not kept: they are copied separately when backward arrives there.
  void record(impl* last, const segment& s, copies& passing, const handle& gradient) {
    auto copies_of = [&](const impl* t) -> copies& {
      return t->part.get() == &s ? parts_[&s].made : passing;
    };
    list<impl*> stack(1, last);
    while (!stack.empty()) {
      impl* t = stack.back();
      const int depth = stack.size();
      const bool done = copies_of(t).contains(t);
      for (int k = 0; k < t->arity && !done; ++k)
        if (impl* in = t->in[k].get();
            in->part && in->part->within(&s) && !copies_of(in).contains(in))
          stack.push_back(in);
      if (stack.size() > depth) continue;
      stack.pop_back();
      if (done) continue;
      list<impl*> inputs(t->arity);
      for (int k = 0; k < t->arity; ++k) {
        impl* in = t->in[k].get();
        const bool inside = in->part && in->part->within(&s);
        inputs[k] = inside ? copies_of(in).at(in).get() : value(in, gradient);
      }
      copies_of(t)[t] = t->op->check ? ref<impl>::share(inputs[0]) : copy(*t, inputs.data());
    }
  }

  ref<impl> copy(const impl& t, impl* const* inputs) const {
    ref<impl> c = make_impl(t, inputs);  // of random numbers with the generator's first state
    c->after[0] = gradient_;
    c->after[1] = root_;
    dependent<In, segment_recorder>::note(*c);
    const dependent<In, device_switch> there(device_of(c->device));
    if (records_ops()) add_pending(c.get());
    return c;
  }

  std::uint64_t root_ = 0, gradient_ = 0;
  dependent<In, std::unordered_map<const segment*, part>> parts_;
};
using tensor_replay = basic_tensor_replay<void>;

}  // namespace xla::detail
