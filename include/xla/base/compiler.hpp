// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compiler extensions that the library uses, each with a replacement in standard C++20.
// XLA_PORTABLE chooses the replacements with any compiler; tests build with it. Attributes such as
// [[gnu::always_inline]] need none, because other compilers ignore them. MSVC is untested.

#include <atomic>
#include <cstdint>
#include <limits>

// 1: the extensions of g++ and clang.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(XLA_PORTABLE)
#define XLA_GNU_EXTENSIONS 1
#else
#define XLA_GNU_EXTENSIONS 0
#endif

#if XLA_GNU_EXTENSIONS
#define XLA_INLINE __attribute__((always_inline)) inline
// After a lambda's parameters, where an attribute in [[]] would apply to its type.
#define XLA_INLINE_LAMBDA __attribute__((always_inline))
#define XLA_COLD_LAMBDA __attribute__((noinline, cold))
#define XLA_PREFETCH(...) __builtin_prefetch(__VA_ARGS__)
#define XLA_UNREACHABLE() __builtin_unreachable()
#define XLA_ADD_OVERFLOWS(a, b, sum) __builtin_add_overflow(a, b, &(sum))
#define XLA_SUBTRACT_OVERFLOWS(a, b, difference) __builtin_sub_overflow(a, b, &(difference))
#define XLA_MULTIPLY_OVERFLOWS(a, b, product) __builtin_mul_overflow(a, b, &(product))
// The compiler moves no read or write across it.
#define XLA_MEMORY_BARRIER() asm volatile("" ::: "memory")
#else
#define XLA_INLINE inline
#define XLA_INLINE_LAMBDA
#define XLA_COLD_LAMBDA
#define XLA_PREFETCH(...) ::xla::detail::no_prefetch(__VA_ARGS__)
#define XLA_UNREACHABLE() ::xla::detail::unreachable()
#define XLA_ADD_OVERFLOWS(a, b, sum) ::xla::detail::add_overflows(a, b, sum)
#define XLA_SUBTRACT_OVERFLOWS(a, b, difference) ::xla::detail::subtract_overflows(a, b, difference)
#define XLA_MULTIPLY_OVERFLOWS(a, b, product) ::xla::detail::multiply_overflows(a, b, product)
#define XLA_MEMORY_BARRIER() std::atomic_signal_fence(std::memory_order_seq_cst)
#endif

namespace xla::detail {

/// A pointer whose distance from others is hidden from the compiler, so that it steps from one to
/// the next. With many known distances it would compute every address and keep them all.
template <class T>
XLA_INLINE T* hidden(T* p) {
#if XLA_GNU_EXTENSIONS
  asm("" : "+r"(p));
#endif
  return p;
}

}  // namespace xla::detail

#if !XLA_GNU_EXTENSIONS
namespace xla::detail {

inline void no_prefetch(const void*, int = 0, int = 0) {}
[[noreturn]] inline void unreachable() {
  for (;;) {}
}

// Like the built-in functions, these store the result modulo 2^64.
constexpr bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& sum) {
  sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  return (a < 0) == (b < 0) && (sum < 0) != (a < 0);
}
constexpr bool subtract_overflows(std::int64_t a, std::int64_t b, std::int64_t& difference) {
  difference =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  return (a < 0) != (b < 0) && (difference < 0) != (a < 0);
}
constexpr bool multiply_overflows(std::int64_t a, std::int64_t b, std::int64_t& product) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  product =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  if (a == 0) return false;
  if (a == -1) return b == least;
  return product / a != b;
}

}  // namespace xla::detail
#endif
