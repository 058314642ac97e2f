// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tokenizers of the sentencepiece library, such as Llama 2's. Including it lets ext::Tokenizer read
// such models, too.

#include <sentencepiece_processor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/ext/tokenizer_interface.hpp"
#include "xla/io/text.hpp"

namespace xla::ext {

/// A model of the sentencepiece library, such as Llama 2's tokenizer.model: encodes and decodes
/// texts. Several threads may use it. Kudo and Richardson (2018).
class SentencePieceTokenizer {
 public:
  /// Reads a model. add_bos: encode() begins with the begin-of-text token, as Llama expects. Throws
  /// `xla::io_error` with the path and the reason.
  explicit SentencePieceTokenizer(const std::string& path, bool add_bos = true)
      : add_bos_(add_bos) {
    const auto status =
        processor_.LoadFromSerializedProto(io::read_text(path, io::max_vocabulary_bytes));
    if (!status.ok())
      throw io_error("'" + path + "' is no sentencepiece model that can be read: " +
                     std::string(status.message()));
    if (add_bos && bos_token_id() < 0)
      throw io_error("'" + path + "' has no token for the begin of a text: take add_bos = false");
  }

  std::int64_t size() const { return processor_.GetPieceSize(); }
  /// The tokens for the begin and end of a text and for padding; -1 if there is none.
  std::int64_t bos_token_id() const { return processor_.bos_id(); }
  std::int64_t eos_token_id() const { return processor_.eos_id(); }
  std::int64_t pad_token_id() const { return processor_.pad_id(); }
  std::int64_t unk_token_id() const { return processor_.unk_id(); }

  /// The number of a token, or that of the unknown token if it is not in the model.
  std::int64_t token_to_id(std::string_view token) const {
    return processor_.PieceToId({token.data(), token.size()});
  }
  /// The token with a number. Throws `xla::index_error` outside [0, size).
  const std::string& id_to_token(std::int64_t id) const {
    return processor_.IdToPiece(checked(id));
  }

  /// The tokens of a text (UTF-8), after the begin-of-text token if add_bos is set.
  std::vector<std::int64_t> encode(std::string_view text, bool add_special_tokens = true) const {
    std::vector<int> ids;
    if (const auto status = processor_.Encode({text.data(), text.size()}, &ids); !status.ok())
      throw runtime_error("SentencePieceTokenizer: " + std::string(status.message()));
    std::vector<std::int64_t> out;
    if (add_bos_ && add_special_tokens) out.push_back(bos_token_id());
    out.insert(out.end(), ids.begin(), ids.end());
    return out;
  }
  /// The text of tokens; those for begin, end and padding have none. Throws `xla::index_error` for
  /// a number outside [0, size).
  std::string decode(std::span<const std::int64_t> ids) const {
    std::vector<int> numbers;
    for (const auto id : ids) numbers.push_back(checked(id));
    std::string out;
    if (const auto status = processor_.Decode(numbers, &out); !status.ok())
      throw runtime_error("SentencePieceTokenizer: " + std::string(status.message()));
    return out;
  }

 private:
  int checked(std::int64_t id) const {
    if (id < 0 || id >= size())
      throw index_error("SentencePieceTokenizer: no token has number " + std::to_string(id) +
                        ", the model has " + std::to_string(size()));
    return static_cast<int>(id);
  }

  sentencepiece::SentencePieceProcessor processor_;
  bool add_bos_;
};

namespace detail {
/// Lets ext::Tokenizer read models of sentencepiece.
inline const bool reads_sentencepiece = [] {
  sentencepiece_reader = [](const std::string& path) -> std::shared_ptr<const tokenizer_interface> {
    return std::make_shared<const tokenizer_of<SentencePieceTokenizer>>(path);
  };
  return true;
}();
}  // namespace detail

}  // namespace xla::ext
