// SPDX-License-Identifier: Apache-2.0
#pragma once

// The library's own std::vector for the run time: cheap to include, with one function that grows
// lists of all types. Public functions take and return std::vector.

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "xla/base/instance.hpp"

namespace xla::detail {

/// Memory for elements of any type, grown by one function for all types.
template <class = void>
class list_memory {
 protected:
  /// Moves elements of a type that memcpy cannot move, and destroys the originals.
  using mover = void (*)(void* from, int n, void* to) noexcept;

  /// Makes room for n elements of some bytes each. On std::bad_alloc nothing has changed.
  [[gnu::noinline]] void make_room(std::int64_t n, std::size_t bytes, mover move) {
    if (n < 0 || n > INT_MAX) throw std::bad_array_new_length();
    void* const room = ::operator new(static_cast<std::size_t>(n) * bytes);
    if (move) move(data_, size_, room);
    else if (size_ > 0) std::memcpy(room, data_, static_cast<std::size_t>(size_) * bytes);
    ::operator delete(data_);
    data_ = room;
    capacity_ = static_cast<int>(n);
  }
  /// Makes room for n elements at the end, and for more to come.
  [[gnu::noinline]] void grow(std::int64_t more, std::size_t bytes, mover move) {
    make_room(std::max<std::int64_t>({size_ + more, 2 * std::int64_t{capacity_}, 4}), bytes, move);
  }

  /// Room for one more element of this many bytes. Callers pass one argument fewer, which saves
  /// code in many places.
  template <std::size_t Bytes>
  [[gnu::noinline]] void grow_by_one() {
    grow(1, Bytes, nullptr);
  }

  void* data_ = nullptr;
  int size_ = 0, capacity_ = 0;
};

XLA_INSTANCE(class list_memory<void>);

/// A contiguous sequence whose elements are counted in int, like slots, values and steps. Cheap to
/// compile: a program instantiates std::vector<T> wherever it includes a type that names it, which
/// takes four times as long, and one function grows lists of all types. A failed allocation changes
/// nothing.
template <class T>
class list : private list_memory<> {
 public:
  list() = default;
  /// n value-initialised elements, or copies of x.
  explicit list(int n) : list() { resize(n); }
  list(int n, const T& x) : list() { assign(n, x); }
  list(const T* first, const T* last) : list() { append(first, last); }
  list(const list& other) : list(other.begin(), other.end()) {}
  list(list&& other) noexcept { swap(other); }
  list& operator=(list other) noexcept {
    swap(other);
    return *this;
  }
  ~list() {
    clear();
    ::operator delete(data_);
  }

  T* data() { return static_cast<T*>(data_); }
  const T* data() const { return static_cast<const T*>(data_); }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Bytes allocated, including unused capacity.
  std::int64_t bytes() const { return capacity_ * static_cast<std::int64_t>(sizeof(T)); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](int i) { return data()[i]; }
  const T& operator[](int i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(T x) { emplace_back(std::move(x)); }
  /// The arguments must not refer to elements of this list: growing it moves them.
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) grow_by_one();
    T* const made = ::new (static_cast<void*>(end())) T(std::forward<Args>(args)...);
    ++size_;
    return *made;
  }
  void pop_back() {
    back().~T();
    --size_;
  }
  /// Puts x before element i.
  void insert(int i, T x) {
    push_back(std::move(x));
    std::rotate(begin() + i, end() - 1, end());
  }
  /// Appends copies of [first, last), which must not be elements of this list.
  [[gnu::noinline]] void append(const T* first, const T* last) {
    const auto n = last - first;
    if (n > capacity_ - size_) grow(n, sizeof(T), mover_of_t());
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (n > 0) std::memcpy(end(), first, static_cast<std::size_t>(n) * sizeof(T));
      size_ += static_cast<int>(n);
    } else {
      for (; first != last; ++first) ::new (static_cast<void*>(data() + size_++)) T(*first);
    }
  }
  /// Memory for n more elements at the end, of a type that memcpy can move; the caller writes some
  /// and calls end_at().
  T* room(int n) {
    if (n > capacity_ - size_) grow(n, sizeof(T), nullptr);
    return end();
  }
  void end_at(const T* end) { size_ = static_cast<int>(end - data()); }
  /// A negative n is a std::bad_alloc, like any size that is too large.
  void reserve(int n) {
    if (n < 0 || n > capacity_) make_room(n, sizeof(T), mover_of_t());
  }
  void resize(int n) {
    reserve(n);
    while (size_ > n) pop_back();
    for (; size_ < n; ++size_) ::new (static_cast<void*>(end())) T();
  }
  /// Becomes n copies of x.
  void assign(int n, const T& x) {
    clear();
    reserve(n);
    for (; size_ < n; ++size_) ::new (static_cast<void*>(end())) T(x);
  }
  void clear() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) destroy_elements();
    size_ = 0;
  }
  /// Removes the elements for which drop(x) is true; the others keep their order.
  template <class F>
  void remove_if(F drop) {
    T* to = begin();
    for (T& x : *this)
      if (!drop(std::as_const(x))) {
        if (to != &x) *to = std::move(x);
        ++to;
      }
    while (end() != to) pop_back();
  }
  void swap(list& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  friend bool operator==(const list& a, const list& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  [[gnu::noinline]] void destroy_elements() noexcept {
    for (T& x : *this) x.~T();
  }
  void grow_by_one() {
    if constexpr (std::is_trivially_copyable_v<T>) list_memory<>::template grow_by_one<sizeof(T)>();
    else grow(1, sizeof(T), mover_of_t());
  }
  // nullptr if memcpy can move elements of this type.
  static constexpr mover mover_of_t() {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    if constexpr (std::is_trivially_copyable_v<T>) return nullptr;
    else return &move_all;
  }
  [[gnu::cold]] static void move_all(void* from, int n, void* to) noexcept {
    for (int i = 0; i < n; ++i) {
      T& x = static_cast<T*>(from)[i];
      ::new (static_cast<void*>(static_cast<T*>(to) + i)) T(std::move(x));
      x.~T();
    }
  }
};

/// An item's number and size.
struct measured {
  std::int64_t size;
  int number;
};

/// Sorts by size, the largest first; equal sizes by number. It calls the C library's function, as
/// std::sort would be instantiated for each comparison.
template <class = void>
[[gnu::cold]] void largest_first(list<measured>& all) {
  if (all.size() < 2) return;
  std::qsort(all.data(), static_cast<std::size_t>(all.size()), sizeof(measured),
             [](const void* a, const void* b) {
               const auto& x = *static_cast<const measured*>(a);
               const auto& y = *static_cast<const measured*>(b);
               if (x.size != y.size) return x.size > y.size ? -1 : 1;
               return x.number < y.number ? -1 : 1;
             });
}
XLA_INSTANCE(void largest_first<void>(list<measured>&));

}  // namespace xla::detail
