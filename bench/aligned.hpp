// SPDX-License-Identifier: Apache-2.0
#pragma once

// An allocator for the operands of kernels that are measured without tensors.

#include <cstddef>
#include <new>

namespace bench {

/// Memory aligned as that of tensors, here and in PyTorch.
template <class T>
struct aligned {
  using value_type = T;
  aligned() = default;
  template <class U>
  aligned(aligned<U>) {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
  bool operator==(const aligned&) const = default;
};

}  // namespace bench
