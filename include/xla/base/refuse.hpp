// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "xla/base/text.hpp"

namespace xla {

/// A piece of a sentence as a template argument.
template <int Size>
struct line {
  char text[Size + 1] = {};
};

/// Stops the build with the sentence, in the compiler's first line: it is never defined.
template <auto... Sentence>
struct refused;

namespace detail {

// clang shows 35 characters of a template argument, g++ all.
#ifdef __clang__
inline constexpr int line_length = 35;
#else
inline constexpr int line_length = text::capacity;
#endif

template <int Length>
constexpr line<Length> part_of(const text& t, std::size_t index) {
  line<Length> l;
  for (int i = 0, from = static_cast<int>(index) * Length; i < Length; ++i)
    l.text[i] = from + i < t.length ? t.chars[from + i] : ' ';
  return l;
}

template <const text& Why>
inline constexpr int refusal_width = Why.length < line_length ? Why.length : line_length;
template <const text& Why>
using refusal_pieces = std::make_index_sequence<static_cast<std::size_t>(
    (Why.length + refusal_width<Why> - 1) / refusal_width<Why>)>;

template <const text& Why, class = refusal_pieces<Why>>
struct refusal_of;
template <const text& Why, std::size_t... I>
struct refusal_of<Why, std::index_sequence<I...>> {
  using type = refused<part_of<refusal_width<Why>>(Why, I)...>;
};

template <class Refused>
constexpr void stop_with() {
  [[maybe_unused]] Refused sentence;
}
/// Stops the build with the sentence.
template <const text& Why>
constexpr void refuse() {
  stop_with<typename refusal_of<Why>::type>();
}

}  // namespace detail
}  // namespace xla
