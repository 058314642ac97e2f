// SPDX-License-Identifier: Apache-2.0
#pragma once

// ext::Tokenizer: reads a tokenizer of any supported kind and encodes and decodes text. Programs
// that know the kind can use data/bert_tokenizer.hpp or data/bpe_tokenizer.hpp alone.

#include <any>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/system/path.hpp"
#include "xla/ext/bert_files.hpp"
#include "xla/ext/bpe_files.hpp"
#include "xla/ext/tokenizer_interface.hpp"

namespace xla::ext {

/// A tokenizer of any kind: BERT's WordPiece, byte-level BPE, or sentencepiece. Copies share it;
/// several threads may use it.
class Tokenizer {
 public:
  /// One of data::BertTokenizer, data::BpeTokenizer, ext::SentencePieceTokenizer, or of your own.
  template <class Kind>
    requires requires(const Kind& kind) { kind.encode(std::string{}); }
  explicit Tokenizer(Kind kind)
      : it_(std::make_shared<const detail::tokenizer_of<Kind>>(std::move(kind))) {}

  /// The tokenizer of a Hugging Face folder: from tokenizer.json, else from sentencepiece's
  /// tokenizer.model or spiece.model, vocab.txt, or vocab.json and merges.txt. If a tokenizer.json
  /// is of sentencepiece's kind, the model file in the folder is read instead, for which the
  /// program includes <xla/ext/sentencepiece.hpp>. Throws `xla::io_error` with the path and the
  /// reason.
  static Tokenizer from_folder(const std::string& folder) {
    const auto in = sys::path_of(folder);
    const auto has = [&](const char* file) { return std::filesystem::exists(in / file); };
    if (has("tokenizer.json")) {
      const auto path = sys::text_of(in / "tokenizer.json");
      const auto model = detail::json_values::read(path).object("model");
      const auto type = model.text("type", "BPE");
      if (type == "WordPiece") return Tokenizer{read_bert_tokenizer(path)};
      const bool pieces = type == "Unigram" || model.boolean("byte_fallback", false);
      if (!pieces || !(has("tokenizer.model") || has("spiece.model")))
        return Tokenizer{read_bpe_tokenizer(path)};
    }
    for (const char* file : {"tokenizer.model", "spiece.model"})
      if (has(file)) return of_sentencepiece(sys::text_of(in / file));
    if (has("vocab.txt")) return Tokenizer{read_bert_tokenizer(folder)};
    if (has("vocab.json") && has("merges.txt")) return Tokenizer{read_bpe_tokenizer(folder)};
    throw io_error("'" + folder +
                   "' has no tokenizer: neither tokenizer.json, tokenizer.model, spiece.model, "
                   "vocab.txt, nor vocab.json with merges.txt");
  }

  std::int64_t size() const { return it_->size(); }
  /// The tokens of a text, with the special tokens that the kind puts around it.
  std::vector<std::int64_t> encode(const std::string& text) const { return it_->encode(text); }
  /// The text of tokens. Throws `xla::index_error` for a number outside [0, size).
  std::string decode(std::span<const std::int64_t> ids, bool skip_special_tokens = false) const {
    return it_->decode(ids, skip_special_tokens);
  }
  /// The token with a number. Throws `xla::index_error` outside [0, size).
  const std::string& id_to_token(std::int64_t id) const { return it_->id_to_token(id); }
  /// The tokenizer itself if it is of type T, for functions that only that type has; else null.
  template <class Kind>
  const Kind* get_if() const {
    const auto kind = it_->kind_itself();
    const auto* const same = std::any_cast<const Kind*>(&kind);
    return same ? *same : nullptr;
  }

 private:
  explicit Tokenizer(std::shared_ptr<const detail::tokenizer_interface> it) : it_(std::move(it)) {}
  static Tokenizer of_sentencepiece(const std::string& path) {
    if (!detail::sentencepiece_reader)
      throw io_error("'" + path +
                     "' needs the library sentencepiece: install it (Debian: libsentencepiece-dev), "
                     "link xla::sentencepiece and include <xla/ext/sentencepiece.hpp>");
    return Tokenizer{detail::sentencepiece_reader(path)};
  }

  std::shared_ptr<const detail::tokenizer_interface> it_;
};

}  // namespace xla::ext
