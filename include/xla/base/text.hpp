// SPDX-License-Identifier: Apache-2.0
#pragma once

// Strings for error sentences and names: a text of bounded length for constant evaluation, where
// std::string cannot outlive the evaluation, and joined std::strings for run time.
// transform/print.hpp prints numbers of other types than integers.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "xla/base/instance.hpp"

namespace xla::detail {

/// A sentence of bounded length for constant evaluation; anything beyond the bound is cut off.
struct text {
  static constexpr int capacity = 280;
  char chars[capacity + 1] = {};
  int length = 0;

  constexpr text() = default;
  constexpr text(std::string_view s) { *this << s; }
  constexpr text(const char* s) { *this << std::string_view(s); }

  constexpr bool empty() const { return length == 0; }
  constexpr std::string_view view() const { return {chars, static_cast<std::size_t>(length)}; }

  // Not inline: many places build sentences, and only when something has gone wrong.
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
    // Takes digits from the signed value, so that the smallest one needs no negation.
    do digits[n++] = static_cast<char>('0' + (v % 10 < 0 ? -(v % 10) : v % 10));
    while ((v /= 10) != 0);
    while (n > 0) *this << digits[--n];
    return *this;
  }
  constexpr text& operator<<(int v) { return *this << static_cast<std::int64_t>(v); }
};

/// The first error of a capture, stored so that one sentence reaches the user.
struct refusal {
  text why;
  /// The slot of a parameter that the refused op reads, counted from 1; in a loop over blocks those
  /// of the first and the last block. 0: none.
  int slot = 0, last_slot = 0;
  constexpr bool failed() const { return !why.empty(); }
  constexpr void set(const text& sentence) {
    if (!failed()) why = sentence;
  }
};

/// Joins its arguments. Error sentences are built with it, because each + between strings would be
/// inlined separately.
template <class = void>
[[gnu::cold, gnu::noinline]] std::string join(std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view p : parts) size += p.size();
  std::string out;
  out.reserve(size);
  for (const std::string_view p : parts) out += p;
  return out;
}
XLA_INSTANCE(std::string join<void>(std::initializer_list<std::string_view>));

/// A number's digits. std::to_string would be instantiated once for every type of number.
template <class = void>
[[gnu::cold, gnu::noinline]] std::string decimal(std::int64_t number) {
  text digits;
  digits << number;
  return std::string(digits.view());
}
XLA_INSTANCE(std::string decimal<void>(std::int64_t));

}  // namespace xla::detail
