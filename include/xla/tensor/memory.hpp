// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "xla/base/instance.hpp"
#include "xla/tensor/buffer.hpp"
#include "xla/tensor/impl.hpp"
#include "xla/tensor/pending.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

inline void grad_meta::release() noexcept {
  if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

inline void* impl::operator new(std::size_t bytes) {
  return small_blocks<sizeof(impl)>::take(bytes);
}
inline void impl::operator delete(void* p) noexcept { small_blocks<sizeof(impl)>::give(p); }

// A long chain of ops must not be destroyed by recursion: the dead are strung on a list.
template <class>
void impl::destroy(impl* first) noexcept {
  first->leave_pending();
  impl* dead = first;
  dead->pending_next = nullptr;
  while (dead) {
    impl* t = dead;
    dead = t->pending_next;
    for (auto& input : t->in)
      if (impl* i = input.take())
        if (i->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
          i->leave_pending();
          i->pending_next = dead;
          dead = i;
        }
    delete t;
  }
}
XLA_INSTANCE(void impl::destroy<void>(impl*) noexcept);

template <class>
buffer* take_buffer(std::size_t bytes, void*& data) {
  buffer* const b = buffer::make(bytes);
  data = b->data;
  return b;
}
XLA_INSTANCE(buffer* take_buffer<void>(std::size_t, void*&));

template <class>
void give_buffer(buffer* b) noexcept {
  b->release();
}
XLA_INSTANCE(void give_buffer<void>(buffer*) noexcept);

inline void cell::release() noexcept {
  if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

template <class>
void let_go(impl* value, cell* place) noexcept {
  if (place) place->release();
  if (value) value->release();
}
XLA_INSTANCE(void let_go<void>(impl*, cell*) noexcept);

}  // namespace xla::detail
