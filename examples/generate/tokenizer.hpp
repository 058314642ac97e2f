// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <xla/ext/bpe_files.hpp>
#ifdef XLA_HAS_SENTENCEPIECE
#include <xla/ext/sentencepiece.hpp>
#endif

/// Texts as tokens and back, of whatever kind.
struct Tokenizer {
  std::int64_t size;
  std::function<std::vector<std::int64_t>(const std::string&)> encode;
  std::function<std::string(std::span<const std::int64_t>)> decode;
};

inline Tokenizer read_sentencepiece([[maybe_unused]] const std::string& path) {
#ifdef XLA_HAS_SENTENCEPIECE
  const auto model = std::make_shared<const xla::ext::SentencePieceTokenizer>(path);
  return {model->size(), [model](const std::string& text) { return model->encode(text); },
          [model](std::span<const std::int64_t> ids) { return model->decode(ids); }};
#else
  throw xla::runtime_error("'" + path + "' needs the library sentencepiece: install it (Debian: " +
                           "libsentencepiece-dev) and build this program again");
#endif
}

/// That of a folder: sentencepiece's tokenizer.model, or byte-level BPE in tokenizer.json or
/// vocab.json and merges.txt.
inline Tokenizer read_tokenizer(const std::string& folder) {
  if (const auto path = folder + "/tokenizer.model"; std::filesystem::exists(path))
    return read_sentencepiece(path);
  const auto bpe =
      std::make_shared<const xla::data::BpeTokenizer>(xla::ext::read_bpe_tokenizer(folder));
  return {bpe->size(), [bpe](const std::string& text) { return bpe->encode(text); },
          [bpe](std::span<const std::int64_t> ids) { return bpe->decode(ids, true); }};
}
