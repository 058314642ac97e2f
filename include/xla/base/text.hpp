// SPDX-License-Identifier: Apache-2.0
#pragma once

// A string of bounded length for constant evaluation, where std::string cannot outlive the
// evaluation. Shape rules and captures write their error sentences into it.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xla::detail {

/// A sentence of bounded length that can be built in constant evaluation; what does not fit is cut.
struct text {
  static constexpr int capacity = 280;
  char chars[capacity + 1] = {};
  int length = 0;

  constexpr text() = default;
  constexpr text(std::string_view s) { *this << s; }
  constexpr text(const char* s) { *this << std::string_view(s); }

  constexpr bool empty() const { return length == 0; }
  constexpr std::string_view view() const { return {chars, static_cast<std::size_t>(length)}; }

  // Not in line: sentences are put together in many places, where something has gone wrong.
  [[gnu::noinline]] constexpr text& operator<<(std::string_view s) {
    for (char c : s)
      if (length < capacity) chars[length++] = c;
    return *this;
  }
  constexpr text& operator<<(const char* s) { return *this << std::string_view(s); }
  constexpr text& operator<<(char c) { return *this << std::string_view(&c, 1); }
  constexpr text& operator<<(const text& other) { return *this << other.view(); }
  [[gnu::noinline]] constexpr text& operator<<(std::int64_t v) {
    if (v < 0) *this << '-';
    char digits[20] = {};
    int n = 0;
    // Digit by digit from the signed value, so that the smallest one needs no negation.
    do digits[n++] = static_cast<char>('0' + (v % 10 < 0 ? -(v % 10) : v % 10));
    while ((v /= 10) != 0);
    while (n > 0) *this << digits[--n];
    return *this;
  }
  constexpr text& operator<<(int v) { return *this << static_cast<std::int64_t>(v); }
};

/// The first thing that a capture could not accept: kept, so that one sentence reaches the user.
struct refusal {
  text why;
  constexpr bool failed() const { return !why.empty(); }
  constexpr void set(const text& sentence) {
    if (!failed()) why = sentence;
  }
};

}  // namespace xla::detail
