// SPDX-License-Identifier: Apache-2.0
#pragma once

// The byte-level BPE tokenizer of GPT-2 and Llama 3, given its vocabulary and merges.
// ext/tokenizer.hpp reads the files and makes one of these.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/bpe_words.hpp"

namespace xla::data {

namespace detail {
/// The character that stands for each byte in the files: the byte itself if Latin-1 can print it,
/// else one from 256 on.
inline constexpr auto byte_characters = [] {
  std::array<char32_t, 256> out{};
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool shown = (b > 32 && b < 127) || (b > 160 && b != 173);
    out[b] = shown ? b : next++;
  }
  return out;
}();
}  // namespace detail

/// The options of byte-level BPE other than its merges.
struct BpeOptions {
  BpePattern pattern = BpePattern::gpt2;
  bool ignore_merges =
      false;  ///< a word that is a token stays that token, whatever the merges give
  bool add_prefix_space = false;  ///< a space before a text that begins with none
  std::vector<std::string> special{"<|endoftext|>"};  ///< tokens that a text may name, see encode,
  std::vector<std::string> added{};                   ///< and those that are text all the same
  std::vector<std::string> before{}, after{};  ///< special tokens around each text that is encoded
};

/// Byte-level byte pair encoding as in GPT-2 and Llama 3. A text is split into words. Each word
/// begins as one token per byte; then the adjacent pair that comes first in the list of merges is
/// merged, again and again. Any bytes can be encoded, and decode to themselves. Tokens are spelled
/// as in the files, with one character per byte: Ġ for the space. Sennrich et al. (2016); Radford
/// et al. (2019).
class BpeTokenizer {
 public:
  using merge = std::pair<std::string, std::string>;

  /// From the tokens in the order of their numbers, and the merges in the order of their priority.
  /// Throws `xla::error` if a byte, a part or result of a merge, or a token of `before` or `after`
  /// is not among the tokens. Names in `special` and `added` that are no tokens are ignored.
  BpeTokenizer(std::vector<std::string> tokens, std::span<const merge> merges,
               BpeOptions options = {})
      : tokens_(std::move(tokens)), options_(std::move(options)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      numbers_.try_emplace(tokens_[i], static_cast<std::int64_t>(i));
    for (std::size_t b = 0; b < 256; ++b) {
      std::string spelled;
      append_byte(spelled, static_cast<unsigned char>(b));
      bytes_[b] = require(spelled, "a token for each byte");
    }
    std::size_t rank = 0;
    for (const auto& [left, right] : merges) {
      const auto key = pair_of(require(left, "what is merged"), require(right, "what is merged"));
      // The last of equal merges counts, as in Hugging Face's tokenizer.
      merges_[key] = {rank++, require(left + right, "what merges make")};
    }
    for (const auto& name : options_.added) add_name(name);
    for (const auto& name : options_.special)
      if (add_name(name)) special_.insert(name);
    for (auto& same : names_)
      std::stable_sort(same.begin(), same.end(),
                       [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const auto& name : options_.before) before_.push_back(require(name, "special tokens"));
    for (const auto& name : options_.after) after_.push_back(require(name, "special tokens"));
  }

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The number of the token with this spelling, if there is one.
  std::optional<std::int64_t> token_to_id(const std::string& token) const {
    const auto at = numbers_.find(token);
    if (at == numbers_.end()) return {};
    return at->second;
  }
  /// The token with a number. Throws `xla::index_error` outside [0, size).
  const std::string& id_to_token(std::int64_t id) const {
    if (id < 0 || id >= size())
      throw index_error("BpeTokenizer: no token has number " + std::to_string(id) +
                        ", the vocabulary has " + std::to_string(size()));
    return tokens_[static_cast<std::size_t>(id)];
  }

  /// The tokens of a text. Where it has the name of a special token, <|endoftext|> say, that is the
  /// token. add_special_tokens: with those that the options put before and after a text.
  std::vector<std::int64_t> encode(std::string_view text, bool add_special_tokens = true) const {
    std::vector<std::int64_t> out;
    if (add_special_tokens) out = before_;
    for (std::size_t from = 0; from < text.size();) {
      const auto [at, name] = next_name(text, from);
      add_words(out, text.substr(from, at - from));
      if (!name.empty()) out.push_back(numbers_.find(std::string(name))->second);
      from = at + name.size();
    }
    if (add_special_tokens) out.insert(out.end(), after_.begin(), after_.end());
    return out;
  }

  /// The bytes that tokens stand for; they may begin or end within a character of UTF-8 where the
  /// tokens do. Throws `xla::index_error` for a number outside [0, size).
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = false) const {
    std::string out;
    for (const auto id : ids) {
      const std::string& token = id_to_token(id);
      if (skip_special_tokens && special_.contains(token)) continue;
      append_bytes(out, token);
    }
    return out;
  }

 private:
  struct joined {
    std::size_t rank;
    std::int64_t token;
  };
  /// A token of a word during merging, linked to its neighbours. Number -1 marks one that was
  /// merged into another.
  struct piece {
    std::int64_t number;
    std::size_t before, after;
  };
  static constexpr auto none = static_cast<std::size_t>(-1);
  /// A candidate merge of the piece at a position with the next one. It may be outdated when it is
  /// popped.
  struct possible {
    std::size_t rank, at;
    std::uint64_t key;
    std::int64_t token;
    bool operator>(const possible& other) const {
      return std::pair{rank, at} > std::pair{other.rank, other.at};
    }
  };

  static std::uint64_t pair_of(std::int64_t left, std::int64_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
  }
  std::int64_t require(const std::string& token, const char* what) const {
    if (const auto number = token_to_id(token)) return *number;
    throw runtime_error("BpeTokenizer: the vocabulary of " + std::to_string(size()) +
                        " tokens needs " + what + ", and has no '" + token + "'");
  }

  static void append_byte(std::string& to, unsigned char byte) {
    detail::append_character(to, detail::byte_characters[byte]);
  }
  /// Appends the bytes that a token spells, or the spelling itself if a character of it stands for
  /// no byte.
  static void append_bytes(std::string& to, const std::string& token) {
    const auto begin = to.size();
    for (std::string_view rest = token; !rest.empty();) {
      const char32_t c = detail::take_character(rest);
      const auto& all = detail::byte_characters;
      const auto at = std::find(all.begin(), all.end(), c);
      if (at == all.end()) {
        to.resize(begin);
        to += token;
        return;
      }
      to += static_cast<char>(at - all.begin());
    }
  }

  /// Whether a name is a token; if so, texts may contain it from now on.
  bool add_name(const std::string& name) {
    if (name.empty() || !token_to_id(name)) return false;
    names_[static_cast<unsigned char>(name[0])].push_back(name);
    return true;
  }
  /// The first special token's name at or after a byte, the longest if several begin there. If
  /// there is none: the end of the text, and no name.
  std::pair<std::size_t, std::string_view> next_name(std::string_view text,
                                                     std::size_t from) const {
    for (; from < text.size(); ++from)
      for (const auto& name : names_[static_cast<unsigned char>(text[from])])
        if (text.substr(from).starts_with(name)) return {from, name};
    return {from, {}};
  }

  void add_words(std::vector<std::int64_t>& out, std::string_view text) const {
    if (text.empty()) return;
    std::string longer;
    if (options_.add_prefix_space && text[0] != ' ') text = longer.append(" ").append(text);
    for (const auto word : bpe_words(text, options_.pattern))
      if (!add_whole(out, word)) add_pieces(out, word);
  }
  bool add_whole(std::vector<std::int64_t>& out, std::string_view word) const {
    if (!options_.ignore_merges) return false;
    std::string spelled;
    for (const char c : word) append_byte(spelled, static_cast<unsigned char>(c));
    const auto number = token_to_id(spelled);
    if (number) out.push_back(*number);
    return number.has_value();
  }
  void add_pieces(std::vector<std::int64_t>& out, std::string_view word) const {
    std::vector<piece> pieces;
    for (std::size_t i = 0; i < word.size(); ++i)
      pieces.push_back(
          {bytes_[static_cast<unsigned char>(word[i])], i - 1, i + 1 < word.size() ? i + 1 : none});
    merge_all(pieces);
    for (const auto& p : pieces)
      if (p.number >= 0) out.push_back(p.number);
  }
  /// Applies merges until none is possible: the first in the list first, the leftmost of equal
  /// ones.
  void merge_all(std::vector<piece>& pieces) const {
    std::priority_queue<possible, std::vector<possible>, std::greater<>> queue;
    const auto note = [&](std::size_t at) {
      if (at == none || pieces[at].after == none) return;
      const auto key = pair_of(pieces[at].number, pieces[pieces[at].after].number);
      if (const auto found = merges_.find(key); found != merges_.end())
        queue.push({found->second.rank, at, key, found->second.token});
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) note(i);
    while (!queue.empty()) {
      const possible best = queue.top();
      queue.pop();
      piece& left = pieces[best.at];
      if (left.number < 0 || left.after == none) continue;
      piece& right = pieces[left.after];
      if (pair_of(left.number, right.number) != best.key) continue;
      left.number = best.token;
      left.after = right.after;
      right.number = -1;
      if (left.after != none) pieces[left.after].before = best.at;
      note(left.before);
      note(best.at);
    }
  }

  std::vector<std::string> tokens_;
  BpeOptions options_;
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::unordered_map<std::uint64_t, joined> merges_;
  std::array<std::int64_t, 256> bytes_{};
  std::unordered_set<std::string> special_;
  /// The names that a text may contain, by their first byte.
  std::array<std::vector<std::string>, 256> names_;
  std::vector<std::int64_t> before_, after_;
};

}  // namespace xla::data
