// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/run/sync.hpp"
#include "xla/run/thread_context.hpp"
#include "xla/tensor/pending.hpp"

namespace xla::detail {

/// What a thread has recorded in traced mode, until it is executed.
template <class In>
struct basic_recording : pending_list {
  later<In, std::vector<std::unique_ptr<step_closure>>> closures;  ///< for the end of the step
  basic_recording* next = nullptr;
  bool owned = false;  ///< by a thread that lives
};
using recording = basic_recording<void>;

/// The recordings of all threads. They are kept for good, as tensors outlive the thread that made
/// them; another thread takes one over when nothing is pending in it.
template <class In>
class basic_recordings {
 public:
  static basic_recordings& instance() {
    static basic_recordings& r = held_at_fork(*new basic_recordings, fork_order::recordings);
    return r;
  }
  later<In, recording>& take() {
    const std::lock_guard hold(lock_);
    later<In, recording>* r = first_;
    while (r && (r->owned || r->size() != 0)) r = r->next;
    if (!r) {
      r = new later<In, recording>;
      r->next = std::exchange(first_, r);
    }
    r->owned = true;
    return *r;
  }
  void give(later<In, recording>& r) noexcept {
    r.closures.clear();
    const std::lock_guard hold(lock_);
    r.owned = false;
  }
  void before_fork() {
    lock_.lock();
    for (auto* r = first_; r; r = r->next) r->planning.lock();
    for (auto* r = first_; r; r = r->next) r->links.lock();
  }
  void after_fork(bool child) noexcept {
    for (auto* r = first_; r; r = r->next) {
      if (child) r->owned = r == this_thread.recording;
      r->links.unlock();
      r->planning.unlock();
    }
    lock_.unlock();
  }

 private:
  std::mutex lock_;
  later<In, recording>* first_ = nullptr;
};
using recordings = basic_recordings<void>;

/// This thread's.
template <class In = void>
later<In, recording>& own_recording() {
  if (this_thread.recording) return *this_thread.recording;
  this_thread.recording = &later<In, recordings>::instance().take();
  static thread_local const struct at_thread_exit {
    ~at_thread_exit() {
      later<In, recordings>::instance().give(*std::exchange(this_thread.recording, nullptr));
    }
  } giving_back;
  return *this_thread.recording;
}

/// Records a tensor that is complete.
template <class In = void>
void add_pending(impl* t) {
  own_recording<In>().add(t);
}

/// Changes a tensor that may be pending in what a plan depends on.
template <class F>
void change(impl& t, F&& f) {
  if (pending_list* const list = t.pending.load(std::memory_order_acquire)) {
    const std::lock_guard hold(list->planning);
    f(t);
  } else {
    f(t);
  }
}

}  // namespace xla::detail
