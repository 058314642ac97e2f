// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the files of BERT's tokenizer: tokenizer.json or vocab.txt. tokenizer.hpp calls it; the
// tokenizer itself is data/bert_tokenizer.hpp and needs no JSON.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/path.hpp"
#include "xla/data/bert_tokenizer.hpp"
#include "xla/ext/json_values.hpp"

namespace xla::ext {
namespace detail {

/// Reads Hugging Face's tokenizer.json of WordPiece as BERT's. Settings that data::BertTokenizer
/// does not have are refused.
class word_piece_file {
 public:
  explicit word_piece_file(const std::string& path) : file_(json_values::read(path)) {}

  data::BertTokenizer tokenizer() const {
    const auto model = file_.object("model");
    expect(model, "type", "WordPiece");
    expect(model, "unk_token", "[UNK]");
    expect(model, "continuing_subword_prefix", "##");
    constexpr int longest = static_cast<int>(data::BertTokenizer::longest_word);
    if (model.number("max_input_chars_per_word", longest) != longest)
      file_.refuse("max_input_chars_per_word is not " + std::to_string(longest));
    expect(file_.object("pre_tokenizer"), "type", "BertPreTokenizer");
    auto tokens = in_order(model.object("vocab"));
    check_added(tokens);
    try {
      return data::BertTokenizer{std::move(tokens), is_lower_case()};
    } catch (const runtime_error& e) {
      file_.refuse(e.what());
    }
  }

 private:
  void expect(const json_values& part, const char* key, const std::string& value) const {
    if (const auto found = part.text(key, ""); found != value)
      file_.refuse(std::string(key) + " is '" + found + "', data::BertTokenizer has '" + value +
                   "'");
  }
  bool is_lower_case() const {
    const auto normalizer = file_.object("normalizer");
    expect(normalizer, "type", "BertNormalizer");
    for (const char* rule : {"clean_text", "handle_chinese_chars"})
      if (!normalizer.boolean(rule, true))
        file_.refuse(std::string(rule) + " is false, data::BertTokenizer has true");
    const bool lower_case = normalizer.boolean("lowercase", true);
    if (normalizer.boolean("strip_accents", lower_case) != lower_case)
      file_.refuse(
          "strip_accents differs from lowercase; data::BertTokenizer leaves accents and case out "
          "together");
    return lower_case;
  }
  std::vector<std::string> in_order(const json_values& vocabulary) const {
    const auto& all = vocabulary.all();
    std::vector<std::string> out(all.size());
    std::vector<bool> taken(all.size(), false);
    for (const auto& [token, number] : all.items()) {
      const auto at = number.is_number_unsigned() ? number.get<std::uint64_t>() : all.size();
      if (at >= all.size() || taken[at])
        file_.refuse("token '" + token + "' has number " + json_values::shortened(number) +
                     ", expected one of its own below " + std::to_string(all.size()));
      out[at] = token;
      taken[at] = true;
    }
    return out;
  }
  /// Texts may contain the five special tokens, and no others.
  void check_added(const std::vector<std::string>& tokens) const {
    constexpr std::array<std::string_view, 5> names{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (const auto& entry : file_.list("added_tokens")) {
      const auto name = file_.element(entry).text("content", "");
      if (std::find(names.begin(), names.end(), name) == names.end() ||
          std::find(tokens.begin(), tokens.end(), name) == tokens.end())
        file_.refuse("it adds the token '" + name + "', data::BertTokenizer has no others than "
                     "[PAD], [UNK], [CLS], [SEP] and [MASK]");
    }
  }

  json_values file_;
};

/// From a vocab.txt, with the case setting of the tokenizer_config.json in its folder.
inline data::BertTokenizer bert_vocabulary(const std::filesystem::path& path) {
  const auto config = path.parent_path() / "tokenizer_config.json";
  bool lower_case = true;
  if (std::filesystem::exists(config)) {
    const auto file = json_values::read(sys::text_of(config));
    lower_case = file.boolean("do_lower_case", true);
    if (file.boolean("strip_accents", lower_case) != lower_case)
      file.refuse("strip_accents differs from do_lower_case, data::BertTokenizer has both or none");
  }
  return data::BertTokenizer::from_file(sys::text_of(path), lower_case);
}

}  // namespace detail

/// BERT's tokenizer from Hugging Face's tokenizer.json (WordPiece), from a vocab.txt, or from a
/// folder with one of them. With a vocab.txt, tokenizer_config.json says whether letters keep their
/// case. Throws `xla::io_error` with the path and the reason, also for settings that
/// data::BertTokenizer does not have.
inline data::BertTokenizer read_bert_tokenizer(const std::string& path) {
  const auto there = sys::path_of(path);
  if (std::filesystem::is_directory(there)) {
    const auto json = there / "tokenizer.json";
    if (std::filesystem::exists(json)) return read_bert_tokenizer(sys::text_of(json));
    return detail::bert_vocabulary(there / "vocab.txt");
  }
  if (there.extension() == ".json") return detail::word_piece_file(path).tokenizer();
  return detail::bert_vocabulary(there);
}

}  // namespace xla::ext
