// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace test {

/// Whether a sanitizer of addresses or threads observes the test: what is tried thousands of times
/// takes minutes then, and a part of it has touched the same memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// Whether two compiled programs of the drawn ones are enough: their sanitized code takes minutes
/// to compile. The others run without a sanitizer, and other seeds with one in tests/attack.cmake.
#if !defined(XLA_TEST_SEED) || XLA_TEST_SEED == 0
inline constexpr bool few_compiled = sanitized;
#else
inline constexpr bool few_compiled = false;
#endif

}  // namespace test
