// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts a text into words by the patterns of GPT-2 and Llama 3, before BPE merges bytes.
// bpe_tokenizer.hpp calls it.

#include <cstddef>
#include <string_view>
#include <vector>

#include "xla/data/bpe_characters.hpp"
#include "xla/data/characters.hpp"

namespace xla::data {

/// How byte-level BPE splits a text into words, each of which is encoded on its own. gpt2: letters,
/// numbers or signs with a space before them; 's, 't, 're, 've, 'm, 'll, 'd; the remaining spaces.
/// digits: the same, with each digit a word. llama3: letters with at most one sign before them; up
/// to three digits; line ends with the signs or spaces before them.
enum class BpePattern { gpt2, digits, llama3 };

namespace detail {

/// Finds words in a text from a byte on.
class bpe_cutter {
 public:
  bpe_cutter(std::string_view text, BpePattern pattern) : text_(text), pattern_(pattern) {}

  /// The end of the word that begins at a byte before the end of the text.
  std::size_t end_of_word(std::size_t from) const {
    if (const auto end = contraction(from)) return end;
    return pattern_ == BpePattern::llama3 ? llama3(from) : gpt2(from);
  }

 private:
  enum class kind { letter, number, space, sign, end };
  struct character {
    kind is = kind::end;
    char32_t code = 0;
    std::size_t end = 0;  ///< the byte after it
    bool ends_line() const { return code == U'\n' || code == U'\r'; }
  };

  kind kind_of(char32_t c) const {
    if (in_ranges(bpe_letters, c)) return kind::letter;
    if (in_ranges(bpe_numbers, c)) return kind::number;
    if (pattern_ == BpePattern::digits && in_ranges(bpe_later_numbers, c)) return kind::number;
    return in_ranges(bpe_spaces, c) ? kind::space : kind::sign;
  }
  character at(std::size_t from) const {
    if (from >= text_.size()) return {kind::end, 0, from};
    std::string_view rest = text_.substr(from);
    const char32_t c = take_character(rest);
    return {kind_of(c), c, text_.size() - rest.size()};
  }

  /// The end of an apostrophe with s, t, re, ve, m, ll or d; 0 where there is none.
  std::size_t contraction(std::size_t from) const {
    if (text_[from] != '\'') return 0;
    const character first = at(from + 1);
    const char32_t a = folded(first);
    if (a == U's' || a == U't' || a == U'm' || a == U'd') return first.end;
    const character second = at(first.end);
    const char32_t b = folded(second);
    const bool two = ((a == U'r' || a == U'v') && b == U'e') || (a == U'l' && b == U'l');
    return two ? second.end : 0;
  }
  /// Llama 3's expression ignores case here, so that the long s matches too.
  char32_t folded(const character& c) const {
    if (pattern_ != BpePattern::llama3) return c.code;
    if (c.code == U'\u017f') return U's';
    return c.code >= U'A' && c.code <= U'Z' ? c.code + 32 : c.code;
  }

  std::size_t gpt2(std::size_t from) const {
    const character first = at(from);
    const character next = first.code == U' ' ? at(first.end) : first;
    if (next.is == kind::space || next.is == kind::end) return spaces(from);
    // Digits are words of their own, separate from a space before them.
    if (pattern_ == BpePattern::digits && next.is == kind::number) return first.end;
    return run(next, next.is);
  }

  std::size_t llama3(std::size_t from) const {
    const character first = at(from), second = at(first.end);
    if (first.is == kind::letter) return run(first, kind::letter);
    if (first.is == kind::number) return up_to_three(first);
    if (!first.ends_line() && second.is == kind::letter) return run(second, kind::letter);
    const character sign = first.code == U' ' ? second : first;
    if (sign.is != kind::sign) return lines_or_spaces(from);
    std::size_t end = run(sign, kind::sign);
    for (character c = at(end); c.ends_line(); c = at(end)) end = c.end;
    return end;
  }
  std::size_t up_to_three(const character& first) const {
    const character second = at(first.end);
    if (second.is != kind::number) return first.end;
    const character third = at(second.end);
    return third.is == kind::number ? third.end : second.end;
  }
  /// Spaces up to the last line end among them, or all of them as spaces() has it.
  std::size_t lines_or_spaces(std::size_t from) const {
    std::size_t behind_line = 0;
    for (character c = at(from); c.is == kind::space; c = at(c.end))
      if (c.ends_line()) behind_line = c.end;
    return behind_line > 0 ? behind_line : spaces(from);
  }

  /// Spaces but the last of several: that belongs to the word after it.
  std::size_t spaces(std::size_t from) const {
    std::size_t last = from, end = from;
    character c = at(from);
    for (; c.is == kind::space; c = at(end)) {
      if (digit_behind(c)) return c.end;
      last = end;
      end = c.end;
    }
    return c.is == kind::end || last == from ? end : last;
  }
  /// Where digits are separate, the text before one ends there.
  bool digit_behind(const character& c) const {
    return pattern_ == BpePattern::digits && at(c.end).is == kind::number;
  }

  std::size_t run(character c, kind of) const {
    std::size_t end = c.end;
    for (c = at(end); c.is == of; c = at(end)) end = c.end;
    return end;
  }

  std::string_view text_;
  BpePattern pattern_;
};

}  // namespace detail

/// The words of a text (UTF-8), which together are the text, byte by byte. Radford et al. (2019).
inline std::vector<std::string_view> bpe_words(std::string_view text,
                                               BpePattern pattern = BpePattern::gpt2) {
  const detail::bpe_cutter cutter(text, pattern);
  std::vector<std::string_view> words;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = cutter.end_of_word(from);
    words.push_back(text.substr(from, end - from));
    from = end;
  }
  return words;
}

}  // namespace xla::data
