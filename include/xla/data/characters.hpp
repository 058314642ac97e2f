// SPDX-License-Identifier: Apache-2.0
#pragma once

// UTF-8, character by character, and tables of character ranges. The tokenizers use it; it knows no
// locale.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace xla::data::detail {

/// Characters from the first to the last.
struct CharacterRange {
  char32_t first, last;
};

/// The number of bytes of a UTF-8 character by its first byte; 0 if no character begins so.
constexpr std::size_t utf8_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/// Removes the first UTF-8 character and returns it; U+FFFD for a byte that begins none.
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

/// How many bytes at the end of a text belong to an incomplete UTF-8 character.
constexpr std::size_t begun_character(std::string_view text) {
  for (std::size_t bytes = 1; bytes < 4 && bytes <= text.size(); ++bytes) {
    const auto byte = static_cast<unsigned char>(text[text.size() - bytes]);
    if ((byte & 0xc0) != 0x80) return utf8_length(byte) > bytes ? bytes : 0;
  }
  return 0;
}

/// Appends a character to a text as UTF-8.
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

/// Whether one of the sorted ranges contains a character.
template <std::size_t N>
bool in_ranges(const CharacterRange (&ranges)[N], char32_t c) {
  const auto* at =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](char32_t x, const CharacterRange& r) { return x < r.first; });
  return at != std::begin(ranges) && c <= std::prev(at)->last;
}

}  // namespace xla::data::detail
