// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory that a thread reuses from call to call: one block for each use, and the buffers into which
// products pack their operands. Memory that a call counts and returns is tensor/working_memory.hpp.

#include <cstddef>
#include <cstdint>

#include "xla/base/system/per_thread.hpp"
#include "xla/tensor/heap.hpp"

namespace xla::kernel {

/// Memory of the calling thread, reused by later calls. Each type Use has its own block, so that
/// nested users do not share.
template <class Use = void>
[[gnu::noinline]] void* thread_scratch(std::int64_t bytes) {
  struct block {
    void* p = nullptr;
    std::int64_t size = 0;
    ~block() { xla::detail::heap_free(p, 64); }
  };
  block& b = sys::per_thread<block>();
  if (b.size < bytes) {
    xla::detail::heap_free(b.p, 64);
    b.p = nullptr;
    b.size = 0;
    b.p = xla::detail::heap_allocate(static_cast<std::size_t>(bytes), 64);
    b.size = bytes;
  }
  return b.p;
}

}  // namespace xla::kernel

namespace xla::kernel::detail {

/// Memory that is reused by the next call and only grows. Its contents do not survive `get`.
class scratch {
 public:
  scratch() = default;
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { reset(); }

  template <class T>
  [[gnu::noinline]] T* get(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes > size_) grow(bytes);
    return static_cast<T*>(data_);
  }

 private:
  [[gnu::cold, gnu::noinline]] void grow(std::size_t bytes) {
    reset();
    // Rounds to whole large pages from half a page on.
    using xla::detail::large_page;
    const std::size_t unit = bytes >= large_page / 2 ? large_page : 4096;
    const std::size_t size = (bytes + unit - 1) / unit * unit;
    data_ = xla::detail::heap_allocate(size, unit);
    size_ = size;
    align_ = unit;
  }

  void reset() {
    if (size_ != 0) xla::detail::heap_free(data_, align_);
    size_ = 0;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0, align_ = 0;
};

/// This thread's buffers: micro-panels of a, panels of b.
template <class = void>
[[gnu::noinline]] inline scratch& left_scratch() {
  return sys::per_thread<scratch, struct left_use>();
}
template <class = void>
[[gnu::noinline]] inline scratch& right_scratch() {
  return sys::per_thread<scratch, struct right_use>();
}

}  // namespace xla::kernel::detail
