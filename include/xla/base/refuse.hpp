// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stops the build with a sentence that the compiler prints in its first line. For mistakes that
// types show; mistakes that only values show throw an exception (error.hpp).

#include <cstddef>
#include <string_view>

#include "xla/base/text.hpp"

namespace xla::detail {

/// A sentence as a template argument. clang prints at most 36 characters of an array, so there the
/// sentence is split into lines of whole words, each ending with a space; a longer word is cut.
#ifdef __clang__
template <int Count>
struct sentence {
  char lines[Count][37] = {};
};
inline constexpr int max_inline = 36;
#else
template <int Length>
struct sentence {
  char text[Length + 1] = {};
};
#endif

/// Stops the build with the sentence in the compiler's first line, because it is declared and never
/// defined.
template <int Size, sentence<Size> Why>
struct refused;

#ifdef __clang__
/// How many of the remaining characters form the next line.
constexpr std::size_t length_of_line(std::string_view left) {
  if (left.size() <= max_inline) return left.size();
  const std::size_t space = left.substr(0, max_inline).rfind(' ');
  return space == left.npos ? std::size_t{max_inline} : space + 1;
}
constexpr int sentence_size(std::string_view left) {
  int count = 0;
  for (; !left.empty(); ++count) left.remove_prefix(length_of_line(left));
  return count;
}
template <int Count>
constexpr sentence<Count> sentence_of(std::string_view left) {
  sentence<Count> all;
  for (auto& line : all.lines) {
    const std::size_t length = length_of_line(left);
    for (std::size_t i = 0; i < max_inline; ++i) line[i] = i < length ? left[i] : ' ';
    left.remove_prefix(length);
  }
  return all;
}
#else
constexpr int sentence_size(std::string_view why) { return static_cast<int>(why.size()); }
template <int Length>
constexpr sentence<Length> sentence_of(std::string_view why) {
  sentence<Length> all;
  for (int i = 0; i < Length; ++i) all.text[i] = why[static_cast<std::size_t>(i)];
  return all;
}
#endif

template <const text& Why>
using refusal_of = refused<sentence_size(Why.view()),
                           sentence_of<sentence_size(Why.view())>(Why.view())>;

template <class Refused>
constexpr void stop_with() {
  [[maybe_unused]] Refused refused;
}
/// Stops the build with the sentence.
template <const text& Why>
constexpr void refuse() {
  stop_with<refusal_of<Why>>();
}

}  // namespace xla::detail
