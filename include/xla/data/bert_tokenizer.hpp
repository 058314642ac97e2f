// SPDX-License-Identifier: Apache-2.0
#pragma once

// BERT's WordPiece tokenizer, given its vocabulary. Files of Hugging Face are read by
// ext/tokenizer.hpp, which makes one of these.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/bert_words.hpp"
#include "xla/io/text.hpp"
#include "xla/op/create.hpp"

namespace xla::data {

/// Texts as tensors, each (batch, sequence): token numbers (input_ids); 1 for tokens and 0 for
/// padding (attention_mask); and to which of two texts a token belongs (token_type_ids).
struct TokenBatch {
  Tensor<std::int64_t, 2> input_ids, attention_mask, token_type_ids;
};

/// Splits texts into BERT's subwords, like Hugging Face's BertTokenizer. Spaces and punctuation
/// separate words; each ideograph is a word. A word is split greedily into the longest subwords
/// from left to right; all but the first begin with ##. Text is UTF-8. Wu et al. (2016).
class BertTokenizer {
 public:
  static constexpr std::size_t longest_word = 100;  ///< in characters; others are unknown

  /// From the tokens in the order of their numbers. lower_case: letters lose their case and their
  /// accents. Throws `xla::error` where one of [PAD], [UNK], [CLS], [SEP], [MASK] is missing.
  explicit BertTokenizer(std::vector<std::string> tokens, bool lower_case = true)
      : tokens_(std::move(tokens)), lower_case_(lower_case) {
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      // The last of equal tokens counts, as in Hugging Face's tokenizer.
      numbers_[tokens_[i]] = static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < special_.size(); ++i) {
      const auto number = find(names[i]);
      if (!number)
        throw runtime_error("BertTokenizer: the vocabulary of " + std::to_string(size()) +
                            " tokens has no " + std::string(names[i]));
      special_[i] = *number;
    }
  }
  /// From a file with one token a line: vocab.txt. Throws `xla::io_error` if it cannot be read.
  static BertTokenizer from_file(const std::string& path, bool lower_case = true) {
    return BertTokenizer(lines(io::read_text(path, io::max_vocabulary_bytes)), lower_case);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t pad_token_id() const { return special_[pad]; }
  std::int64_t unk_token_id() const { return special_[unk]; }
  std::int64_t cls_token_id() const { return special_[cls]; }
  std::int64_t sep_token_id() const { return special_[sep]; }
  std::int64_t mask_token_id() const { return special_[mask]; }

  /// The number of a token, or that of [UNK] if it is not in the vocabulary.
  std::int64_t token_to_id(std::string_view token) const {
    return find(token).value_or(unk_token_id());
  }
  /// The token with a number. Throws `xla::index_error` outside [0, size).
  const std::string& id_to_token(std::int64_t id) const {
    if (id < 0 || id >= size())
      throw index_error("BertTokenizer: no token has number " + std::to_string(id) +
                        ", the vocabulary has " + std::to_string(size()));
    return tokens_[static_cast<std::size_t>(id)];
  }

  /// The tokens of a text, without [CLS] and [SEP]. A special name in the text, such as [MASK], is
  /// that token.
  std::vector<std::string> tokenize(std::string_view text) const {
    std::vector<std::string> out;
    for (const auto id : pieces(text)) out.push_back(tokens_[static_cast<std::size_t>(id)]);
    return out;
  }
  /// Their numbers between [CLS] and [SEP]. If there are more than max_length, the text's end is
  /// cut.
  std::vector<std::int64_t> encode(std::string_view text,
                                   std::optional<std::int64_t> max_length = {}) const {
    return joined(pieces(text), nullptr, max_length).first;
  }
  /// The same for two texts, each followed by [SEP]; max_length cuts the longer one first.
  std::vector<std::int64_t> encode(std::string_view text, std::string_view pair,
                                   std::optional<std::int64_t> max_length = {}) const {
    const auto second = pieces(pair);
    return joined(pieces(text), &second, max_length).first;
  }

  /// Texts as a batch, the short ones filled up with [PAD].
  TokenBatch operator()(std::span<const std::string> texts,
                        std::optional<std::int64_t> max_length = {}) const {
    std::vector<typed_tokens> all;
    for (const auto& text : texts) all.push_back(joined(pieces(text), nullptr, max_length));
    return batch_of(all);
  }
  /// The same for pairs of texts.
  TokenBatch operator()(std::span<const std::pair<std::string, std::string>> pairs,
                        std::optional<std::int64_t> max_length = {}) const {
    std::vector<typed_tokens> all;
    for (const auto& [first, second] : pairs) {
      const auto other = pieces(second);
      all.push_back(joined(pieces(first), &other, max_length));
    }
    return batch_of(all);
  }

  /// The text of tokens: subwords joined to words, with spaces except before points, commas and the
  /// like. Upper case and accents that encoding dropped do not come back. Throws `xla::index_error`
  /// for a number outside [0, size).
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = false) const {
    std::string out;
    bool first = true;
    for (const auto id : ids) {
      const std::string& token = id_to_token(id);
      if (skip_special_tokens && std::find(special_.begin(), special_.end(), id) != special_.end())
        continue;
      if (!first && token.starts_with("##")) out += token.substr(2);
      else out += (first || closes(token) ? "" : " ") + token;
      first = false;
    }
    return out;
  }

 private:
  enum { pad, unk, cls, sep, mask };
  static constexpr std::array<std::string_view, 5> names{"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                         "[MASK]"};
  /// The tokens of one or two texts, and the position at which the second text begins.
  using typed_tokens = std::pair<std::vector<std::int64_t>, std::size_t>;

  static std::vector<std::string> lines(std::string_view text) {
    std::vector<std::string> out;
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      out.emplace_back(line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
  }
  std::optional<std::int64_t> find(std::string_view token) const {
    const auto at = numbers_.find(std::string(token));
    if (at == numbers_.end()) return {};
    return at->second;
  }
  /// Whether decode() puts no space before a token, such as a comma.
  static bool closes(std::string_view token) {
    constexpr std::string_view all[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
    return std::any_of(std::begin(all), std::end(all),
                       [&](std::string_view end) { return token.starts_with(end); });
  }

  std::vector<std::int64_t> pieces(std::string_view text) const {
    std::vector<std::int64_t> out;
    while (!text.empty()) {
      std::size_t at = text.size(), which = 0;
      for (std::size_t i = 0; i < names.size(); ++i)
        if (const auto found = text.find(names[i]); found < at) {
          at = found;
          which = i;
        }
      for (const auto& word : bert_words(text.substr(0, at), lower_case_)) add_pieces(out, word);
      if (at == text.size()) break;
      out.push_back(special_[which]);
      text.remove_prefix(at + names[which].size());
    }
    return out;
  }
  /// Appends the pieces of a word, or [UNK].
  void add_pieces(std::vector<std::int64_t>& out, const std::string& word) const {
    const auto begin = out.size();
    std::size_t from = characters_in(word) <= longest_word ? 0 : std::string::npos;
    while (from < word.size()) {
      const auto [number, length] = longest_piece(word, from);
      out.push_back(number);
      from = length > 0 ? from + length : std::string::npos;
    }
    if (from == word.size()) return;
    out.resize(begin);
    out.push_back(unk_token_id());
  }
  /// The longest token that begins at a position of a word, and its length; 0 if there is none.
  std::pair<std::int64_t, std::size_t> longest_piece(const std::string& word,
                                                     std::size_t from) const {
    const std::size_t mark = from > 0 ? 2 : 0;
    std::string piece = (from > 0 ? "##" : "") + word.substr(from);
    for (; piece.size() > mark; drop_last_character(piece))
      if (const auto number = find(piece)) return {*number, piece.size() - mark};
    return {unk_token_id(), 0};
  }
  static std::size_t characters_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  static void drop_last_character(std::string& text) {
    while ((text.back() & 0xc0) == 0x80) text.pop_back();
    text.pop_back();
  }

  typed_tokens joined(std::vector<std::int64_t> first, const std::vector<std::int64_t>* second,
                      std::optional<std::int64_t> max_length) const {
    std::size_t a = first.size(), b = second ? second->size() : 0;
    if (max_length) {
      const std::int64_t around = second ? 3 : 2;
      if (*max_length < around)
        throw runtime_error("BertTokenizer: max_length is " + std::to_string(*max_length) +
                            ", which [CLS] and [SEP] already exceed");
      shorten(a, b, static_cast<std::size_t>(*max_length - around));
    }
    first.resize(a);
    first.insert(first.begin(), cls_token_id());
    first.push_back(sep_token_id());
    const std::size_t end = first.size();
    if (second) {
      first.insert(first.end(), second->begin(), second->begin() + static_cast<std::ptrdiff_t>(b));
      first.push_back(sep_token_id());
    }
    return {std::move(first), end};
  }
  /// Shortens two texts to `most` tokens together, taking tokens from the longer one first.
  static void shorten(std::size_t& a, std::size_t& b, std::size_t most) {
    if (a + b <= most) return;
    std::size_t &less = a <= b ? a : b, &more = a <= b ? b : a;
    if (2 * less > most) {
      less = most / 2;
      more = less + most % 2;
    } else {
      more = most - less;
    }
  }
  TokenBatch batch_of(const std::vector<typed_tokens>& texts) const {
    std::size_t length = 0;
    for (const auto& text : texts) length = std::max(length, text.first.size());
    std::vector<std::int64_t> ids(texts.size() * length, pad_token_id()), seen(ids.size(), 0),
        types(ids.size(), 0);
    for (std::size_t i = 0; i < texts.size(); ++i)
      for (std::size_t k = 0; k < texts[i].first.size(); ++k) {
        ids[i * length + k] = texts[i].first[k];
        seen[i * length + k] = 1;
        types[i * length + k] = k >= texts[i].second;
      }
    const Size sizes[] = {static_cast<std::int64_t>(texts.size()),
                          static_cast<std::int64_t>(length)};
    return {from_blob(ids.data(), sizes), from_blob(seen.data(), sizes),
            from_blob(types.data(), sizes)};
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::array<std::int64_t, 5> special_{};
  bool lower_case_;
};

}  // namespace xla::data
