// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for one call of a kernel, counted like that of tensors. Memory that a thread reuses from
// call to call is kernel/memory/thread_scratch.hpp.

#include <cstddef>

#include "xla/base/instance.hpp"

namespace xla::detail {

struct buffer;

/// A buffer of this many bytes, and their address.
template <class = void>
buffer* allocate_buffer(std::size_t bytes, void*& data);
template <class = void>
void free_buffer(buffer* b) noexcept;

/// Memory for a kernel's own use, from the same store as tensors'.
class working_memory {
 public:
  working_memory() = default;
  working_memory(const working_memory&) = delete;
  working_memory& operator=(const working_memory&) = delete;
  ~working_memory() {
    if (buffer_) free_buffer(buffer_);
  }
  /// This many bytes, replacing the previous ones.
  void* take(std::size_t bytes) {
    void* data = nullptr;
    buffer* const b = allocate_buffer(bytes, data);
    if (buffer_) free_buffer(buffer_);
    buffer_ = b;
    return data;
  }

 private:
  buffer* buffer_ = nullptr;
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/tensor/memory.hpp"
#endif
