// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scratch memory of the calling thread, one for each use. A pointer is valid until the thread's
// next request for the same use.

#include <cstddef>
#include <cstdint>

#include "xla/tensor/heap.hpp"

namespace xla::kernel {

/// Scratch memory of the calling thread, kept between calls; each Use has its own.
template <class Use = void>
[[gnu::noinline]] void* thread_scratch(std::int64_t bytes) {
  struct block {
    void* p = nullptr;
    std::int64_t size = 0;
    ~block() { xla::detail::heap_give(p, 64); }
  };
  static thread_local block b;
  if (b.size < bytes) {
    xla::detail::heap_give(b.p, 64);
    b.p = nullptr;
    b.size = 0;
    b.p = xla::detail::heap_take(static_cast<std::size_t>(bytes), 64);
    b.size = bytes;
  }
  return b.p;
}

}  // namespace xla::kernel
