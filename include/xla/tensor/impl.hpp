// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor at run time: its op and inputs until it is computed, its elements afterwards, and the
// record that collects its gradient. Constant evaluation does not use it. handle.hpp refers to it.

#include <atomic>
#include <cstdint>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/graph/node.hpp"

namespace xla::detail {

/// A reference-counted pointer to a T, which any thread may use. T::release() is not inlined into
/// callers, because a program releases references in hundreds of places.
template <class T>
class ref {
 public:
  ref() = default;
  /// Takes over a reference from the caller.
  explicit ref(T* owned) noexcept : p_(owned) {}
  ref(const ref& o) noexcept : p_(o.p_) {
    if (p_) p_->retain();
  }
  ref(ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ref& operator=(ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~ref() {
    if (p_) p_->release();
  }
  static ref share(T* p) noexcept {
    if (p) p->retain();
    return ref(p);
  }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  T* take() noexcept { return std::exchange(p_, nullptr); }
  /// Releases the reference. (Not `= {}`: clang 16 does not destroy the operand in some templates.)
  void reset() noexcept {
    if (T* p = take()) p->release();
  }

 private:
  T* p_ = nullptr;
};

struct impl;
struct buffer;
struct pending_list;
class handle;

/// The ops that one checkpoint() records. Their tensors do not keep their elements; backward
/// computes them again.
struct segment {
  std::atomic<int> refs{1};
  ref<segment> parent;  ///< the enclosing checkpoint()
  bool open = true;     ///< still being recorded

  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  [[gnu::noinline]] void release() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// True if this is `outer` or is inside it.
  bool within(const segment* outer) const noexcept {
    const segment* s = this;
    while (s && s != outer) s = s->parent.get();
    return s == outer;
  }
};

/// Collects the gradient of a value: shared by all handles of the value, and by all successive
/// values of a parameter.
struct grad_meta {
  std::atomic<int> refs{1};
  ref<impl> grad;
  bool requires_grad = true;
  bool of_tensor = false;  ///< made by requires_grad_() on a tensor that is no parameter

  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;
};

/// The call of a compiled function that returned its results, as long as they may need gradients.
class call_record {
 public:
  /// Computes a result again, in the current mode, so that gradients can flow through it.
  virtual ref<impl> again(int result) = 0;
  void retain() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  [[gnu::noinline]] void release() noexcept {
    if (was_last()) delete this;
  }
  /// Releases a reference; true if it was the last.
  bool was_last() noexcept { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// Transfers its references to the caller, one per call; nullptr if there are no more.
  virtual impl* take_input() noexcept = 0;

  call_record() = default;
  call_record(const call_record&) = delete;
  virtual ~call_record() = default;

 private:
  std::atomic<int> refs_{1};
};

/// A tensor at run time: an op and its inputs until it is executed, elements from then on. The
/// inputs are kept while gradients may flow through it.
struct impl : op_record {
  std::atomic<int> refs{1};
  bool needs_grad = false;
  bool consumed = false;  ///< a backward pass has used it, and may have dropped its inputs
  std::atomic<bool> failed{false};  ///< its graph threw before computing it
  std::uint8_t device = 0;          ///< the number of its device
  /// Computed from numbers alone, so that ops on every device may read it.
  bool anywhere = false;
  bool scanned = false;  ///< as of a node
  int index = -1;  ///< scratch of the traversal that holds the run-time lock
  std::uint64_t order = 0;
  ref<impl> few[few_inputs];
  ref<impl>* in = few;  ///< its inputs, as many as its arity says
  ref<buffer> data;
  ref<grad_meta> meta;
  /// For a compiled function's result, the call, until backward enters it; for a call its function.
  ref<call_record> made_by;
  ref<segment> part;  ///< the checkpoint() that drops it
  /// 1 + the number of each pending op that it must follow without reading it.
  std::uint64_t after[2] = {};
  /// For a cell's pending value: the value to restore if this one fails.
  ref<impl> previous;
  impl* pending_prev = nullptr;
  impl* pending_next = nullptr;
  /// The list of pending ops that contains it, until it is executed.
  std::atomic<pending_list*> pending{nullptr};

  impl() = default;
  ~impl();
  /// Makes room for more inputs than `few`, as its arity says.
  [[gnu::cold, gnu::noinline]] void open_inputs() {
    const int n = std::exchange(arity, 0);  // its arity is 0 if there is no memory for them
    in = static_cast<ref<impl>*>(::operator new(sizeof(ref<impl>) * static_cast<std::size_t>(n)));
    for (; arity < n; ++arity) ::new (static_cast<void*>(in + arity)) ref<impl>;
  }
  void release_inputs() noexcept {
    for (int i = 0; i < arity; ++i) in[i].reset();
    arity = 0;
    if (in != few) [[unlikely]]
      ::operator delete(std::exchange(in, few));  // of references to nothing
  }
  bool is_pending() const noexcept { return pending.load(std::memory_order_acquire) != nullptr; }
  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  /// False if this was the last reference, so that the caller must destroy it.
  bool try_retain() noexcept {
    int n = refs.load(std::memory_order_relaxed);
    while (n > 0)
      if (refs.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) return true;
    return false;
  }
  [[gnu::noinline]] void release() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }
  bool unique() const noexcept { return refs.load(std::memory_order_acquire) == 1; }

  static void* operator new(std::size_t bytes);
  static void operator delete(void* p) noexcept;
  void leave_pending() noexcept;

 private:
  template <class = void>
  static void destroy(impl* first) noexcept;
};

/// A parameter, buffer or optimizer's moment: a location with identity, with its current value and
/// gradient.
struct cell {
  std::atomic<int> refs{1};
  ref<impl> current;
  ref<grad_meta> meta;
  bool functional = false;  ///< gradients pass through writes
  /// The parameter or buffer that owns this cell, kept up to date when it is moved.
  handle* keeper = nullptr;
  ref<cell> successor;              ///< the cell that took over this one's content
  std::uint64_t number = 0;         ///< consecutive among all cells
  std::uint64_t assigned_from = 0;  ///< the number of the cell that was last assigned to this one

  /// The value, or the last valid one if the graph of the new one threw.
  impl* value() const noexcept {
    impl* t = current.get();
    return t && t->failed.load(std::memory_order_acquire) ? t->previous.get() : t;
  }

  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;
};

/// Releases a handle's target: a value, a cell, or nothing.
template <class = void>
void release_target(impl* value, cell* holder) noexcept;

/// Moves the value and gradient of `from`, which its handle gives up, into `to`. References to
/// `from`, such as an optimizer's, follow to `to`.
template <class = void>
void move_contents(cell& to, cell* from) noexcept;

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/tensor/memory.hpp"
#endif
