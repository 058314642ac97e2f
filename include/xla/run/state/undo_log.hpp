// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cells that a thread has written since a point, and their old values. transaction.hpp uses it
// to roll back, and traced loops to find out what a body writes.

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/state/transaction.hpp"
#include "xla/tensor/impl.hpp"

namespace xla::detail {

/// The cells that this thread has written within a scope, and their old values.
template <class In>
class basic_undo_log {
 public:
  basic_undo_log() : outer_(std::exchange(this_thread.writes, this)) {}
  ~basic_undo_log() { this_thread.writes = outer_; }
  basic_undo_log(const basic_undo_log&) = delete;

  /// To be called before a cell's value, or else a gradient, is replaced.
  [[gnu::noinline]] void note(cell* written, grad_meta* meta) {
    last_ = new entry{last_, ref<cell>::share(written), ref<grad_meta>::share(meta),
                      written ? written->current : meta->grad};
  }
  /// Calls f(cell or nullptr, gradient, old value) for all writes, the last first.
  template <class F>
  void each(F&& f) const {
    for (const entry* e = last_; e; e = e->before) f(e->written.get(), e->meta.get(), e->old.get());
  }
  /// Restores all old values. If the whole step was rolled back, it restores only over values that
  /// are pending in the given recording.
  void put_back(const pending_list& own) noexcept {
    const bool rolled_back = rollbacks_ != this_thread.rollbacks;
    while (entry* const e = last_) {
      last_ = e->before;
      ref<impl>& now = e->written ? e->written->current : e->meta->grad;
      if (!rolled_back || !now || now->pending.load() == &own) now = std::move(e->old);
      delete e;
    }
  }
  /// Restores the old values unless they are to be dropped, or the whole step was rolled back. An
  /// outer scope may still undo dropped writes.
  void end(bool keep) noexcept {
    if (rollbacks_ != this_thread.rollbacks) keep = true;
    if (keep && outer_ && last_) return pass_on();
    while (entry* e = last_) {
      last_ = e->before;
      if (!keep) (e->written ? e->written->current : e->meta->grad) = std::move(e->old);
      delete e;
    }
  }

 private:
  [[gnu::cold, gnu::noinline]] void pass_on() noexcept {
    entry* first = last_;
    while (first->before) first = first->before;
    first->before = outer_->last_;
    outer_->last_ = std::exchange(last_, nullptr);
  }
  struct entry {
    entry* before;
    ref<cell> written;
    ref<grad_meta> meta;
    ref<impl> old;
  };
  basic_undo_log* outer_;
  entry* last_ = nullptr;
  const unsigned rollbacks_ = this_thread.rollbacks;
};
using undo_log = basic_undo_log<void>;

template <class In = void>
void note_write(cell* written, grad_meta* meta) {
  if (dependent<In, undo_log>* log = this_thread.writes) log->note(written, meta);
}

template <class In>
void* open_writes() {
  return whole_step<In>([] { return new dependent<In, undo_log>; });
}
XLA_INSTANCE(void* open_writes<void>());

template <class In>
void close_writes(void* opened, bool keep) noexcept {
  auto* const log = static_cast<dependent<In, undo_log>*>(opened);
  log->end(keep);
  delete log;
}
XLA_INSTANCE(void close_writes<void>(void*, bool) noexcept);

}  // namespace xla::detail
