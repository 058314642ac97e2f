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

/// Decodes tokens one by one, like Hugging Face's DecodeStream: the pieces that step() returns, and
/// then that of finish(), are together `tokenizer.decode` of all tokens. A character that consists
/// of several tokens comes with the last of them. Each step decodes a few tokens, however long the
/// text is. The tokenizer has `decode(std::span<const std::int64_t>)` and must outlive the stream.
/// If it also has `decode(ids, skip_special_tokens)`, the stream can leave out special tokens.
template <class Tokenizer>
class DecodeStream {
 public:
  explicit DecodeStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens)
    requires detail::skips_special_tokens<Tokenizer>
      : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

  /// The text that one or several further tokens complete.
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
  /// The text of an incomplete character that is still pending. The next token begins a new text.
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
  /// How many bytes of a text no later token can change. An incomplete character at the end shows
  /// as its bytes or, if the tokenizer replaces those, as one replacement mark for each.
  static std::size_t complete(std::string_view text) {
    constexpr std::string_view mark = "\xef\xbf\xbd";
    for (int i = 0; i < 3 && text.ends_with(mark); ++i) text.remove_suffix(mark.size());
    return text.size() - detail::begun_character(text);
  }
  /// Keeps the last tokens that have text, as context: a tokenizer may write the first tokens of a
  /// text differently, without the space before a word.
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
