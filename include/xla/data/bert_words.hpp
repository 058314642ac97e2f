// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/data/bert_characters.hpp"

namespace xla::data {
namespace detail {

/// How many bytes a character of UTF-8 has, by its first; 0 where none begins so.
constexpr std::size_t utf8_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/// The character that UTF-8 begins with, which is taken away; U+FFFD for a byte that begins none.
inline char32_t take_character(std::string_view& text) {
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = utf8_length(byte(0));
  bool whole = length > 0 && length <= text.size();
  char32_t c = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; whole && i < length; ++i) {
    whole = (byte(i) & 0xc0) == 0x80;
    c = c << 6 | (byte(i) & 0x3fu);
  }
  const bool surrogate = c >= 0xd800 && c < 0xe000;
  whole = whole && c >= least[length] && c <= 0x10ffff && !surrogate;
  text.remove_prefix(whole ? length : 1);
  return whole ? c : 0xfffd;
}

/// Writes a character as UTF-8 behind a text.
inline void append_character(std::string& to, char32_t c) {
  if (c < 0x80) {
    to += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  const unsigned mark = 0xff00u >> (more + 1) & 0xffu;
  to += static_cast<char>(mark | c >> 6 * more);
  for (int i = more - 1; i >= 0; --i) to += static_cast<char>(0x80 | (c >> 6 * i & 0x3f));
}

/// Whether one of the ranges, which are in order, has a character.
template <std::size_t N>
bool in_ranges(const CharacterRange (&ranges)[N], char32_t c) {
  const auto* at =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](char32_t x, const CharacterRange& r) { return x < r.first; });
  return at != std::begin(ranges) && c <= std::prev(at)->last;
}

/// Calls f with each character of what one is in lower case without its accents.
template <class F>
void fold_character(char32_t c, F f) {
  if (c < 0x80) return f(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (in_ranges(accents, c)) return;
  if (c >= 0xac00 && c < 0xd7a4) {  // Hangul: The Unicode Standard, 3.12
    const char32_t i = c - 0xac00;
    f(0x1100 + i / 588);
    f(0x1161 + i % 588 / 28);
    if (i % 28 != 0) f(0x11a7 + i % 28);
    return;
  }
  if (const char32_t i = c - 0xf900; i < compatible_ideographs_first.size())
    return f(compatible_ideographs_first[i]);
  if (const char32_t i = c - 0x2f800; i < compatible_ideographs_second.size())
    return f(compatible_ideographs_second[i]);
  std::size_t low = 0, high = folded_one.size() / 2;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (folded_one[2 * middle] < c) low = middle + 1;
    else high = middle;
  }
  if (2 * low < folded_one.size() && folded_one[2 * low] == c) return f(folded_one[2 * low + 1]);
  for (std::size_t i = 0; i < folded_several.size() && folded_several[i] <= c;
       i = folded_several.find(U' ', i) + 1)
    if (folded_several[i] == c) {
      for (++i; folded_several[i] != U' '; ++i) f(folded_several[i]);
      return;
    }
  f(c);
}

}  // namespace detail

/// The words of a text (UTF-8) as BERT reads it: between spaces, and each sign of punctuation and
/// each ideograph by itself. Control characters are left out, of texts in lower case also accents.
inline std::vector<std::string> bert_words(std::string_view text, bool lower_case) {
  std::vector<std::string> words;
  bool open = false;  // whether more may follow in the last word
  const auto put = [&](char32_t c) {
    const bool alone = detail::in_ranges(detail::punctuation, c);
    if (!open || alone) words.emplace_back();
    detail::append_character(words.back(), c);
    open = !alone;
  };
  while (!text.empty()) {
    const char32_t c = detail::take_character(text);
    if (detail::in_ranges(detail::removed_characters, c)) continue;
    const bool apart = detail::in_ranges(detail::ideographs, c);
    if (apart || detail::in_ranges(detail::space_characters, c)) open = false;
    if (detail::in_ranges(detail::space_characters, c)) continue;
    if (lower_case) detail::fold_character(c, put);
    else put(c);
    if (apart) open = false;
  }
  return words;
}

}  // namespace xla::data
