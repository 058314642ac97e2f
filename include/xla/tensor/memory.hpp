// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the functions of impl.hpp and buffer.hpp that free, copy and share elements. These
// include it where the run time is compiled; others need the declarations alone.

#include <cstddef>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/tensor/buffer.hpp"
#include "xla/tensor/impl.hpp"
#include "xla/tensor/pending.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

[[gnu::noinline]] inline void grad_meta::release() noexcept {
  if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

inline void* impl::operator new(std::size_t bytes) {
  return small_blocks<sizeof(impl)>::take(bytes);
}
inline void impl::operator delete(void* p) noexcept { small_blocks<sizeof(impl)>::give(p); }

inline impl::~impl() {
  if (in != few) [[unlikely]]
    ::operator delete(in);
}

// A long chain of ops must not be destroyed by recursion, so dead tensors are linked in a list.
template <class>
void impl::destroy(impl* first) noexcept {
  first->leave_pending();
  impl* dead = first;
  dead->pending_next = nullptr;
  const auto release = [&](impl* i) {
    if (i->refs.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    i->leave_pending();
    i->pending_next = dead;
    dead = i;
  };
  while (dead) {
    impl* t = dead;
    dead = t->pending_next;
    for (int k = 0; k < t->arity; ++k)
      if (impl* i = t->in[k].take()) release(i);
    if (call_record* const r = t->made_by.take(); r && r->was_last()) {
      while (impl* i = r->take_input()) release(i);
      delete r;
    }
    delete t;
  }
}
XLA_INSTANCE(void impl::destroy<void>(impl*) noexcept);

// Copies the elements to the host once; the buffer keeps the copy.
template <class>
[[gnu::cold]] void* to_host(const impl& t) {
  buffer& b = *t.data;
  const std::int64_t width = size_of(t.type);
  const shape dims = t.dims_shape();
  const auto bytes = static_cast<std::size_t>(count(dims) * width);
  struct block {
    void* data;
    ~block() { heap_free(data, buffer_cache::alignment); }
  } copy{heap_allocate(bytes, buffer_cache::alignment, {"a tensor that is read", &dims})};
  working_memory there;
  void* from = b.memory;
  if (!from && bytes > 0) {
    from = b.order.is_row_major() ? copy.data : there.take(bytes);
    b.space->copy_to_host(b.owner, from, bytes);
  }
  if (from != copy.data) {
    std::int64_t strides[max_rank];
    find_strides(dims, b.order, strides);
    copy_row_by_row(dims, strides, from, copy.data, width);
  }
  void* first = nullptr;
  if (!b.host_copy.compare_exchange_strong(first, copy.data))
    return first;  // another thread's copy
  return std::exchange(copy.data, nullptr);
}
XLA_INSTANCE(void* to_host<void>(const impl&));

/// The elements of a tensor in row-major order in host memory, wherever and in whatever order they
/// are stored. Every reader calls it after waiting for them.
template <class = void>
void* elements_of(const impl& t) {
  void* const host_copy = t.data->host_copy.load(std::memory_order_acquire);
  return host_copy ? host_copy : t.data->space->to_host(t);
}

// An order applies to the axes of one shape.
template <class>
[[gnu::cold]] buffer* share_elements(const impl& t, const impl& as) {
  buffer* const b = t.data.get();
  if (same_dims(t, as) || (b->memory && b->order.is_row_major())) {
    b->retain();
    return b;
  }
  const shape dims = as.dims_shape();
  const auto bytes = static_cast<std::size_t>(count(dims) * size_of(as.type));
  const void* const from = elements_of(t);
  buffer* const copy = buffer::make(bytes, {as.op->name, &dims});
  std::memcpy(copy->memory, from, bytes);
  return copy;
}
XLA_INSTANCE(buffer* share_elements<void>(const impl&, const impl&));

template <class>
buffer* allocate_buffer(std::size_t bytes, void*& data) {
  // Takes any block up to 16 times as large: it returns to the cache when the kernel ends.
  buffer* const b = buffer::make(bytes, {}, 64);
  data = b->memory;
  return b;
}
XLA_INSTANCE(buffer* allocate_buffer<void>(std::size_t, void*&));

template <class>
void free_buffer(buffer* b) noexcept {
  b->release();
}
XLA_INSTANCE(void free_buffer<void>(buffer*) noexcept);

[[gnu::noinline]] inline void cell::release() noexcept {
  if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

template <class>
[[gnu::noinline]] void release_target(impl* value, cell* holder) noexcept {
  if (holder) {
    holder->keeper = nullptr;
    holder->release();
  }
  if (value) value->release();
}
XLA_INSTANCE(void release_target<void>(impl*, cell*) noexcept);

template <class>
[[gnu::cold]] void move_contents(cell& to, cell* from) noexcept {
  to.current = std::move(from->current);
  to.meta = std::move(from->meta);
  to.functional = from->functional;
  to.number = from->number;
  to.assigned_from = from->assigned_from;
  // Otherwise only the released handle refers to it.
  if (from->refs.load(std::memory_order_acquire) > 1) from->successor = ref<cell>::share(&to);
  release_target(nullptr, from);
}
XLA_INSTANCE(void move_contents<void>(cell&, cell*) noexcept);

}  // namespace xla::detail
