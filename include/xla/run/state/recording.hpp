// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ops that a thread has recorded, in traced mode or in eager mode that fuses, and not yet run;
// one recording per thread and device. run/trace/lazy.hpp turns it into a graph.

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/per_thread.hpp"
#include "xla/graph/builtin.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/tensor/pending.hpp"

namespace xla::op {

/// At run time: a call of a recorded function. Its inputs are the function's, and its results are
/// outputs of the call. A traced graph contains the function's body instead. If the body draws, the
/// attributes are drawing::drawn, with the number of counters that it consumes.
struct call {
  static constexpr auto name = "call";
  static constexpr auto kind = detail::op_kind::library;
};

}  // namespace xla::op

XLA_BUILTIN_OP(xla::op::call);

namespace xla::detail {

/// A function to call at the end of the step (xla::add_step_closure).
struct step_closure {
  virtual ~step_closure() = default;
  virtual void run() = 0;
};

/// State of the open graph in eager mode that fuses: see run/trace/fused_graphs.hpp.
struct fused_part {
  int ops = 0;
  int kinds = 0;             ///< the kinds of its ops, one bit each
  std::uint64_t recent = 0;  ///< the eight latest ops, one byte of each name
  std::uint64_t first = 0;   ///< the same when the first op was recorded
};

/// The ops that a thread has recorded on a device, until they are executed.
template <class In>
struct basic_recording : pending_list {
  list<std::unique_ptr<step_closure>> closures;  ///< for the end of the step
  /// Its writes: cells, whose new values refer to the old ones, and gradients with the old ones.
  /// They serve to roll a step back.
  list<ref<cell>> cells;
  list<std::pair<ref<grad_meta>, ref<impl>>> gradients;
  /// The consecutive range of random numbers that its tensors drew, and the seed.
  std::uint64_t seed = 0, drawn_from = 0, drawn_to = 0;
  bool gives_back = false;  ///< draws of unreferenced tensors
  fused_part fused;
  /// While the body of a function is recorded: the surrounding recording. Operations that a
  /// function cannot contain throw not_recorded.
  basic_recording* outer = nullptr;
  bool left = false;  ///< such an operation occurred; the body may have caught the exception
  /// Notifies the recorder of a body about draws and replaced gradients.
  void (*drew_in_body)(basic_recording& self, impl& t, std::uint64_t seed, std::uint64_t offset,
                       std::uint64_t counters) = nullptr;
  void (*replaced_in_body)(basic_recording& self, grad_meta& m) = nullptr;
  /// Whether ops recorded here may read tensors that are pending in that list: it is this one or a
  /// surrounding one.
  static bool reads(const basic_recording* r, const pending_list* list) {
    while (r && r != list) r = r->outer;
    return r != nullptr;
  }
  static void refuse_in_body() {
    if (this_thread.in_pass) [[unlikely]]
      this_thread.in_pass();
  }

  void drew(impl& t, std::uint64_t from_seed, std::uint64_t offset, std::uint64_t counters) {
    if (outer) [[unlikely]]
      return drew_in_body(*this, t, from_seed, offset, counters);
    refuse_in_body();
    const std::lock_guard hold(planning);
    if (seed != from_seed || drawn_to != offset || drawn_from == drawn_to) drawn_from = offset;
    seed = from_seed;
    drawn_to = offset + counters;
  }
  void writes(cell& c) {
    if (outer) return;  // the undo log of the body has it
    const std::lock_guard hold(planning);
    cells.push_back(ref<cell>::share(&c));
  }
  void replaces(grad_meta& m) {
    if (outer) [[unlikely]]
      return replaced_in_body(*this, m);
    refuse_in_body();
    if (m.grad && m.grad->is_pending()) return;  // its previous value is recorded already
    const std::lock_guard hold(planning);
    gradients.emplace_back(ref<grad_meta>::share(&m), m.grad);
  }
  /// The caller holds `planning`, and everything has been executed.
  void restart() noexcept {
    cells.clear();
    gradients.clear();
    drawn_from = drawn_to;
    gives_back = false;
    fused.ops = fused.kinds = 0;
  }
  basic_recording* next = nullptr;
  basic_recording* next_own = nullptr;  ///< of the same thread, on another device
  device_context* device = nullptr;
  bool owned = false;  ///< by a living thread
};
using recording = basic_recording<void>;

/// The recordings of all threads. They are never freed, because tensors outlive the thread that
/// made them. A new thread reuses one without pending ops.
template <class In>
class basic_recordings {
 public:
  static basic_recordings& instance() { return made_once(the_process.recordings); }
  static constexpr fork_order order = fork_order::recordings;
  [[gnu::cold]] dependent<In, recording>& take() {
    const std::lock_guard hold(lock_);
    dependent<In, recording>* r = first_;
    while (r && (r->owned || r->size() != 0 || !r->closures.empty())) r = r->next;
    if (!r) {
      r = new dependent<In, recording>;
      r->next = std::exchange(first_, r);
    }
    r->owned = true;
    r->device = this_thread.device;
    r->next_own = this_thread.recordings;
    return *(this_thread.recordings = r);
  }
  /// Returns all recordings of a thread that ends.
  [[gnu::cold, gnu::noinline]] void give(dependent<In, recording>* r) noexcept {
    const std::lock_guard hold(lock_);
    for (; r; r = r->next_own) r->owned = false;
  }
  [[gnu::cold]] void before_fork() {
    lock_.lock();
    for (auto* r = first_; r; r = r->next) r->planning.lock();
    for (auto* r = first_; r; r = r->next) r->links.lock();
  }
  void abandon() noexcept {}
  [[gnu::cold]] void after_fork(bool child) noexcept {
    for (auto* r = first_; r; r = r->next) {
      if (child) r->owned = false;
      r->links.unlock();
      r->planning.unlock();
    }
    for (auto* r = this_thread.recordings; r; r = r->next_own) r->owned = true;
    lock_.unlock();
  }

 private:
  sys::mutex lock_;
  dependent<In, recording>* first_ = nullptr;
};
using recordings = basic_recordings<void>;

/// The recordings of a thread, which it returns when it ends.
template <class In>
struct thread_recordings {
  recording* all = nullptr;
  [[gnu::cold]] ~thread_recordings() {
    if constexpr (sys::thread_locals_outlive_per_thread) {
      this_thread.recording = nullptr;
      this_thread.recordings = nullptr;
    }
    dependent<In, recordings>::instance().give(all);
  }
};
/// Gives this thread a recording on its device.
template <class In = void>
[[gnu::cold, gnu::noinline]] void begin_recording() {
  this_thread.recording = &dependent<In, recordings>::instance().take();
  sys::per_thread<thread_recordings<In>>().all = this_thread.recordings;
}
/// This thread's recording on its device.
template <class In = void>
dependent<In, recording>& own_recording() {
  if (!this_thread.recording) begin_recording<In>();
  return *this_thread.recording;
}

/// Makes this thread work on device d from now on.
template <class In = void>
[[gnu::noinline]] void work_on(device_context& d) noexcept {
  d.used.store(true, std::memory_order_relaxed);
  this_thread.device = &d;
  this_thread.number = static_cast<std::uint8_t>(d.number());
  kernel::detail::own_cores = &kernel::detail::core_shares[this_thread.number];
  dependent<In, recording>* own = this_thread.recordings;
  while (own && own->device != &d) own = own->next_own;
  this_thread.recording = own;
}
/// Makes this thread work on another device, that of the tensor concerned, within a scope.
template <class In>
class basic_device_switch {
 public:
  explicit basic_device_switch(device_context& d) noexcept : before_(this_thread.device) {
    if (before_ != &d) work_on<In>(d);
  }
  ~basic_device_switch() {
    if (this_thread.device != before_) work_on<In>(*before_);
  }
  basic_device_switch(const basic_device_switch&) = delete;
  basic_device_switch& operator=(const basic_device_switch&) = delete;

 private:
  device_context* before_;
};
using device_switch = basic_device_switch<void>;

/// Adds a finished tensor to the pending ones.
template <class In = void>
void add_pending(impl* t) {
  own_recording<In>().add(t);
}

/// The caller holds `planning`. Rolls back all writes since the last graph, so that a step that
/// could not be recorded or planned for lack of memory leaves the state as it was. Values that it
/// has recorded stay pending for their owners.
template <class In = void>
[[gnu::cold, gnu::noinline]] void roll_back(dependent<In, recording>& r) noexcept {
  for (; !r.cells.empty(); r.cells.pop_back()) {
    cell& c = *r.cells.back();
    if (impl* const t = c.current.get(); t && t->is_pending() && t->previous)
      c.current = ref<impl>(t->previous);
  }
  for (; !r.gradients.empty(); r.gradients.pop_back()) {
    auto& [meta, old] = r.gradients.back();
    if (!meta->grad || meta->grad->is_pending()) meta->grad = std::move(old);
  }
  r.gives_back = r.drawn_to != r.drawn_from;
}

/// Runs f, which records something; if it runs out of memory, the step is rolled back.
template <class In, class F>
decltype(auto) whole_step(F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    if (records_ops() && this_thread.recordings) {
      for (dependent<In, recording>* r = this_thread.recordings; r; r = r->next_own) {
        const std::lock_guard hold(r->planning);
        roll_back<In>(*r);
      }
      ++this_thread.rollbacks;
    }
    throw;
  }
}

/// Changes a field that planning reads, of a tensor that may be pending; takes that thread's lock.
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

namespace xla {

/// For code that changes objects other than tensors and may run in the body of a loop: traced mode,
/// which would record the body once, then runs the steps one by one. To be called before the
/// change.
inline void begin_side_effects() { detail::recording::refuse_in_body(); }

}  // namespace xla
