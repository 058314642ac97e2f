// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the files of byte-level BPE tokenizers, as GPT-2 and Llama 3 have them. tokenizer.hpp calls
// it; the tokenizer itself is data/bpe_tokenizer.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/path.hpp"
#include "xla/data/bpe_tokenizer.hpp"
#include "xla/ext/json_values.hpp"
#include "xla/io/text.hpp"

namespace xla::ext {
namespace detail {

/// The files of a byte-level BPE tokenizer, one of which has the tokens. Settings that
/// data::BpeTokenizer does not have are refused.
class bpe_file {
 public:
  explicit bpe_file(const std::string& path) : file_(json_values::read(path)) {}

  data::BpeTokenizer tokenizer_json() const {
    const auto model = file_.object("model");
    if (const auto type = model.text("type", "BPE"); type != "BPE")
      file_.refuse("its model is '" + type + "', expected BPE");
    if (model.boolean("byte_fallback", false))
      file_.refuse("its model is sentencepiece's, whose own file is tokenizer.model");
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model.text(affix, "").empty())
        file_.refuse(std::string("its model has an affix: ") + affix);
    if (file_.contains("normalizer"))
      file_.refuse("it changes texts by a normalizer: " +
                   json_values::shortened(file_.all()["normalizer"]));
    for (const char* part : {"vocab", "merges"})
      if (!model.contains(part)) file_.refuse(std::string("its model has no ") + part);
    auto tokens = numbers(model.object("vocab"));
    data::BpeOptions options;
    options.special.clear();
    options.ignore_merges = model.boolean("ignore_merges", false);
    read_pre_tokenizer(options);
    read_added(options, tokens);
    read_template(options);
    return made(std::move(tokens), merges(model), std::move(options));
  }

  data::BpeTokenizer vocab_and_merges(const std::string& merges_path) const {
    return made(numbers(file_), merge_lines(merges_path), {});
  }

 private:
  using numbered = std::vector<std::pair<std::string, std::uint64_t>>;
  using merges_t = std::vector<data::BpeTokenizer::merge>;

  numbered numbers(const json_values& vocabulary) const {
    numbered out;
    for (const auto& [token, number] : vocabulary.all().items()) {
      if (!number.is_number_unsigned()) file_.refuse("token '" + token + "' has no number");
      out.emplace_back(token, number.get<std::uint64_t>());
    }
    return out;
  }
  merges_t merges(const json_values& model) const {
    merges_t out;
    for (const auto& entry : model.list("merges")) {
      if (entry.is_string()) add_merge(out, entry.get<std::string>(), file_.path());
      else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string())
        out.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
      else
        file_.refuse("merge " + std::to_string(out.size()) + " is " +
                     json_values::shortened(entry));
    }
    return out;
  }
  static merges_t merge_lines(const std::string& path) {
    merges_t out;
    const auto all = io::read_text(path, io::max_vocabulary_bytes);
    for (std::string_view rest = all; !rest.empty();) {
      auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty() && !line.starts_with("#version")) add_merge(out, line, path);
    }
    return out;
  }
  static void add_merge(merges_t& to, std::string_view line, const std::string& path) {
    const auto space = line.find(' ');
    if (space == 0 || space + 1 >= line.size() || line.find(' ', space + 1) != line.npos)
      throw io_error("'" + path + "': a merge is two tokens with a space between them, not '" +
                     std::string(line.substr(0, 80)) + "'");
    to.emplace_back(line.substr(0, space), line.substr(space + 1));
  }

  /// The entries of a part of tokenizer.json: null, a single one, or a Sequence.
  std::vector<json_values> steps(const char* part, const char* list) const {
    if (!file_.contains(part)) return {};
    const auto first = file_.object(part);
    if (first.text("type", "") != "Sequence") return {first};
    std::vector<json_values> out;
    for (const auto& step : first.list(list)) out.push_back(first.element(step));
    return out;
  }
  void read_pre_tokenizer(data::BpeOptions& options) const {
    const auto cuts = steps("pre_tokenizer", "pretokenizers");
    const auto is = [&](std::size_t i, const char* type) {
      return i < cuts.size() && cuts[i].text("type", "") == type;
    };
    const bool cut_before = cuts.size() == 2 && is(1, "ByteLevel");
    if (cuts.size() == 1 && is(0, "ByteLevel") && cuts[0].boolean("use_regex", true))
      options.pattern = data::BpePattern::gpt2;
    else if (cut_before && is(0, "Digits") && cuts[0].boolean("individual_digits", false) &&
             cuts[1].boolean("use_regex", true))
      options.pattern = data::BpePattern::digits;
    else if (cut_before && is(0, "Split") && is_llama3(cuts[0]) &&
             !cuts[1].boolean("use_regex", true))
      options.pattern = data::BpePattern::llama3;
    else refuse_cuts("it splits texts differently from GPT-2, SmolLM and Llama 3: ");
    options.add_prefix_space = cuts.back().boolean("add_prefix_space", true);
    if (cut_before && options.add_prefix_space)
      refuse_cuts("it puts a space before each part of a text: ");
  }
  [[noreturn]] void refuse_cuts(const char* why) const {
    const auto cuts = file_.object("pre_tokenizer");
    file_.refuse(why + json_values::shortened(cuts.all()));
  }
  static bool is_llama3(const json_values& split) {
    constexpr auto expression =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
        R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
    return split.object("pattern").text("Regex", "") == expression &&
           split.text("behavior", "") == "Isolated" && !split.boolean("invert", false);
  }
  void read_added(data::BpeOptions& options, numbered& tokens) const {
    for (const auto& entry : file_.list("added_tokens")) {
      const auto token = file_.element(entry);
      if (!token.contains("id") || !entry["id"].is_number_unsigned())
        file_.refuse("an added token has no number: " + json_values::shortened(entry));
      for (const char* rule : {"lstrip", "rstrip", "single_word"})
        if (token.boolean(rule, false))
          file_.refuse(std::string("an added token asks for ") + rule + ": " +
                       json_values::shortened(entry));
      const auto name = token.text("content", "");
      (token.boolean("special", false) ? options.special : options.added).push_back(name);
      tokens.emplace_back(name, entry["id"].get<std::uint64_t>());
    }
  }
  /// The special tokens that a template puts around a text: [{"SpecialToken": {"id": …}},
  /// {"Sequence": …}].
  void read_template(data::BpeOptions& options) const {
    for (const auto& step : steps("post_processor", "processors")) {
      const auto type = step.text("type", "");
      if (type == "ByteLevel") continue;
      if (type != "TemplateProcessing")
        file_.refuse("its post_processor is " + json_values::shortened(step.all()));
      auto* to = &options.before;
      for (const auto& entry : step.list("single")) {
        const auto part = step.element(entry);
        if (part.contains("Sequence")) to = &options.after;
        else to->push_back(part.object("SpecialToken").text("id"));
      }
    }
  }

  data::BpeTokenizer made(const numbered& tokens, const merges_t& merges,
                          data::BpeOptions options) const {
    std::vector<std::string> in_order(tokens.size());
    std::size_t end = 0, filled = 0;
    for (const auto& [token, number] : tokens) {
      if (number >= tokens.size())
        file_.refuse("token '" + token + "' has number " + std::to_string(number) + ", there are " +
                     std::to_string(tokens.size()));
      auto& entry = in_order[static_cast<std::size_t>(number)];
      if (entry.empty()) ++filled;
      else if (entry != token) file_.refuse("'" + entry + "' and '" + token + "' have one number");
      entry = token;
      end = std::max(end, static_cast<std::size_t>(number) + 1);
    }
    if (filled != end) file_.refuse("the numbers of its tokens have gaps");
    in_order.resize(end);
    try {
      return {std::move(in_order), merges, std::move(options)};
    } catch (const runtime_error& e) {
      file_.refuse(e.what());
    }
  }

  json_values file_;
};

}  // namespace detail

/// A tokenizer from GPT-2's two files, vocab.json and merges.txt. Throws `xla::io_error` with the
/// path and the reason.
inline data::BpeTokenizer read_bpe_tokenizer(const std::string& vocab_json,
                                             const std::string& merges_txt) {
  return detail::bpe_file(vocab_json).vocab_and_merges(merges_txt);
}

/// A tokenizer from Hugging Face's tokenizer.json, as GPT-2, SmolLM 2 and Llama 3 have it, or from
/// a folder with that file or with vocab.json and merges.txt. Throws `xla::io_error` with the path
/// and the reason, also for settings that data::BpeTokenizer does not have: a normalizer, or
/// another way to split texts.
inline data::BpeTokenizer read_bpe_tokenizer(const std::string& path) {
  const auto folder = sys::path_of(path);
  if (!std::filesystem::is_directory(folder)) return detail::bpe_file(path).tokenizer_json();
  if (const auto file = folder / "tokenizer.json"; std::filesystem::exists(file))
    return detail::bpe_file(sys::text_of(file)).tokenizer_json();
  return read_bpe_tokenizer(sys::text_of(folder / "vocab.json"),
                            sys::text_of(folder / "merges.txt"));
}

}  // namespace xla::ext
