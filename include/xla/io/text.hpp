// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a file as text, and numbers its characters. Tokenizers of words and subwords are in data/.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/io/file.hpp"

namespace xla::io {

/// A whole file as text, byte for byte. Throws `xla::io_error` as read_file() does.
inline std::string read_text(const std::string& path, std::uint64_t max_bytes = default_max_bytes) {
  std::string out;
  detail::append_file(path, max_bytes, out);
  return out;
}

/// The characters (bytes) of a text, numbered from 0 in the order of their codes.
class CharVocab {
 public:
  explicit CharVocab(std::string_view text) {
    std::array<bool, 256> seen{};
    for (const char c : text) seen[code(c)] = true;
    index_.fill(-1);
    for (std::size_t c = 0; c < seen.size(); ++c) {
      if (!seen[c]) continue;
      index_[c] = size();
      characters_.push_back(static_cast<char>(c));
    }
  }

  /// How many different characters there are.
  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()); }

  /// The characters in order; `CharVocab{vocab.characters()}` is the same vocabulary.
  const std::string& characters() const { return characters_; }

  /// The number of each character. Throws `xla::index_error` for one that is not in the vocabulary.
  std::vector<std::int64_t> encode(std::string_view text) const {
    std::vector<std::int64_t> out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto id = index_[code(text[i])];
      if (id < 0)
        throw index_error("CharVocab: character " + std::to_string(code(text[i])) +
                          " at position " + std::to_string(i) + " is not in the vocabulary of " +
                          std::to_string(size()));
      out.push_back(id);
    }
    return out;
  }

  /// The text of the numbers. Throws `xla::index_error` for one outside [0, size).
  std::string decode(std::span<const std::int64_t> ids) const {
    std::string out;
    out.reserve(ids.size());
    for (const auto id : ids) out.push_back(decode(id));
    return out;
  }

  /// The character with that number. Throws `xla::index_error` outside [0, size).
  char decode(std::int64_t id) const {
    if (id < 0 || id >= size())
      throw index_error("CharVocab: no character has number " + std::to_string(id) +
                        ", the vocabulary has " + std::to_string(size()));
    return characters_[static_cast<std::size_t>(id)];
  }

 private:
  static std::size_t code(char c) { return static_cast<unsigned char>(c); }

  std::string characters_;
  std::array<std::int64_t, 256> index_;
};

}  // namespace xla::io
