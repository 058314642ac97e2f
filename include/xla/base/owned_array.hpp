// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays of fixed length that free their memory in the destructor: owned_array, which also works in
// constant evaluation, where graphs are captured, and short_array, on the stack while it is short.
// The list that grows is list.hpp.

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace xla::detail {

/// Owns an array made by new T[n]: a unique_ptr<T[]> that also works in constant evaluation. Loops
/// use get(), because in constant evaluation operator[] takes 1.4 times as long with g++ 12, like
/// that of std::vector, and 2.3 times as long with clang 16.
template <class T>
class owned_array {
 public:
  constexpr owned_array() = default;
  constexpr explicit owned_array(std::size_t n) : all_(new T[n]) {}
  constexpr owned_array(owned_array&& o) noexcept : all_(std::exchange(o.all_, nullptr)) {}
  constexpr owned_array& operator=(owned_array&& o) noexcept {
    std::swap(all_, o.all_);
    return *this;
  }
  constexpr ~owned_array() { delete[] all_; }

  constexpr T* get() const { return all_; }
  /// Replaces the array by a new one; if there is no memory for it, the old one stays.
  constexpr T* renew(std::size_t n) {
    *this = owned_array(n);
    return all_;
  }

 private:
  T* all_ = nullptr;
};

/// n uninitialised elements, on the stack if there are at most Few. For run-time lists that are
/// nearly always short.
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
