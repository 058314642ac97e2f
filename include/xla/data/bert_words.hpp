// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts a text into words as BERT does, before WordPiece cuts words into pieces. bert_tokenizer.hpp
// calls it.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/data/bert_characters.hpp"
#include "xla/data/characters.hpp"

namespace xla::data {
namespace detail {

/// Calls f with each character of the lower-case form of a character, without accents.
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

/// The words of a text (UTF-8) as BERT splits it: at spaces, with each punctuation mark and each
/// ideograph a word of its own. Control characters are dropped, in lower-case models accents too.
inline std::vector<std::string> bert_words(std::string_view text, bool lower_case) {
  std::vector<std::string> words;
  bool open = false;  // whether the last word may continue
  const auto put = [&](char32_t c) {
    const bool alone = detail::in_ranges(detail::punctuation, c);
    if (!open || alone) words.emplace_back();
    detail::append_character(words.back(), c);
    open = !alone;
  };
  while (!text.empty()) {
    const char32_t c = detail::take_character(text);
    if (detail::in_ranges(detail::removed_characters, c)) continue;
    const bool ideograph = detail::in_ranges(detail::ideographs, c);
    if (ideograph || detail::in_ranges(detail::space_characters, c)) open = false;
    if (detail::in_ranges(detail::space_characters, c)) continue;
    if (lower_case) detail::fold_character(c, put);
    else put(c);
    if (ideograph) open = false;
  }
  return words;
}

}  // namespace xla::data
