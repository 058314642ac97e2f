// SPDX-License-Identifier: Apache-2.0
#pragma once

// An array for one call, on the stack while it is short. Eager ops and plans use it for their
// operands; it does not grow, and constant evaluation uses owned_array.hpp.

#include <cstddef>
#include <new>
#include <type_traits>

namespace xla::detail {

/// n elements that its owner gives their values, until that ends: on the stack where they are at
/// most Few. For lists that are nearly always short, at run time.
template <class T, int Few>
class short_array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit short_array(int n)
      : all_(n <= Few ? few_ : ::operator new(sizeof(T) * static_cast<std::size_t>(n))) {}
  short_array(const short_array&) = delete;
  ~short_array() {
    if (all_ != few_) [[unlikely]]
      ::operator delete(all_);
  }
  T* get() { return static_cast<T*>(all_); }

 private:
  alignas(T) std::byte few_[sizeof(T) * Few];
  void* const all_;
};

}  // namespace xla::detail
