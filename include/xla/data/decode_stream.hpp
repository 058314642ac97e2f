// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns generated tokens into text while they come, without cutting a character in two. Programs
// that print generated text include it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xla/data/characters.hpp"

namespace xla::data {
namespace detail {

template <class Tokenizer>
concept skips_special_tokens =
    requires(const Tokenizer& t, std::span<const std::int64_t> ids) { t.decode(ids, true); };

}  // namespace detail

/// Tokens as text while they come, as Hugging Face's DecodeStream: what step() returned, with what
/// finish() returns at the end, is `tokenizer.decode` of all of them. A character of several tokens
/// comes with the last of them. Each step decodes a few tokens, however long the text is. The
/// tokenizer, anything with `decode(std::span<const std::int64_t>)`, has to live longer; one with
/// `decode(ids, skip_special_tokens)` leaves the special tokens out where the stream asks for that.
template <class Tokenizer>
class DecodeStream {
 public:
  explicit DecodeStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens)
    requires detail::skips_special_tokens<Tokenizer>
      : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

  /// The text that one more token, or several, complete.
  std::string step(std::int64_t token) { return step(std::span{&token, 1}); }
  std::string step(std::span<const std::int64_t> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    const std::string text = decode(tokens_);
    const auto ready = complete(text);
    std::string out = given_ < ready ? text.substr(given_, ready - given_) : std::string{};
    given_ += out.size();
    if (given_ == text.size()) forget();
    return out;
  }
  /// What still waited for the rest of a character; the next token begins a text.
  std::string finish() {
    const std::string text = decode(tokens_);
    const std::string out = text.substr(given_);
    tokens_.clear();
    given_ = 0;
    return out;
  }

 private:
  std::string decode(std::span<const std::int64_t> ids) const {
    if constexpr (detail::skips_special_tokens<Tokenizer>)
      return tokenizer_.decode(ids, skip_special_tokens_);
    else return tokenizer_.decode(ids);
  }
  /// How many bytes of a text no later token changes. The begin of a character may be bytes, or, as
  /// a text has no such thing, a mark for each of them.
  static std::size_t complete(std::string_view text) {
    constexpr std::string_view mark = "\xef\xbf\xbd";
    for (int i = 0; i < 3 && text.ends_with(mark); ++i) text.remove_suffix(mark.size());
    return text.size() - detail::begun_character(text);
  }
  /// Keeps of the tokens whose text was given the last that have any: a text's first ones may be
  /// written otherwise than they would be within it (without the space before a word).
  void forget() {
    for (std::size_t count = 1; count < tokens_.size(); ++count) {
      const std::span last{tokens_.end() - static_cast<std::ptrdiff_t>(count), tokens_.end()};
      const auto size = decode(last).size();
      if (size == 0) continue;
      given_ = size;
      tokens_.erase(tokens_.begin(), tokens_.end() - static_cast<std::ptrdiff_t>(count));
      return;
    }
  }

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_ = false;
  std::vector<std::int64_t> tokens_;  ///< the last ones
  std::size_t given_ = 0;             ///< bytes of their text
};

}  // namespace xla::data
