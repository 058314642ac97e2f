// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the tensors that a checkpointed body makes, and releases their elements when it ends.
// tensor_replay.hpp computes them again.

#include <new>
#include <unordered_map>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/run/execute/eager.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/trace/segment.hpp"

namespace xla::detail {

/// Records the tensors that this thread makes within a scope. At its end, tensors without outside
/// references release their elements and keep their inputs, from which they can be computed again.
template <class In>
class basic_segment_recorder {
 public:
  basic_segment_recorder() {
    part_ = ref<segment>(new segment);
    outer_ = std::exchange(this_thread.segment, this);
    if (outer_) part_->parent = outer_->part_;
  }
  ~basic_segment_recorder() {
    this_thread.segment = outer_;
    if (!part_) return;
    part_->open = false;
    try {
      close();
    } catch (const std::bad_alloc&) {
      keep_all();
    }
  }
  basic_segment_recorder(const basic_segment_recorder&) = delete;
  basic_segment_recorder& operator=(const basic_segment_recorder&) = delete;

  /// Records them all for another purpose, and releases none.
  class notes;

  /// Called for each new tensor.
  static void note(impl& t) {
    if (basic_segment_recorder* r = this_thread.segment) {
      t.part = r->part_;
      r->made_.push_back(ref<impl>::share(&t));
    }
  }

 private:
  struct no_segment {};
  explicit basic_segment_recorder(no_segment) { outer_ = std::exchange(this_thread.segment, this); }
  void close() {
    dependent<In, std::unordered_map<const impl*, int>> uses;
    for (auto& t : made_) {
      ++uses[t.get()];  // this list's own reference
      for (int k = 0; k < t->arity; ++k)
        if (!t->is_pending() || t->in[k]->is_pending())
          ++uses[t->in[k].get()];  // otherwise needed now
    }
    if (outer_) outer_->made_.reserve(outer_->made_.size() + made_.size());
    for (auto& t : made_) {
      if (t->part.get() != part_.get()) continue;
      const int inside = uses[t.get()];
      change(*t, [&](impl& t) {
        const bool kept = t.meta || is<op::output>(t) || t.op->exchanges;
        if (kept || t.refs.load(std::memory_order_acquire) > inside) {
          t.part = part_->parent;
          if (t.data) drop_inputs(t);
        } else {
          t.data.reset();
        }
      });
    }
    if (outer_)
      for (auto& t : made_) outer_->made_.push_back(std::move(t));
  }
  // Used if there is no memory to count references.
  [[gnu::cold]] void keep_all() noexcept {
    for (auto& t : made_)
      if (t->part.get() == part_.get()) change(*t, [&](impl& t) { t.part = part_->parent; });
  }

  ref<segment> part_;
  basic_segment_recorder* outer_ = nullptr;
  list<ref<impl>> made_;
};

template <class In>
class basic_segment_recorder<In>::notes {
 public:
  /// At its end `to` contains the tensors, in the order in which they were made.
  explicit notes(list<ref<impl>>& to) : to_(to), of_(no_segment{}) {
    lines_ = std::exchange(this_thread.notes_lines, true);
  }
  ~notes() {
    this_thread.notes_lines = lines_;
    to_ = std::move(of_.made_);
  }
  notes(const notes&) = delete;
  notes& operator=(const notes&) = delete;

 private:
  list<ref<impl>>& to_;
  basic_segment_recorder of_;
  bool lines_;
};
using segment_recorder = basic_segment_recorder<void>;

template <class In>
void* open_segment() {
  this_thread.checkpoints = true;
  return new dependent<In, segment_recorder>;
}
XLA_INSTANCE(void* open_segment<void>());

template <class In>
void close_segment(void* opened) noexcept {
  delete static_cast<dependent<In, segment_recorder>*>(opened);
}
XLA_INSTANCE(void close_segment<void>(void*) noexcept);

}  // namespace xla::detail
